"""The split of a dataset into pool and population test set, and of the latter into two halves."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt
import pandas as pd

from inconvenient.data.dataset import Dataset
from inconvenient.errors import SplitError

__all__ = ["Split", "split_dataset"]

IntArray = npt.NDArray[np.int64]

MIN_SHARE, MAX_SHARE = 0.45, 0.55
MIN_CLASS_SIDE = 10
MIN_CLASS_HALF = 5
DECILES = 10


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Row ids of the pool and of the two halves of the population test set.

    Parameters
    ----------
    pool : int64 array
        Rows from which training samples are selected, sorted.
    filter : int64 array
        Test rows that decide what is retained, sorted.
    report : int64 array
        Test rows that give every published score, sorted.
    """

    pool: IntArray
    filter: IntArray
    report: IntArray

    def __post_init__(self) -> None:
        for name in ("pool", "filter", "report"):
            rows = np.sort(np.asarray(getattr(self, name), dtype=np.int64))
            rows.flags.writeable = False
            object.__setattr__(self, name, rows)

    @property
    def test(self) -> IntArray:
        """Row ids of the whole population test set, sorted."""
        return np.sort(np.concatenate([self.filter, self.report]))


def split_dataset(dataset: Dataset, *, seed: int) -> Split:
    """Split a dataset once in two, and its test side once more.

    Parameters
    ----------
    dataset : Dataset
        With ``groups``, a cluster lies on one side and in one half as a whole.
    seed : int
        Seed of both splits.

    Returns
    -------
    Split

    Raises
    ------
    SplitError
        If a side would hold less than 45 % or more than 55 % of the rows, a class fewer than 10
        rows on a side or fewer than 5 in a half, or the clusters are fewer than four.

    Notes
    -----
    Stratified on the classes, or on ten strata of the target's rank (equal values are ranked by
    row, so that ties make no stratum larger than another), by scikit-learn's StratifiedKFold, or
    StratifiedGroupKFold where there are clusters.
    """
    y = dataset.y
    regression = dataset.task == "regression"
    strata = _deciles(y) if regression else np.asarray(y, dtype=np.int64)
    names = () if regression else dataset.classes
    n = len(strata)
    if n < 40:
        raise SplitError(f"{dataset.name}: a split needs at least 40 rows, got {n}; add rows")
    if not regression:
        _check_classes(dataset.name, strata, names, 2 * MIN_CLASS_SIDE, "the table")
    everything = np.arange(n, dtype=np.int64)
    pool, test = _halve(dataset, everything, strata, seed)
    share = len(pool) / n
    if not MIN_SHARE <= share <= MAX_SHARE:
        raise SplitError(
            f"{dataset.name}: the pool would hold {share:.1%} of the rows, needed 45 to 55 %; "
            "the clusters are too large to be divided evenly"
        )
    if regression:
        # Strata of the test side's own ranks keep its halves alike however the pool fell.
        strata[test] = _deciles(y[test])
    filter_rows, report_rows = _halve(dataset, test, strata, seed + 1)
    if not regression:
        for rows, least, side in (
            (pool, MIN_CLASS_SIDE, "the pool"),
            (test, MIN_CLASS_SIDE, "the population test set"),
            (filter_rows, MIN_CLASS_HALF, "the filter half"),
            (report_rows, MIN_CLASS_HALF, "the report half"),
        ):
            _check_classes(dataset.name, strata[rows], names, least, side)
    return Split(pool=pool, filter=filter_rows, report=report_rows)


def _deciles(y: npt.NDArray[np.generic]) -> IntArray:
    """Return each value's decile by rank, int64 (n,); ties in rank go by row."""
    ranks = np.empty(len(y), dtype=np.int64)
    ranks[np.argsort(y, kind="stable")] = np.arange(len(y))
    return ranks * DECILES // max(len(y), 1)


def _halve(
    dataset: Dataset, rows: IntArray, strata: IntArray, seed: int
) -> tuple[IntArray, IntArray]:
    """Return two disjoint halves of ``rows``, each sorted."""
    # Here, for it takes a third of a second, and a module that only knows of splits needs none.
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    labels = strata[rows]
    if dataset.groups is None:
        folds = StratifiedKFold(n_splits=2, shuffle=True, random_state=seed)
        first, second = next(folds.split(np.zeros((len(rows), 1)), labels))
    else:
        groups = dataset.groups[rows]
        clusters = len(pd.unique(groups))
        if clusters < 4:
            raise SplitError(
                f"{dataset.name}: {len(rows)} rows to be halved lie in {clusters} clusters, needed "
                "at least 4; name a finer group column or none"
            )
        grouped = StratifiedGroupKFold(n_splits=2, shuffle=True, random_state=seed)
        first, second = next(grouped.split(np.zeros((len(rows), 1)), labels, groups))
    return np.sort(rows[first]), np.sort(rows[second])


def _check_classes(
    name: str, codes: IntArray, classes: tuple[str, ...], least: int, side: str
) -> None:
    counts = np.bincount(codes, minlength=len(classes))
    for class_, count in zip(classes, counts):
        if count < least:
            raise SplitError(
                f"{name}: class {class_!r} has {count} rows in {side}, needed at least {least}; "
                "merge it with another class or drop its rows"
            )
