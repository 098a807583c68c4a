"""The design: a pool as a numeric matrix, for the reference model and the selection only."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from inconvenient.errors import DesignError
from inconvenient.selection.levels import Levels, is_numeric, levels_of, raw_values

__all__ = ["INTERCEPT", "Design", "DesignColumn", "build_design", "round_significant"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
A = TypeVar("A", FloatArray, IntArray)

INTERCEPT = "(intercept)"
OTHER_LEVEL = "(other)"

# The part of a standardised column outside the span of the others below which the column counts
# as collinear; below it the normal equations of the kernels would lose half their digits.
_COLLINEAR = 1e-5

# Columns that are written, and rows that are moved, at a time.
_TOGETHER = 8
_CHUNK = 4096


def round_significant(values: npt.ArrayLike, digits: int = 10) -> FloatArray:
    """Round to significant digits, so that last-bit differences decide nothing (tier A).

    Parameters
    ----------
    values : float64 array of any shape
    digits : int

    Returns
    -------
    float64 array of the same shape
    """
    array = np.asarray(values, dtype=np.float64)
    rounded = np.array([float(f"{v:.{digits - 1}e}") for v in array.ravel()])
    return rounded.reshape(array.shape)


@dataclasses.dataclass(frozen=True, slots=True)
class DesignColumn:
    """How one design column comes out of a raw column.

    Parameters
    ----------
    name : str
        "age", or "region=north" for a level.
    feature : str
        The raw column.
    levels : tuple of str, optional
        The raw levels for which a categorical column is 1; None for a numeric column.
    fill : float
        Median of the pool, put where a numeric value is missing.
    mean, scale : float
        Pool mean and standard deviation (divisor n), 10 significant digits.
    """

    name: str
    feature: str
    levels: tuple[str, ...] | None
    fill: float
    mean: float
    scale: float

    def fill_raw(self, values: FloatArray | Levels, raw_out: FloatArray) -> None:
        """Fill the column before standardisation, float64 (n,), from ``raw_values``."""
        if isinstance(values, Levels):
            raw_out[:] = values.among(self.levels or ())
        else:
            # Copied first: a column of a row-major table is read slowly, and once is enough.
            raw_out[:] = values
            np.copyto(raw_out, self.fill, where=np.isnan(raw_out))


@dataclasses.dataclass(frozen=True, slots=True)
class Design:
    """A pool as a matrix.

    Parameters
    ----------
    X : float64 (n, p)
        C-order, read-only; column 0 is the intercept, the others are pool-standardised and
        sorted by name.
    y : float64 (n,)
        Standardised target of a regression, class codes otherwise.
    task : str
        "regression", "binary" or "multiclass".
    n_classes : int
        0 for a regression.
    columns : tuple of str, length p
    features : tuple of str
        Raw columns, sorted by name; those without a design column included.
    feature_of : int64 (p,)
        Index into ``features``; -1 for the intercept.
    removed : tuple of str
        Constant and collinear design columns, by name.
    dependencies : tuple of tuple of str
        Per collinear column, the features that take part in its exact linear dependency.
    encoding : tuple of DesignColumn, length p - 1
        For ``transform``.
    y_mean, y_scale : float
        Of a regression's target; 0 and 1 otherwise.
    """

    X: FloatArray
    y: FloatArray
    task: str
    n_classes: int
    columns: tuple[str, ...]
    features: tuple[str, ...]
    feature_of: IntArray
    removed: tuple[str, ...]
    dependencies: tuple[tuple[str, ...], ...]
    encoding: tuple[DesignColumn, ...]
    y_mean: float
    y_scale: float

    @property
    def free_coefficients(self) -> int:
        """Number of free coefficients of the reference model: p, or p (K - 1) for K > 2."""
        return int(self.X.shape[1]) * max(1, self.n_classes - 1)

    def columns_of(self, feature: str) -> IntArray:
        """Return the indices of the design columns of a feature, int64; empty if it has none."""
        index = self.features.index(feature)
        return np.flatnonzero(self.feature_of == index).astype(np.int64)

    def transform(self, frame: pd.DataFrame) -> FloatArray:
        """Encode other rows of the same table, float64 (n', p); levels never seen are all zero."""
        X = np.empty((len(frame), len(self.columns)))
        X[:, 0] = 1.0
        _encode(self.encoding, frame, {}, X[:, 1:])
        X[:, 1:] -= [column.mean for column in self.encoding]
        X[:, 1:] /= [column.scale for column in self.encoding]
        return X


def _groups_of_levels(levels: Levels, rare_level_share: float) -> dict[str, tuple[str, ...]]:
    """Return the one-hot columns of a categorical feature: level name -> raw levels.

    Without the most frequent level (ties by name). Levels under the share are merged into
    "(other)"; should that still be under the share, it joins the most frequent level, since a
    column that is 1 in hardly any row is constant in most samples.
    """
    names, counts = levels.names, np.bincount(levels.codes, minlength=len(levels.names))
    floor = rare_level_share * len(levels.codes)
    order = sorted(range(len(names)), key=lambda i: (-counts[i], names[i]))
    kept = [i for i in order if counts[i] >= floor] or order[:1]
    rare = order[len(kept) :]
    groups: dict[str, tuple[str, ...]] = {names[i]: (names[i],) for i in kept[1:]}
    if rare and sum(counts[i] for i in rare) >= floor:
        name = OTHER_LEVEL
        while name in groups:
            name += "*"
        groups[name] = tuple(sorted(names[i] for i in rare))
    return groups


def _raw_columns(
    frame: pd.DataFrame, rare_level_share: float
) -> tuple[list[DesignColumn], dict[str, Levels]]:
    """Return the design columns, by name, and the levels of each categorical feature."""
    columns = []
    levels: dict[str, Levels] = {}
    for feature in sorted(frame.columns, key=str):
        series = frame[feature]
        if is_numeric(series):
            values = np.array(series.to_numpy(dtype=np.float64, na_value=np.nan))
            gaps = np.isnan(values)
            present = values[~gaps] if gaps.any() else values
            fill = float(np.median(present, overwrite_input=True)) if present.size else 0.0
            columns.append(DesignColumn(str(feature), str(feature), None, fill, 0.0, 1.0))
        else:
            levels[str(feature)] = levels_of(series)
            groups = _groups_of_levels(levels[str(feature)], rare_level_share)
            for level, raw in groups.items():
                name = f"{feature}={level}"
                columns.append(DesignColumn(name, str(feature), raw, 0.0, 0.0, 1.0))
    return sorted(columns, key=lambda column: column.name), levels


def _read_only(array: A) -> A:
    array.setflags(write=False)
    return array


def _encode(
    columns: Sequence[DesignColumn],
    frame: pd.DataFrame,
    levels: Mapping[str, Levels],
    X_out: FloatArray,
) -> None:
    """Fill the columns before standardisation, (n, p'); each raw column is read once."""
    places: dict[str, list[int]] = {}
    for j, column in enumerate(columns):
        places.setdefault(column.feature, []).append(j)
    # Columns are written a few at a time, for one at a time would touch all of X for each.
    width = min(_TOGETHER, len(columns))
    waiting = np.empty((width, len(frame)))
    at: list[int] = []
    for feature, positions in places.items():
        values = levels[feature] if feature in levels else raw_values(frame[feature])
        for j in positions:
            columns[j].fill_raw(values, waiting[len(at)])
            at.append(j)
            if len(at) == width:
                _scatter(waiting, at, X_out)
                at = []
    _scatter(waiting[: len(at)], at, X_out)


def _scatter(waiting: FloatArray, at: list[int], X_out: FloatArray) -> None:
    if at and at == list(range(at[0], at[0] + len(at))):
        X_out[:, at[0] : at[0] + len(at)] = waiting.T
    else:
        X_out[:, at] = waiting.T


def _standardise(
    X: FloatArray, columns: list[DesignColumn]
) -> tuple[list[DesignColumn], BoolArray]:
    """Standardise all but column 0 in place; return their records, and which columns vary."""
    from inconvenient.kernels.linalg import column_moments

    moments = np.empty(X.shape[1]), np.empty(X.shape[1])
    column_moments(X, *moments)
    mean, scale = (round_significant(moment[1:]) for moment in moments)
    raw = X[:, 1:]
    size = np.maximum(raw.max(axis=0, initial=0.0), -raw.min(axis=0, initial=0.0))
    varies = scale > 1e-10 * size
    raw -= mean
    raw /= np.where(varies, scale, 1.0)
    records = [
        dataclasses.replace(column, mean=float(m), scale=float(s))
        for column, m, s in zip(columns, mean, scale, strict=True)
    ]
    return records, varies


def _independent(X: FloatArray, varying: IntArray) -> tuple[IntArray, dict[int, list[int]]]:
    """Choose a maximal independent set of standardised columns.

    Parameters
    ----------
    X : float64 (n, p)
    varying : int64 (p',)
        The columns to choose from.

    Returns
    -------
    kept : int64 (rank,)
        Ascending.
    repeats : dict of int to list of int
        For each other column the kept ones that it is a combination of.
    """
    from inconvenient.kernels.linalg import add_gram, cholesky, independent_columns, solve

    p = X.shape[1]
    whole = np.zeros((p, p))
    add_gram(X, np.arange(len(X)), 1.0, whole)
    # About the means that are left: those of large columns were rounded, and twins share them.
    whole -= np.outer(whole[:, 0], whole[:, 0]) / len(X)
    gram = np.ascontiguousarray(whole[np.ix_(varying, varying)])
    order = np.empty(len(varying), dtype=np.int64)
    rank = independent_columns(gram, _COLLINEAR, order)
    kept = np.sort(order[:rank])
    block = np.ascontiguousarray(gram[np.ix_(kept, kept)])
    factor = np.empty_like(block)
    cholesky(block, factor)
    repeats = {}
    weight = np.empty(rank)
    for j in sorted(order[rank:].tolist()):
        solve(factor, np.where(kept <= j, gram[j, kept], gram[kept, j]), weight)
        repeats[int(varying[j])] = varying[kept[np.abs(weight) > 1e-6]].tolist()
    return varying[kept], repeats


def _compacted(X: FloatArray, kept: IntArray) -> FloatArray:
    """Return X[:, kept], C-order, in the memory of X, which is lost; ``kept`` ascends."""
    if len(kept) == X.shape[1]:
        return X
    n = len(X)
    compact = X.reshape(-1)[: n * len(kept)].reshape(n, len(kept))
    # A row moves towards the front, so that none is overwritten before it was read.
    for start in range(0, n, _CHUNK):
        compact[start : start + _CHUNK] = X[start : start + _CHUNK].take(kept, axis=1)
    return compact


def build_design(
    frame: pd.DataFrame,
    y: npt.ArrayLike,
    *,
    task: str,
    n_classes: int,
    rare_level_share: float,
) -> Design:
    """Turn the rows of a pool into a design.

    Parameters
    ----------
    frame : DataFrame (n, m)
        Pool rows, features only; numeric, boolean, string or categorical columns, NaN for gaps.
        Never changed.
    y : float64 (n,) or int64 (n,)
        Target, or class codes.
    task : str
        "regression", "binary" or "multiclass".
    n_classes : int
        0 for a regression.
    rare_level_share : float
        Levels under this share of the rows are merged, in [0, 1).

    Returns
    -------
    Design

    Raises
    ------
    DesignError
        If no design column is left, if there are not more rows than coefficients, or if the
        target does not vary.

    Notes
    -----
    Time n p^2 for the collinearity check; memory the float64 design and a few of its columns.
    """
    from inconvenient.kernels.linalg import column_moments

    target = np.array(y, dtype=np.float64)
    y_mean, y_scale = 0.0, 1.0
    if task == "regression":
        moments = np.empty(1), np.empty(1)
        column_moments(np.ascontiguousarray(target[:, None]), *moments)
        y_mean, y_scale = (
            float(round_significant(moments[0])[0]),
            float(round_significant(moments[1])[0]),
        )
        if not y_scale > 1e-10 * float(np.abs(target).max(initial=0.0)):
            raise DesignError(
                "the target must vary by more than 1e-10 of its size, but over these rows it is "
                "constant to that; subtract a constant, name another target or use more rows"
            )
        target = (target - y_mean) / y_scale
    columns, levels = _raw_columns(frame, rare_level_share)
    X = np.empty((len(frame), 1 + len(columns)))
    X[:, 0] = 1.0
    _encode(columns, frame, levels, X[:, 1:])
    del levels
    records, varies = _standardise(X, columns)
    kept, repeats = _independent(X, 1 + np.flatnonzero(varies))
    removed = [column.name for column, v in zip(columns, varies, strict=True) if not v]
    removed += [records[j - 1].name for j in repeats]
    if kept.size == 0:
        raise DesignError(
            f"at least one feature that varies was needed, but none of the {frame.shape[1]} does; "
            "use more rows or other columns"
        )
    encoding = tuple(records[j - 1] for j in kept)
    X = _compacted(X, np.concatenate([[0], kept]))
    features = tuple(sorted(map(str, frame.columns)))
    design = Design(
        X=_read_only(X),
        y=_read_only(target),
        task=task,
        n_classes=n_classes,
        columns=(INTERCEPT, *(column.name for column in encoding)),
        features=features,
        feature_of=_read_only(
            np.array([-1, *(features.index(c.feature) for c in encoding)], dtype=np.int64)
        ),
        removed=tuple(sorted(removed)),
        dependencies=tuple(
            tuple(sorted({records[k - 1].feature for k in (j, *those)}))
            for j, those in repeats.items()
        ),
        encoding=encoding,
        y_mean=y_mean,
        y_scale=y_scale,
    )
    if len(frame) <= design.free_coefficients:
        raise DesignError(
            f"more rows than coefficients are needed, got {len(frame)} rows for "
            f"{design.free_coefficients} coefficients; use more rows or drop columns"
        )
    return design
