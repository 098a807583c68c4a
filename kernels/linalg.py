"""Dense linear algebra in a fixed order: Gram matrices, Cholesky, elimination."""

from __future__ import annotations

import numpy as np
from numba import types

from .jit import (
    MATRIX,
    MATRIX_OUT,
    ROWS,
    ROWS_OUT,
    TENSOR_OUT,
    VECTOR,
    VECTOR_OUT,
    inline,
    kernel,
)

__all__ = [
    "BLOCK",
    "CONVERGED",
    "NOT_CONVERGED",
    "add_gram",
    "cholesky",
    "column_moments",
    "independent_columns",
    "inverse",
    "inverse_trace",
    "solve",
    "to_blocks",
]

#: Rows per block of the blocked layout; a block of one column is a contiguous run that fills
#: whole vector registers on every processor.
BLOCK = 128

#: Rows whose leverages are computed side by side.
LANES = 32

#: A Hessian of earlier coefficients serves Newton's method as long as the squared decrement falls
#: to this share with every step: a gradient costs a tenth of a Hessian or less.
FALL = 0.05

#: Status of a fit by Newton's method.
CONVERGED = 0
NOT_CONVERGED = 1

#: Rows that :func:`products` takes together.
FEW = 4

# A pivot below this share of its diagonal entry counts as zero: a column that is constant on a
# sample of thousands of rows leaves about 1e-12 by rounding.
_PIVOT = 1e-11


@inline
def add_outer(x, weight, A_out):
    """Add weight * x x' to the lower triangle of ``A_out``."""
    for a in range(x.shape[0]):
        xa = weight * x[a]
        for b in range(a + 1):
            A_out[a, b] += xa * x[b]


@inline
def add_weighted_gram(X, rows, weights, A_out):
    """Add the sum of weights_i x_i x_i' over rows to the lower triangle of ``A_out``.

    Four rows at a time, so that ``A_out`` travels through the caches a quarter as often.
    """
    k = rows.shape[0]
    p = X.shape[1]
    fours = k - k % 4
    for i in range(0, fours, 4):
        x0 = X[rows[i]]
        x1 = X[rows[i + 1]]
        x2 = X[rows[i + 2]]
        x3 = X[rows[i + 3]]
        for a in range(p):
            c0 = weights[i] * x0[a]
            c1 = weights[i + 1] * x1[a]
            c2 = weights[i + 2] * x2[a]
            c3 = weights[i + 3] * x3[a]
            for b in range(a + 1):
                A_out[a, b] += c0 * x0[b] + c1 * x1[b] + c2 * x2[b] + c3 * x3[b]
    for i in range(fours, k):
        add_outer(X[rows[i]], weights[i], A_out)


@inline
def cholesky_into(A, L_out):
    """Factorise the lower triangle of A as L L'; return 0, or 1 + the failing column."""
    p = A.shape[0]
    # Right-looking, on the transpose in ``rows``: each entry is made of the same terms in the same
    # order as in the textbook's sum, but a row is updated at a time and fills vector registers.
    rows = np.empty((p, p))
    for i in range(p):
        for j in range(i + 1):
            rows[j, i] = A[i, j]
    for j in range(p):
        row = rows[j]
        d = row[j]
        if not d > _PIVOT * A[j, j]:
            return j + 1
        root = np.sqrt(d)
        row[j] = root
        for i in range(j + 1, p):
            row[i] /= root
        for i in range(j + 1, p):
            factor = row[i]
            other = rows[i]
            for k in range(i, p):
                other[k] -= factor * row[k]
    for i in range(p):
        for j in range(i + 1):
            L_out[i, j] = rows[j, i]
        for j in range(i + 1, p):
            L_out[i, j] = 0.0
    return 0


@inline
def solve_into(L, b, x_out):
    """Fill ``x_out`` with the solution of L L' x = b."""
    p = L.shape[0]
    for i in range(p):
        s = b[i]
        for k in range(i):
            s -= L[i, k] * x_out[k]
        x_out[i] = s / L[i, i]
    for i in range(p - 1, -1, -1):
        x = x_out[i] / L[i, i]
        x_out[i] = x
        for k in range(i):
            x_out[k] -= L[i, k] * x


@inline
def products(x0, x1, x2, x3, a, b, of_a_out, of_b_out):
    """Fill x'a and x'b of four rows: eight sums side by side, each over the columns in order."""
    a0 = a1 = a2 = a3 = 0.0
    b0 = b1 = b2 = b3 = 0.0
    for j in range(a.shape[0]):
        aj = a[j]
        bj = b[j]
        a0 += aj * x0[j]
        b0 += bj * x0[j]
        a1 += aj * x1[j]
        b1 += bj * x1[j]
        a2 += aj * x2[j]
        b2 += bj * x2[j]
        a3 += aj * x3[j]
        b3 += bj * x3[j]
    of_a_out[0], of_a_out[1], of_a_out[2], of_a_out[3] = a0, a1, a2, a3
    of_b_out[0], of_b_out[1], of_b_out[2], of_b_out[3] = b0, b1, b2, b3


@inline
def predictors(x0, x1, x2, x3, b, of_b_out):
    """Fill x'b of four rows: four sums side by side, each over the columns in order."""
    b0 = b1 = b2 = b3 = 0.0
    for j in range(b.shape[0]):
        bj = b[j]
        b0 += bj * x0[j]
        b1 += bj * x1[j]
        b2 += bj * x2[j]
        b3 += bj * x3[j]
    of_b_out[0], of_b_out[1], of_b_out[2], of_b_out[3] = b0, b1, b2, b3


@inline
def leverages(X, rows, start, stop, L, lanes, form_out):
    """Fill x_i'(L L')^-1 x_i for rows[start:stop], at most LANES of them.

    Forward substitution with a row per lane: every lane does what it would do alone, in the same
    order, and the lanes fill a vector register. ``lanes`` is scratch (p, LANES).
    """
    p = L.shape[0]
    for r in range(LANES):
        form_out[r] = 0.0
        x = X[rows[min(start + r, stop - 1)]]
        for j in range(p):
            lanes[j, r] = x[j]
    for i in range(p):
        row = lanes[i]
        # Four columns at a time and one after the other: the row is loaded and stored once for all.
        fours = i - i % 4
        for k in range(0, fours, 4):
            f0, f1, f2, f3 = L[i, k], L[i, k + 1], L[i, k + 2], L[i, k + 3]
            l0, l1, l2, l3 = lanes[k], lanes[k + 1], lanes[k + 2], lanes[k + 3]
            for r in range(LANES):
                row[r] = (((row[r] - f0 * l0[r]) - f1 * l1[r]) - f2 * l2[r]) - f3 * l3[r]
        for k in range(fours, i):
            factor = L[i, k]
            other = lanes[k]
            for r in range(LANES):
                row[r] -= factor * other[r]
        pivot = L[i, i]
        for r in range(LANES):
            value = row[r] / pivot
            row[r] = value
            form_out[r] += value * value


@kernel(types.void(MATRIX, ROWS, types.float64, MATRIX_OUT))
def add_gram(X, rows, weight, A_out):
    """Add weight * sum of x_i x_i' over ``rows`` to the lower triangle of ``A_out``.

    Parameters
    ----------
    X : float64 (n, p)
    rows : int64 (k,)
    weight : float
        1 to add rows, -1 to take them out.
    A_out : float64 (p, p)

    Notes
    -----
    k p^2 / 2 multiply-adds.
    """
    add_weighted_gram(X, rows, np.full(rows.shape[0], weight), A_out)


@kernel(types.int64(MATRIX, MATRIX_OUT))
def cholesky(A, L_out):
    """Factorise the lower triangle of a symmetric positive definite A as L L'.

    Parameters
    ----------
    A : float64 (p, p)
    L_out : float64 (p, p)

    Returns
    -------
    int
        0, or 1 + the column whose pivot is not above 1e-11 of its diagonal entry.
    """
    return cholesky_into(A, L_out)


@kernel(types.void(MATRIX, VECTOR, VECTOR_OUT))
def solve(L, b, x_out):
    """Solve L L' x = b.

    Parameters
    ----------
    L : float64 (p, p)
        Lower triangular.
    b, x_out : float64 (p,)
    """
    solve_into(L, b, x_out)


@inline
def _invert_rows(L, rows_out):
    """Fill ``rows_out``, all zero, with L^-1, a row after the other."""
    for i in range(L.shape[0]):
        row = rows_out[i]
        row[i] = 1.0
        for k in range(i):
            factor = L[i, k]
            other = rows_out[k]
            for j in range(k + 1):
                row[j] -= factor * other[j]
        for j in range(i + 1):
            row[j] /= L[i, i]


@kernel(types.void(MATRIX, MATRIX_OUT))
def inverse(L, inverse_out):
    """Fill ``inverse_out`` with (L L')^-1.

    Parameters
    ----------
    L, inverse_out : float64 (p, p)
    """
    p = L.shape[0]
    rows = np.zeros((p, p))
    _invert_rows(L, rows)
    inverse_out[:] = 0.0
    for k in range(p):
        row = rows[k]
        for i in range(k + 1):
            factor = row[i]
            line = inverse_out[i]
            for j in range(i + 1):
                line[j] += factor * row[j]
    for i in range(p):
        for j in range(i):
            inverse_out[j, i] = inverse_out[i, j]


@kernel(types.float64(MATRIX))
def inverse_trace(L):
    """Return the trace of (L L')^-1: the sum of squares of the entries of L^-1.

    Parameters
    ----------
    L : float64 (p, p)
        Lower triangular.
    """
    p = L.shape[0]
    rows = np.zeros((p, p))
    _invert_rows(L, rows)
    trace = 0.0
    for i in range(p):
        for j in range(i + 1):
            trace += rows[i, j] * rows[i, j]
    return trace


@kernel(types.void(MATRIX, TENSOR_OUT))
def to_blocks(X, blocks_out):
    """Copy X into blocks of BLOCK rows, each column of a block contiguous; the rest is zero.

    Parameters
    ----------
    X : float64 (n, p)
    blocks_out : float64 (ceil(n / BLOCK), p, BLOCK)
    """
    n, p = X.shape
    blocks_out[:] = 0.0
    for i in range(n):
        for j in range(p):
            blocks_out[i // BLOCK, j, i % BLOCK] = X[i, j]


@kernel(types.void(MATRIX, VECTOR_OUT, VECTOR_OUT))
def column_moments(X, mean_out, scale_out):
    """Fill mean and standard deviation (divisor n, two passes) of each column.

    Parameters
    ----------
    X : float64 (n, p)
    mean_out, scale_out : float64 (p,)
    """
    n, p = X.shape
    mean_out[:] = 0.0
    for i in range(n):
        for j in range(p):
            mean_out[j] += X[i, j]
    for j in range(p):
        mean_out[j] /= n
    scale_out[:] = 0.0
    for i in range(n):
        for j in range(p):
            d = X[i, j] - mean_out[j]
            scale_out[j] += d * d
    for j in range(p):
        scale_out[j] = np.sqrt(scale_out[j] / n)


@kernel(types.int64(MATRIX, types.float64, ROWS_OUT))
def independent_columns(A, tolerance, order_out):
    """Choose a maximal set of linearly independent columns from their Gram matrix.

    Parameters
    ----------
    A : float64 (p, p)
        Gram matrix; lower triangle.
    tolerance : float
        A column is dependent once the part of it outside the span of the chosen ones has a norm
        of at most this share of its own.
    order_out : int64 (p,)
        The chosen columns first, in order of choice, then the dependent ones.

    Returns
    -------
    int
        The rank.

    Notes
    -----
    The R factor of a column-pivoted QR decomposition, obtained as the pivoted Cholesky factor of
    the Gram matrix: the largest remaining share of a column's norm is taken next, shares equal
    within 1e-8 going to the smaller index, so that rounding decides nothing. O(p^3).
    """
    p = A.shape[0]
    R = np.zeros((p, p))
    left = np.empty(p)
    for j in range(p):
        order_out[j] = j
        left[j] = A[j, j]
    rank = 0
    for step in range(p):
        best = -1.0
        place = -1
        for c in range(step, p):
            j = order_out[c]
            share = left[j] / A[j, j] if A[j, j] > 0.0 else 0.0
            if share > best + 1e-8 or (
                share >= best - 1e-8 and place >= 0 and j < order_out[place]
            ):
                best = share if share > best else best
                place = c
        if not best > tolerance * tolerance:
            break
        j = order_out[place]
        for c in range(place, step, -1):
            order_out[c] = order_out[c - 1]
        order_out[step] = j
        root = np.sqrt(left[j])
        for c in range(step + 1, p):
            i = order_out[c]
            s = A[i, j] if i > j else A[j, i]
            for k in range(step):
                s -= R[i, k] * R[j, k]
            s /= root
            R[i, step] = s
            left[i] -= s * s
        R[j, step] = root
        rank += 1
    return rank
