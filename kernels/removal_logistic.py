"""Two classes in blocked layout: gradients and Newton fits without the rows that are gone."""

from __future__ import annotations

import numpy as np
from numba import types

from .elementary import exp, expit, log
from .jit import FLAGS, MATRIX_OUT, TENSOR, VECTOR, VECTOR_OUT, inline, kernel
from .linalg import BLOCK, cholesky_into, solve_into
from .logistic import CONVERGED, NOT_CONVERGED
from .removal_rows import add_block_gram

__all__ = ["logistic_gradient", "logistic_newton"]

# As in logistic.py: squared Newton decrement per row, and what separation moves at least.
_DECREMENT = 1e-18
_REACH = 0.5


@inline
def _predictors(block, b, eta_out):
    eta_out[:] = 0.0
    for j in range(b.shape[0]):
        bj = b[j]
        column = block[j]
        for r in range(BLOCK):
            eta_out[r] += bj * column[r]


@inline
def _score(blocks, y, gone, b, residual_out, weight_out, gradient_out):
    n = y.shape[0]
    p = b.shape[0]
    lanes = np.zeros((p, BLOCK))
    eta = np.empty(BLOCK)
    inside = np.empty(BLOCK)
    for block in range(blocks.shape[0]):
        _predictors(blocks[block], b, eta)
        inside[:] = 0.0
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
    _score(blocks, y, gone, b, residual_out, weight_out, gradient_out)


@inline
def _loss(blocks, y, gone, b, eta):
    """Return minus the log likelihood of the rows left."""
    total = 0.0
    for block in range(blocks.shape[0]):
        _predictors(blocks[block], b, eta)
        start = block * BLOCK
        for r in range(min(BLOCK, y.shape[0] - start)):
            if not gone[start + r]:
                x = -eta[r] if y[start + r] > 0.5 else eta[r]
                total += x + log(1.0 + exp(-x)) if x > 0.0 else log(1.0 + exp(x))
    return total


@kernel(
    types.int64(
        TENSOR, VECTOR, FLAGS, types.int64, VECTOR_OUT, VECTOR_OUT, MATRIX_OUT, VECTOR_OUT
    )
)  # fmt: skip
def logistic_newton(blocks, y, gone, max_steps, residual_out, weight_out, L_out, b_out):
    """Fit two classes by Newton's method with step halving, from the coefficients in ``b_out``.

    Parameters
    ----------
    blocks : float64 (ceil(n / BLOCK), p, BLOCK)
    y : float64 (n,)
        0 or 1.
    gone : bool (n,)
    max_steps : int
    residual_out, weight_out : float64 (n,)
        Scratch.
    L_out : float64 (p, p)
        Cholesky factor of the Hessian (of the last step but one, 1e-9 away).
    b_out : float64 (p,)
        Start and result.

    Returns
    -------
    int
        CONVERGED, or NOT_CONVERGED: a singular Hessian or no convergence, as under separation.

    Notes
    -----
    Each step refactorises: n p^2 / 2 + p^3 / 6 multiply-adds.
    """
    p = b_out.shape[0]
    n = y.shape[0]
    H = np.empty((p, p))
    g = np.empty(p)
    step = np.empty(p)
    trial = np.empty(p)
    lane = np.empty(BLOCK)
    eta = np.empty(BLOCK)
    weight = np.empty(BLOCK)
    left = 0
    for i in range(n):
        if not gone[i]:
            left += 1
    loss = _loss(blocks, y, gone, b_out, eta)
    for _ in range(max_steps):
        _score(blocks, y, gone, b_out, residual_out, weight_out, g)
        separated = True
        H[:] = 0.0
        for block in range(blocks.shape[0]):
            start = block * BLOCK
            weight[:] = 0.0
            for r in range(min(BLOCK, n - start)):
                if not gone[start + r]:
                    weight[r] = weight_out[start + r]
                    # The probability of the other class.
                    if not abs(residual_out[start + r]) < 0.5:
                        separated = False
            add_block_gram(blocks[block], weight, lane, H)
        if separated or cholesky_into(H, L_out) != 0:
            return NOT_CONVERGED
        solve_into(L_out, g, step)
        decrement = 0.0
        for j in range(p):
            decrement += g[j] * step[j]
        if decrement <= _DECREMENT * left:
            for block in range(blocks.shape[0]):
                _predictors(blocks[block], step, eta)
                start = block * BLOCK
                for r in range(min(BLOCK, n - start)):
                    if not gone[start + r] and abs(eta[r]) > _REACH:
                        return NOT_CONVERGED
            for j in range(p):
                b_out[j] += step[j]
            return CONVERGED
        scale = 1.0
        for _halving in range(30):
            for j in range(p):
                trial[j] = b_out[j] + scale * step[j]
            trial_loss = _loss(blocks, y, gone, trial, eta)
            # Near the solution the loss changes by less than its rounding.
            if trial_loss <= loss + 1e-12 * (1.0 + loss):
                break
            scale *= 0.5
        for j in range(p):
            b_out[j] = trial[j]
        loss = trial_loss
    return NOT_CONVERGED
