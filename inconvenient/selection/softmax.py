"""Damped Newton for softmax regression, with its own evidence for and against separation."""

from __future__ import annotations

import dataclasses

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

__all__ = ["Newton", "information", "least_eigenvalue", "margins", "newton", "probabilities"]

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

# A step that moves no linear predictor by more than this leaves an error of about its square.
STEP_TOLERANCE = 1e-8
# Below this, one full step descends and converges quadratically, so that no line search is needed.
FULL_STEP = 0.5


@dataclasses.dataclass(frozen=True, slots=True)
class Newton:
    """Where Newton's method stopped.

    Parameters
    ----------
    coefficients : ndarray of float64, shape (K - 1, q)
        Contrasts of each class but the last against the last class.
    converged : bool
        Whether the last step moved every linear predictor by at most 1e-8.
    overlap : bool
        Whether a step under 1/2 proved that nothing separates the classes (see :func:`newton`).
    separated : bool
        Whether the coefficients at hand predict every row, which proves complete separation; not
        looked for under a penalty.
    curvature : float
        Least eigenvalue of the Hessian that the last step was made with: that of the mean loss,
        penalty included, over directions of unit length. 0 unless converged.
    """

    coefficients: Floats
    converged: bool
    overlap: bool
    separated: bool
    curvature: float


def probabilities(eta: Floats) -> tuple[Floats, Floats]:
    """Return class probabilities and log normalisers.

    Parameters
    ----------
    eta : ndarray of float64, shape (K - 1, n)
        Linear predictors of all classes but the last, whose predictor is 0.

    Returns
    -------
    share : ndarray of float64, shape (K, n)
    log_total : ndarray of float64, shape (n,)
    """
    top = np.maximum(eta.max(axis=0), 0.0)
    share = np.empty((eta.shape[0] + 1, eta.shape[1]))
    np.exp(eta - top, out=share[:-1])
    np.exp(-top, out=share[-1])
    total = share.sum(axis=0)
    share /= total
    return share, top + np.log(total)


def margins(eta: Floats, codes: Codes) -> Floats:
    """Return by how much each row's own class beats the best other one, shape (n,)."""
    full = np.vstack([eta, np.zeros(eta.shape[1])])
    rows = np.arange(eta.shape[1])
    own = full[codes, rows]
    full[codes, rows] = -np.inf
    margin: Floats = own - full.max(axis=0)
    return margin


def information(Z: Floats, share: Floats, penalty: Floats) -> Floats:
    """Return the Hessian of the mean loss plus penalty, shape ((K - 1) q, (K - 1) q).

    Parameters
    ----------
    Z : ndarray of float64, shape (n, q)
    share : ndarray of float64, shape (K, n)
        Class probabilities.
    penalty : ndarray of float64, shape (q,)
        Second derivative of the penalty, per column.

    Notes
    -----
    Block (k, l) is Z' diag(p_k (1[k = l] - p_l)) Z / n; n (K q)^2 operations in K + 1 BLAS calls.
    """
    n, q = Z.shape
    free = share.shape[0] - 1
    if free > 1:
        A = (share[:-1].T[:, :, None] * Z[:, None, :]).reshape(n, free * q)
        H = A.T @ A
        H *= -1.0 / n
    else:
        H = np.empty((q, q))
    for k in range(free):
        weight = share[k] * (1.0 - share[k])
        block = slice(k * q, (k + 1) * q)
        H[block, block] = Z.T @ (weight[:, None] * Z) / n
    H[np.diag_indices_from(H)] += np.tile(penalty, free)
    return H


def least_eigenvalue(H: Floats) -> float:
    """Return the least eigenvalue of a symmetric matrix."""
    low = scipy.linalg.eigvalsh(H, subset_by_index=(0, 0), check_finite=False)
    return float(low[0])


def _solve(H: Floats, g: Floats) -> tuple[Floats, bool]:
    """Return H^-1 g and whether H was positive definite as it came (else it is damped)."""
    damping = 0.0
    scale = float(np.trace(H)) / H.shape[0] + np.finfo(float).tiny
    for _ in range(12):
        try:
            factor = scipy.linalg.cho_factor(
                H + damping * np.eye(H.shape[0]) if damping else H, check_finite=False
            )
            return scipy.linalg.cho_solve(factor, g, check_finite=False), damping == 0.0
        except scipy.linalg.LinAlgError:
            damping = max(damping * 100.0, 1e-14 * scale)
    return g / scale, False


def newton(
    Z: Floats,
    codes: Codes,
    n_classes: int,
    penalty: Floats,
    *,
    start: Floats | None = None,
    max_steps: int = 20,
) -> Newton:
    """Minimise the mean softmax loss plus a quadratic penalty.

    Parameters
    ----------
    Z : ndarray of float64, shape (n, q)
        A well-conditioned basis of the design.
    codes : ndarray of int64, shape (n,)
        Classes 0..K-1.
    n_classes : int
        K, at least 2.
    penalty : ndarray of float64, shape (q,)
        The penalty is sum_j penalty_j c_j^2 / 2 for each of the K - 1 contrasts.
    start : ndarray of float64, shape (K - 1, q), optional
        Zeros by default.
    max_steps : int
        Steps after which the method stops unconverged.

    Returns
    -------
    Newton

    Notes
    -----
    Let d be the largest change that a Newton step makes in a difference of two linear predictors
    of a row. If some direction v separates the classes (completely or quasi-completely) and there
    is no penalty, then d >= 1: with u_i = v's predictors on row i, -v'g = mean_i (u_iy - E_p u_i)
    > 0, and v'H step = mean_i Cov_p(u_i, step_i) <= d mean_i (u_iy - E_p u_i). So d <= 1/2 proves
    overlap. It is read off during the first 20 steps only, while the weights on a diverging
    direction are still far above rounding.
    """
    n = Z.shape[0]
    free = n_classes - 1
    C = np.zeros((free, Z.shape[1])) if start is None else start.copy()
    rows = np.arange(n)
    member = np.zeros((n_classes, n))
    member[codes, rows] = 1.0

    def value(C: Floats, eta: Floats, log_total: Floats) -> float:
        own = np.vstack([eta, np.zeros(n)])[codes, rows]
        return float(np.mean(log_total - own) + 0.5 * np.sum(C * C * penalty))

    overlap = converged = False
    curvature = 0.0
    penalised = bool(np.any(penalty))
    eta = C @ Z.T
    share, log_total = probabilities(eta)
    for number in range(max_steps):
        g = (share[:-1] - member[:-1]) @ Z / n + penalty * C
        H = information(Z, share, penalty)
        step, definite = _solve(H, g.ravel())
        step = -step.reshape(C.shape)
        move = step @ Z.T
        reach = float(np.max(np.maximum(move.max(axis=0), 0.0) - np.minimum(move.min(axis=0), 0.0)))
        if not np.isfinite(reach):
            break
        length = 1.0
        if definite and reach <= FULL_STEP:
            overlap = overlap or (number < 20 and start is None)
        else:
            before = value(C, eta, log_total)
            slope = float(np.sum(g * step))
            for _ in range(40):
                trial = eta + length * move
                after = value(C + length * step, trial, probabilities(trial)[1])
                if after <= before + 1e-4 * length * slope + 1e-15 * abs(before):
                    break
                length *= 0.5
        C = C + length * step
        eta = C @ Z.T
        if definite and reach <= STEP_TOLERANCE:
            converged = True
            curvature = least_eigenvalue(H)
            break
        if number >= 2 and not (overlap or penalised) and np.min(margins(eta, codes)) > 0.0:
            return Newton(C, converged=False, overlap=False, separated=True, curvature=0.0)
        share, log_total = probabilities(eta)
    return Newton(C, converged, overlap, separated=False, curvature=curvature)
