"""Elementary functions from IEEE additions, multiplications and divisions only.

The C library's exp and log round differently from one processor to another; these do not.
"""

from __future__ import annotations

import numpy as np
from numba import types

from .jit import VECTOR, VECTOR_OUT, inline, kernel

__all__ = ["exp", "exp_array", "expit", "log"]

_LOG2E = 1.4426950408889634
# ln 2 in two parts: the first has trailing zero bits, so that k * _LN2_HIGH is exact.
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10


@inline
def _power_of_two(k):
    """Return 2.0 ** k for -1022 <= k <= 1023, exactly, by repeated squaring."""
    result = 1.0
    base = 2.0 if k >= 0 else 0.5
    n = k if k >= 0 else -k
    while n > 0:
        if n & 1:
            result *= base
        base *= base
        n >>= 1
    return result


@inline
def exp(x):
    """Return e ** x with a relative error below 4e-16; 0 under -708 and e ** 709 above 709.

    Notes
    -----
    x = k ln 2 + r with |r| <= ln 2 / 2; e ** r by its Taylor polynomial of degree 13.
    """
    if x > 709.0:
        x = 709.0
    if x < -708.0:
        return 0.0
    k = np.int64(np.floor(x * _LOG2E + 0.5))
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    s = 1.0 / 6227020800.0
    s = s * r + 1.0 / 479001600.0
    s = s * r + 1.0 / 39916800.0
    s = s * r + 1.0 / 3628800.0
    s = s * r + 1.0 / 362880.0
    s = s * r + 1.0 / 40320.0
    s = s * r + 1.0 / 5040.0
    s = s * r + 1.0 / 720.0
    s = s * r + 1.0 / 120.0
    s = s * r + 1.0 / 24.0
    s = s * r + 1.0 / 6.0
    s = s * r + 0.5
    s = s * r + 1.0
    s = s * r + 1.0
    return s * _power_of_two(k)


@inline
def expit(x):
    """Return 1 / (1 + e ** -x) without overflow."""
    if x >= 0.0:
        return 1.0 / (1.0 + exp(-x))
    e = exp(x)
    return e / (1.0 + e)


@inline
def log(x):
    """Return ln x for a normal x > 0, with an absolute error below 1e-15 near 1.

    Notes
    -----
    x = 2 ** k f with f in [1 / sqrt 2, sqrt 2); ln f = 2 artanh((f - 1) / (f + 1)) by its series.
    """
    k = 0
    while x >= 1.4142135623730951:
        x *= 0.5
        k += 1
    while x < 0.7071067811865476:
        x *= 2.0
        k -= 1
    z = (x - 1.0) / (x + 1.0)
    z2 = z * z
    s = 1.0 / 23.0
    for d in range(21, 0, -2):
        s = s * z2 + 1.0 / d
    return k * _LN2_HIGH + (k * _LN2_LOW + 2.0 * z * s)


@kernel(types.void(VECTOR, VECTOR_OUT))
def exp_array(x, value_out):
    """Fill ``value_out`` with e ** x; for tests.

    Parameters
    ----------
    x : float64 (n,)
    value_out : float64 (n,)
    """
    for i in range(x.shape[0]):
        value_out[i] = exp(x[i])
