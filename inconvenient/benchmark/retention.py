"""Retention: which verified shifts the filters keep, and which of them are published."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from inconvenient.config import FilterParams
from inconvenient.shifts.rows import unpack_rows

__all__ = ["published", "retain"]


def retain(scores: pd.DataFrame, shifts: pd.DataFrame, params: FilterParams) -> pd.DataFrame:
    """Decide which shifts are retained.

    Parameters
    ----------
    scores : DataFrame
        As from :func:`~inconvenient.benchmark.filters.filter_scores`; the result of this function
        serves as well, so that another bound is tabulated by
        ``retain(filtered, shifts, replace(params, ...))``.
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
    out = scores.drop(columns=[c for c in (*added, "published") if c in scores])
    out = out.sort_values("shift_id")
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

    for suffix, eligible in (
        ("", within & large & beyond),
        ("_paper", in_range["id"] & in_range["ood"] & large_paper),
    ):
        visited = _visited(out["shift_id"], out[f"gap{suffix}"], eligible)
        by = _subsumed(own, visited, params.max_jaccard)
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
    front = [c for c in scores.columns if c not in (*added, "failure", "published")]
    back = ["failure"] if "failure" in scores else []
    return out[[*front, *added, *back]]


def published(filtered: pd.DataFrame, shifts: pd.DataFrame, params: FilterParams) -> pd.Series:
    """Decide which shifts are published.

    Parameters
    ----------
    filtered : DataFrame
        As from :func:`retain`.
    shifts : DataFrame
        Verified shifts: columns ``shift_id``, ``dataset`` and ``rows``.
    params : FilterParams

    Returns
    -------
    Series of bool
        In the order of ``filtered``: every retained shift; then those of ``retained_paper``, by
        falling ``gap_paper``, ties by shift id, whose row set has a Jaccard similarity of at most
        ``max_jaccard`` with each one taken before.

    Notes
    -----
    So no two published row sets of a dataset are more similar than that: those of ``retained``
    are not among themselves, and any other is compared with all that were taken. Cost as of
    :func:`retain`.
    """
    own = shifts.set_index("shift_id").loc[filtered["shift_id"]]
    first = filtered["retained"].to_numpy(dtype=bool)
    visited = np.concatenate(
        [
            np.flatnonzero(first),
            _visited(
                filtered["shift_id"],
                filtered["gap_paper"],
                filtered["retained_paper"].to_numpy(dtype=bool) & ~first,
            ),
        ]
    )
    by = _subsumed(own, visited, params.max_jaccard)
    taken = np.zeros(len(filtered), dtype=bool)
    taken[visited] = [not by[i] for i in visited]
    return pd.Series(taken, index=filtered.index, name="published")


def _visited(ids: pd.Series, gap: pd.Series, eligible: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the positions of eligible shifts by falling gap, ties by id."""
    order = pd.DataFrame({"id": ids.to_numpy(), "gap": -gap.to_numpy(), "at": range(len(ids))})
    order = order[eligible].sort_values(["gap", "id"])
    return order["at"].to_numpy(dtype=np.int64)


def _subsumed(shifts: pd.DataFrame, visited: NDArray[np.int64], max_jaccard: float) -> list[str]:
    """Return per shift the id of the kept shift that subsumes it, or "".

    Parameters
    ----------
    shifts : DataFrame
        Indexed by shift id; ``dataset`` and ``rows``.
    visited : ndarray of int64
        Positions in ``shifts``, in order of visit; those left out neither drop nor are dropped.
    """
    by = [""] * len(shifts)
    names = shifts["dataset"].to_numpy(dtype=object)[visited]
    ids, packed = shifts.index.to_numpy(dtype=object), shifts["rows"].to_numpy(dtype=object)
    for name in pd.unique(names):
        own = visited[names == name]
        for at, kept in _similar([packed[i] for i in own], max_jaccard):
            by[own[at]] = str(ids[own[kept]])
    return by


def _similar(packed: Sequence[bytes], max_jaccard: float) -> Iterator[tuple[int, int]]:
    """Yield the positions of dropped row sets, each with the first kept one that is too similar."""
    sets = [unpack_rows(rows) for rows in packed]
    words = max(int(rows.max()) for rows in sets) // 64 + 1
    bits = np.zeros((len(sets), words), dtype=np.uint64)  # rows 0..k-1 hold the kept sets
    sizes = np.zeros(len(sets), dtype=np.int64)
    kept: list[int] = []
    for at, rows in enumerate(sets):
        k = len(kept)
        flags = np.zeros(words * 64, dtype=np.uint8)
        flags[rows] = 1
        bits[k] = np.packbits(flags).view(np.uint64)
        sizes[k] = rows.size
        # The similarity is at most the ratio of the sizes.
        small, large = np.minimum(sizes[:k], rows.size), np.maximum(sizes[:k], rows.size)
        near = np.flatnonzero(small > max_jaccard * large)
        both = np.bitwise_count(bits[near] & bits[k]).sum(axis=1, dtype=np.int64)
        above = np.flatnonzero(both > max_jaccard * (sizes[near] + rows.size - both))
        if above.size:
            yield at, kept[int(near[above[0]])]
        else:
            kept.append(at)
