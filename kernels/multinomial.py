"""Multinomial logistic regression as K - 1 contrasts: Newton refits and rank-(K-1) influence.

Class K - 1 (the last) is the base. A coefficient vector is a matrix (K - 1, p); in the Hessian the
entry (k, j) stands at k p + j.
"""

from __future__ import annotations

import numpy as np
from numba import types

from .elementary import exp, log
from .jit import MATRIX, MATRIX_OUT, ROWS, VECTOR, VECTOR_OUT, inline, kernel
from .linalg import BLOCK, CONVERGED, NOT_CONVERGED, cholesky_into, solve_into

__all__ = ["multinomial_fit", "multinomial_influence", "multinomial_numerators"]

# As in logistic.py: squared Newton decrement per row, and what separation moves at least.
_DECREMENT = 1e-18
_REACH = 0.5


@inline
def _probabilities(x, b, prob_out):
    """Fill the K - 1 non-base probabilities of a row; return log of the sum of exponentials."""
    classes = b.shape[0]
    top = 0.0
    for k in range(classes):
        eta = 0.0
        for j in range(x.shape[0]):
            eta += b[k, j] * x[j]
        prob_out[k] = eta
        top = max(top, eta)
    total = exp(-top)
    for k in range(classes):
        prob_out[k] = exp(prob_out[k] - top)
        total += prob_out[k]
    for k in range(classes):
        prob_out[k] /= total
    return top + log(total)


@inline
def _loss(X, y, rows, penalty, b, prob):
    total = 0.0
    classes, p = b.shape
    for i in range(rows.shape[0]):
        x = X[rows[i]]
        total += _probabilities(x, b, prob)
        c = int(y[rows[i]])
        if c < classes:
            for j in range(p):
                total -= b[c, j] * x[j]
    for k in range(classes):
        for j in range(1, p):
            total += 0.5 * penalty * b[k, j] * b[k, j]
    return total


@inline
def _gradient_and_hessian(X, y, rows, penalty, b, prob, H_out, g_out):
    """Fill minus the gradient and the lower triangle of the Hessian.

    Return whether the own class of every row has a probability above one half.
    """
    classes, p = b.shape
    all_clear = True
    H_out[:] = 0.0
    g_out[:] = 0.0
    for i in range(rows.shape[0]):
        x = X[rows[i]]
        _probabilities(x, b, prob)
        c = int(y[rows[i]])
        own = prob[c] if c < classes else 1.0
        if c == classes:
            for k in range(classes):
                own -= prob[k]
        if not own > 0.5:
            all_clear = False
        for k in range(classes):
            r = (1.0 if c == k else 0.0) - prob[k]
            for j in range(p):
                g_out[k * p + j] += r * x[j]
            for m in range(k + 1):
                weight = prob[k] * ((1.0 if k == m else 0.0) - prob[m])
                for u in range(p):
                    wu = weight * x[u]
                    row = H_out[k * p + u]
                    # The diagonal block needs its lower triangle only.
                    for v in range(u + 1 if k == m else p):
                        row[m * p + v] += wu * x[v]
    for k in range(classes):
        for j in range(1, p):
            g_out[k * p + j] -= penalty * b[k, j]
            H_out[k * p + j, k * p + j] += penalty
    return all_clear


@inline
def _reach(X, rows, step, classes):
    """Return the largest change of a difference of two classes' predictors on the rows."""
    top = 0.0
    p = X.shape[1]
    for i in range(rows.shape[0]):
        x = X[rows[i]]
        low = 0.0
        high = 0.0
        for k in range(classes):
            move = 0.0
            for j in range(p):
                move += x[j] * step[k * p + j]
            low = min(low, move)
            high = max(high, move)
        top = max(top, high - low)
    return top


@kernel(types.int64(MATRIX, VECTOR, ROWS, types.float64, types.int64, MATRIX_OUT, MATRIX_OUT))
def multinomial_fit(X, y, rows, penalty, max_steps, L_out, b_out):
    """Fit by Newton's method with step halving, from the contrasts in ``b_out``.

    Parameters
    ----------
    X : float64 (n, p)
        Column 0 is the intercept and free of the penalty.
    y : float64 (n,)
        Class codes 0 .. K - 1.
    rows : int64 (k,)
        The sample.
    penalty : float
        Number of rows times the ridge parameter; it acts on the contrasts.
    max_steps : int
    L_out : float64 ((K - 1) p, (K - 1) p)
        Cholesky factor of the Hessian at the solution (of the last step but one, 1e-9 away).
    b_out : float64 (K - 1, p)
        Start and result.

    Returns
    -------
    int
        CONVERGED, or NOT_CONVERGED: a singular Hessian or no convergence, as under separation.

    Notes
    -----
    Each step refactorises: k p^2 K (K - 1) / 2 + ((K - 1) p)^3 / 6 multiply-adds.
    """
    classes, p = b_out.shape
    k = rows.shape[0]
    q = classes * p
    H = np.empty((q, q))
    g = np.empty(q)
    step = np.empty(q)
    trial = np.empty((classes, p))
    prob = np.empty(classes)
    loss = _loss(X, y, rows, penalty, b_out, prob)
    for _ in range(max_steps):
        all_clear = _gradient_and_hessian(X, y, rows, penalty, b_out, prob, H, g)
        if all_clear and penalty == 0.0:
            # Each row's own class beats all others together: there is no finite solution.
            return NOT_CONVERGED
        if cholesky_into(H, L_out) != 0:
            return NOT_CONVERGED
        solve_into(L_out, g, step)
        decrement = 0.0
        for j in range(q):
            decrement += g[j] * step[j]
        if decrement <= _DECREMENT * k:
            if _reach(X, rows, step, classes) > _REACH:
                return NOT_CONVERGED
            for c in range(classes):
                for j in range(p):
                    b_out[c, j] += step[c * p + j]
            return CONVERGED
        scale = 1.0
        for _halving in range(30):
            for c in range(classes):
                for j in range(p):
                    trial[c, j] = b_out[c, j] + scale * step[c * p + j]
            trial_loss = _loss(X, y, rows, penalty, trial, prob)
            # Near the solution the loss changes by less than its rounding.
            if trial_loss <= loss + 1e-12 * (1.0 + loss):
                break
            scale *= 0.5
        b_out[:] = trial
        loss = trial_loss
    return NOT_CONVERGED


@kernel(types.void(MATRIX, VECTOR, MATRIX, MATRIX, VECTOR_OUT))
def multinomial_numerators(X, y, b, a, numerator_out):
    """Fill sum over contrasts of (a_k'x_i)(1[y_i = k] - p_ik): influence without its leverage term.

    Parameters
    ----------
    X : float64 (n, p)
    y : float64 (n,)
        Class codes.
    b, a : float64 (K - 1, p)
        Contrasts, and H^-1 t for the functional t.
    numerator_out : float64 (n,)
    """
    n = y.shape[0]
    classes, p = b.shape
    eta = np.empty((classes, BLOCK))
    pull = np.empty((classes, BLOCK))
    block = np.zeros((p, BLOCK))
    for start in range(0, n, BLOCK):
        eta[:] = 0.0
        pull[:] = 0.0
        for r in range(min(BLOCK, n - start)):
            x = X[start + r]
            for j in range(p):
                block[j, r] = x[j]
        for j in range(p):
            column = block[j]
            for k in range(classes):
                bj = b[k, j]
                aj = a[k, j]
                for r in range(BLOCK):
                    eta[k, r] += bj * column[r]
                    pull[k, r] += aj * column[r]
        for r in range(min(BLOCK, n - start)):
            top = 0.0
            for k in range(classes):
                top = max(top, eta[k, r])
            total = exp(-top)
            mean = 0.0
            for k in range(classes):
                e = exp(eta[k, r] - top)
                total += e
                mean += e * pull[k, r]
            c = int(y[start + r])
            own = pull[c, r] if c < classes else 0.0
            numerator_out[start + r] = own - mean / total


@inline
def _solve_general(M, r_out):
    """Solve M z = r in place by Gaussian elimination with row pivoting; M is overwritten."""
    size = r_out.shape[0]
    for j in range(size):
        pivot = j
        for i in range(j + 1, size):
            if abs(M[i, j]) > abs(M[pivot, j]):
                pivot = i
        if pivot != j:
            for m in range(j, size):
                M[j, m], M[pivot, m] = M[pivot, m], M[j, m]
            r_out[j], r_out[pivot] = r_out[pivot], r_out[j]
        for i in range(j + 1, size):
            factor = M[i, j] / M[j, j]
            for m in range(j + 1, size):
                M[i, m] -= factor * M[j, m]
            r_out[i] -= factor * r_out[j]
    for j in range(size - 1, -1, -1):
        for m in range(j + 1, size):
            r_out[j] -= M[j, m] * r_out[m]
        r_out[j] /= M[j, j]


@kernel(types.void(MATRIX, VECTOR, ROWS, MATRIX, MATRIX, MATRIX, VECTOR_OUT))
def multinomial_influence(X, y, rows, b, a, H_inverse, influence_out):
    """Fill the change of t'b by one Newton step were each of ``rows`` to join the sample.

    Parameters
    ----------
    X : float64 (n, p)
    y : float64 (n,)
        Class codes.
    rows : int64 (k,)
    b, a : float64 (K - 1, p)
        Contrasts, and H^-1 t.
    H_inverse : float64 ((K - 1) p, (K - 1) p)
        Symmetric.
    influence_out : float64 (k,)

    Notes
    -----
    The row adds W kron x x' to H, W = diag(p_i) - p_i p_i' of rank K - 1. By the Woodbury
    identity the step is v'(I + W B)^-1 r with B = (I kron x)'H^-1 (I kron x), v = (I kron x)'a and
    r_k = 1[y_i = k] - p_ik. About (K - 1) K p^2 / 2 + (K - 1)^3 / 3 multiply-adds per row.
    """
    classes, p = b.shape
    prob = np.empty(classes)
    B = np.empty((classes, classes))
    M = np.empty((classes, classes))
    r = np.empty(classes)
    for i in range(rows.shape[0]):
        x = X[rows[i]]
        _probabilities(x, b, prob)
        c = int(y[rows[i]])
        for k in range(classes):
            r[k] = (1.0 if c == k else 0.0) - prob[k]
            for m in range(k + 1):
                total = 0.0
                for u in range(p):
                    part = 0.0
                    for v in range(p):
                        part += H_inverse[k * p + u, m * p + v] * x[v]
                    total += part * x[u]
                B[k, m] = total
                B[m, k] = total
        for k in range(classes):
            for m in range(classes):
                mean = 0.0
                for u in range(classes):
                    mean += prob[u] * B[u, m]
                M[k, m] = prob[k] * (B[k, m] - mean) + (1.0 if k == m else 0.0)
        _solve_general(M, r)
        total = 0.0
        for k in range(classes):
            pull = 0.0
            for j in range(p):
                pull += a[k, j] * x[j]
            total += pull * r[k]
        influence_out[i] = total
