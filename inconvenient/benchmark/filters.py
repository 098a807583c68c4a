"""Filters: which verified shifts are retained, decided on the filter half by two fixed models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from inconvenient.benchmark.filter_models import FILTER_MODELS
from inconvenient.config import FilterParams, Params
from inconvenient.evaluation.plan import plans
from inconvenient.evaluation.runner import score_units
from inconvenient.evaluation.tables import score_table
from inconvenient.shifts.rows import unpack_rows
from inconvenient.store import Unit

if TYPE_CHECKING:
    from inconvenient.data import Dataset, Split

__all__ = ["filter_scores", "filter_units", "retain"]


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
        Keyed by content (see :func:`inconvenient.evaluation.runner.default_units`).
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
    """Make the table that :func:`retain` reads from the results of :func:`filter_units`.

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


def retain(scores: pd.DataFrame, shifts: pd.DataFrame, params: FilterParams) -> pd.DataFrame:
    """Decide which shifts are retained.

    Parameters
    ----------
    scores : DataFrame
        As from :func:`filter_scores`; the result of this function serves as well, so that
        another bound is tabulated by ``retain(filtered, shifts, replace(params, ...))``.
    shifts : DataFrame
        Verified shifts: columns ``shift_id``, ``dataset``, ``task`` and ``rows``.
    params : FilterParams
        ``r2_lower_bound=-inf`` stands for no bound.

    Returns
    -------
    DataFrame
        One row per shift, sorted by id: the columns of ``scores``, and

        - ``gap``, ``gap_paper``: mean over the models of control minus OOD, of ID minus OOD;
        - ``threshold``: the larger of the least gap and 2 s / sqrt(number of controls), s being
          ``control_sd``. ``retained`` asks gap >= the one and gap > the other;
        - ``in_range``: R2 within [lower bound, 1] for ID, control and OOD of each model (an AUC
          always is, where it exists);
        - ``subsumed_by``, ``subsumed_by_paper``: the kept shift that subsumes this one, or "";
        - ``retained``, ``retained_paper``;
        - ``reason``: "" if retained, else the first that holds of "failed: <line>",
          "out_of_range", "small_gap", "within_chance", "subsumed".

    Notes
    -----
    Subsumption looks only at shifts that meet all the other conditions: they are visited by
    falling gap, ties by shift id; one is dropped if the Jaccard similarity of its row set with
    that of one kept before is above ``max_jaccard``, and kept (retained) if not. A shift that
    fails another condition therefore never displaces one that meets them.
    ``retained_paper`` puts ID in place of control: least gap on ``gap_paper``, range of ID and OOD
    alone, no standard-error condition, and its own order of visit by ``gap_paper``. Cost
    O(k^2 n / 64) for k shifts of a dataset with n rows.
    """
    added = ["gap", "gap_paper", "threshold", "in_range", "subsumed_by", "subsumed_by_paper"]
    added += ["retained", "retained_paper", "reason"]
    out = scores.drop(columns=[c for c in added if c in scores]).sort_values("shift_id")
    out = out.reset_index(drop=True)
    own = shifts.set_index("shift_id").loc[out["shift_id"]]
    regression = (own["task"] == "regression").to_numpy(dtype=bool)

    models = [c.removesuffix("_ood") for c in out.columns if c.endswith("_ood")]
    full, control, ood = (
        out[[f"{m}_{part}" for m in models]].to_numpy(dtype=np.float64)
        for part in ("id", "control", "ood")
    )
    out["gap"] = (control - ood).mean(axis=1)
    out["gap_paper"] = (full - ood).mean(axis=1)
    least = np.where(regression, params.min_gap_r2, params.min_gap_auc)
    chance = 2 * out["control_sd"].to_numpy(dtype=np.float64) / np.sqrt(params.controls)
    out["threshold"] = np.fmax(least, chance)

    low = np.where(regression, params.r2_lower_bound, 0.0)[:, None]
    in_range = {
        part: ((values >= low) & (values <= 1)).all(axis=1)  # False where a score is missing
        for part, values in (("id", full), ("control", control), ("ood", ood))
    }
    within = in_range["id"] & in_range["control"] & in_range["ood"]
    out["in_range"] = np.asarray(within)
    large = out["gap"].to_numpy() >= least
    beyond = out["gap"].to_numpy() > chance
    large_paper = out["gap_paper"].to_numpy() >= least

    sets = _row_sets(own)
    names = own["dataset"].to_numpy(dtype=object)
    ids = out["shift_id"].to_numpy(dtype=object)
    for suffix, eligible, gap in (
        ("", within & large & beyond, out["gap"]),
        ("_paper", in_range["id"] & in_range["ood"] & large_paper, out["gap_paper"]),
    ):
        by = _subsumed(names, ids, gap.to_numpy(), eligible, sets, params.max_jaccard)
        out[f"subsumed_by{suffix}"] = pd.Series(by, dtype="str")
        out[f"retained{suffix}"] = eligible & np.array([not winner for winner in by], dtype=bool)

    failed = np.isnan(full) | np.isnan(control) | np.isnan(ood)
    lines = np.full(len(out), "a score is missing", dtype=object)
    if "failure" in out:
        lines = out["failure"].to_numpy(dtype=object)
    reason = np.select(
        [failed.any(axis=1), ~within, ~large, ~beyond, out["subsumed_by"] != ""],
        ["failed: " + lines, "out_of_range", "small_gap", "within_chance", "subsumed"],
        default="",
    )
    out["reason"] = pd.Series(reason, dtype="str")
    front = [c for c in scores.columns if c not in added and c != "failure"]
    back = ["failure"] if "failure" in scores else []
    return out[[*front, *added, *back]]


def _row_sets(shifts: pd.DataFrame) -> list[NDArray[np.uint64]]:
    """Return each row set as bits, 64 row ids a word."""
    out = []
    for packed in shifts["rows"]:
        rows = unpack_rows(packed)
        bits = np.zeros((int(rows.max()) // 64 + 1) * 64, dtype=np.uint8)
        bits[rows] = 1
        out.append(np.packbits(bits).view(np.uint64))
    return out


def _subsumed(
    names: NDArray[Any],
    ids: NDArray[Any],
    gap: NDArray[np.float64],
    eligible: NDArray[np.bool_],
    sets: Sequence[NDArray[np.uint64]],
    max_jaccard: float,
) -> NDArray[Any]:
    """Return per shift the id of the kept shift that subsumes it, or ""."""
    by = np.full(ids.size, "", dtype=object)
    for name in np.unique(names[eligible]):
        own = np.flatnonzero(eligible & (names == name))
        order = sorted(own.tolist(), key=lambda i: (-gap[i], ids[i]))
        words = max(sets[int(i)].size for i in own)
        bits = np.zeros((own.size, words), dtype=np.uint64)  # rows 0..k-1 hold the kept sets
        sizes = np.zeros(own.size, dtype=np.int64)
        kept: list[int] = []
        for i in order:
            k = len(kept)
            bits[k] = 0
            bits[k, : sets[i].size] = sets[i]
            sizes[k] = int(np.bitwise_count(bits[k]).sum())
            both = np.bitwise_count(bits[:k] & bits[k]).sum(axis=1, dtype=np.int64)
            above = np.flatnonzero(both > max_jaccard * (sizes[:k] + sizes[k] - both))
            if above.size:
                by[i] = ids[kept[int(above[0])]]
            else:
                kept.append(i)
    return by
