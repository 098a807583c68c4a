"""The rows of highest score or bound, in an order that ties do not change."""

from __future__ import annotations

import numpy as np
from numba import types

from .jit import FLAGS, ROWS, ROWS_OUT, SINGLE, VECTOR, VECTOR_OUT, inline, kernel

__all__ = ["reaching", "top_rows", "upper_tails"]

# Bins of a histogram of single-precision numbers by sign, exponent and four bits of fraction.
_SHIFT = 19
_BINS = 8192
_FLIP = 0x7FFFFFFF
_LEAST = -3.4028234663852886e38


@inline
def _worse(score, a, b):
    """Tell whether row a ranks behind row b: a lower score, or equal and a larger row."""
    return score[a] < score[b] or (score[a] == score[b] and a > b)


@inline
def _sift(score, heap, size):
    """Let the top of a heap of rows sink to its place."""
    c = 0
    while True:
        child = 2 * c + 1
        if child >= size:
            return
        if child + 1 < size and _worse(score, heap[child + 1], heap[child]):
            child += 1
        if not _worse(score, heap[child], heap[c]):
            return
        heap[c], heap[child] = heap[child], heap[c]
        c = child


@kernel(types.int64(VECTOR, FLAGS, types.int64, ROWS_OUT))
def top_rows(score, taken, k, rows_out):
    """Fill the k rows of highest score among those not taken, best first, ties to smaller rows.

    Parameters
    ----------
    score : float64 (n,)
    taken : bool (n,)
    k : int
    rows_out : int64 (at least k,)

    Returns
    -------
    int
        How many rows there were, at most k.

    Notes
    -----
    A heap of the k best so far, worst on top: O(n + changes log k).
    """
    size = 0
    for i in range(score.shape[0]):
        if taken[i]:
            continue
        if size < k:
            c = size
            rows_out[c] = i
            size += 1
            while c > 0:
                parent = (c - 1) // 2
                if not _worse(score, rows_out[c], rows_out[parent]):
                    break
                rows_out[c], rows_out[parent] = rows_out[parent], rows_out[c]
                c = parent
        elif k > 0 and score[i] > score[rows_out[0]]:
            rows_out[0] = i
            _sift(score, rows_out, size)
    for end in range(size - 1, 0, -1):
        rows_out[0], rows_out[end] = rows_out[end], rows_out[0]
        _sift(score, rows_out, end)
    return size


@kernel(types.void(SINGLE, ROWS, VECTOR_OUT))
def upper_tails(bound, counts, least_out):
    """Fill for each count a threshold that at least so many rows reach, and few more.

    Parameters
    ----------
    bound : float32 (n,)
        Minus infinity for rows that do not count.
    counts : int64 (m,)
        Ascending.
    least_out : float64 (m,)
        The least finite number where there are not so many rows.

    Notes
    -----
    The lower edge of a bin of a histogram with sixteen bins per power of two. As integers, the bits
    of single-precision numbers are in order once those of negative ones are flipped.
    """
    histogram = np.zeros(_BINS, np.int64)
    bits = bound.view(np.int32)
    zeros = 0
    for i in range(bits.shape[0]):
        if bound[i] == 0.0:
            zeros += 1
        elif bound[i] > -np.inf:
            place = bits[i] if bits[i] > 0 else bits[i] ^ _FLIP
            histogram[(place >> _SHIFT) + _BINS // 2] += 1
    histogram[_BINS // 2] += zeros
    edge = np.empty(1, np.int32)
    total = 0
    m = 0
    for k in range(_BINS - 1, -1, -1):
        total += histogram[k]
        while m < counts.shape[0] and total >= counts[m]:
            place = (k - _BINS // 2) << _SHIFT
            edge[0] = place if place >= 0 else place ^ _FLIP
            least_out[m] = float(edge.view(np.float32)[0])
            m += 1
    for rest in range(m, counts.shape[0]):
        least_out[rest] = _LEAST


@kernel(types.int64(SINGLE, types.float64, types.float64, ROWS_OUT))
def reaching(bound, least, below, rows_out):
    """Fill the rows whose bound is in [least, below), in order.

    Parameters
    ----------
    bound : float32 (n,)
    least, below : float
    rows_out : int64 (n,)
        What stands behind them is of no account.

    Returns
    -------
    int
        How many there are.
    """
    count = 0
    for i in range(bound.shape[0]):
        # Every row is written, and stays if it counts: no branch to guess wrong.
        rows_out[count] = i
        count += (bound[i] >= least) & (bound[i] < below)
    return count
