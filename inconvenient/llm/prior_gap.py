"""The share of the gap from OOD to ID that a prior closes, with its interval."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pandas as pd

from inconvenient.data.bootstrap import Bootstrap
from inconvenient.errors import InputError

__all__ = ["gap_closed"]

_TASKS = ("regression", "binary", "multiclass")


def gap_closed(table: pd.DataFrame, base: pd.DataFrame, *, seed: int = 0) -> pd.DataFrame:
    """Return the share of the gap between OOD and ID score of a baseline that a model closes.

    Parameters
    ----------
    table, base : DataFrame
        Of :func:`inconvenient.evaluate`: the model's scores and the baseline's, a row per shift.
    seed : int
        Of the bootstrap.

    Returns
    -------
    DataFrame
        A row per task: ``shifts`` that both have scores of, ``left_out``, ``datasets``; ``gained``
        (mean over shifts of the model's minus the baseline's OOD score), ``gap`` (mean of ID minus
        OOD of the baseline); ``closed``, the first over the second, and its 95 % interval ``low``,
        ``high``. 1 is all of the gap, a negative share widens it.

    Raises
    ------
    InputError
        If a table has a shift twice.

    Notes
    -----
    A ratio of means, never a mean of ratios: single gaps come near zero. The interval resamples
    survey families, and datasets within, with all shifts of a dataset together; it is NaN with
    fewer than three families, or where the gap itself is not clearly above zero. Its ends are the
    quantiles of the ratio over the resamples, found as the r for which the quantile of gained -
    r gap is zero.
    """
    from inconvenient.data import list_datasets

    for one in (table, base):
        if one["shift_id"].duplicated().any():
            twice = one["shift_id"][one["shift_id"].duplicated()].iloc[0]
            raise InputError(f"a table must have one row per shift, got {twice!r} more than once")
    catalogue = list_datasets()
    bootstrap = Bootstrap(dict(zip(catalogue["name"], catalogue["family"])), seed=seed)
    columns = ["shift_id", "score_id", "score_ood"]
    both = table[["shift_id", "dataset", "task", "score_ood"]].merge(
        base[columns], on="shift_id", suffixes=("", "_base")
    )
    rows = []
    for task in [task for task in _TASKS if task in set(both["task"])]:
        own = both[both["task"] == task]
        sound = own.dropna()
        gained = sound["score_ood"] - sound["score_ood_base"]
        gap = sound["score_id"] - sound["score_ood_base"]
        row: dict[str, Any] = {
            "task": task,
            "shifts": len(sound),
            "left_out": len(own) - len(sound),
            "datasets": sound["dataset"].nunique(),
            "gained": float(gained.mean()),
            "gap": float(gap.mean()),
        }
        row["closed"] = row["gained"] / row["gap"] if row["gap"] > 0 else math.nan
        sums = gained.groupby(sound["dataset"]).sum(), gap.groupby(sound["dataset"]).sum()
        row["low"], row["high"] = _interval(bootstrap, *sums)
        rows.append(row)
    return pd.DataFrame(rows)


def _interval(bootstrap: Bootstrap, gained: pd.Series, gap: pd.Series) -> tuple[float, float]:
    """Return the interval of sum(gained) / sum(gap) over resamples of their datasets."""
    from scipy.optimize import brentq

    if not len(gap) or not bootstrap.interval(gap)[0] > 0:
        return math.nan, math.nan

    def end(which: int) -> Callable[[float], float]:
        return lambda r: bootstrap.interval(gained - r * gap)[which]

    ends = []
    for which in (0, 1):
        reach = 1.0
        while end(which)(-reach) < 0 or end(which)(reach) > 0:
            reach *= 2.0
        ends.append(float(brentq(end(which), -reach, reach, xtol=1e-12)))
    return ends[0], ends[1]
