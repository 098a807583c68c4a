"""The tables of the stage ``seeds`` as the page shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

__all__ = ["SEED_FRAMES", "SEED_NUMBERS", "seeds_view"]

Row = dict[str, Any]

#: Frames that are shown if they are given.
SEED_FRAMES = ("seeds/summary", "seeds/spread", "seeds/agreement")

#: Numbers whose spread is shown, and the words for them.
SEED_NUMBERS = {
    "headline": "degradation (medians)",
    "size": "price of size (medians)",
    "bias": "price of bias (medians)",
    "mean_degradation": "degradation (shifts)",
}


def seeds_view(frames: Mapping[str, pd.DataFrame]) -> dict[str, list[Row]] | None:
    """Return what the page shows of the split seeds, None where the frames are not given.

    Parameters
    ----------
    frames : mapping of str to DataFrame
        SEED_FRAMES as from :func:`inconvenient.report.seeds.seed_tables`.

    Returns
    -------
    dict or None
        ``summary``: one row per seed x task x model, retained shifts under the conditions of the
        headline; ``spread``: one row per task x model x set of shifts, ``numbers`` by
        SEED_NUMBERS; ``agreement``: one row per task x set of shifts x unit, all operations.
    """
    if any(name not in frames or not len(frames[name]) for name in SEED_FRAMES):
        return None
    summary, spread, agreement = (frames[name] for name in SEED_FRAMES)
    own = summary[summary["main"] & (summary["shift_set"] == "retained")]
    rows: list[Row] = []
    keys = ["task", "baseline", "shift_set"]
    for key, part in spread[spread["main"]].groupby(keys, sort=False):
        row: Row = dict(zip(keys, key))
        numbers = part.set_index("number").drop(columns=[*keys, "main"])
        row["numbers"] = {name: numbers.loc[name].to_dict() for name in SEED_NUMBERS}
        rows.append(row)
    every = agreement[agreement["operation"] == "all"]
    return {
        "summary": _rows(own),
        "spread": rows,
        "agreement": _rows(every),
    }


def _rows(frame: pd.DataFrame) -> list[Row]:
    return [{str(k): v for k, v in row.items()} for row in frame.to_dict("records")]
