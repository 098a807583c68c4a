"""The pool as a matrix, written anew after DESIGN section 2: pandas, NumPy and SciPy alone."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import scipy.linalg
from numpy.typing import NDArray

from inconvenient.errors import InputError

if TYPE_CHECKING:
    from inconvenient.data import Dataset

__all__ = ["Pool", "pool_matrix"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# The part of a column outside the span of those chosen, as a share of its norm, at which it counts
# as collinear; where no combination of columns comes near it, nothing has to be chosen.
_COLLINEAR = 1e-5
_CLEARLY_FREE = 1e-3
# Shares of the squared norm that are equal within this go to the smaller name.
_TIE = 1e-8


@dataclasses.dataclass(frozen=True, slots=True)
class Pool:
    """Design of a pool.

    Parameters
    ----------
    rows : int64 (n,)
        Row ids, ascending.
    X : float64 (n, p)
        Column 0 is 1; the others are standardised and sorted by name.
    y : float64 (n,)
        Standardised target of a regression, class codes otherwise.
    task : str
    classes : tuple of str
        Empty for a regression.
    columns, feature_of : tuple of str, length p
        Names of the columns and of the raw columns they come from; "" for the intercept's.
    """

    rows: Ints
    X: Floats
    y: Floats
    task: str
    classes: tuple[str, ...]
    columns: tuple[str, ...]
    feature_of: tuple[str, ...]

    @property
    def free_coefficients(self) -> int:
        """Number of free coefficients: p, or p (K - 1) for K > 2 classes."""
        return len(self.columns) * max(1, len(self.classes) - 1)

    def positions(self, rows: Ints) -> Ints:
        """Return where rows of the pool stand in it; InputError for one outside."""
        at = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        outside = self.rows[at] != rows
        if outside.any():
            raise InputError(
                f"row ids must lie in the pool, but {int(outside.sum())} do not, "
                f"the first of them {int(rows[np.argmax(outside)])}"
            )
        return at.astype(np.int64)


def ten_digits(value: float) -> float:
    """Round to 10 significant digits, as everything that a selection depends on."""
    return float(f"{value:.9e}")


def pool_matrix(dataset: Dataset, rows: Ints, *, rare_share: float) -> Pool:
    """Build the design of a pool.

    Parameters
    ----------
    dataset : Dataset
    rows : int64 (n,)
        Row ids of the pool, ascending.
    rare_share : float
        Levels under this share of the rows are merged into "(other)".

    Returns
    -------
    Pool

    Notes
    -----
    Numbers: median where missing. Categories (booleans too): one column per level but the most
    frequent (ties by name), a gap being the level "(missing)"; rare levels share a column if
    together they reach the share, else they join the most frequent level.
    """
    frame = dataset.X.iloc[rows]
    raw: dict[str, tuple[str, Floats]] = {}
    for name in frame.columns:
        for column, values in _columns_of(frame[name], rare_share).items():
            raw[column] = (str(name), values)
    columns, features, kept = [], [], []
    for column in sorted(raw):
        feature, values = raw[column]
        mean, scale = ten_digits(float(np.mean(values))), ten_digits(float(np.std(values)))
        if scale > 1e-10 * float(np.abs(values).max(initial=0.0)):
            columns.append(column)
            features.append(feature)
            kept.append((values - mean) / scale)
    if not kept:
        raise InputError(f"no column of the pool of {dataset.name} varies")
    Z = np.column_stack(kept)
    free = _independent(Z)
    y = np.asarray(dataset.y[rows], dtype=np.float64)
    if dataset.task == "regression":
        y = (y - ten_digits(float(np.mean(y)))) / ten_digits(float(np.std(y)))
    return Pool(
        rows=np.asarray(rows, dtype=np.int64),
        X=np.ascontiguousarray(np.column_stack([np.ones(len(Z)), Z[:, free]])),
        y=y,
        task=dataset.task,
        classes=tuple(dataset.classes),
        columns=("(intercept)", *(columns[j] for j in free)),
        feature_of=("", *(features[j] for j in free)),
    )


def _columns_of(series: pd.Series, rare_share: float) -> dict[str, Floats]:
    """Return the columns of a raw one before standardisation, by name."""
    if pd.api.types.is_numeric_dtype(series) and not pd.api.types.is_bool_dtype(series):
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
        gaps = np.isnan(values)
        fill = 0.0 if gaps.all() else float(np.median(values[~gaps]))
        return {str(series.name): np.where(gaps, fill, values)}
    levels = np.array(
        ["(missing)" if gap else str(v) for v, gap in zip(series.to_list(), series.isna())],
        dtype=object,
    )
    counts = pd.Series(levels).value_counts()
    order = sorted(counts.index, key=lambda level: (-counts[level], level))
    floor = rare_share * len(levels)
    common = [level for level in order if counts[level] >= floor] or order[:1]
    rare = order[len(common) :]
    out = {f"{series.name}={level}": (levels == level).astype(np.float64) for level in common[1:]}
    if rare and sum(int(counts[level]) for level in rare) >= floor:
        name = f"{series.name}=(other)"
        while name in out:
            name += "*"
        out[name] = np.isin(levels, rare).astype(np.float64)
    return out


def _independent(Z: Floats) -> list[int]:
    """Return the columns that are left by a QR decomposition with column pivoting, ascending.

    The column with the largest part outside the span of those chosen, relative to its norm, is
    taken next. LAPACK's own pivoting knows no rule for ties, and twins tie: R, whose columns have
    the lengths and angles of those of Z, is pivoted here where columns come near to collinearity.
    """
    Z = Z - Z.mean(axis=0)
    (R,) = scipy.linalg.qr(Z / np.sqrt((Z * Z).sum(axis=0)), mode="r", check_finite=False)
    R = R[: min(R.shape)]
    if len(R) == R.shape[1] and scipy.linalg.svdvals(R, check_finite=False)[-1] > _CLEARLY_FREE:
        return list(range(R.shape[1]))
    rest = R.copy()
    left = np.ones(R.shape[1], dtype=bool)
    chosen: list[int] = []
    basis: list[Floats] = []
    while left.any():
        share = np.where(left, (rest * rest).sum(axis=0), -1.0)
        j = int(np.flatnonzero(share >= share.max() - _TIE)[0])
        if not share[j] > _COLLINEAR**2:
            break
        q = rest[:, j].copy()
        for other in basis:  # once more, for the columns left are small where it matters
            q -= other * float(other @ q)
        q /= np.sqrt(float(q @ q))
        basis.append(q)
        chosen.append(j)
        left[j] = False
        rest -= np.outer(q, q @ rest)
    return sorted(chosen)
