"""Leaving rows out one at a time: rank-one updates of a fit and what each further removal does."""

from __future__ import annotations

import numpy as np
from numba import types

from .elementary import expit
from .jit import FLAGS, MATRIX, MATRIX_OUT, TENSOR, VECTOR, VECTOR_OUT, kernel
from .linalg import BLOCK

__all__ = [
    "COEFFICIENT",
    "NORMAL_T",
    "STUDENT_T",
    "logistic_gradient",
    "rank_one_step",
    "removal_values",
    "row_products",
    "square_sum",
    "symmetric_product",
    "weighted_sum",
]

#: What :func:`removal_values` reports.
COEFFICIENT = 0
STUDENT_T = 1
NORMAL_T = 2


@kernel(types.void(TENSOR, VECTOR, VECTOR_OUT))
def row_products(blocks, v, product_out):
    """Fill x_i'v for every row.

    Parameters
    ----------
    blocks : float64 (ceil(n / BLOCK), p, BLOCK)
        The rows in blocked layout.
    v : float64 (p,)
    product_out : float64 (n,)

    Notes
    -----
    n p multiply-adds; the sum over columns runs in column order.
    """
    n = product_out.shape[0]
    total = np.empty(BLOCK)
    for block in range(blocks.shape[0]):
        total[:] = 0.0
        for j in range(v.shape[0]):
            vj = v[j]
            column = blocks[block, j]
            for r in range(BLOCK):
                total[r] += vj * column[r]
        start = block * BLOCK
        for r in range(min(BLOCK, n - start)):
            product_out[start + r] = total[r]


@kernel(types.void(TENSOR, VECTOR, VECTOR_OUT))
def weighted_sum(blocks, weight, sum_out):
    """Fill the sum of weight_i x_i over all rows.

    Parameters
    ----------
    blocks : float64 (ceil(n / BLOCK), p, BLOCK)
    weight : float64 (n,)
    sum_out : float64 (p,)

    Notes
    -----
    Row r of a block adds to lane r; lanes are summed in order at the end.
    """
    n = weight.shape[0]
    p = sum_out.shape[0]
    lanes = np.zeros((p, BLOCK))
    w = np.zeros(BLOCK)
    for block in range(blocks.shape[0]):
        start = block * BLOCK
        w[:] = 0.0
        for r in range(min(BLOCK, n - start)):
            w[r] = weight[start + r]
        for j in range(p):
            lane = lanes[j]
            column = blocks[block, j]
            for r in range(BLOCK):
                lane[r] += w[r] * column[r]
    for j in range(p):
        total = 0.0
        for r in range(BLOCK):
            total += lanes[j, r]
        sum_out[j] = total


@kernel(types.float64(VECTOR, FLAGS))
def square_sum(value, gone):
    """Return the sum of squares over the rows that are not gone.

    Parameters
    ----------
    value : float64 (n,)
    gone : bool (n,)

    Notes
    -----
    In BLOCK lanes by position, summed in order.
    """
    lanes = np.zeros(BLOCK)
    for i in range(value.shape[0]):
        if not gone[i]:
            lanes[i % BLOCK] += value[i] * value[i]
    total = 0.0
    for r in range(BLOCK):
        total += lanes[r]
    return total


@kernel(types.void(MATRIX, VECTOR, VECTOR_OUT))
def symmetric_product(A, v, product_out):
    """Fill A v for a small symmetric A.

    Parameters
    ----------
    A : float64 (p, p)
    v, product_out : float64 (p,)
    """
    for a in range(A.shape[0]):
        total = 0.0
        for b in range(A.shape[0]):
            total += A[a, b] * v[b]
        product_out[a] = total


@kernel(
    types.void(
        TENSOR, types.int64, types.float64, types.float64,
        MATRIX_OUT, VECTOR_OUT, VECTOR_OUT, VECTOR_OUT,
    )
)  # fmt: skip
def rank_one_step(blocks, i, scale, carry, inverse_out, hat_out, pull_out, residual_out):
    """Follow a fit when row i leaves it or returns to it.

    Parameters
    ----------
    blocks : float64 (ceil(n / BLOCK), p, BLOCK)
    i : int
        The row.
    scale : float
        s = w / (1 - w h_i) if the row leaves and -w / (1 + w h_i) if it returns, with its weight w
        (1 for OLS) and h_i = x_i'H^-1 x_i.
    carry : float
        s r_i for OLS; 0 leaves the residuals alone.
    inverse_out : float64 (p, p)
        H^-1, becomes H^-1 + s v v' with v = H^-1 x_i.
    hat_out, pull_out, residual_out : float64 (n,)
        x_l'H^-1 x_l, t'H^-1 x_l for the functional t, and y_l - x_l'b of every row, in the sample
        or not; changed in place.

    Notes
    -----
    Sherman-Morrison: with m_l = x_l'v, hat_l grows by s m_l^2, pull_l by s pull_i m_l and
    residual_l by s r_i m_l. One pass, n p + 3 n multiply-adds. Rounding grows with every step;
    the caller starts afresh after 256 of them, and after one with 1 - w h_i under 1e-4.
    """
    n = hat_out.shape[0]
    p = inverse_out.shape[0]
    x = blocks[i // BLOCK, :, i % BLOCK]
    v = np.zeros(p)
    for a in range(p):
        for b in range(p):
            v[a] += inverse_out[a, b] * x[b]
    for a in range(p):
        for b in range(p):
            inverse_out[a, b] += scale * (v[a] * v[b])
    tug = scale * pull_out[i]
    m = np.empty(BLOCK)
    for block in range(blocks.shape[0]):
        m[:] = 0.0
        for j in range(p):
            vj = v[j]
            column = blocks[block, j]
            for r in range(BLOCK):
                m[r] += vj * column[r]
        start = block * BLOCK
        for r in range(min(BLOCK, n - start)):
            hat_out[start + r] += scale * (m[r] * m[r])
            pull_out[start + r] += tug * m[r]
            residual_out[start + r] += carry * m[r]


@kernel(
    types.void(
        types.int64, FLAGS, VECTOR, VECTOR, VECTOR, VECTOR,
        types.float64, types.float64, types.float64, types.float64, VECTOR_OUT,
    )
)  # fmt: skip
def removal_values(kind, gone, hat, pull, residual, weight, b, variance, rss, free, value_out):
    """Fill the coefficient or its t once each row of the sample has left it, too.

    Parameters
    ----------
    kind : int
        COEFFICIENT, STUDENT_T (classical standard error) or NORMAL_T (inverse information).
    gone : bool (n,)
        Rows that are not in the sample; their value is NaN.
    hat, pull, residual : float64 (n,)
        As in :func:`rank_one_step`.
    weight : float64 (n,)
        1 for OLS, p_i (1 - p_i) for logistic regression.
    b, variance : float64
        t'b and t'H^-1 t.
    rss : float64
        Residual sum of squares of the sample.
    free : float64
        Its rows less its coefficients, over 1.
    value_out : float64 (n,)
        NaN where 1 - w_i h_i < 1e-6: without such a row the fit may lose its rank, and the
        formulas below their digits.

    Notes
    -----
    With d = 1 - w h: b becomes b - pull r / d, the variance t'H^-1 t + w pull^2 / d, and the
    residual sum of squares rss - r^2 / d. Exact for OLS, one Newton step for logistic regression.
    """
    for i in range(hat.shape[0]):
        d = 1.0 - weight[i] * hat[i]
        if gone[i] or d < 1e-6:
            value_out[i] = np.nan
            continue
        after = b - pull[i] * residual[i] / d
        if kind != 0:
            spread = variance + weight[i] * (pull[i] * pull[i]) / d
            if kind == 1:
                spread *= max(rss - residual[i] * residual[i] / d, 0.0) / (free - 1.0)
            after = after / np.sqrt(spread) if spread > 0.0 else np.nan
        value_out[i] = after


@kernel(types.void(TENSOR, VECTOR, FLAGS, VECTOR, VECTOR_OUT, VECTOR_OUT, VECTOR_OUT))
def logistic_gradient(blocks, y, gone, b, residual_out, weight_out, gradient_out):
    """Fill y_i - p_i and p_i (1 - p_i) of all rows, and the score of those in the sample.

    Parameters
    ----------
    blocks : float64 (ceil(n / BLOCK), p, BLOCK)
    y : float64 (n,)
        0 or 1.
    gone : bool (n,)
    b : float64 (p,)
    residual_out, weight_out : float64 (n,)
    gradient_out : float64 (p,)
        Sum of (y_i - p_i) x_i over rows that are not gone.

    Notes
    -----
    One pass, 2 n p multiply-adds and n exponentials.
    """
    n = y.shape[0]
    p = b.shape[0]
    lanes = np.zeros((p, BLOCK))
    eta = np.empty(BLOCK)
    inside = np.empty(BLOCK)
    for block in range(blocks.shape[0]):
        eta[:] = 0.0
        inside[:] = 0.0
        for j in range(p):
            bj = b[j]
            column = blocks[block, j]
            for r in range(BLOCK):
                eta[r] += bj * column[r]
        start = block * BLOCK
        for r in range(min(BLOCK, n - start)):
            share = expit(eta[r])
            residual_out[start + r] = y[start + r] - share
            weight_out[start + r] = share * (1.0 - share)
            if not gone[start + r]:
                inside[r] = y[start + r] - share
        for j in range(p):
            lane = lanes[j]
            column = blocks[block, j]
            for r in range(BLOCK):
                lane[r] += inside[r] * column[r]
    for j in range(p):
        total = 0.0
        for r in range(BLOCK):
            total += lanes[j, r]
        gradient_out[j] = total
