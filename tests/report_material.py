"""Frames of a report with a few shifts whose every number is given by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from inconvenient.config import Params
from inconvenient.report.material import Material, join

DEFAULTS: dict[str, Any] = {
    "dataset": "a",
    "task": "regression",
    "kind": "single",
    "feature": "x",
    "importance_bin": "top",
    "operation": "amplify",
    "factor": 2.0,
    "mode": "at_least",
    "min_fraction": 0.5,
    "achieved": 2.0,
    "t_pool": [5.0],
    "pool_rows": 100,
    "size": 50,
    "fraction": 0.5,
    "strategy": "push",
    "p_uniform": 0.0,
    "label_tv": 0.1,
    "smd_mean": 0.1,
    "smd_max": 0.2,
    "outcome": "verified",
    "id": 0.8,
    "control": 0.7,
    "ood": 0.5,
    "retained": True,
    "retained_paper": True,
    "published": True,
    "reason": "",
    "collateral": 0.5,
    "collateral_control": 0.2,
    "rows": b"",
}


def hand_frames(
    rows: Sequence[Mapping[str, Any]],
    *,
    score: Mapping[str, float] | None = None,
    baseline: str = "linear",
) -> dict[str, pd.DataFrame]:
    """Return frames with one verified shift per row; what a row does not say is DEFAULTS.

    Each shift has rows of its own unless its row says ``rows_hash``.
    """
    own = [{"rows_hash": f"h{i}", **DEFAULTS, **row} for i, row in enumerate(rows)]
    table = pd.DataFrame(own)
    table.insert(0, "shift_id", [f"{row['dataset']}/{i:03d}" for i, row in enumerate(own)])
    table["factor"] = (
        table["factor"].astype("float64").where(table["operation"] != "flip", math.nan)
    )
    names = sorted(set(table["dataset"]))
    tasks = dict(zip(table["dataset"], table["task"]))
    scores = table[["shift_id"]].assign(baseline=baseline, status="ok")
    for part in ("id", "control", "ood"):
        scores[f"score_{part}"] = table[part]
    flags = ["shift_id", "retained", "retained_paper", "published", "reason"]
    return {
        "split/datasets": pd.DataFrame(
            {"dataset": names, "status": "ok", "rows": 200, "pool": 100, "family": ""}
        ),
        "reference/datasets": pd.DataFrame(
            {
                "dataset": names,
                "task": [tasks[name] for name in names],
                "score": [(score or {}).get(name, 0.9) for name in names],
            }
        ),
        "shifts/candidates": table.drop(columns=["rows"]),
        "shifts/shifts": table,
        "filter/filter": table[flags],
        "evaluate/default": scores,
        "evaluate/tuned": scores[:0],
        "collateral/collateral": table[["shift_id", "collateral", "collateral_control"]],
    }


def hand_material(rows: Sequence[Mapping[str, Any]], params: Params, **more: Any) -> Material:
    """Return the joined frames of :func:`hand_frames`."""
    return join(hand_frames(rows, **more), params, {})
