"""Encoders fitted on one training sample alone, sound for gaps, unseen levels and empty columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from inconvenient.errors import InputError

__all__ = ["Levels", "NativeEncoder", "OneHotEncoder", "expand_classes"]

RARE_SHARE = 0.01
RARE_ROWS = 3


def _is_numeric(column: pd.Series) -> bool:
    return bool(pd.api.types.is_numeric_dtype(column.dtype))


def _numbers(column: pd.Series) -> NDArray[np.float64]:
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    if np.isinf(values).any():
        raise InputError(
            f"column {column.name!r} must be finite or missing, got an infinite value; "
            "replace it or declare it missing"
        )
    return values


def _column(X: pd.DataFrame, name: Any) -> pd.Series:
    if name not in X.columns:
        raise InputError(
            f"column {name!r} of the training sample is absent from the rows to predict; "
            "pass the same columns"
        )
    column: pd.Series = X[name]
    return column


def expand_classes(
    proba: NDArray[np.float64], present: NDArray[np.int64], n_classes: int
) -> NDArray[np.float64]:
    """Spread probabilities of the classes in a sample over all classes of the dataset.

    Parameters
    ----------
    proba : ndarray of float64, shape (n, len(present))
    present : ndarray of int64
        Codes of the classes in the sample.
    n_classes : int
        Number of classes K of the dataset.

    Returns
    -------
    ndarray of float64, shape (n, K)
        0 for a class that the sample lacks; rows are not renormalised.
    """
    out = np.zeros((proba.shape[0], n_classes))
    out[:, present] = proba
    return out


@dataclass(frozen=True, slots=True)
class Levels:
    """The levels of a categorical column in a training sample, in a fixed order.

    Parameters
    ----------
    names : tuple
        Levels that occur, sorted as strings.
    counts : tuple of int
        How many rows of the sample have each.
    """

    names: tuple[Any, ...]
    counts: tuple[int, ...]

    @classmethod
    def fit(cls, column: pd.Series) -> Levels:
        """Count the levels of a column of the sample; a missing value is none of them."""
        codes, names = _factorise(column)
        counts = np.bincount(codes[codes >= 0], minlength=len(names))
        found = [(name, int(k)) for name, k in zip(names, counts, strict=True) if k]
        found.sort(key=lambda pair: (str(pair[0]), type(pair[0]).__name__))
        return cls(tuple(name for name, _ in found), tuple(k for _, k in found))

    def codes(
        self, column: pd.Series, *, of_level: NDArray[np.int64], unseen: int, missing: int
    ) -> NDArray[np.int64]:
        """Return ``of_level[i]`` for rows with level i, else ``unseen`` or ``missing``."""
        codes, names = _factorise(column)
        position = {name: int(of_level[i]) for i, name in enumerate(self.names)}
        table = np.array([position.get(name, unseen) for name in names] + [missing], dtype=np.int64)
        return table[codes]


def _factorise(column: pd.Series) -> tuple[NDArray[np.int64], list[Any]]:
    """Return codes (-1 for missing) and the values they stand for."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        found, names = column.cat.codes.to_numpy(), column.cat.categories
    else:
        found, names = pd.factorize(column)
    codes: NDArray[np.int64] = np.asarray(found).astype(np.int64)
    return codes, list(names)


@dataclass(frozen=True, slots=True)
class NativeEncoder:
    """Numbers as they are, categories as codes, gaps and unseen categories as NaN (for trees).

    Columns that are constant or all missing in the sample are left out.

    Parameters
    ----------
    columns : tuple
        ``(name, None)`` for a numeric column, ``(name, Levels)`` for a categorical one.
    max_levels : int or None
        Only that many most frequent levels of a column keep a code; the others read as missing.
    """

    columns: tuple[tuple[Any, Levels | None], ...]
    max_levels: int | None = None

    @classmethod
    def fit(cls, X: pd.DataFrame, *, max_levels: int | None = None) -> NativeEncoder:
        """Learn the columns and levels of the training sample."""
        columns: list[tuple[Any, Levels | None]] = []
        for name in X.columns:
            column = X[name]
            if _is_numeric(column):
                values = _numbers(column)
                gap = np.isnan(values)
                known = values[~gap]
                if known.size and (gap.any() or known.min() < known.max()):
                    columns.append((name, None))
            else:
                levels = Levels.fit(column)
                if levels.names and (len(levels.names) > 1 or bool(column.isna().any())):
                    columns.append((name, levels))
        return cls(tuple(columns), max_levels)

    @property
    def categorical(self) -> list[int]:
        """Positions of the categorical columns in the encoded matrix."""
        return [i for i, (_, levels) in enumerate(self.columns) if levels is not None]

    def transform(self, X: pd.DataFrame) -> NDArray[np.float64]:
        """Return the rows as a float64 matrix, shape (n, number of kept columns)."""
        out = np.empty((len(X), len(self.columns)))
        for i, (name, levels) in enumerate(self.columns):
            column = _column(X, name)
            if levels is None:
                out[:, i] = _numbers(column)
                continue
            of_level = self._codes_of(levels)
            codes = levels.codes(column, of_level=of_level, unseen=-1, missing=-1)
            out[:, i] = np.where(codes < 0, np.nan, codes)
        return out

    def _codes_of(self, levels: Levels) -> NDArray[np.int64]:
        k = len(levels.names)
        if self.max_levels is None or k <= self.max_levels:
            return np.arange(k)
        kept = np.sort(np.argsort(-np.array(levels.counts), kind="stable")[: self.max_levels])
        of_level = np.full(k, -1, dtype=np.int64)
        of_level[kept] = np.arange(kept.size)
        return of_level


@dataclass(frozen=True, slots=True)
class OneHotEncoder:
    """Imputed, one-hot, standardised columns (for linear models).

    Numeric columns: median of the sample, and an indicator of missing values where the sample has
    some. Categorical columns: a column per level; levels under 1 % or under 3 rows share a column,
    to which unseen levels belong where it exists (else they are zero everywhere); missing values
    are a level of their own where the sample has some (else zero everywhere). Columns that do not
    vary in the sample are left out; the rest have mean 0 and standard deviation 1 in the sample.

    Parameters
    ----------
    columns : tuple
        Per raw column ``(name, median or Levels, has_missing)``.
    kept, mean, scale : ndarray
        Positions of the raw encoded columns that vary, their means and standard deviations.
    """

    columns: tuple[tuple[Any, float | Levels, bool], ...]
    kept: NDArray[np.int64]
    mean: NDArray[np.float64]
    scale: NDArray[np.float64]

    @classmethod
    def fit(cls, X: pd.DataFrame) -> OneHotEncoder:
        """Learn medians, levels, means and standard deviations of the training sample."""
        columns: list[tuple[Any, float | Levels, bool]] = []
        for name in X.columns:
            column = X[name]
            if _is_numeric(column):
                values = _numbers(column)
                gap = np.isnan(values)
                if not gap.all():
                    columns.append((name, float(np.median(values[~gap])), bool(gap.any())))
            else:
                columns.append((name, Levels.fit(column), bool(column.isna().any())))
        raw = _raw(columns, X)
        kept = np.flatnonzero(raw.min(axis=0) < raw.max(axis=0)) if raw.size else np.arange(0)
        varying = raw[:, kept]
        mean = varying.mean(axis=0)
        scale = np.sqrt(((varying - mean) ** 2).mean(axis=0))
        # a spread in the last digits of the values is rounding, and would blow up other rows
        sound = scale > 1e-10 * np.abs(varying).max(axis=0, initial=0.0)
        return cls(tuple(columns), kept[sound], mean[sound], scale[sound])

    def transform(self, X: pd.DataFrame) -> NDArray[np.float64]:
        """Return the rows as a float64 matrix, shape (n, number of kept columns)."""
        return (_raw(self.columns, X)[:, self.kept] - self.mean) / self.scale


def _raw(columns: Any, X: pd.DataFrame) -> NDArray[np.float64]:
    """Return imputed and one-hot columns before standardisation, in C order."""
    n = len(X)
    blocks = [np.empty((n, 0))]
    for name, content, has_missing in columns:
        column = _column(X, name)
        if isinstance(content, Levels):
            blocks.append(_one_hot(column, content, has_missing))
            continue
        values = _numbers(column)
        gap = np.isnan(values)
        blocks.append(np.where(gap, content, values)[:, None])
        if has_missing:
            blocks.append(gap.astype(np.float64)[:, None])
    return np.ascontiguousarray(np.hstack(blocks))


def _one_hot(column: pd.Series, levels: Levels, has_missing: bool) -> NDArray[np.float64]:
    counts = np.array(levels.counts, dtype=np.int64)
    rare = counts < max(RARE_ROWS, RARE_SHARE * counts.sum())
    width = int((~rare).sum())
    of_level = np.full(counts.size, width, dtype=np.int64)
    of_level[~rare] = np.arange(width)
    unseen = width if rare.any() else width + 2
    missing = width + 1 if has_missing else width + 2
    codes = levels.codes(column, of_level=of_level, unseen=unseen, missing=missing)
    out = np.zeros((len(column), width + 3))
    out[np.arange(codes.size), codes] = 1.0
    return out[:, : width + 2]  # the last column collects what is ignored
