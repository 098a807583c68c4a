"""Encoders fitted on one training sample alone, sound for gaps, unseen levels and empty columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inconvenient.baselines.coding import CodedTable, LevelCodes, Table, code_table

__all__ = ["Levels", "NativeEncoder", "OneHotEncoder", "expand_classes"]

RARE_SHARE = 0.01
RARE_ROWS = 3


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
    counts : ndarray of int64
        How many rows of the sample have each.
    """

    names: tuple[Any, ...]
    counts: NDArray[np.int64]

    @classmethod
    def fit(cls, column: LevelCodes) -> Levels:
        """Count the levels of a column of the sample; a missing value is none of them."""
        counts = np.bincount(column.codes + 1, minlength=len(column.names) + 1)[1:]
        found = np.flatnonzero(counts)
        return cls(tuple(column.names[i] for i in found.tolist()), counts[found])

    def codes(
        self, column: LevelCodes, *, of_level: NDArray[np.int64], unseen: int, missing: int
    ) -> NDArray[np.int64]:
        """Return ``of_level[i]`` for rows with level i, else ``unseen`` or ``missing``."""
        position = dict(zip(self.names, of_level.tolist(), strict=True))
        table: NDArray[np.int64] = np.array(
            [*(position.get(name, unseen) for name in column.names), missing]
        )
        return table[column.codes]


@dataclass(frozen=True, slots=True)
class NativeEncoder:
    """Numbers as they are, categories as codes, gaps and unseen categories as NaN (for trees).

    Columns that are constant or all missing in the sample are left out.

    Parameters
    ----------
    columns : tuple
        ``(name, None)`` for a numeric column, ``(name, Levels)`` for a categorical one.
    """

    columns: tuple[tuple[Any, Levels | None], ...]

    @classmethod
    def fit(cls, X: Table) -> NativeEncoder:
        """Learn the columns and levels of the training sample."""
        X = code_table(X)
        columns: list[tuple[Any, Levels | None]] = []
        for name, column in X.columns.items():
            if isinstance(column, LevelCodes):
                levels = Levels.fit(column)
                k = len(levels.names)
                if k > 1 or (k == 1 and levels.counts[0] < len(X)):
                    columns.append((name, levels))
                continue
            values = X.numbers(name)
            low, high = np.fmin.reduce(values), np.fmax.reduce(values)  # NaN only if all are
            if low < high or (low == high and bool(np.isnan(values).any())):
                columns.append((name, None))
        return cls(tuple(columns))

    @classmethod
    def fit_transform(cls, X: Table) -> tuple[NativeEncoder, NDArray[np.float64]]:
        """Return the fitted encoder and the encoded training sample."""
        X = code_table(X)
        encoder = cls.fit(X)
        return encoder, encoder.transform(X)

    @property
    def categorical(self) -> list[int]:
        """Positions of the categorical columns in the encoded matrix."""
        return [i for i, (_, levels) in enumerate(self.columns) if levels is not None]

    def transform(self, X: Table) -> NDArray[np.float64]:
        """Return the rows as a float64 matrix, shape (n, number of kept columns)."""
        X = code_table(X)
        out = np.empty((len(X), len(self.columns)))
        for i, (name, levels) in enumerate(self.columns):
            if levels is None:
                out[:, i] = X.numbers(name)
                continue
            of_level = np.arange(len(levels.names))
            codes = levels.codes(X.levels(name), of_level=of_level, unseen=-1, missing=-1)
            out[:, i] = np.where(codes < 0, np.nan, codes)
        return out


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
    def fit(cls, X: Table) -> OneHotEncoder:
        """Learn medians, levels, means and standard deviations of the training sample."""
        return cls.fit_transform(X)[0]

    @classmethod
    def fit_transform(cls, X: Table) -> tuple[OneHotEncoder, NDArray[np.float64]]:
        """Return the fitted encoder and the encoded training sample."""
        X = code_table(X)
        columns: list[tuple[Any, float | Levels, bool]] = []
        for name, column in X.columns.items():
            if isinstance(column, LevelCodes):
                columns.append((name, Levels.fit(column), bool((column.codes < 0).any())))
                continue
            values = X.numbers(name)
            known = values[~np.isnan(values)]
            if known.size:
                columns.append((name, _median(known), known.size < values.size))
        raw = _raw(columns, X)
        kept = np.flatnonzero(raw.min(axis=1) < raw.max(axis=1)) if raw.size else np.arange(0)
        varying = raw[kept]
        mean = varying.mean(axis=1)
        scale = np.sqrt(((varying - mean[:, None]) ** 2).mean(axis=1))
        # a spread in the last digits of the values is rounding, and would blow up other rows
        sound = scale > 1e-10 * np.abs(varying).max(axis=1, initial=0.0)
        encoder = cls(tuple(columns), kept[sound], mean[sound], scale[sound])
        return encoder, encoder._standardised(varying[sound])

    def transform(self, X: Table) -> NDArray[np.float64]:
        """Return the rows as a float64 matrix, shape (n, number of kept columns)."""
        return self._standardised(_raw(self.columns, code_table(X))[self.kept])

    def _standardised(self, kept: NDArray[np.float64]) -> NDArray[np.float64]:
        return ((kept - self.mean[:, None]) / self.scale[:, None]).T


def _median(values: NDArray[np.float64]) -> float:
    """Return what ``np.median`` does, whose checks take most of its time on a small sample."""
    k = values.size
    return float(np.sort(values)[(k - 1) // 2 : k // 2 + 1].mean())


def _raw(columns: Sequence[tuple[Any, float | Levels, bool]], X: CodedTable) -> NDArray[np.float64]:
    """Return imputed and one-hot columns before standardisation, shape (columns, n)."""
    blocks = [np.empty((0, len(X)))]
    for name, content, has_missing in columns:
        if isinstance(content, Levels):
            blocks.append(_one_hot(X.levels(name), content, has_missing))
            continue
        values = X.numbers(name)
        gap = np.isnan(values)
        blocks.append(np.where(gap, content, values)[None])
        if has_missing:
            blocks.append(gap.astype(np.float64)[None])
    return np.concatenate(blocks)


def _one_hot(column: LevelCodes, levels: Levels, has_missing: bool) -> NDArray[np.float64]:
    """Return a row per frequent level, one for the rare and one for the missing."""
    counts = levels.counts
    rare = counts < max(RARE_ROWS, RARE_SHARE * counts.sum())
    width = int((~rare).sum())
    of_level = np.full(counts.size, width, dtype=np.int64)
    of_level[~rare] = np.arange(width)
    unseen = width if rare.any() else -1
    missing = width + 1 if has_missing else -1
    codes = levels.codes(column, of_level=of_level, unseen=unseen, missing=missing)
    own: NDArray[np.bool_] = codes == np.arange(width + 2)[:, None]
    return own.astype(np.float64)
