"""Importance bins recomputed with NumPy and pandas, and which of them ties would allow."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = ["allowed_bins", "strength"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Ranks are by association rounded to 10 digits; values this near may have either order.
_TIE = 1e-9


def strength(frame: pd.DataFrame, y: NDArray[np.generic], *, task: str) -> pd.Series:
    """Return each feature's association with the target over the rows of a pool, in [0, 1].

    Parameters
    ----------
    frame : DataFrame (n, m)
        Raw features.
    y : ndarray (n,)
        Raw target, or class codes.
    task : str

    Notes
    -----
    |Pearson| where both are numeric or the target has two classes, the bias-corrected correlation
    ratio where one is, bias-corrected Cramer's V where none is.
    """
    target = np.asarray(y, dtype=np.float64)
    codes = target.astype(np.int64)
    found = {}
    for name in frame.columns:
        column = frame[name]
        numeric = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
        if numeric:
            x = column.to_numpy(dtype=np.float64, na_value=np.nan)
            gaps = np.isnan(x)
            x = np.where(gaps, 0.0 if gaps.all() else np.median(x[~gaps]), x)
            found[str(name)] = _ratio(x, codes) if task == "multiclass" else _pearson(x, target)
            continue
        levels = pd.factorize(column, use_na_sentinel=False)[0].astype(np.int64)
        found[str(name)] = (
            _ratio(target, levels) if task == "regression" else _cramer(levels, codes)
        )
    return pd.Series(found, dtype=np.float64)


def _pearson(a: Floats, b: Floats) -> float:
    if np.ptp(a) == 0.0 or np.ptp(b) == 0.0:
        return 0.0
    a, b = a / np.abs(a).max(), b / np.abs(b).max()
    a, b = a - a.mean(), b - b.mean()
    return float(abs(a @ b) / np.sqrt(float(a @ a) * float(b @ b)))


def _ratio(values: Floats, groups: Ints) -> float:
    """Return the square root of 1 - MS within / MS total, 0 where that is negative."""
    n, g = len(values), len(np.unique(groups))
    if np.ptp(values) == 0.0 or n <= g:
        return 0.0
    values = values / np.abs(values).max()
    values = values - values.mean()
    mean = pd.Series(values).groupby(groups).transform("mean").to_numpy()
    within = float(((values - mean) ** 2).sum()) / (n - g)
    return float(np.sqrt(max(0.0, 1.0 - within / (float((values**2).sum()) / (n - 1)))))


def _cramer(a: Ints, b: Ints) -> float:
    table = pd.crosstab(a, b).to_numpy(dtype=np.float64)
    (r, k), n = table.shape, float(table.sum())
    if min(r, k) < 2:
        return 0.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / n
    phi2 = float(((table - expected) ** 2 / expected).sum()) / n
    phi2 = max(0.0, phi2 - (r - 1) * (k - 1) / (n - 1))
    least = min(r - (r - 1) ** 2 / (n - 1), k - (k - 1) ** 2 / (n - 1)) - 1.0
    return float(min(1.0, np.sqrt(phi2 / least))) if least > 0.0 else 0.0


def allowed_bins(values: pd.Series) -> dict[str, set[str]]:
    """Return for each feature its bin: top, middle or bottom; several where a tie decides.

    The first ceil(m / 3) by rank are the top, as many the middle, the others the bottom; equal
    ones go by name.
    """
    m = len(values)
    third = -(-m // 3)

    def at(rank: int) -> str:
        return "top" if rank < third else "middle" if rank < 2 * third else "bottom"

    out = {}
    for name, value in values.items():
        first = int((values > value + _TIE).sum())
        last = int((values >= value - _TIE).sum()) - 1
        exact = values.index[(values - value).abs() == 0.0]
        if last - first + 1 == len(exact):  # equal to the last bit: the name decides
            first = last = first + sorted(map(str, exact)).index(str(name))
        out[str(name)] = {at(rank) for rank in range(first, last + 1)}
    return out
