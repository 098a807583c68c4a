"""Multinomial logistic regression as K - 1 contrasts: Newton refits.

Class K - 1 (the last) is the base. A coefficient vector is a matrix (K - 1, p); in the Hessian the
entry (k, j) stands at k p + j.
"""

from __future__ import annotations

import numpy as np
from numba import types

from .elementary import exp, log
from .jit import MATRIX, MATRIX_OUT, ROWS, VECTOR, inline, kernel
from .linalg import CONVERGED, FALL, LANES, NOT_CONVERGED, cholesky_into, solve_into

__all__ = ["multinomial_fit"]

# As in logistic.py: squared Newton decrement per row, what separation moves at least.
_DECREMENT = 1e-20
_REACH = 0.5


@inline
def gather_lanes(X, rows, start, stop, lanes_out):
    """Put rows[start:stop] into lanes, a column at a time; the last of them again past the end."""
    for r in range(LANES):
        x = X[rows[min(start + r, stop - 1)]]
        for j in range(x.shape[0]):
            lanes_out[j, r] = x[j]


@inline
def predictors_in_lanes(lanes, b, eta_out):
    """Fill b_k'x for each contrast and lane."""
    classes, p = b.shape
    for k in range(classes):
        row = eta_out[k]
        row[:] = 0.0
        for j in range(p):
            bj = b[k, j]
            x = lanes[j]
            for r in range(LANES):
                row[r] += bj * x[r]


@inline
def shares_in_lanes(eta_out, top_out, total_out):
    """Turn predictors into the K - 1 non-base probabilities, lane by lane.

    The log of the sum of exponentials is top + log(total), with 1 <= total <= K.
    """
    classes = eta_out.shape[0]
    top_out[:] = 0.0
    for k in range(classes):
        row = eta_out[k]
        for r in range(LANES):
            top_out[r] = max(top_out[r], row[r])
    for r in range(LANES):
        total_out[r] = exp(-top_out[r])
    for k in range(classes):
        row = eta_out[k]
        for r in range(LANES):
            row[r] = exp(row[r] - top_out[r])
        for r in range(LANES):
            total_out[r] += row[r]
    for k in range(classes):
        row = eta_out[k]
        for r in range(LANES):
            row[r] /= total_out[r]


@inline
def _gradient(X, y, rows, penalty, b, lanes, eta, probs_out, g_out):
    """Fill the probabilities of all rows and minus the gradient.

    Return the loss, and whether the own class of every row has a probability above one half.
    """
    classes, p = b.shape
    n = rows.shape[0]
    all_clear = True
    loss = 0.0
    # Totals are at least 1 and at most K: the log of a product of a few is one log for all.
    product = 1.0
    own_eta = np.empty(LANES)
    top = np.empty(LANES)
    total = np.empty(LANES)
    g_out[:] = 0.0
    for start in range(0, n, LANES):
        stop = min(start + LANES, n)
        gather_lanes(X, rows, start, stop, lanes)
        predictors_in_lanes(lanes, b, eta)
        for r in range(stop - start):
            c = int(y[rows[start + r]])
            own_eta[r] = eta[c, r] if c < classes else 0.0
        shares_in_lanes(eta, top, total)
        for r in range(stop - start):
            i = start + r
            product *= total[r]
            if product > 1e100:
                loss += log(product)
                product = 1.0
            loss += top[r] - own_eta[r]
            c = int(y[rows[i]])
            prob = probs_out[i]
            own = 1.0
            for k in range(classes):
                prob[k] = eta[k, r]
                own -= prob[k]
            if c < classes:
                own = prob[c]
            if not own > 0.5:
                all_clear = False
            x = X[rows[i]]
            for k in range(classes):
                residual = (1.0 if c == k else 0.0) - prob[k]
                part = g_out[k * p : (k + 1) * p]
                for j in range(p):
                    part[j] += residual * x[j]
    loss += log(product)
    for k in range(classes):
        for j in range(1, p):
            g_out[k * p + j] -= penalty * b[k, j]
            loss += 0.5 * penalty * b[k, j] * b[k, j]
    return loss, all_clear


@inline
def _pair_weights(prob, weight_out):
    """Fill prob_k (1[k = m] - prob_m) for m <= k, one after the other."""
    at = 0
    for k in range(prob.shape[0]):
        for m in range(k + 1):
            weight_out[at] = prob[k] * ((1.0 if k == m else 0.0) - prob[m])
            at += 1


@inline
def _pair_products(x, product_out):
    """Fill x_u x_v for v <= u, one after the other."""
    at = 0
    for u in range(x.shape[0]):
        xu = x[u]
        for v in range(u + 1):
            product_out[at + v] = xu * x[v]
        at += u + 1


@inline
def _add_hessian(X, rows, probs, sums, H_out):
    """Add the Hessian of the rows' loss to the lower triangle of ``H_out``.

    Block (k, m) is the sum of w_ikm x_i x_i', itself symmetric: the products x_u x_v of a row are
    made once and serve all pairs of classes, four rows at a time.
    """
    n, classes = probs.shape
    p = X.shape[1]
    pairs, cells = sums.shape
    weights = np.zeros((4, pairs))
    products = np.zeros((4, cells))
    sums[:] = 0.0
    for start in range(0, n, 4):
        for r in range(4):
            if start + r < n:
                _pair_weights(probs[start + r], weights[r])
                _pair_products(X[rows[start + r]], products[r])
            else:
                weights[r] = 0.0
        z0, z1, z2, z3 = products[0], products[1], products[2], products[3]
        for a in range(pairs):
            w0, w1, w2, w3 = weights[0, a], weights[1, a], weights[2, a], weights[3, a]
            row = sums[a]
            for c in range(cells):
                row[c] += (w0 * z0[c] + w1 * z1[c]) + (w2 * z2[c] + w3 * z3[c])
    a = 0
    for k in range(classes):
        for m in range(k + 1):
            c = 0
            for u in range(p):
                for v in range(u + 1):
                    H_out[k * p + u, m * p + v] += sums[a, c]
                    if m < k and v < u:
                        H_out[k * p + v, m * p + u] += sums[a, c]
                    c += 1
            a += 1


@inline
def _factorise(H, p, penalty, L_out):
    """Factorise H with the penalty on all but intercepts; return 0, or the failing column."""
    A = H.copy()
    for j in range(A.shape[0]):
        if j % p > 0:
            A[j, j] += penalty
    return cholesky_into(A, L_out)


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


@kernel(
    types.int64(
        MATRIX, VECTOR, ROWS, types.int64, types.float64, types.int64,
        MATRIX_OUT, MATRIX_OUT, MATRIX_OUT,
    )
)  # fmt: skip
def multinomial_fit(X, y, rows, known, penalty, max_steps, H_out, L_out, b_out):
    """Fit by Newton's method with step halving, from the contrasts in ``b_out``.

    Parameters
    ----------
    X : float64 (n, p)
        Column 0 is the intercept and free of the penalty.
    y : float64 (n,)
        Class codes 0 .. K - 1.
    rows : int64 (k,)
        The sample.
    known : int
        ``H_out`` holds the Hessian of so many first rows at the contrasts in ``b_out``.
    penalty : float
        Number of rows times the ridge parameter; it acts on the contrasts.
    max_steps : int
    H_out : float64 ((K - 1) p, (K - 1) p)
        Hessian of the rows' loss at the solution, without the penalty; lower triangle.
    L_out : float64 ((K - 1) p, (K - 1) p)
        Cholesky factor of the Hessian at the solution (of the last step but one, 1e-10 away).
    b_out : float64 (K - 1, p)
        Start and result.

    Returns
    -------
    int
        CONVERGED, or NOT_CONVERGED: a singular Hessian or no convergence, as under separation.

    Notes
    -----
    A Hessian costs k p^2 K (K - 1) / 4 + ((K - 1) p)^3 / 6 multiply-adds, a gradient 2 k p (K - 1):
    the Hessian at hand serves as long as it makes the squared decrement fall to a twentieth, and is
    made afresh for the last step. With ``known`` rows the first one takes the others alone.
    """
    classes, p = b_out.shape
    n = rows.shape[0]
    q = classes * p
    sums = np.empty((classes * (classes + 1) // 2, p * (p + 1) // 2))
    lanes = np.empty((p, LANES))
    eta = np.empty((classes, LANES))
    probs = np.empty((n, classes))
    g = np.empty(q)
    step = np.empty(q)
    trial = np.empty((classes, p))
    loss, clear = _gradient(X, y, rows, penalty, b_out, lanes, eta, probs, g)
    if known == 0:
        H_out[:] = 0.0
    _add_hessian(X, rows[known:], probs[known:], sums, H_out)
    if _factorise(H_out, p, penalty, L_out) != 0:
        return NOT_CONVERGED
    fresh = True
    last = np.inf
    for _ in range(2 * max_steps):
        if clear and penalty == 0.0:
            # Each row's own class beats all others together: there is no finite solution.
            return NOT_CONVERGED
        solve_into(L_out, g, step)
        decrement = 0.0
        for j in range(q):
            decrement += g[j] * step[j]
        converged = decrement <= _DECREMENT * n
        if converged and fresh:
            if _reach(X, rows, step, classes) > _REACH:
                return NOT_CONVERGED
            for c in range(classes):
                for j in range(p):
                    b_out[c, j] += step[c * p + j]
            return CONVERGED
        if not fresh and (converged or not decrement <= FALL * last):
            H_out[:] = 0.0
            _add_hessian(X, rows, probs, sums, H_out)
            if _factorise(H_out, p, penalty, L_out) != 0:
                return NOT_CONVERGED
            fresh = True
            last = np.inf
            continue
        last = decrement
        scale = 1.0
        for _halving in range(30):
            for c in range(classes):
                for j in range(p):
                    trial[c, j] = b_out[c, j] + scale * step[c * p + j]
            trial_loss, clear = _gradient(X, y, rows, penalty, trial, lanes, eta, probs, g)
            # Near the solution the loss changes by less than its rounding.
            if trial_loss <= loss + 1e-12 * (1.0 + loss):
                break
            scale *= 0.5
        b_out[:] = trial
        loss = trial_loss
        fresh = False
    return NOT_CONVERGED
