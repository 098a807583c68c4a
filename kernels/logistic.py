"""Logistic regression for two classes: warm-started Newton refits and one-step influence."""

from __future__ import annotations

import numpy as np
from numba import types

from .elementary import exp, log, residual_and_weight
from .jit import MATRIX, MATRIX_OUT, ROWS, VECTOR, VECTOR_OUT, inline, kernel
from .linalg import (
    CONVERGED,
    FALL,
    FEW,
    LANES,
    NOT_CONVERGED,
    add_weighted_gram,
    cholesky_into,
    leverages,
    predictors,
    products,
    solve_into,
)

__all__ = [
    "CONVERGED",
    "NOT_CONVERGED",
    "logistic_fit",
    "logistic_influence",
    "logistic_numerators",
]

# Newton's method stops once the squared decrement per row is below this; the step just made was
# then about 1e-10 in the metric of the Hessian, and what is left its square.
_DECREMENT = 1e-20
# Under separation, quasi-complete one included, every Newton step moves the linear predictor of
# some row by at least 1, however small the decrement: no step of this size is the last.
_REACH = 0.5


@inline
def _factorise(H, penalty, L_out):
    """Factorise H with the penalty on all but the intercept; return 0, or the failing column."""
    A = H.copy()
    for j in range(1, A.shape[0]):
        A[j, j] += penalty
    return cholesky_into(A, L_out)


@inline
def _gradient(X, y, rows, penalty, b, weights_out, g_out):
    """Fill p (1 - p) of all rows and minus the gradient.

    Return the loss, and whether every row is on its own side of the hyperplane.
    """
    n = rows.shape[0]
    p = b.shape[0]
    apart = True
    loss = 0.0
    # Factors are in (1, 2]: the log of a product of a few is one log for all.
    product = 1.0
    eta = np.empty(FEW)
    residual = np.empty(FEW)
    g_out[:] = 0.0
    for start in range(0, n, FEW):
        last = min(start + FEW, n) - 1
        x0 = X[rows[start]]
        x1 = X[rows[min(start + 1, last)]]
        x2 = X[rows[min(start + 2, last)]]
        x3 = X[rows[min(start + 3, last)]]
        predictors(x0, x1, x2, x3, b, eta)
        residual[:] = 0.0
        for i in range(start, last + 1):
            value = eta[i - start]
            positive = y[rows[i]] > 0.5
            small = exp(-abs(value))
            product *= 1.0 + small
            if product > 1e100:
                loss += log(product)
                product = 1.0
            if positive:
                apart = apart and value > 0.0
                loss += max(-value, 0.0)
            else:
                apart = apart and value < 0.0
                loss += max(value, 0.0)
            residual[i - start], weights_out[i] = residual_and_weight(y[rows[i]], value)
        r0, r1, r2, r3 = residual[0], residual[1], residual[2], residual[3]
        for j in range(p):
            g_out[j] = (((g_out[j] + r0 * x0[j]) + r1 * x1[j]) + r2 * x2[j]) + r3 * x3[j]
    loss += log(product)
    for j in range(1, p):
        g_out[j] -= penalty * b[j]
        loss += 0.5 * penalty * b[j] * b[j]
    return loss, apart


@inline
def _reach(X, rows, step):
    """Return the largest change of a linear predictor on the rows."""
    top = 0.0
    for i in range(rows.shape[0]):
        x = X[rows[i]]
        move = 0.0
        for j in range(step.shape[0]):
            move += x[j] * step[j]
        top = max(top, abs(move))
    return top


@kernel(
    types.int64(
        MATRIX, VECTOR, ROWS, types.int64, types.float64, types.int64,
        MATRIX_OUT, MATRIX_OUT, VECTOR_OUT,
    )
)  # fmt: skip
def logistic_fit(X, y, rows, known, penalty, max_steps, H_out, L_out, b_out):
    """Fit by Newton's method with step halving, from the coefficients in ``b_out``.

    Parameters
    ----------
    X : float64 (n, p)
        Column 0 is the intercept and free of the penalty.
    y : float64 (n,)
        0 or 1.
    rows : int64 (k,)
        The sample.
    known : int
        ``H_out`` holds the Hessian of so many first rows at the coefficients in ``b_out``.
    penalty : float
        Number of rows times the ridge parameter.
    max_steps : int
    H_out : float64 (p, p)
        X'WX over the rows at the solution, without the penalty; lower triangle.
    L_out : float64 (p, p)
        Cholesky factor of the Hessian at the solution (of the last step but one, 1e-10 away).
    b_out : float64 (p,)
        Start and result.

    Returns
    -------
    int
        CONVERGED, or NOT_CONVERGED: a singular Hessian or no convergence, as under separation.

    Notes
    -----
    A Hessian costs k p^2 / 2 + p^3 / 6 multiply-adds, a gradient 2 k p: the Hessian at hand serves
    as long as it makes the squared decrement fall to a twentieth, and is made afresh for the last
    step. With ``known`` rows the first one takes the others alone.
    """
    p = X.shape[1]
    k = rows.shape[0]
    g = np.empty(p)
    step = np.empty(p)
    trial = np.empty(p)
    weights = np.empty(k)
    loss, apart = _gradient(X, y, rows, penalty, b_out, weights, g)
    if known == 0:
        H_out[:] = 0.0
    add_weighted_gram(X, rows[known:], weights[known:], H_out)
    if _factorise(H_out, penalty, L_out) != 0:
        return NOT_CONVERGED
    fresh = True
    last = np.inf
    for _ in range(2 * max_steps):
        if apart and penalty == 0.0:
            # Every row is on its own side of the hyperplane: there is no finite solution.
            return NOT_CONVERGED
        solve_into(L_out, g, step)
        decrement = 0.0
        for j in range(p):
            decrement += g[j] * step[j]
        converged = decrement <= _DECREMENT * k
        if converged and fresh:
            if _reach(X, rows, step) > _REACH:
                return NOT_CONVERGED
            for j in range(p):
                b_out[j] += step[j]
            return CONVERGED
        if not fresh and (converged or not decrement <= FALL * last):
            H_out[:] = 0.0
            add_weighted_gram(X, rows, weights, H_out)
            if _factorise(H_out, penalty, L_out) != 0:
                return NOT_CONVERGED
            fresh = True
            last = np.inf
            continue
        last = decrement
        scale = 1.0
        for _halving in range(30):
            for j in range(p):
                trial[j] = b_out[j] + scale * step[j]
            trial_loss, apart = _gradient(X, y, rows, penalty, trial, weights, g)
            # Near the solution the loss changes by less than its rounding.
            if trial_loss <= loss + 1e-12 * (1.0 + loss):
                break
            scale *= 0.5
        for j in range(p):
            b_out[j] = trial[j]
        loss = trial_loss
        fresh = False
    return NOT_CONVERGED


@kernel(types.void(MATRIX, VECTOR, VECTOR, VECTOR, VECTOR_OUT))
def logistic_numerators(X, y, b, a, numerator_out):
    """Fill (a'x_i)(y_i - p_i) for every row of the pool: influence without its leverage term.

    Parameters
    ----------
    X : float64 (n, p)
    y : float64 (n,)
    b, a : float64 (p,)
        Coefficients, and H^-1 t for the functional t.
    numerator_out : float64 (n,)
    """
    n = y.shape[0]
    eta = np.empty(FEW)
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
            eta,
        )
        for r in range(min(FEW, n - start)):
            numerator_out[start + r] = pull[r] * residual_and_weight(y[start + r], eta[r])[0]


@kernel(types.void(MATRIX, VECTOR, ROWS, VECTOR, VECTOR, MATRIX, VECTOR_OUT))
def logistic_influence(X, y, rows, b, a, L, influence_out):
    """Fill the change of t'b by one Newton step were each of ``rows`` to join the sample.

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
    The row adds w_i x_i x_i' to H, so the step is t'H^-1 x_i (y_i - p_i) / (1 + w_i h_i) with
    w_i = p_i (1 - p_i) and h_i = x_i'H^-1 x_i.
    """
    p = X.shape[1]
    lanes = np.empty((p, LANES))
    hat = np.empty(LANES)
    for start in range(0, rows.shape[0], LANES):
        stop = min(start + LANES, rows.shape[0])
        leverages(X, rows, start, stop, L, lanes, hat)
        for i in range(start, stop):
            x = X[rows[i]]
            eta = 0.0
            pull = 0.0
            for j in range(p):
                eta += b[j] * x[j]
                pull += a[j] * x[j]
            residual, weight = residual_and_weight(y[rows[i]], eta)
            influence_out[i] = pull * residual / (1.0 + weight * hat[i - start])
