"""Made-up artefacts of a profile: a fixture for tests of listing and report, not results."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from inconvenient.shifts.rows import pack_rows, rows_hash
from inconvenient.shifts.schema import validate

CELLS = [("amplify", 1.5), ("amplify", 3.0), ("attenuate", 0.5), ("flip", math.nan)]
DATASETS = [
    (f"{task}_{letter}", task)
    for task in ("regression", "binary", "multiclass")
    for letter in "abcd"
]


def _shift(rng: np.random.Generator, base: dict[str, object], n_pool: int) -> dict[str, object]:
    fraction, factor = float(base["min_fraction"]), float(base["factor"])
    size = math.ceil(fraction * n_pool)
    rows = 2 * rng.permutation(n_pool)[:size]
    group = base["kind"] == "group"
    features = ["x1", "x2"] if group else [str(base["feature"])]
    k = len(features)
    ratio = {"amplify": factor * 1.04, "attenuate": factor * 0.96, "flip": -0.3}
    achieved = ratio[str(base["operation"])]
    b = rng.normal(size=k)
    return {
        **base,
        "features": features,
        "columns": features,
        "classes": [""] * k,
        "b_reference": b.tolist(),
        "b_sample": (achieved * b).tolist(),
        "achieved": abs(achieved),
        "t_pool": (8 * b).tolist(),
        "pool_rows": n_pool,
        "size": size,
        "fraction": size / n_pool,
        "strategy": str(rng.choice(["push", "steer", "exchange"])),
        "p_uniform": float(rng.choice([0.0, 0.01, 0.3], p=[0.7, 0.2, 0.1])),
        "rows": pack_rows(rows),
        "rows_hash": rows_hash(rows),
        "label_tv": float(rng.uniform(0, 0.4)),
        "smd_mean": float(rng.uniform(0, 0.4)),
        "smd_max": float(rng.uniform(0.4, 0.9)),
        "ridge": 0.0,
        "separable": False,
    }


def shift_frames(
    datasets: Sequence[tuple[str, str]], *, n_pool: int = 400, seed: int = 1
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return candidates and shifts; about nine cells of ten are verified."""
    rng = np.random.default_rng(seed)
    candidates, shifts = [], []
    for name, task in datasets:
        for label, bin_ in (("x1", "top"), ("x3", "bottom"), ("bin:top", "top")):
            for operation, factor in CELLS:
                modes = ["at_least"]
                if operation != "flip" and not label.startswith("bin:"):
                    modes.append("band")
                for mode in modes:
                    for fraction in (0.1, 0.2, 0.3, 0.5):
                        dose = "" if math.isnan(factor) else f"-x{factor:g}"
                        base: dict[str, object] = {
                            "shift_id": f"{name}/{label}/{operation}{dose}/{fraction:g}/{mode}",
                            "dataset": name,
                            "task": task,
                            "kind": "group" if label.startswith("bin:") else "single",
                            "feature": "" if label.startswith("bin:") else label,
                            "importance_bin": bin_,
                            "operation": operation,
                            "factor": factor,
                            "mode": mode,
                            "min_fraction": fraction,
                        }
                        outcome = "infeasible_size" if fraction < 0.2 else "verified"
                        if outcome == "verified" and rng.random() < 0.1:
                            outcome = str(rng.choice(["unmet", "small_class", "close_call"]))
                        candidates.append({**base, "outcome": outcome})
                        if outcome == "verified":
                            shifts.append(_shift(rng, candidates[-1], n_pool))
    return (
        validate(pd.DataFrame(candidates).sort_values("shift_id"), "candidates"),
        validate(pd.DataFrame(shifts).sort_values("shift_id"), "shifts"),
    )


def _drop(shifts: pd.DataFrame, rng: np.random.Generator) -> np.ndarray:
    """Return a loss per shift that grows with severity."""
    base = shifts["operation"].map({"amplify": 0.08, "attenuate": 0.12, "flip": 0.2})
    base = base * shifts["importance_bin"].map({"top": 1.5, "bottom": 0.4}) * 0.3
    return (base / shifts["min_fraction"] + rng.normal(0, 0.03, len(shifts))).to_numpy()


def score_frame(shifts: pd.DataFrame, baselines: Sequence[str], seed: int = 2) -> pd.DataFrame:
    """Return scores of every shift and baseline; the first row failed."""
    rng = np.random.default_rng(seed)
    parts = []
    for baseline in sorted(baselines):
        top = shifts["task"].map({"regression": 0.6, "binary": 0.85, "multiclass": 0.8})
        control = top - 0.02 / shifts["min_fraction"] / 2
        parts.append(
            pd.DataFrame(
                {
                    "shift_id": shifts["shift_id"],
                    "baseline": baseline,
                    "status": "ok",
                    "score_id": top,
                    "score_control": control,
                    "control_sd": 0.01,
                    "score_ood": control - _drop(shifts, rng),
                    "setting": "{}",
                }
            )
        )
    out = pd.concat(parts).sort_values(["shift_id", "baseline"], ignore_index=True)
    if len(out):
        out.loc[0, "status"] = "ValueError: it <did> fail"
        out.loc[0, ["score_control", "control_sd", "score_ood"]] = np.nan
    return out


def profile_frames(
    datasets: Sequence[tuple[str, str]] = tuple(DATASETS), *, failing: bool = True
) -> dict[str, pd.DataFrame]:
    """Return all frames that a report reads; with ``failing`` one dataset was not split."""
    candidates, shifts = shift_frames(datasets)
    names = [name for name, _ in datasets]
    status, rows = ["ok"] * len(names), [800] * len(names)
    if failing:
        names.append("unsplit")
        status.append("class 'rare' has 3 rows in the pool; 10 were needed")
        rows.append(60)
    half = [0 if s != "ok" else r // 2 for s, r in zip(status, rows)]
    quarter = [h // 2 for h in half]
    split = pd.DataFrame({"dataset": names, "status": status, "rows": rows, "pool": half})
    split["filter"] = split["report"] = quarter
    reference = pd.DataFrame(
        {
            "dataset": [name for name, _ in datasets],
            "task": [task for _, task in datasets],
            "n_pool": 400,
            "m": 3,
            "p": 4,
            "ridge": 0.0,
            "separable": False,
            "score": [0.05 if name.endswith("d") else 0.7 for name, _ in datasets],
            "removed": [[] for _ in datasets],
        }
    )
    rng = np.random.default_rng(3)
    gap = _drop(shifts, rng) if len(shifts) else np.empty(0)
    filters = pd.DataFrame({"shift_id": shifts["shift_id"]})
    for model in ("linear", "lightgbm50"):
        filters[f"{model}_id"] = 0.7
        filters[f"{model}_control"] = 0.65
        filters[f"{model}_ood"] = 0.65 - gap
    filters["control_sd"] = 0.01
    filters["failure"] = ""
    filters["gap"], filters["gap_paper"], filters["threshold"] = gap, gap + 0.05, 0.05
    filters["in_range"] = True
    filters["subsumed_by"] = filters["subsumed_by_paper"] = ""
    filters["retained"] = gap > 0.05
    filters["retained_paper"] = gap > 0.0
    filters["published"] = filters["retained_paper"]
    filters["reason"] = np.where(filters["retained"], "", "small_gap")
    drawn = shifts.iloc[::6]
    collateral = pd.DataFrame({"shift_id": shifts["shift_id"]})
    collateral["collateral"] = rng.lognormal(-0.5, 0.5, len(shifts))
    collateral["collateral_control"] = rng.lognormal(-1.2, 0.5, len(shifts))
    return {
        "split/datasets": split,
        "reference/datasets": reference,
        "shifts/candidates": candidates,
        "shifts/shifts": shifts,
        "filter/filter": filters,
        "evaluate/default": score_frame(shifts, ["linear", "lightgbm"]),
        "evaluate/tuned": score_frame(drawn, ["linear", "lightgbm"], seed=4),
        "collateral/collateral": collateral,
    }
