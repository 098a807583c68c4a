"""Leaving rows out one at a time: rank-one updates of a fit and what each further removal does."""

from __future__ import annotations

import numpy as np
from numba import types

from .elementary import log
from .jit import FLAGS, MATRIX, MATRIX_OUT, TENSOR, VECTOR, VECTOR_OUT, kernel
from .linalg import BLOCK

__all__ = [
    "COEFFICIENT",
    "NORMAL_T",
    "STUDENT_T",
    "logarithms",
    "rank_one_step",
    "removal_values",
    "robust_sums",
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


@kernel(types.void(VECTOR, VECTOR_OUT))
def logarithms(value, log_out):
    """Fill natural logarithms of normal positive numbers.

    Parameters
    ----------
    value, log_out : float64 (n,)
    """
    for i in range(value.shape[0]):
        log_out[i] = log(value[i])


@kernel(
    types.void(
        TENSOR, types.int64, types.float64, types.float64,
        VECTOR_OUT, MATRIX_OUT, VECTOR_OUT, VECTOR_OUT, VECTOR_OUT,
    )
)  # fmt: skip
def rank_one_step(blocks, i, scale, carry, v_out, inverse_out, hat_out, pull_out, residual_out):
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
    v_out : float64 (p,)
        v = H^-1 x_i as it was.
    inverse_out : float64 (p, p)
        H^-1, becomes H^-1 + s v v'.
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
    for a in range(p):
        v_out[a] = 0.0
        for b in range(p):
            v_out[a] += inverse_out[a, b] * x[b]
    for a in range(p):
        for b in range(p):
            inverse_out[a, b] += scale * (v_out[a] * v_out[b])
    tug = scale * pull_out[i]
    m = np.empty(BLOCK)
    for block in range(blocks.shape[0]):
        m[:] = 0.0
        for j in range(p):
            vj = v_out[j]
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
        types.float64, types.float64, types.float64, types.float64, types.float64, VECTOR_OUT,
    )
)  # fmt: skip
def removal_values(
    kind, gone, hat, pull, residual, weight, b, variance, rss, free, critical, value_out
):
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
    critical : float64
        Room under which the formulas are not used.
    value_out : float64 (n,)
        NaN for rows that are gone. Infinite where 1 - w_i h_i is under ``critical``, since the
        fit may lose its rank without such a row, and for STUDENT_T where at most that share of
        the residual sum of squares would be left: the formulas have no digits there, and the
        caller has to fit afresh.

    Notes
    -----
    With d = 1 - w h: b becomes b - pull r / d, the variance t'H^-1 t + w pull^2 / d, and the
    residual sum of squares rss - r^2 / d. Exact for OLS, one Newton step for logistic regression.
    """
    for i in range(hat.shape[0]):
        d = 1.0 - weight[i] * hat[i]
        if gone[i]:
            value_out[i] = np.nan
            continue
        if not d >= critical:
            value_out[i] = np.inf
            continue
        after = b - pull[i] * residual[i] / d
        if kind != 0:
            spread = variance + weight[i] * (pull[i] * pull[i]) / d
            if kind == 1:
                rest = rss - residual[i] * residual[i] / d
                if not rest > critical * rss:
                    value_out[i] = np.inf
                    continue
                spread *= rest / (free - 1.0)
            after = after / np.sqrt(spread) if spread > 0.0 else np.nan
        value_out[i] = after


@kernel(types.void(TENSOR, MATRIX, FLAGS, VECTOR, VECTOR, VECTOR, types.float64, VECTOR_OUT))
def robust_sums(blocks, inverse, gone, hat, pull, residual, critical, sum_out):
    """Fill the sum of pull_l^2 r_l^2 over the rows left once each row has gone, too.

    Parameters
    ----------
    blocks : float64 (ceil(n / BLOCK), p, BLOCK)
    inverse : float64 (p, p)
        H^-1.
    gone : bool (n,)
    hat, pull, residual : float64 (n,)
        As in :func:`rank_one_step`.
    critical : float64
        NaN where 1 - h_i is under it.
    sum_out : float64 (n,)

    Notes
    -----
    Without row i, pull_l becomes pull_l + pull_i h_li / (1 - h_i) and r_l the same way. n^2 (p + 4)
    multiply-adds in BLOCK lanes, summed in order; no more than O(n) memory.
    """
    n = hat.shape[0]
    p = inverse.shape[0]
    v = np.empty(p)
    m = np.empty(BLOCK)
    lanes = np.empty(BLOCK)
    for i in range(n):
        room = 1.0 - hat[i]
        if gone[i] or not room >= critical:
            sum_out[i] = np.nan
            continue
        x = blocks[i // BLOCK, :, i % BLOCK]
        for a in range(p):
            v[a] = 0.0
            for b in range(p):
                v[a] += inverse[a, b] * x[b]
        by_pull = pull[i] / room
        by_residual = residual[i] / room
        lanes[:] = 0.0
        for block in range(blocks.shape[0]):
            m[:] = 0.0
            for j in range(p):
                vj = v[j]
                column = blocks[block, j]
                for r in range(BLOCK):
                    m[r] += vj * column[r]
            start = block * BLOCK
            for r in range(min(BLOCK, n - start)):
                at = start + r
                if not gone[at] and at != i:
                    term = (pull[at] + by_pull * m[r]) * (residual[at] + by_residual * m[r])
                    lanes[r] += term * term
        total = 0.0
        for r in range(BLOCK):
            total += lanes[r]
        sum_out[i] = total
