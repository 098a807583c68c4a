"""One byte per entry of the pool, and what its sums may be wrong by."""

from __future__ import annotations

import numpy as np
from numba import types

from .jit import (
    CODES_OUT,
    MATRIX,
    SINGLE_OUT,
    VECTOR,
    VECTOR_OUT,
    inline,
    kernel,
)
from .linalg import BLOCK

__all__ = ["CODE_STEPS", "MARGIN", "ROUNDING", "column_ranges", "encode", "row_squares"]

# Codes are -127 .. 127.
_TOP = 127.0
#: Steps between the least and the greatest code.
CODE_STEPS = 254
# Bounds are sums in single precision: what rounding may add to them, relative to the sum of the
# absolute values of all terms, per term; 2^-24 is half a unit in the last place.
ROUNDING = 2.0**-22
# And relative to the bound itself, for its last few operations and for the rounding of the exact
# influence that it has to stay above.
MARGIN = 1.0 + 2.0**-18


@kernel(types.void(MATRIX, VECTOR_OUT, VECTOR_OUT))
def column_ranges(X, low_out, high_out):
    """Fill the least and the greatest value of each column.

    Parameters
    ----------
    X : float64 (n, p)
    low_out, high_out : float64 (p,)
    """
    for j in range(X.shape[1]):
        low_out[j] = X[0, j]
        high_out[j] = X[0, j]
    for i in range(X.shape[0]):
        x = X[i]
        for j in range(X.shape[1]):
            low_out[j] = min(low_out[j], x[j])
            high_out[j] = max(high_out[j], x[j])


@kernel(types.void(MATRIX, SINGLE_OUT))
def row_squares(X, square_out):
    """Fill x_i'x_i, rounded up.

    Parameters
    ----------
    X : float64 (n, p)
    square_out : float32 (n,)
    """
    n = X.shape[0]
    square = np.empty(4)
    for start in range(0, n, 4):
        last = min(start + 4, n) - 1
        x0 = X[start]
        x1 = X[min(start + 1, last)]
        x2 = X[min(start + 2, last)]
        x3 = X[last]
        s0 = s1 = s2 = s3 = 0.0
        for j in range(X.shape[1]):
            s0 += x0[j] * x0[j]
            s1 += x1[j] * x1[j]
            s2 += x2[j] * x2[j]
            s3 += x3[j] * x3[j]
        square[0], square[1], square[2], square[last - start] = s0, s1, s2, s3
        for i in range(start, last + 1):
            square_out[i] = np.float32(square[i - start] * MARGIN)


@kernel(types.void(MATRIX, VECTOR, VECTOR, VECTOR_OUT, CODES_OUT))
def encode(X, center, step, error_out, codes_out):
    """Code rows in steps of a 254th of each column's range.

    Parameters
    ----------
    X : float64 (n, p)
    center, step : float64 (p,)
        Middle of the column's range, and the 254th part of its width: X_ij is about
        center_j + step_j code_ij.
    error_out : float64 (p,)
        The largest difference in each column, as measured; 0 for columns of two values.
    codes_out : int8 (ceil(n / BLOCK), p, BLOCK)
        Blocks of rows, each column of a block contiguous; 0 past row n.
    """
    n, p = X.shape
    inverse = np.zeros(p)
    for j in range(p):
        if step[j] > 0.0:
            inverse[j] = 1.0 / step[j]
    error_out[:] = 0.0
    codes_out[-1] = 0
    codes = np.empty((BLOCK, p), np.int8)
    for start in range(0, n, BLOCK):
        size = min(BLOCK, n - start)
        for r in range(size):
            x = X[start + r]
            row = codes[r]
            for j in range(p):
                # Truncation of a positive number rounds as rint would, without a library call.
                place = (x[j] - center[j]) * inverse[j] + (_TOP + 0.5)
                code = np.int32(min(max(place, 0.0), 2.0 * _TOP)) - np.int32(127)
                row[j] = code
                off = abs(x[j] - (center[j] + step[j] * code))
                error_out[j] = max(error_out[j], off)
        block = codes_out[start // BLOCK]
        for j in range(p):
            for r in range(size):
                block[j, r] = codes[r, j]


@inline
def scaled(v, center, step, error, v_out):
    """Fill v_j step_j in single precision; return the constant part and the error of v'x."""
    constant = 0.0
    off = 0.0
    size = 0.0
    p = v.shape[0]
    for j in range(p):
        v_out[j] = np.float32(v[j] * step[j])
        constant += v[j] * center[j]
        off += abs(v[j]) * error[j]
        size += abs(v[j]) * (_TOP * step[j] + abs(center[j]))
    return constant, off + size * (p + 4) * ROUNDING


@inline
def coded_products(codes, a, b, pull_out, fit_out):
    """Fill the sums of a_j code_j and b_j code_j for the rows of a block.

    Eight columns at a time, so that the sums travel through the registers an eighth as often.
    """
    p = a.shape[0]
    eights = p - p % 8
    for r in range(BLOCK):
        pull_out[r] = np.float32(0.0)
        fit_out[r] = np.float32(0.0)
    for j in range(0, eights, 8):
        a0, a1, a2, a3 = a[j], a[j + 1], a[j + 2], a[j + 3]
        a4, a5, a6, a7 = a[j + 4], a[j + 5], a[j + 6], a[j + 7]
        b0, b1, b2, b3 = b[j], b[j + 1], b[j + 2], b[j + 3]
        b4, b5, b6, b7 = b[j + 4], b[j + 5], b[j + 6], b[j + 7]
        c0, c1, c2, c3 = codes[j], codes[j + 1], codes[j + 2], codes[j + 3]
        c4, c5, c6, c7 = codes[j + 4], codes[j + 5], codes[j + 6], codes[j + 7]
        for r in range(BLOCK):
            v0, v1 = np.float32(c0[r]), np.float32(c1[r])
            v2, v3 = np.float32(c2[r]), np.float32(c3[r])
            v4, v5 = np.float32(c4[r]), np.float32(c5[r])
            v6, v7 = np.float32(c6[r]), np.float32(c7[r])
            pull_out[r] += ((a0 * v0 + a1 * v1) + (a2 * v2 + a3 * v3)) + (
                (a4 * v4 + a5 * v5) + (a6 * v6 + a7 * v7)
            )
            fit_out[r] += ((b0 * v0 + b1 * v1) + (b2 * v2 + b3 * v3)) + (
                (b4 * v4 + b5 * v5) + (b6 * v6 + b7 * v7)
            )
    for j in range(eights, p):
        aj, bj, c = a[j], b[j], codes[j]
        for r in range(BLOCK):
            v = np.float32(c[r])
            pull_out[r] += aj * v
            fit_out[r] += bj * v
