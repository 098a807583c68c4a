"""Elementary functions from IEEE additions, multiplications and divisions only.

The C library's exp and log round differently from one processor to another; these do not.
"""

from __future__ import annotations

import numpy as np
from numba import config, types
from numba.extending import intrinsic

from .jit import VECTOR, VECTOR_OUT, inline, kernel

__all__ = ["exp", "exp_array", "expit", "log", "residual_and_weight"]

_LOG2E = 1.4426950408889634
# ln 2 in two parts: the first has trailing zero bits, so that k * _LN2_HIGH is exact.
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10


def _float_of_bits(bits):
    """Return the float64 that has the bits of an int64."""
    return np.int64(bits).view(np.float64)


if not config.DISABLE_JIT:

    @intrinsic
    def _float_of_bits(typing_context, bits):
        """Return the float64 that has the bits of an int64."""

        def generate(context, builder, signature, arguments):
            return builder.bitcast(arguments[0], context.get_value_type(types.float64))

        return types.float64(types.int64), generate


@inline
def exp(x):
    """Return e ** x with a relative error below 4e-16; 0 under -708 and e ** 709 above 709.

    Notes
    -----
    x = k ln 2 + r with |r| <= ln 2 / 2; e ** r by its Taylor polynomial of degree 13. No branches,
    so that a loop of it fills vector registers.
    """
    inside = x >= -708.0
    x = max(min(x, 709.0), -708.0)
    # Rounding down by truncation, for floor is a library call on some processors.
    place = x * _LOG2E + 0.5
    k = np.float64(np.int32(place))
    k = k - 1.0 if k > place else k
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
    # The exponent field of 2 ** k.
    power = _float_of_bits((np.int64(np.int32(k)) + 1023) << 52)
    return s * power if inside else 0.0


@inline
def expit(x):
    """Return 1 / (1 + e ** -x) without overflow."""
    small = exp(-abs(x))
    return (1.0 if x >= 0.0 else small) / (1.0 + small)


@inline
def residual_and_weight(y, x):
    """Return y - p and p (1 - p) for y of 0 or 1 and p = expit(x), without cancellation."""
    small = exp(-abs(x))
    near = 1.0 / (1.0 + small)
    far = small / (1.0 + small)
    share = near if x >= 0.0 else far
    other = far if x >= 0.0 else near
    return (other if y > 0.5 else -share), near * far


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
