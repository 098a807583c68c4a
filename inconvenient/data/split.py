"""The split of a dataset into pool and population test set, and of that into its two halves."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import numpy.typing as npt

from inconvenient.data.dataset import Dataset
from inconvenient.errors import SplitError

__all__ = ["Split", "split_dataset"]

IntArray = npt.NDArray[np.int64]

_SIDE_SHARE = (0.45, 0.55)
_CLASS_ROWS_SIDE = 10
_CLASS_ROWS_HALF = 5
# Group-wise folds are balanced at random; another seed may balance what the first did not.
_ATTEMPTS = 20


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Row ids of the parts of a dataset, each int64, ascending and read-only.

    Parameters
    ----------
    pool : int64 (n,)
        Training samples are selected from it.
    filter, report : int64 arrays
        The halves of the population test set: one decides what is retained, the other gives every
        published score.
    """

    pool: IntArray
    filter: IntArray
    report: IntArray

    def __post_init__(self) -> None:
        for part in (self.pool, self.filter, self.report):
            part.setflags(write=False)


def _strata(dataset: Dataset, rows: IntArray) -> IntArray:
    """Return the class of each row, or the decile of its target by rank."""
    y = dataset.y[rows]
    if dataset.task != "regression":
        return y
    # Equal targets share a stratum: that of the lowest rank among them.
    _, inverse, counts = np.unique(y, return_inverse=True, return_counts=True)
    lowest_rank = np.cumsum(counts) - counts
    return lowest_rank[inverse] * 10 // len(y)


def _halve(dataset: Dataset, rows: IntArray, seed: int) -> tuple[IntArray, IntArray]:
    """Split rows in two, stratified, clusters kept whole; the first is the larger if any is."""
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    strata = _strata(dataset, rows)
    kind = StratifiedKFold if dataset.groups is None else StratifiedGroupKFold
    folds = kind(n_splits=2, shuffle=True, random_state=seed)
    groups = None if dataset.groups is None else dataset.groups[rows]
    with warnings.catch_warnings():
        # A stratum of one row cannot be on both sides; the requirements below decide.
        warnings.filterwarnings("ignore", message="The least populated class")
        try:
            first, second = next(folds.split(np.zeros(len(rows)), strata, groups))
        except ValueError as error:
            raise SplitError(
                f"dataset {dataset.name} cannot be split in two: {error}; "
                "use more rows, or merge small classes"
            ) from error
    return np.sort(rows[first]), np.sort(rows[second])


def _problem(dataset: Dataset, sides: tuple[IntArray, IntArray], class_rows: int) -> str:
    """Return what a split in two lacks, or ""."""
    total = sum(map(len, sides))
    for side in sides:
        if not _SIDE_SHARE[0] <= len(side) / total <= _SIDE_SHARE[1]:
            return f"a side holds {len(side)} of {total} rows, outside 45-55 %"
        if dataset.task == "regression":
            if len(np.unique(dataset.y[side])) < 2:
                return "the target is constant on a side"
            continue
        counts = np.bincount(dataset.y[side], minlength=len(dataset.classes))
        if counts.min() < class_rows:
            label = dataset.classes[int(counts.argmin())]
            return f"class {label!r} has {counts.min()} rows on a side, fewer than {class_rows}"
    return ""


def _checked_halves(
    dataset: Dataset, rows: IntArray, seed: int, class_rows: int, what: str
) -> tuple[IntArray, IntArray]:
    attempts = 1 if dataset.groups is None else _ATTEMPTS
    problem = ""
    for attempt in range(attempts):
        sides = _halve(dataset, rows, seed + attempt)
        problem = _problem(dataset, sides, class_rows)
        if not problem:
            return sides
    raise SplitError(
        f"dataset {dataset.name} cannot be used: splitting {what}, {problem}; "
        "merge or drop small classes, or use more rows"
    )


def split_dataset(dataset: Dataset, *, seed: int) -> Split:
    """Split a dataset into pool, filter half and report half.

    Parameters
    ----------
    dataset : Dataset
    seed : int
        In [0, 2**32 - 40].

    Returns
    -------
    Split

    Raises
    ------
    SplitError
        If a side of the first split has not 45-55 % of the rows or fewer than 10 rows of a class,
        or a half of the test set fewer than 5.

    Notes
    -----
    Stratified by class, or by decile of the target; with clusters by StratifiedGroupKFold, for up
    to 20 seeds from the given one on, until the sides are balanced.
    """
    everything = np.arange(len(dataset.frame), dtype=np.int64)
    pool, test = _checked_halves(
        dataset, everything, seed, _CLASS_ROWS_SIDE, "pool from population test set"
    )
    filter_half, report_half = _checked_halves(
        dataset, test, seed + _ATTEMPTS, _CLASS_ROWS_HALF, "the population test set in halves"
    )
    return Split(pool, filter_half, report_half)
