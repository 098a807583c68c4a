"""How strongly each feature of a pool is associated with its target, equal on every machine."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from inconvenient.errors import InputError

__all__ = ["importance", "importance_bins"]

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


def _sum(values: Floats) -> float:
    """Return the correctly rounded sum, which no processor or order of rows can change."""
    return math.fsum(values.tolist())


def _centred(values: Floats) -> Floats:
    """Return values minus their mean, over the largest absolute deviation; zeros if constant."""
    if values.max() == values.min():
        return np.zeros_like(values)
    top = float(np.abs(values).max())
    scaled = values / top
    centred = scaled - _sum(scaled) / values.size
    deviation: Floats = centred / float(np.abs(centred).max())
    return deviation


def _pearson(a: Floats, b: Floats) -> float:
    """Return |Pearson's r|; 0 if either side is constant."""
    x, y = _centred(a), _centred(b)
    norm = math.sqrt(_sum(x * x)) * math.sqrt(_sum(y * y))
    return min(abs(_sum(x * y)) / norm, 1.0) if norm > 0.0 else 0.0


def _correlation_ratio(values: Floats, codes: Codes) -> float:
    """Return Kelley's bias-corrected correlation ratio of values over groups, in [0, 1]."""
    x = _centred(values)
    groups = [x[codes == code] for code in np.unique(codes)]
    n, g = x.size, len(groups)
    total = _sum(x * x)
    if total == 0.0 or n <= g:
        return 0.0
    within = math.fsum(_sum((part - _sum(part) / part.size) ** 2) for part in groups)
    return math.sqrt(max(0.0, 1.0 - (within / (n - g)) / (total / (n - 1))))


def _cramer(a: Codes, b: Codes) -> float:
    """Return Bergsma's bias-corrected Cramer's V of two codings, in [0, 1]."""
    n = a.size
    _, rows = np.unique(a, return_inverse=True)
    _, columns = np.unique(b, return_inverse=True)
    r, k = int(rows.max()) + 1, int(columns.max()) + 1
    if r < 2 or k < 2:
        return 0.0
    table = np.bincount(rows * k + columns, minlength=r * k).reshape(r, k).astype(np.float64)
    expected = table.sum(axis=1)[:, None] * (table.sum(axis=0) / n)
    phi2 = _sum(((table - expected) ** 2 / expected).ravel()) / n
    phi2 = max(0.0, phi2 - (r - 1) * (k - 1) / (n - 1))
    least = min(size - (size - 1) ** 2 / (n - 1) for size in (r, k)) - 1.0
    return min(1.0, math.sqrt(phi2 / least)) if least > 0.0 else 0.0


def _numeric(column: pd.Series, name: str) -> Floats:
    """Return a numeric column with missing values replaced by the median."""
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    if np.any(np.isinf(values)):
        row = int(np.flatnonzero(np.isinf(values))[0])
        raise InputError(
            f"feature {name!r} must be finite, got {values[row]} in row {row}; "
            "mark it as missing or drop the column"
        )
    missing = np.isnan(values)
    if missing.all():
        return np.zeros_like(values)
    return np.where(missing, np.median(values[~missing]), values)


def _categories(column: pd.Series) -> Codes:
    """Return level codes; a missing value is a level of its own."""
    codes, _ = pd.factorize(column, use_na_sentinel=False)
    return codes.astype(np.int64)


def _order(names: Iterable[Any]) -> list[Any]:
    """Return names sorted; as they came if they cannot be compared."""
    names = list(names)
    return sorted(names) if all(isinstance(name, str) for name in names) else names


def importance(frame: pd.DataFrame, y: NDArray[Any], *, task: str) -> pd.Series:
    """Return each feature's association with the target on the pool.

    Parameters
    ----------
    frame : DataFrame, n rows
        Features only. As in the design, booleans are categorical.
    y : ndarray, shape (n,)
        Target, or class codes.
    task : {"regression", "binary", "multiclass"}

    Returns
    -------
    Series of float64
        In [0, 1], indexed by feature name in sorted order (names that are not strings: as they
        came), rounded to 10 significant digits.

    Raises
    ------
    InputError
        If a numeric feature holds an infinite value.

    Notes
    -----
    Numeric with a numeric or binary target: |Pearson|, missing values at the median. One side
    categorical and the other numeric: sqrt(max(0, 1 - MS_within / MS_total)) (Kelley 1935). Both
    categorical, a binary target included: Cramer's V (Bergsma 2013). A constant feature has
    importance 0. Sums are correctly rounded (``math.fsum``), so neither the order of rows nor the
    processor matters; about 0.2 microseconds per row and feature.

    References
    ----------
    Bergsma (2013), Journal of the Korean Statistical Society 42, 323-328.
    Kelley (1935), Proceedings of the National Academy of Sciences 21, 554-559.
    """
    target = np.asarray(y, dtype=np.float64)
    values = {}
    for name in _order(frame.columns):
        column = frame[name]
        if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
            x = _numeric(column, str(name))
            if task == "multiclass":
                value = _correlation_ratio(x, target.astype(np.int64))
            else:
                value = _pearson(x, target)
        elif task == "regression":
            value = _correlation_ratio(target, _categories(column))
        else:
            value = _cramer(_categories(column), target.astype(np.int64))
        values[name] = float(f"{value:.10g}")
    return pd.Series(values, dtype=np.float64, name="importance").reindex(list(values))


def importance_bins(importance: pd.Series) -> dict[str, str]:
    """Return the importance bin of each feature.

    Parameters
    ----------
    importance : Series
        As :func:`importance` returns it; m features.

    Returns
    -------
    dict
        Feature to "top" (the first ceil(m / 3) by rank), "middle" (as many) or "bottom" (the rest,
        which is none for m = 1, 2 or 4). Ties go by name.
    """
    names = [str(name) for name in importance.index]
    ranked = sorted(zip((-importance).tolist(), names, strict=True))
    third = -(-len(ranked) // 3)
    labels = ["top"] * third + ["middle"] * third + ["bottom"] * len(ranked)
    return {name: label for (_, name), label in zip(ranked, labels, strict=False)}
