"""The few rows among which the next best removals from OLS are, kept up to date, with a proof."""

from __future__ import annotations

import numpy as np
from numba import types

from .jit import FLAGS, MATRIX, MATRIX_OUT, ROWS, TENSOR, TENSOR_OUT, VECTOR, VECTOR_OUT, kernel
from .linalg import BLOCK

__all__ = ["MORE", "STOP", "gather_rows", "removal_bounds", "shortlist_step"]

#: What :func:`shortlist_step` returns in place of a row: the list has to be made anew.
MORE = -1
#: The best row has too little room for a rank-one step.
STOP = -2


@kernel(
    types.float64(
        FLAGS, VECTOR, VECTOR, VECTOR, VECTOR,
        types.float64, types.float64, types.float64, types.float64, VECTOR_OUT,
    )
)  # fmt: skip
def removal_bounds(gone, hat, length, pull, residual, sign, growth, by_u, by_b, bound_out):
    """Fill what removing each row can add to sign * t'b at most, while u and b move a little.

    Parameters
    ----------
    gone : bool (n,)
        Their bound is minus infinity.
    hat, length : float64 (n,)
        Leverage at some earlier step, and |q_i|.
    pull, residual : float64 (n,)
        q_i'u and y_i - q_i'b now.
    sign : {-1.0, 1.0}
    growth : float
        Largest factor by which a leverage has grown and will grow.
    by_u, by_b : float
        How far u and b may move, Euclidean.
    bound_out : float64 (n,)
        Infinite where growth * hat_i passes one half.

    Returns
    -------
    float
        The largest gain now.

    Notes
    -----
    The gain is -sign pull r / (1 - h). By Cauchy and Schwarz pull moves by at most |q_i| by_u and
    r by at most |q_i| by_b.
    """
    best = -np.inf
    for i in range(hat.shape[0]):
        if gone[i]:
            bound_out[i] = -np.inf
            continue
        h = growth * hat[i]
        if not h < 0.5:
            bound_out[i] = np.inf
            continue
        now = -sign * pull[i] * residual[i]
        best = max(best, now)
        du = length[i] * by_u
        db = length[i] * by_b
        top = now + abs(pull[i]) * db + abs(residual[i]) * du + du * db
        bound_out[i] = top / (1.0 - h) if top > 0.0 else top
    return best


@kernel(types.void(TENSOR, ROWS, MATRIX, TENSOR_OUT, VECTOR_OUT))
def gather_rows(blocks, rows, inverse, few_out, hat_out):
    """Copy some rows to blocks of their own, with their leverages.

    Parameters
    ----------
    blocks : float64 (ceil(n / BLOCK), p, BLOCK)
    rows : int64 (m,)
    inverse : float64 (p, p)
        H^-1.
    few_out : float64 (ceil(m / BLOCK), p, BLOCK)
    hat_out : float64 (m,)

    Notes
    -----
    m p^2 / 2 multiply-adds.
    """
    m = rows.shape[0]
    p = inverse.shape[0]
    few_out[:] = 0.0
    part = np.empty(BLOCK)
    total = np.empty(BLOCK)
    for b in range(few_out.shape[0]):
        block = few_out[b]
        start = b * BLOCK
        inside = min(BLOCK, m - start)
        for r in range(inside):
            i = rows[start + r]
            for j in range(p):
                block[j, r] = blocks[i // BLOCK, j, i % BLOCK]
        total[:] = 0.0
        for a in range(p):
            part[:] = 0.0
            for c in range(a):
                entry = 2.0 * inverse[a, c]
                other = block[c]
                for r in range(BLOCK):
                    part[r] += entry * other[r]
            entry = inverse[a, a]
            own = block[a]
            for r in range(BLOCK):
                total[r] += own[r] * (part[r] + entry * own[r])
        for r in range(inside):
            hat_out[start + r] = total[r]


@kernel(
    types.int64(
        TENSOR, VECTOR, VECTOR,
        types.float64, types.float64, types.float64, types.float64, types.float64,
        VECTOR_OUT, VECTOR_OUT, VECTOR_OUT, MATRIX_OUT, VECTOR_OUT, VECTOR_OUT, VECTOR_OUT,
    )
)  # fmt: skip
def shortlist_step(
    few, u_start, b_start, sign, bar, by_u, by_b, least_room,
    hat_out, pull_out, residual_out, inverse_out, u_out, b_out, moved_out,
):  # fmt: skip
    """Remove the row of a list that adds most to sign * t'b, if no row outside can add more.

    Parameters
    ----------
    few : float64 (ceil(m / BLOCK), p, BLOCK)
        The rows of the list.
    u_start, b_start : float64 (p,)
        u and b for which the bounds were made.
    sign : {-1.0, 1.0}
    bar : float
        The largest bound outside the list.
    by_u, by_b : float
        How far u and b may be from their start for the bounds to hold.
    least_room : float
        1 - h from which on a rank-one step is made.
    hat_out, pull_out, residual_out : float64 (m,)
        Kept up to date. The leverage of a row that has left is infinite.
    inverse_out : float64 (p, p)
        H^-1.
    u_out, b_out : float64 (p,)
        u = H^-1 t and b.
    moved_out : float64 (2,)
        Change of t'b, and the leverage of the row.

    Returns
    -------
    int
        Position of the row in the list, the first among equals, or MORE or STOP.

    Notes
    -----
    m p + 2 p^2 multiply-adds.
    """
    m = hat_out.shape[0]
    p = u_out.shape[0]
    du = 0.0
    db = 0.0
    for j in range(p):
        du += (u_out[j] - u_start[j]) * (u_out[j] - u_start[j])
        db += (b_out[j] - b_start[j]) * (b_out[j] - b_start[j])
    if not (du <= by_u * by_u and db <= by_b * by_b):
        return MORE
    best = 0.0
    at = -1
    for i in range(m):
        room = 1.0 - hat_out[i]
        if hat_out[i] < np.inf:
            if not room > least_room:
                return STOP
            gain = -sign * pull_out[i] * residual_out[i] / room
            if gain > best:
                best = gain
                at = i
    if at < 0 or not best > bar:
        return MORE
    room = 1.0 - hat_out[at]
    scale = 1.0 / room
    tug = scale * pull_out[at]
    carry = scale * residual_out[at]
    moved_out[0] = -tug * residual_out[at]
    moved_out[1] = hat_out[at]
    v = np.zeros(p)
    for a in range(p):
        for b in range(p):
            v[a] += inverse_out[a, b] * few[at // BLOCK, b, at % BLOCK]
    for a in range(p):
        u_out[a] += tug * v[a]
        b_out[a] -= carry * v[a]
        for b in range(p):
            inverse_out[a, b] += scale * (v[a] * v[b])
    total = np.empty(BLOCK)
    for block in range(few.shape[0]):
        total[:] = 0.0
        for j in range(p):
            vj = v[j]
            column = few[block, j]
            for r in range(BLOCK):
                total[r] += vj * column[r]
        start = block * BLOCK
        for r in range(min(BLOCK, m - start)):
            hat_out[start + r] += scale * (total[r] * total[r])
            pull_out[start + r] += tug * total[r]
            residual_out[start + r] += carry * total[r]
    hat_out[at] = np.inf
    return at
