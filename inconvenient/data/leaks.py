"""Finds what gives a target away that should not: columns, gaps, copies of rows or of columns.

Every finding is either mended in the catalogue or answered there with a reason; the check cannot
tell a leak from a good predictor, so it asks for a person's word wherever one is likely.

What is found, by key:

``column``
    The column alone, in a cross-validated tree, reaches R2 0.9 or AUC 0.95 (one class of several:
    0.99), or at least 0.6 or 0.85 and 95 % of what all columns together reach. Of published tables
    whose target was found to be computed from, or recorded with, a column, nearly all are above
    0.9 and 0.95; honest predictors of people's behaviour are seldom above 0.7 and 0.85. The second
    rule is for leaks under noise: where one of many columns is as good as all, the others have
    nothing to add, which is how a copy of the target behaves. R2 is that of the values or of
    their ranks, whichever is larger, so that a few extreme values do not hide a copy.
``column (missing)``
    Whether the column is missing, alone, reaches R2 0.1 or AUC 0.65: absence that is worth more
    than most features was probably decided after the target was known. ``(missing)`` is the same
    of all columns' gaps together, with R2 0.15 or AUC 0.7.
``column (id)``
    Whole numbers that are nearly all distinct and lie as densely as a count of rows or have one
    number of digits; text of which half the values are distinct.
``one column = other column``
    The values determine each other one to one, or the ranks are the same (Spearman above 0.9995).
``linear``
    Numeric columns that are a linear combination of each other, R2 above 0.9999: totals beside
    their parts, complete sets of 0/1 columns.
``duplicates``
    More than 10 % of the rows are copies of an earlier one, in every feature and in the target, of
    another cluster; or more than 1 % where columns as varied as these would hardly give any.
``all columns``
    A linear model of all columns reaches R2 0.95 or AUC 0.99, or boosted trees 0.98 or 0.995:
    an identity, or a task on which no two methods could differ.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from inconvenient.data.columns import is_numeric
from inconvenient.data.leak_scores import (
    Fold,
    Target,
    alone,
    auc,
    boosted,
    folds_of,
    level_means,
    levels,
    linear_fit,
    standard,
)

__all__ = ["Finding", "find_leaks", "unanswered"]

IntArray = npt.NDArray[np.int64]

# Models see at most so many rows, drawn with a fixed seed: enough that a score near a threshold is
# good to about 0.02, few enough for about a second per dataset.
_ROWS = 3000
_SEED = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """Something that may give the target away.

    Parameters
    ----------
    key : str
        Under which the catalogue answers it.
    text : str
        What was measured.
    """

    key: str
    text: str


def unanswered(findings: list[Finding], answers: Any) -> list[Finding]:
    """Return the findings whose key has no answer."""
    return [finding for finding in findings if finding.key not in answers]


def find_leaks(
    X: pd.DataFrame, y: npt.NDArray[Any], *, task: str, groups: IntArray | None = None
) -> list[Finding]:
    """Look for columns, gaps and copies that may give the target away.

    Parameters
    ----------
    X : DataFrame (n, m)
        Features as they are stored.
    y : array (n,)
        Numbers for regression, labels otherwise.
    task : {"regression", "binary", "multiclass"}
    groups : int64 array (n,), optional
        Cluster codes; no cluster is on both sides of a fold.

    Returns
    -------
    list of Finding
        The same on every run.

    Notes
    -----
    Costs m trees on at most 3000 rows, nine fits of boosted trees or fewer, and one pass over the
    whole table for copies.
    """
    target = Target(y, task)
    found = [*_identifiers(X), *_copies_of_columns(X), *_linear(X)]
    found += _copies_of_rows(X, y, groups)
    found += _gaps(X, target)
    rows = np.arange(len(X))
    if len(X) > _ROWS:
        rows = np.sort(np.random.default_rng(_SEED).choice(len(X), _ROWS, replace=False))
    sample, target = X.iloc[rows], Target(np.asarray(y)[rows], task)
    folds = folds_of(target, None if groups is None else groups[rows])
    varied = [name for name in sample.columns if sample[name].nunique(dropna=False) > 1]
    return [*found, *_scores(sample[varied], target, folds)]


def _scores(X: pd.DataFrame, target: Target, folds: list[Fold]) -> Iterator[Finding]:
    """Give the findings that need a model: single columns, and all of them."""
    best = target.overall(target.scores(boosted(X, target, folds)))
    linear = target.overall(target.scores(linear_fit(X, target, folds)))
    metric = target.metric
    limits = (0.95, 0.98) if target.regression else (0.99, 0.995)
    if linear >= limits[0] or best >= limits[1]:
        yield Finding(
            "all columns", f"together {metric} {linear:.3f} (linear), {best:.3f} (boosted trees)"
        )
    high, some = (0.9, 0.6) if target.regression else (0.95, 0.85)
    chance = 0.0 if target.regression else 0.5
    for name in X.columns:
        each = target.scores(alone(X[name], target, folds))
        score = target.overall(each)
        if score >= high:
            yield Finding(str(name), f"alone {metric} {score:.3f}")
        elif score >= some and score - chance >= 0.95 * (best - chance):
            yield Finding(str(name), f"alone {metric} {score:.3f}, all together {best:.3f}")
        elif not target.regression and each.max() >= 0.99:
            class_ = target.classes[int(each.argmax())]
            yield Finding(str(name), f"alone AUC {each.max():.3f} of class {class_}")


def _gaps(X: pd.DataFrame, target: Target) -> Iterator[Finding]:
    """Give the columns whose gaps tell of the target."""
    missing = X.isna().to_numpy()
    count = missing.sum(axis=0)
    limit, joint = (0.1, 0.15) if target.regression else (0.65, 0.7)
    some = np.flatnonzero((count >= 10) & (count <= len(X) - 10))
    for j in some.tolist():
        score = _two_groups(missing[:, j], target)
        if score >= limit:
            yield Finding(
                f"{X.columns[j]} (missing)",
                f"whether it is missing (in {count[j]} rows), alone {target.metric} {score:.3f}",
            )
    patterns = _codes(pd.DataFrame(missing[:, some]))
    if len(some) > 1:
        folds = folds_of(target, None)
        predicted = np.empty_like(target.values)
        for train, test in folds:
            predicted[test] = level_means(patterns, target.values, train)[patterns[test]]
        score = target.overall(target.scores(predicted))
        if score >= joint:
            yield Finding(
                "(missing)", f"which columns are missing, alone {target.metric} {score:.3f}"
            )


def _two_groups(missing: npt.NDArray[np.bool_], target: Target) -> float:
    """Return the R2 of a 0/1 column, or the largest AUC of a class; either direction counts."""
    indicator = missing.astype(np.float64)
    if target.regression:
        return max(float(np.corrcoef(indicator, v)[0, 1] ** 2) for v in target.values.T)
    each = [auc(target.labels == k, indicator) for k in range(target.values.shape[1])]
    return max(max(score, 1 - score) for score in each)


def _identifiers(X: pd.DataFrame) -> Iterator[Finding]:
    for name in X.columns:
        values = X[name].dropna()
        distinct = values.nunique()
        if len(values) < 50:
            continue
        if not is_numeric(values):
            found = distinct >= 0.5 * len(values)
        else:
            numbers = values.to_numpy(dtype=np.float64)
            low, high = numbers.min(), numbers.max()
            dense = high - low < 20 * len(values)
            digits = low >= 1e4 and len(f"{low:.0f}") == len(f"{high:.0f}")
            whole = bool((numbers == np.round(numbers)).all())
            found = whole and distinct >= 0.98 * len(values) and (dense or digits)
        if found:
            yield Finding(f"{name} (id)", f"{distinct} distinct values in {len(values)} rows")


def _copies_of_columns(X: pd.DataFrame) -> Iterator[Finding]:
    """Give the pairs that determine each other, or that order the rows alike."""
    names = [str(name) for name in X.columns]
    codes = {name: levels(X[name]) for name in names}
    ranks = {
        name: standard(X[name].rank().fillna(0.0).to_numpy(dtype=np.float64))
        for name in names
        if is_numeric(X[name]) and codes[name].max() >= 5
    }
    for a, b in itertools.combinations(names, 2):
        # Nearly all distinct, any two columns determine each other.
        few = max(codes[a].max(), codes[b].max()) < 0.5 * len(X)
        # factorize() numbers the values as they first occur: renamed copies have equal codes.
        same = few and codes[a].max() == codes[b].max() and np.array_equal(codes[a], codes[b])
        if same:
            yield Finding(f"{a} = {b}", "the values determine each other")
        elif a in ranks and b in ranks:
            alike = float(ranks[a] @ ranks[b]) / len(X)
            if abs(alike) > 0.9995:
                yield Finding(f"{a} = {b}", f"rank correlation {alike:.4f}")


def _linear(X: pd.DataFrame) -> Iterator[Finding]:
    """Give the numeric columns that are sums of others."""
    names = [str(name) for name in X.columns if is_numeric(X[name]) or X[name].dtype == bool]
    if len(names) < 2:
        return
    numbers = X[names].astype(np.float64)
    full = numbers.dropna()
    if len(full) < max(50, 2 * len(names)):
        full = numbers.fillna(numbers.mean())
    scaled = np.column_stack([standard(full[name].to_numpy()) for name in names])
    varied = np.flatnonzero(scaled.std(axis=0) > 0)
    correlation = scaled[:, varied].T @ scaled[:, varied] / len(full)
    # A ridge of 1e-9 makes exact dependence a large number instead of an error.
    inflation = np.diag(np.linalg.inv(correlation + 1e-9 * np.eye(len(varied))))
    found = [names[j] for j, value in zip(varied, inflation) if value > 1e4]
    if len(found) > 1:
        yield Finding("linear", f"each a linear combination of others: {', '.join(found)}")


def _codes(frame: pd.DataFrame) -> IntArray:
    """Return one code per distinct row."""
    if not frame.shape[1]:
        return np.zeros(len(frame), dtype=np.int64)
    codes = frame.groupby(list(frame.columns), dropna=False, sort=False).ngroup()
    return np.asarray(codes, dtype=np.int64)


def _copies_of_rows(
    X: pd.DataFrame, y: npt.NDArray[Any], groups: IntArray | None
) -> Iterator[Finding]:
    parts = {f"x{j}": levels(X[name]) for j, name in enumerate(X.columns)}
    rows = pd.DataFrame({**parts, "y": levels(pd.Series(y))})
    # Copies within a cluster stay on one side of every split.
    rows = rows if groups is None else rows[~rows.assign(g=groups).duplicated().to_numpy()]
    copies = int(rows.duplicated().sum())
    share = copies / len(X)
    # How many other rows would equal a row if columns were independent: far too few where they
    # are not, and still a sign of copied records where it is next to nothing.
    chance = [float(((np.bincount(rows[c]) / len(rows)) ** 2).sum()) for c in rows.columns]
    expected = len(rows) * float(np.prod(chance))
    if share > 0.1 or (share > 0.01 and expected < 1e-3):
        yield Finding(
            "duplicates", f"{copies} of {len(X)} rows ({share:.1%}) copy an earlier one entirely"
        )
