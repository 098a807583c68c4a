"""Rows in blocked layout, whitened so that later sums over them lose no digits."""

from __future__ import annotations

import numpy as np
from numba import types

from .jit import FLAGS, MATRIX, MATRIX_OUT, TENSOR, TENSOR_OUT, VECTOR, VECTOR_OUT, inline, kernel
from .linalg import BLOCK

__all__ = [
    "block_gram",
    "block_hats",
    "left_moments",
    "pivoted_cholesky",
    "row_norms",
    "standard_gram",
    "whitened_blocks",
]


@inline
def add_block_gram(block, weight, lane, A_out):
    """Add the sum of weight_r x_r x_r' over a block to the lower triangle of ``A_out``.

    Eight partial sums by position in the block, added in order at the end of it.
    """
    p = A_out.shape[0]
    for a in range(p):
        for r in range(BLOCK):
            lane[r] = weight[r] * block[a, r]
        for b in range(a + 1):
            other = block[b]
            s0 = 0.0
            s1 = 0.0
            s2 = 0.0
            s3 = 0.0
            s4 = 0.0
            s5 = 0.0
            s6 = 0.0
            s7 = 0.0
            for r in range(0, BLOCK, 8):
                s0 += lane[r] * other[r]
                s1 += lane[r + 1] * other[r + 1]
                s2 += lane[r + 2] * other[r + 2]
                s3 += lane[r + 3] * other[r + 3]
                s4 += lane[r + 4] * other[r + 4]
                s5 += lane[r + 5] * other[r + 5]
                s6 += lane[r + 6] * other[r + 6]
                s7 += lane[r + 7] * other[r + 7]
            A_out[a, b] += ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))


@inline
def _standardised(X, start, mean, scale, block_out):
    """Fill the standardised rows from ``start`` on, a row per lane; the rest of the lanes is 0."""
    n, p = X.shape
    for j in range(p):
        for r in range(BLOCK):
            block_out[j, r] = 0.0
    for r in range(min(BLOCK, n - start)):
        for j in range(p):
            block_out[j, r] = (X[start + r, j] - mean[j]) / scale[j]


@inline
def _forward(L, block_out):
    """Solve L z = x for every lane, in place."""
    p = L.shape[0]
    for i in range(p):
        row = block_out[i]
        for k in range(i):
            factor = L[i, k]
            other = block_out[k]
            for r in range(BLOCK):
                row[r] -= factor * other[r]
        pivot = L[i, i]
        for r in range(BLOCK):
            row[r] /= pivot


@kernel(types.void(MATRIX, FLAGS, VECTOR_OUT, VECTOR_OUT, VECTOR_OUT))
def left_moments(X, gone, mean_out, scale_out, size_out):
    """Fill mean, standard deviation (divisor n, two passes) and largest size of each column.

    Parameters
    ----------
    X : float64 (n, p)
    gone : bool (n,)
        Rows that do not count.
    mean_out, scale_out, size_out : float64 (p,)
    """
    n, p = X.shape
    mean_out[:] = 0.0
    scale_out[:] = 0.0
    size_out[:] = 0.0
    left = 0
    for i in range(n):
        if not gone[i]:
            left += 1
            for j in range(p):
                mean_out[j] += X[i, j]
                size_out[j] = max(size_out[j], abs(X[i, j]))
    for j in range(p):
        mean_out[j] /= left
    for i in range(n):
        if not gone[i]:
            for j in range(p):
                d = X[i, j] - mean_out[j]
                scale_out[j] += d * d
    for j in range(p):
        scale_out[j] = np.sqrt(scale_out[j] / left)


@kernel(types.void(MATRIX, FLAGS, VECTOR, VECTOR, MATRIX_OUT))
def standard_gram(X, gone, mean, scale, A_out):
    """Fill the lower triangle of Z'Z over the rows left, Z = (X - mean) / scale.

    Parameters
    ----------
    X : float64 (n, p)
    gone : bool (n,)
    mean, scale : float64 (p,)
    A_out : float64 (p, p)
    """
    n, p = X.shape
    block = np.empty((p, BLOCK))
    lane = np.empty(BLOCK)
    weight = np.empty(BLOCK)
    A_out[:] = 0.0
    for start in range(0, n, BLOCK):
        _standardised(X, start, mean, scale, block)
        weight[:] = 0.0
        for r in range(min(BLOCK, n - start)):
            weight[r] = 0.0 if gone[start + r] else 1.0
        add_block_gram(block, weight, lane, A_out)


@kernel(types.void(MATRIX, VECTOR, VECTOR, MATRIX, types.float64, TENSOR_OUT))
def whitened_blocks(X, mean, scale, L, length, blocks_out):
    """Fill q_i = length L^-1 (x_i - mean) / scale of every row, in blocked layout.

    Parameters
    ----------
    X : float64 (n, p)
    mean, scale : float64 (p,)
    L : float64 (p, p)
        Cholesky factor of :func:`standard_gram`.
    length : float
        Square root of the number of rows left, which then have Q'Q near n I.
    blocks_out : float64 (ceil(n / BLOCK), p, BLOCK)

    Notes
    -----
    n p^2 / 2 multiply-adds; no other copy of X.
    """
    p = X.shape[1]
    for b in range(blocks_out.shape[0]):
        block = blocks_out[b]
        _standardised(X, b * BLOCK, mean, scale, block)
        _forward(L, block)
        for j in range(p):
            for r in range(BLOCK):
                block[j, r] *= length


@kernel(types.void(TENSOR, VECTOR, MATRIX_OUT))
def block_gram(blocks, weight, A_out):
    """Fill the lower triangle of the sum of weight_i x_i x_i'.

    Parameters
    ----------
    blocks : float64 (ceil(n / BLOCK), p, BLOCK)
    weight : float64 (n,)
        0 for rows that are gone.
    A_out : float64 (p, p)
    """
    n = weight.shape[0]
    lane = np.empty(BLOCK)
    w = np.empty(BLOCK)
    A_out[:] = 0.0
    for b in range(blocks.shape[0]):
        start = b * BLOCK
        w[:] = 0.0
        for r in range(min(BLOCK, n - start)):
            w[r] = weight[start + r]
        add_block_gram(blocks[b], w, lane, A_out)


@kernel(types.float64(MATRIX, MATRIX_OUT))
def pivoted_cholesky(A, L_out):
    """Factorise the lower triangle of A as L L' and return the least pivot.

    Parameters
    ----------
    A, L_out : float64 (p, p)

    Returns
    -------
    float
        Least share of a diagonal entry that is left as its pivot; 0 or less without a factor.
    """
    p = A.shape[0]
    L_out[:] = 0.0
    least = 1.0
    for i in range(p):
        for j in range(i + 1):
            s = A[i, j]
            for k in range(j):
                s -= L_out[i, k] * L_out[j, k]
            if j < i:
                L_out[i, j] = s / L_out[j, j]
            else:
                share = s / A[i, i] if A[i, i] > 0.0 else 0.0
                if not share > 0.0:
                    return 0.0
                least = min(least, share)
                L_out[i, i] = np.sqrt(s)
    return least


@kernel(types.void(TENSOR, MATRIX, VECTOR_OUT))
def block_hats(blocks, L, hat_out):
    """Fill x_i'(L L')^-1 x_i of every row.

    Parameters
    ----------
    blocks : float64 (ceil(n / BLOCK), p, BLOCK)
    L : float64 (p, p)
    hat_out : float64 (n,)
    """
    n = hat_out.shape[0]
    p = L.shape[0]
    lanes = np.empty((p, BLOCK))
    total = np.empty(BLOCK)
    for b in range(blocks.shape[0]):
        for j in range(p):
            for r in range(BLOCK):
                lanes[j, r] = blocks[b, j, r]
        _forward(L, lanes)
        total[:] = 0.0
        for j in range(p):
            row = lanes[j]
            for r in range(BLOCK):
                total[r] += row[r] * row[r]
        start = b * BLOCK
        for r in range(min(BLOCK, n - start)):
            hat_out[start + r] = total[r]


@kernel(types.void(TENSOR, VECTOR_OUT))
def row_norms(blocks, norm_out):
    """Fill the length of every row.

    Parameters
    ----------
    blocks : float64 (ceil(n / BLOCK), p, BLOCK)
    norm_out : float64 (n,)
    """
    n = norm_out.shape[0]
    total = np.empty(BLOCK)
    for b in range(blocks.shape[0]):
        total[:] = 0.0
        for j in range(blocks.shape[1]):
            column = blocks[b, j]
            for r in range(BLOCK):
                total[r] += column[r] * column[r]
        start = b * BLOCK
        for r in range(min(BLOCK, n - start)):
            norm_out[start + r] = np.sqrt(total[r])
