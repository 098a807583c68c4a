"""Two classes: certified upper bounds on influence, from codes and from the rows themselves."""

from __future__ import annotations

import numpy as np
from numba import types

from .elementary import residual_and_weight
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
from .screen import MARGIN, coded_products, scaled

__all__ = ["logistic_bounds", "logistic_sharpened"]


@kernel(
    types.void(
        CODES, VECTOR, VECTOR, VECTOR, SINGLE, VECTOR, FLAGS, VECTOR, VECTOR,
        types.float64, types.float64, SINGLE_OUT,
    )
)  # fmt: skip
def logistic_bounds(codes, center, step, error, square, y, taken, b, a, spread, trace, bound_out):
    """Fill an upper bound of t'H^-1 x_i (y_i - p_i) / (1 + w_i h_i) for every row of the pool.

    Parameters
    ----------
    codes : int8 (ceil(n / BLOCK), p, BLOCK)
    center, step, error : float64 (p,)
        Of :func:`encode`.
    square : float32 (n,)
        x_i'x_i; of no account where ``trace`` is infinite.
    y : float64 (n,)
        0 or 1.
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
    As :func:`~inconvenient.kernels.screen_ols.ols_bounds`: p moves by at most a quarter, and
    w = p (1 - p) by less than a tenth, of
    a change of the linear predictor.
    """
    n = y.shape[0]
    p = a.shape[0]
    a_step = np.empty(p, np.float32)
    b_step = np.empty(p, np.float32)
    pull_at, pull_off = scaled(a, center, step, error, a_step)
    fit_at, fit_off = scaled(b, center, step, error, b_step)
    pull = np.empty(BLOCK, np.float32)
    fit = np.empty(BLOCK, np.float32)
    u = pull_off * MARGIN
    v = 0.25 * fit_off * MARGIN
    drop = 0.1 * fit_off * MARGIN
    # An infinite trace makes negative bounds 0, whatever the squares.
    known = trace < np.inf
    room = trace * MARGIN if known else 0.0
    less = 1.0 / MARGIN if known else 0.0
    per_spread = 1.0 / (spread * MARGIN) if spread > 0.0 else 0.0
    never = np.float32(-np.inf)
    for block in range(codes.shape[0]):
        coded_products(codes[block], a_step, b_step, pull, fit)
        start = block * BLOCK
        for r in range(min(BLOCK, n - start)):
            e, weight = residual_and_weight(y[start + r], fit_at + fit[r])
            q = pull_at + pull[r]
            top = q * e + (abs(q) * v + (abs(e) * u + u * v))
            sure = max(abs(q) - u, 0.0)
            least = 1.0 + max(weight - drop, 0.0) * (sure * sure) * per_spread
            most = 1.0 + (weight + drop) * square[start + r] * room
            bound = max(top, 0.0) * MARGIN / least + min(top, 0.0) * less / most
            bound_out[start + r] = never if taken[start + r] else np.float32(bound)


@kernel(
    types.void(
        MATRIX, SINGLE, VECTOR, ROWS, VECTOR, VECTOR, types.float64, types.float64, VECTOR_OUT
    )
)
def logistic_sharpened(X, square, y, rows, b, a, spread, trace, bound_out):
    """Fill the bounds of :func:`logistic_bounds` for some rows from their entries in full.

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
    """
    per_spread = 1.0 / (spread * MARGIN) if spread > 0.0 else 0.0
    # An infinite trace makes negative bounds 0, whatever the squares.
    known = trace < np.inf
    room = trace * MARGIN if known else 0.0
    less = 1.0 / MARGIN if known else 0.0
    eta = np.empty(FEW)
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
            eta,
        )
        for i in range(start, last + 1):
            q = pull[i - start]
            residual, weight = residual_and_weight(y[rows[i]], eta[i - start])
            top = q * residual
            above = max(top, 0.0) * MARGIN / (1.0 + weight * (q * q) * per_spread)
            below = min(top, 0.0) * less / (1.0 + weight * square[rows[i]] * room)
            bound_out[i] = above + below
