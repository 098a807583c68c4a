"""OLS: incremental refits and the exact influence of a joining row."""

from __future__ import annotations

import numpy as np
from numba import types

from .jit import MATRIX, MATRIX_OUT, ROWS, VECTOR, VECTOR_OUT, kernel
from .linalg import (
    FEW,
    LANES,
    add_weighted_gram,
    cholesky_into,
    leverages,
    products,
    solve_into,
)

__all__ = ["hat_values", "ols_add", "ols_influence", "ols_numerators", "ols_refine", "ols_solve"]


@kernel(types.void(MATRIX, VECTOR, ROWS, types.float64, MATRIX_OUT, VECTOR_OUT))
def ols_add(X, y, rows, weight, A_out, c_out):
    """Add rows to the Gram matrix X'X and to X'y, or take them out.

    Parameters
    ----------
    X : float64 (n, p)
    y : float64 (n,)
    rows : int64 (k,)
    weight : float
        1 to add, -1 to take out.
    A_out : float64 (p, p)
        Lower triangle of X'X.
    c_out : float64 (p,)
    """
    add_weighted_gram(X, rows, np.full(rows.shape[0], weight), A_out)
    for i in range(rows.shape[0]):
        x = X[rows[i]]
        v = weight * y[rows[i]]
        for j in range(x.shape[0]):
            c_out[j] += v * x[j]


@kernel(types.int64(MATRIX, VECTOR, types.float64, MATRIX_OUT, VECTOR_OUT))
def ols_solve(A, c, penalty, L_out, b_out):
    """Factorise A + penalty * diag(0, 1, ..., 1) and solve for the coefficients.

    Parameters
    ----------
    A : float64 (p, p)
        Lower triangle of X'X; column 0 is the intercept and free of the penalty.
    c : float64 (p,)
        X'y.
    penalty : float
        Number of rows times the ridge parameter.
    L_out : float64 (p, p)
    b_out : float64 (p,)

    Returns
    -------
    int
        0, or 1 + the column at which the matrix is not positive definite.
    """
    p = A.shape[0]
    H = A.copy()
    for j in range(1, p):
        H[j, j] += penalty
    status = cholesky_into(H, L_out)
    if status == 0:
        solve_into(L_out, c, b_out)
    return status


@kernel(types.void(MATRIX, VECTOR, ROWS, types.float64, MATRIX, VECTOR_OUT))
def ols_refine(X, y, rows, penalty, L, b_out):
    """Improve coefficients by one step of iterative refinement on the residuals of the rows.

    Parameters
    ----------
    X : float64 (n, p)
    y : float64 (n,)
    rows : int64 (k,)
        The sample.
    penalty : float
    L : float64 (p, p)
        Factor of :func:`ols_solve`.
    b_out : float64 (p,)
        Coefficients, changed in place.

    Notes
    -----
    Sums of an incrementally updated X'X carry the rounding of every update; a gradient taken
    afresh from the rows removes it from the coefficients. 2 k p multiply-adds.
    """
    p = X.shape[1]
    g = np.zeros(p)
    step = np.empty(p)
    for i in range(rows.shape[0]):
        x = X[rows[i]]
        r = y[rows[i]]
        for j in range(p):
            r -= x[j] * b_out[j]
        for j in range(p):
            g[j] += r * x[j]
    for j in range(1, p):
        g[j] -= penalty * b_out[j]
    solve_into(L, g, step)
    for j in range(p):
        b_out[j] += step[j]


@kernel(types.void(MATRIX, VECTOR, VECTOR, VECTOR, VECTOR_OUT))
def ols_numerators(X, y, b, a, numerator_out):
    """Fill (a'x_i)(y_i - x_i'b) for every row of the pool: influence without its leverage term.

    Parameters
    ----------
    X : float64 (n, p)
    y : float64 (n,)
    b, a : float64 (p,)
        Coefficients, and H^-1 t for the functional t.
    numerator_out : float64 (n,)

    Notes
    -----
    One pass over the pool, 2 n p multiply-adds; the sum over columns runs in column order.
    """
    n = y.shape[0]
    fit = np.empty(FEW)
    pull = np.empty(FEW)
    for start in range(0, n, FEW):
        last = min(start + FEW, n) - 1
        products(
            X[start],
            X[min(start + 1, last)],
            X[min(start + 2, last)],
            X[min(start + 3, last)],
            a,
            b,
            pull,
            fit,
        )
        for r in range(min(FEW, n - start)):
            numerator_out[start + r] = pull[r] * (y[start + r] - fit[r])


@kernel(types.void(MATRIX, VECTOR, ROWS, VECTOR, VECTOR, MATRIX, VECTOR_OUT))
def ols_influence(X, y, rows, b, a, L, influence_out):
    """Fill the exact change of t'b were each of ``rows`` to join the sample.

    Parameters
    ----------
    X : float64 (n, p)
    y : float64 (n,)
    rows : int64 (k,)
    b, a : float64 (p,)
        Coefficients, and H^-1 t.
    L : float64 (p, p)
        Cholesky factor of H.
    influence_out : float64 (k,)

    Notes
    -----
    t'H^-1 x_i r_i / (1 + h_i) with h_i = x_i'H^-1 x_i, by the Sherman-Morrison formula.
    """
    p = X.shape[1]
    lanes = np.empty((p, LANES))
    hat = np.empty(LANES)
    for start in range(0, rows.shape[0], LANES):
        stop = min(start + LANES, rows.shape[0])
        leverages(X, rows, start, stop, L, lanes, hat)
        for i in range(start, stop):
            x = X[rows[i]]
            r = y[rows[i]]
            pull = 0.0
            for j in range(p):
                r -= b[j] * x[j]
                pull += a[j] * x[j]
            influence_out[i] = pull * r / (1.0 + hat[i - start])


@kernel(types.void(MATRIX, ROWS, MATRIX, VECTOR_OUT))
def hat_values(X, rows, L, hat_out):
    """Fill h_i = x_i'(L L')^-1 x_i.

    Parameters
    ----------
    X : float64 (n, p)
    rows : int64 (k,)
    L : float64 (p, p)
    hat_out : float64 (k,)
        Leverage where the row is in the sample that L was made from; in [0, 1] then.
    """
    lanes = np.empty((X.shape[1], LANES))
    hat = np.empty(LANES)
    for start in range(0, rows.shape[0], LANES):
        stop = min(start + LANES, rows.shape[0])
        leverages(X, rows, start, stop, L, lanes, hat)
        for i in range(start, stop):
            hat_out[i] = hat[i - start]
