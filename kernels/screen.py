"""One byte per entry of the pool: certified upper bounds on influence that spare the exact pass."""

from __future__ import annotations

import numpy as np
from numba import types

from .elementary import expit
from .jit import (
    CODES,
    CODES_OUT,
    FLAGS,
    MATRIX,
    ROWS,
    ROWS_OUT,
    SINGLE,
    SINGLE_OUT,
    VECTOR,
    VECTOR_OUT,
    inline,
    kernel,
)
from .linalg import BLOCK, FEW, products

__all__ = [
    "CODE_STEPS",
    "column_ranges",
    "encode",
    "logistic_bounds",
    "logistic_sharpened",
    "ols_bounds",
    "ols_sharpened",
    "reaching",
    "upper_tail",
]

# Codes are -127 .. 127.
_TOP = 127.0
#: Steps between the least and the greatest code.
CODE_STEPS = 254
# Bounds are sums in single precision: what rounding may add to them, relative to the sum of the
# absolute values of all terms, per term; 2^-24 is half a unit in the last place.
_SINGLE = 2.0**-22
# And relative to the bound itself, for its last few operations and for the rounding of the exact
# influence that it has to stay above.
_MARGIN = 1.0 + 2.0**-18

# Bins of a histogram of single-precision numbers by sign, exponent and four bits of fraction.
_SHIFT = 19
_BINS = 8192
_FLIP = 0x7FFFFFFF
_LEAST = -3.4028234663852886e38


@kernel(types.void(MATRIX, VECTOR_OUT, VECTOR_OUT))
def column_ranges(X, low_out, high_out):
    """Fill the least and the greatest value of each column.

    Parameters
    ----------
    X : float64 (n, p)
    low_out, high_out : float64 (p,)
    """
    low_out[:] = X[0]
    high_out[:] = X[0]
    for i in range(X.shape[0]):
        x = X[i]
        for j in range(X.shape[1]):
            low_out[j] = min(low_out[j], x[j])
            high_out[j] = max(high_out[j], x[j])


@kernel(types.void(MATRIX, VECTOR, VECTOR, VECTOR_OUT, SINGLE_OUT, CODES_OUT))
def encode(X, center, step, error_out, square_out, codes_out):
    """Code rows in steps of a 254th of each column's range.

    Parameters
    ----------
    X : float64 (n, p)
    center, step : float64 (p,)
        Middle of the column's range, and the 254th part of its width: X_ij is about
        center_j + step_j code_ij.
    error_out : float64 (p,)
        The largest difference in each column, as measured; 0 for columns of two values.
    square_out : float32 (n,)
        x_i'x_i, rounded up.
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
            square = 0.0
            for j in range(p):
                # Truncation of a positive number rounds as rint would, without a library call.
                place = (x[j] - center[j]) * inverse[j] + (_TOP + 0.5)
                code = np.int32(min(max(place, 0.0), 2.0 * _TOP)) - np.int32(127)
                row[j] = code
                off = abs(x[j] - (center[j] + step[j] * code))
                error_out[j] = max(error_out[j], off)
            for j in range(p):
                square += x[j] * x[j]
            square_out[start + r] = np.float32(square * _MARGIN)
        block = codes_out[start // BLOCK]
        for j in range(p):
            for r in range(size):
                block[j, r] = codes[r, j]


@inline
def _scaled(v, center, step, error, v_out):
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
    return constant, off + size * (p + 4) * _SINGLE


@inline
def _products(codes, a, b, pull_out, fit_out):
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


@inline
def _strike(taken, start, bound_out):
    """Put minus infinity for the rows of a block that are taken."""
    for i in range(start, min(start + BLOCK, taken.shape[0])):
        if taken[i]:
            bound_out[i] = -np.inf


@kernel(
    types.void(
        CODES, VECTOR, VECTOR, VECTOR, SINGLE, VECTOR, FLAGS, VECTOR, VECTOR,
        types.float64, types.float64, SINGLE_OUT,
    )
)  # fmt: skip
def ols_bounds(codes, center, step, error, square, y, taken, b, a, spread, trace, bound_out):
    """Fill an upper bound of t'H^-1 x_i r_i / (1 + h_i) for every row of the pool.

    Parameters
    ----------
    codes : int8 (ceil(n / BLOCK), p, BLOCK)
    center, step, error : float64 (p,)
        Of :func:`encode`.
    square : float32 (n,)
        Of :func:`encode`.
    y : float64 (n,)
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
    With |a'x - q| <= u and |r - e| <= v, (a'x) r <= q e + |q| v + |e| u + u v. By the inequality of
    Cauchy and Schwarz in the metric of H^-1, h >= (a'x)^2 / t'H^-1 t, which bounds positive
    influences; h <= x'x tr H^-1 bounds negative ones. One pass over n p bytes.
    """
    n = y.shape[0]
    p = a.shape[0]
    a_step = np.empty(p, np.float32)
    b_step = np.empty(p, np.float32)
    pull_at, pull_off = _scaled(a, center, step, error, a_step)
    fit_at, fit_off = _scaled(b, center, step, error, b_step)
    fit_off += 1e-30
    pull = np.empty(BLOCK, np.float32)
    fit = np.empty(BLOCK, np.float32)
    at = np.float32(pull_at)
    u = np.float32(pull_off * _MARGIN)
    v = np.float32(fit_off * _MARGIN)
    per_spread = np.float32(1.0 / (spread * _MARGIN)) if spread > 0.0 else np.float32(0.0)
    margin = np.float32(_MARGIN)
    less = np.float32(1.0 / _MARGIN)
    most = np.float32(min(trace * _MARGIN, 1e30))
    one = np.float32(1.0)
    zero = np.float32(0.0)
    unit = np.float32(2.0 * _SINGLE)
    for block in range(codes.shape[0]):
        _products(codes[block], a_step, b_step, pull, fit)
        start = block * BLOCK
        for r in range(min(BLOCK, n - start)):
            target = y[start + r] - fit_at
            e = np.float32(target) - fit[r]
            wide = v + unit * np.float32(abs(target))
            q = at + pull[r]
            top = q * e + (abs(q) * wide + (abs(e) * u + u * wide))
            sure = max(abs(q) - u, zero)
            room = square[start + r] * most
            above = max(top, zero) * margin / (one + sure * sure * per_spread)
            below = min(top, zero) * less / (one + room)
            bound_out[start + r] = above + below
        _strike(taken, start, bound_out)


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
        Of :func:`encode`.
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
    As :func:`ols_bounds`: p moves by at most a quarter, and w = p (1 - p) by less than a tenth, of
    a change of the linear predictor.
    """
    n = y.shape[0]
    p = a.shape[0]
    a_step = np.empty(p, np.float32)
    b_step = np.empty(p, np.float32)
    pull_at, pull_off = _scaled(a, center, step, error, a_step)
    fit_at, fit_off = _scaled(b, center, step, error, b_step)
    pull = np.empty(BLOCK, np.float32)
    fit = np.empty(BLOCK, np.float32)
    u = pull_off * _MARGIN
    v = 0.25 * fit_off * _MARGIN
    drop = 0.1 * fit_off * _MARGIN
    room = min(trace * _MARGIN, 1e30)
    per_spread = 1.0 / (spread * _MARGIN) if spread > 0.0 else 0.0
    for block in range(codes.shape[0]):
        _products(codes[block], a_step, b_step, pull, fit)
        start = block * BLOCK
        for r in range(min(BLOCK, n - start)):
            share = expit(fit_at + fit[r])
            e = y[start + r] - share
            q = pull_at + pull[r]
            top = q * e + (abs(q) * v + (abs(e) * u + u * v))
            sure = max(abs(q) - u, 0.0)
            weight = share * (1.0 - share)
            least = 1.0 + max(weight - drop, 0.0) * (sure * sure) * per_spread
            most = 1.0 + (weight + drop) * square[start + r] * room
            bound = max(top, 0.0) * _MARGIN / least + min(top, 0.0) / (_MARGIN * most)
            bound_out[start + r] = np.float32(bound)
        _strike(taken, start, bound_out)


@kernel(
    types.void(
        MATRIX, SINGLE, VECTOR, ROWS, VECTOR, VECTOR, types.float64, types.float64, VECTOR_OUT
    )
)
def ols_sharpened(X, square, y, rows, b, a, spread, trace, bound_out):
    """Fill the bounds of :func:`ols_bounds` for some rows from their entries in full.

    Parameters
    ----------
    X : float64 (n, p)
    square : float32 (n,)
    y : float64 (n,)
    rows : int64 (k,)
    b, a : float64 (p,)
    spread, trace : float
    bound_out : float64 (k,)

    Notes
    -----
    2 p multiply-adds a row, where the exact influence takes p^2 / 2.
    """
    per_spread = 1.0 / (spread * _MARGIN) if spread > 0.0 else 0.0
    room = min(trace * _MARGIN, 1e30)
    fit = np.empty(FEW)
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
            fit,
        )
        for i in range(start, last + 1):
            q = pull[i - start]
            top = q * (y[rows[i]] - fit[i - start])
            above = max(top, 0.0) * _MARGIN / (1.0 + q * q * per_spread)
            bound_out[i] = above + min(top, 0.0) / (_MARGIN * (1.0 + square[rows[i]] * room))


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
    y : float64 (n,)
    rows : int64 (k,)
    b, a : float64 (p,)
    spread, trace : float
    bound_out : float64 (k,)
    """
    per_spread = 1.0 / (spread * _MARGIN) if spread > 0.0 else 0.0
    room = min(trace * _MARGIN, 1e30)
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
            share = expit(eta[i - start])
            weight = share * (1.0 - share)
            top = q * (y[rows[i]] - share)
            above = max(top, 0.0) * _MARGIN / (1.0 + weight * (q * q) * per_spread)
            below = min(top, 0.0) / (_MARGIN * (1.0 + weight * square[rows[i]] * room))
            bound_out[i] = above + below


@kernel(types.float64(SINGLE, types.int64))
def upper_tail(bound, count):
    """Return a threshold that at least ``count`` rows reach, and few more.

    Parameters
    ----------
    bound : float32 (n,)
        Minus infinity for rows that do not count.
    count : int

    Returns
    -------
    float
        The least finite number if there are not so many rows.

    Notes
    -----
    The lower edge of a bin of a histogram with sixteen bins per power of two. As integers, the bits
    of single-precision numbers are in order once those of negative ones are flipped.
    """
    histogram = np.zeros(_BINS, np.int64)
    bits = bound.view(np.int32)
    for i in range(bits.shape[0]):
        if bound[i] == 0.0:
            histogram[_BINS // 2] += 1
        elif bound[i] > -np.inf:
            place = bits[i] if bits[i] > 0 else bits[i] ^ _FLIP
            histogram[(place >> _SHIFT) + _BINS // 2] += 1
    total = 0
    for k in range(_BINS - 1, -1, -1):
        total += histogram[k]
        if total >= count:
            edge = np.empty(1, np.int32)
            place = (k - _BINS // 2) << _SHIFT
            edge[0] = place if place >= 0 else place ^ _FLIP
            return float(edge.view(np.float32)[0])
    return _LEAST


@kernel(types.int64(SINGLE, types.float64, types.float64, ROWS_OUT))
def reaching(bound, least, below, rows_out):
    """Fill the rows whose bound is in [least, below), in order.

    Parameters
    ----------
    bound : float32 (n,)
    least, below : float
    rows_out : int64 (n,)

    Returns
    -------
    int
        How many there are.
    """
    count = 0
    for i in range(bound.shape[0]):
        if bound[i] >= least and bound[i] < below:
            rows_out[count] = i
            count += 1
    return count
