"""Filters: scores of two fixed models on the filter half, which decide what is retained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from inconvenient.benchmark.filter_models import FILTER_MODELS
from inconvenient.config import Params
from inconvenient.evaluation.plan import plans
from inconvenient.evaluation.runner import score_units
from inconvenient.evaluation.tables import score_table
from inconvenient.store import Unit

if TYPE_CHECKING:
    from inconvenient.data import Dataset, Split

__all__ = ["filter_scores", "filter_units"]


def filter_units(
    datasets: Mapping[str, Dataset],
    splits: Mapping[str, Split],
    shifts: pd.DataFrame,
    params: Params,
) -> list[Unit]:
    """Return the work behind the filter scores of every verified shift, on the filter half.

    Parameters
    ----------
    datasets, splits : mapping of str to Dataset, Split
        At least those that have shifts.
    shifts : DataFrame
        Verified shifts.
    params : Params

    Returns
    -------
    list of Unit
        Keyed by content (see :func:`inconvenient.evaluation.runner.score_units`).
    """
    todo = plans(splits, shifts, controls=params.filter.controls, seed=params.shifts.seed)
    tests = {name: split.filter for name, split in splits.items()}
    return score_units(
        datasets, todo, tests, FILTER_MODELS, stage="filter", seed=params.filter.seed
    )


def filter_scores(
    splits: Mapping[str, Split],
    shifts: pd.DataFrame,
    params: Params,
    frames: Sequence[pd.DataFrame],
) -> pd.DataFrame:
    """Make the table that ``retain`` reads from the results of :func:`filter_units`.

    Returns
    -------
    DataFrame
        One row per shift, sorted by id: ``shift_id``; per model ``<model>_id``,
        ``<model>_control``, ``<model>_ood`` (NaN after a failure); ``control_sd``, the standard
        deviation (divisor one less) over the control samples of the mean over the models;
        ``failure``, the last line of the first failure, or "".
    """
    todo = plans(splits, shifts, controls=params.filter.controls, seed=params.shifts.seed)
    models = [model.name for model in FILTER_MODELS]
    long = score_table(todo, shifts, models, frames, draws=True)
    out = pd.DataFrame({"shift_id": pd.Series(sorted(shifts["shift_id"]), dtype="str")})
    draws = []
    failure = np.full(len(out), "", dtype=object)
    for model in models:
        own = long[long["baseline"] == model].reset_index(drop=True)
        for part in ("id", "control", "ood"):
            out[f"{model}_{part}"] = own[f"score_{part}"]
        draws.append(np.array(own["draws"].tolist()).reshape(len(out), -1))
        status = own["status"].to_numpy(dtype=object)
        failure = np.where((failure == "") & (status != "ok"), status, failure)
    means = np.mean(draws, axis=0)
    out["control_sd"] = means.std(axis=1, ddof=1) if means.shape[1] > 1 else np.nan
    out["failure"] = pd.Series(failure, dtype="str")
    return out
