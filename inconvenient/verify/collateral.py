"""Collateral effect recomputed: penalised fits of pool, samples and controls by Newton's method."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from inconvenient.verify.fits import Family, fit, symmetric_penalty
from inconvenient.verify.pool import Pool

__all__ = ["penalised", "relative_change"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def penalised(pool: Pool, at: Ints, ridge: float, *, start: Floats | None = None) -> Floats:
    """Fit some rows with a penalty per row; return coefficients without intercept, (p - 1, C).

    Parameters
    ----------
    pool : Pool
    at : int64 (k,)
        Positions in the pool.
    ridge : float
    start : float64 (c, p), optional
        Contrasts to begin with; used where the rows have all classes.

    Notes
    -----
    Mean over rows of half the squared error, or of the log loss, plus ``ridge / 2`` times the sum
    of squared coefficients, for more than two classes over all of them. A class without rows has
    coefficients 0.
    """
    X, y = pool.X[at], pool.y[at]
    k = len(pool.classes)
    if not k:
        Z = X[:, 1:] - X[:, 1:].mean(axis=0)
        gram = Z.T @ Z + len(Z) * ridge * np.eye(Z.shape[1])
        return np.asarray(np.linalg.solve(gram, Z.T @ (y - y.mean()))[:, None])
    present, codes = np.unique(y.astype(np.int64), return_inverse=True)
    out = np.zeros((X.shape[1] - 1, 1 if k == 2 else k))
    if present.size == 1:
        return out
    family = penalised_family(present.size, ridge)
    found = fit(X, codes.astype(np.float64), family, start=start if present.size == k else None)
    if found is None:
        return np.full_like(out, np.nan)
    coefficients = family.reported(found)[1:]
    if k == 2:
        return coefficients
    if present.size == 2:
        out[:, present] = np.column_stack([-coefficients[:, 0], coefficients[:, 0]]) / 2
    else:
        out[:, present] = coefficients
    return out


def penalised_family(k: int, ridge: float) -> Family:
    """Return the penalised model of so many classes."""
    return Family(k, ridge, None if k == 2 else symmetric_penalty(k))


def relative_change(sample: Floats, pool: Floats, rest: NDArray[np.bool_]) -> float:
    """Return ||b'_rest - b_rest|| / ||b_rest||, NaN where rest is empty or zero."""
    size = float(np.sqrt((pool[rest] ** 2).sum()))
    return float(np.sqrt(((sample[rest] - pool[rest]) ** 2).sum())) / size if size else math.nan
