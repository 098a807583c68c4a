"""OLS: certified upper bounds on influence, from codes and from the rows themselves."""

from __future__ import annotations

import numpy as np
from numba import types

from .jit import (
    CODES,
    FLAGS,
    MATRIX,
    ROWS,
    SINGLE,
    SINGLE_OUT,
    VECTOR,
    VECTOR_OUT,
    kernel,
)
from .linalg import BLOCK, FEW, products
from .screen import MARGIN, ROUNDING, coded_products, scaled

__all__ = ["ols_bounds", "ols_sharpened"]


@kernel(
    types.void(
        CODES, VECTOR, VECTOR, VECTOR, SINGLE, VECTOR, FLAGS, VECTOR, VECTOR,
        types.float64, types.float64, SINGLE_OUT,
    )
)  # fmt: skip
def ols_bounds(codes, center, step, error, square, y, taken, b, a, spread, trace, bound_out):
    """Fill an upper bound of t'H^-1 x_i r_i / (1 + h_i) for every row of the pool.

    Parameters
    ----------
    codes : int8 (ceil(n / BLOCK), p, BLOCK)
    center, step, error : float64 (p,)
        Of :func:`encode`.
    square : float32 (n,)
        x_i'x_i; of no account where ``trace`` is infinite.
    y : float64 (n,)
    taken : bool (n,)
        Rows that do not count.
    b, a : float64 (p,)
        Coefficients, and H^-1 t for the functional t.
    spread : float
        t'H^-1 t.
    trace : float
        Trace of H^-1, or infinity where negative bounds are not needed: they are 0 then.
    bound_out : float32 (n,)
        Minus infinity for rows that are taken.

    Notes
    -----
    With |a'x - q| <= u and |r - e| <= v, (a'x) r <= q e + |q| v + |e| u + u v. By the inequality of
    Cauchy and Schwarz in the metric of H^-1, h >= (a'x)^2 / t'H^-1 t, which bounds positive
    influences; h <= x'x tr H^-1 bounds negative ones. One pass over n p bytes.
    """
    n = y.shape[0]
    p = a.shape[0]
    a_step = np.empty(p, np.float32)
    b_step = np.empty(p, np.float32)
    pull_at, pull_off = scaled(a, center, step, error, a_step)
    fit_at, fit_off = scaled(b, center, step, error, b_step)
    fit_off += 1e-30
    pull = np.empty(BLOCK, np.float32)
    fit = np.empty(BLOCK, np.float32)
    at = np.float32(pull_at)
    u = np.float32(pull_off * MARGIN)
    v = np.float32(fit_off * MARGIN)
    per_spread = np.float32(1.0 / (spread * MARGIN)) if spread > 0.0 else np.float32(0.0)
    margin = np.float32(MARGIN)
    # An infinite trace makes negative bounds 0, whatever the squares.
    known = trace < np.inf
    most = np.float32(trace * MARGIN if known else 0.0)
    less = np.float32(1.0 / MARGIN if known else 0.0)
    one = np.float32(1.0)
    zero = np.float32(0.0)
    never = np.float32(-np.inf)
    unit = np.float32(2.0 * ROUNDING)
    for block in range(codes.shape[0]):
        coded_products(codes[block], a_step, b_step, pull, fit)
        start = block * BLOCK
        for r in range(min(BLOCK, n - start)):
            target = np.float32(y[start + r] - fit_at)
            e = target - fit[r]
            wide = v + unit * abs(target)
            q = at + pull[r]
            top = q * e + (abs(q) * wide + (abs(e) * u + u * wide))
            sure = max(abs(q) - u, zero)
            above = max(top, zero) * margin / (one + sure * sure * per_spread)
            fit[r] = min(top, zero) * less
            bound_out[start + r] = never if taken[start + r] else above
        if known:
            for r in range(min(BLOCK, n - start)):
                bound_out[start + r] += fit[r] / (one + square[start + r] * most)


@kernel(
    types.void(
        MATRIX, SINGLE, VECTOR, ROWS, VECTOR, VECTOR, types.float64, types.float64, VECTOR_OUT
    )
)
def ols_sharpened(X, square, y, rows, b, a, spread, trace, bound_out):
    """Fill the bounds of :func:`ols_bounds` for some rows from their entries in full.

    Parameters
    ----------
    X : float64 (n, p)
    square : float32 (n,)
        x_i'x_i; of no account where ``trace`` is infinite.
    y : float64 (n,)
    rows : int64 (k,)
    b, a : float64 (p,)
    spread, trace : float
    bound_out : float64 (k,)

    Notes
    -----
    2 p multiply-adds a row, where the exact influence takes p^2 / 2.
    """
    per_spread = 1.0 / (spread * MARGIN) if spread > 0.0 else 0.0
    known = trace < np.inf
    room = trace * MARGIN if known else 0.0
    less = 1.0 / MARGIN if known else 0.0
    fit = np.empty(FEW)
    pull = np.empty(FEW)
    for start in range(0, rows.shape[0], FEW):
        last = min(start + FEW, rows.shape[0]) - 1
        products(
            X[rows[start]],
            X[rows[min(start + 1, last)]],
            X[rows[min(start + 2, last)]],
            X[rows[min(start + 3, last)]],
            a,
            b,
            pull,
            fit,
        )
        for i in range(start, last + 1):
            q = pull[i - start]
            top = q * (y[rows[i]] - fit[i - start])
            above = max(top, 0.0) * MARGIN / (1.0 + q * q * per_spread)
            bound_out[i] = above + min(top, 0.0) * less / (1.0 + square[rows[i]] * room)
