"""Multinomial logistic regression: influence by the rank-(K-1) step, contrasts as in the fit."""

from __future__ import annotations

import numpy as np
from numba import types

from .jit import MATRIX, ROWS, VECTOR, VECTOR_OUT, inline, kernel
from .linalg import LANES
from .multinomial import gather_lanes, predictors_in_lanes, shares_in_lanes

__all__ = ["multinomial_influence", "multinomial_numerators"]


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
    rows = np.arange(n)
    lanes = np.empty((p, LANES))
    eta = np.empty((classes, LANES))
    pull = np.empty((classes, LANES))
    top = np.empty(LANES)
    total = np.empty(LANES)
    mean = np.empty(LANES)
    for start in range(0, n, LANES):
        stop = min(start + LANES, n)
        gather_lanes(X, rows, start, stop, lanes)
        predictors_in_lanes(lanes, b, eta)
        predictors_in_lanes(lanes, a, pull)
        shares_in_lanes(eta, top, total)
        mean[:] = 0.0
        for k in range(classes):
            for r in range(LANES):
                mean[r] += eta[k, r] * pull[k, r]
        for r in range(stop - start):
            c = int(y[start + r])
            own = pull[c, r] if c < classes else 0.0
            numerator_out[start + r] = own - mean[r]


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


@inline
def _add_forms(cells, first, products, forms_out):
    """Add four products x_u x_v times their weights to the quadratic forms of all class pairs."""
    p0, p1, p2, p3 = products[0], products[1], products[2], products[3]
    for pair in range(forms_out.shape[0]):
        w0, w1 = cells[first, pair], cells[first + 1, pair]
        w2, w3 = cells[first + 2, pair], cells[first + 3, pair]
        form = forms_out[pair]
        for r in range(LANES):
            form[r] += (w0 * p0[r] + w1 * p1[r]) + (w2 * p2[r] + w3 * p3[r])


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
    r_k = 1[y_i = k] - p_ik. About K (K - 1) p^2 / 4 + (K - 1)^3 / 3 multiply-adds per row.
    """
    classes, p = b.shape
    pairs = classes * (classes + 1) // 2
    # x'A x is x'(A + A')x / 2: each block of H^-1 as the weights of x_u x_v with v <= u.
    # Rows of zeros after them, for they are taken four at a time.
    cells = np.zeros((p * (p + 1) // 2 + 3, pairs))
    a_pair = 0
    for k in range(classes):
        for m in range(k + 1):
            c = 0
            for u in range(p):
                for v in range(u):
                    cells[c + v, a_pair] = (
                        H_inverse[k * p + u, m * p + v] + H_inverse[k * p + v, m * p + u]
                    )
                cells[c + u, a_pair] = H_inverse[k * p + u, m * p + u]
                c += u + 1
            a_pair += 1
    lanes = np.empty((p, LANES))
    products = np.empty((4, LANES))
    forms = np.empty((pairs, LANES))
    eta = np.empty((classes, LANES))
    pull = np.empty((classes, LANES))
    top = np.empty(LANES)
    total = np.empty(LANES)
    prob = np.empty(classes)
    M = np.empty((classes, classes))
    B = np.empty((classes, classes))
    r_own = np.empty(classes)
    for start in range(0, rows.shape[0], LANES):
        stop = min(start + LANES, rows.shape[0])
        gather_lanes(X, rows, start, stop, lanes)
        predictors_in_lanes(lanes, b, eta)
        predictors_in_lanes(lanes, a, pull)
        shares_in_lanes(eta, top, total)
        forms[:] = 0.0
        c = 0
        for u in range(p):
            for v in range(u + 1):
                products[c % 4] = lanes[u] * lanes[v]
                c += 1
                if c % 4 == 0:
                    _add_forms(cells, c - 4, products, forms)
        if c % 4 > 0:
            products[c % 4 :] = 0.0
            _add_forms(cells, c - c % 4, products, forms)
        for r in range(stop - start):
            for k in range(classes):
                prob[k] = eta[k, r]
            own = int(y[rows[start + r]])
            pair = 0
            for k in range(classes):
                r_own[k] = (1.0 if own == k else 0.0) - prob[k]
                for m in range(k + 1):
                    B[k, m] = forms[pair, r]
                    B[m, k] = forms[pair, r]
                    pair += 1
            for m in range(classes):
                mean = 0.0
                for u in range(classes):
                    mean += prob[u] * B[u, m]
                for k in range(classes):
                    M[k, m] = prob[k] * (B[k, m] - mean) + (1.0 if k == m else 0.0)
            _solve_general(M, r_own)
            change = 0.0
            for k in range(classes):
                change += pull[k, r] * r_own[k]
            influence_out[start + r] = change
