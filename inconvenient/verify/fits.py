"""Least squares, logistic and multinomial fits and their t values, in NumPy and SciPy alone."""

from __future__ import annotations

import dataclasses

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

__all__ = ["Family", "fit", "symmetric_penalty", "t_values", "usable"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# A singular value of the centred, scaled columns under this share of the largest: rank is lost.
_RANK = 1e-7
# The last Newton step moves no linear predictor by more than this: the error left is its square.
_STEP = 1e-8
# By a Hessian of earlier coefficients, the error left is a share of the step.
_STALE_STEP = 1e-10
# A Hessian serves until steps fall by less than this factor.
_FALL = 0.3
_MAX_STEPS = 100
# A direction of unit variance over the rows in which the mean log likelihood bends by less than
# this: so near to separation that rounding would decide whether there is a fit.
_CURVATURE = 1e-7
# No step from zero moves a linear predictor further: whole steps of Newton's method may overshoot
# to where all probabilities are 0 or 1 and nothing leads back.
_LONGEST = 4.0


@dataclasses.dataclass(frozen=True, slots=True)
class Family:
    """What is fitted.

    Parameters
    ----------
    n_classes : int
        0 for least squares.
    ridge : float
        Minimised is the mean loss plus ``ridge / 2`` times a quadratic form of the coefficients,
        intercepts free.
    penalty : float64 (K - 1, K - 1), optional
        The form over the contrasts against the last class; their sum of squares by default.
    """

    n_classes: int
    ridge: float = 0.0
    penalty: Floats | None = None

    @property
    def free(self) -> list[int]:
        """Classes with coefficients: 1 of two, all but the last of more."""
        return [1] if self.n_classes == 2 else list(range(self.n_classes - 1))

    def form(self) -> Floats:
        """Return the matrix of the penalty over contrasts."""
        return np.eye(len(self.free)) if self.penalty is None else self.penalty

    def reported(self, contrasts: Floats) -> Floats:
        """Map contrasts (c, p) to coefficients (p, C): C = 1, or K that sum to zero."""
        if self.n_classes <= 2:
            return np.ascontiguousarray(contrasts.T)
        return np.ascontiguousarray((_sum_to_zero(self.n_classes) @ contrasts).T)


def _sum_to_zero(k: int) -> Floats:
    """Return the map from K - 1 contrasts to K coefficients, float64 (K, K - 1)."""
    return np.asarray(np.eye(k, k - 1) - 1.0 / k)


def symmetric_penalty(k: int) -> Floats:
    """Return the form whose value is the sum of squares of the K sum-to-zero coefficients."""
    T = _sum_to_zero(k)
    return np.asarray(T.T @ T)


def usable(X: Floats, y: Floats, *, n_classes: int, min_class: int) -> str:
    """Say why rows have no fit, or "".

    Returns
    -------
    str
        "small_class", "constant_column" or "rank_loss".
    """
    if n_classes and np.bincount(y.astype(np.int64), minlength=n_classes).min() < min_class:
        return "small_class"
    Z = X[:, 1:] - X[:, 1:].mean(axis=0)
    if (X[:, 1:].max(axis=0) == X[:, 1:].min(axis=0)).any():
        return "constant_column"
    gram = Z.T @ Z
    scale = 1.0 / np.sqrt(np.diag(gram))
    # The Gram matrix has the squares of the singular values: enough unless it says "near".
    low = scipy.linalg.eigvalsh(gram * np.outer(scale, scale), check_finite=False)
    if low[0] > 1e-8 * low[-1]:
        return ""
    s = scipy.linalg.svdvals(Z * scale, check_finite=False)
    return "" if len(Z) >= Z.shape[1] and s[-1] >= _RANK * s[0] else "rank_loss"


def fit(
    X: Floats,
    y: Floats,
    family: Family,
    *,
    start: Floats | None = None,
    hessian: Floats | None = None,
) -> Floats | None:
    """Fit rows of a design from scratch.

    Parameters
    ----------
    X : float64 (n, p)
        Column 0 is 1.
    y : float64 (n,)
        Target, or class codes.
    family : Family
    start : float64 (c, p), optional
        Contrasts to begin with, zero by default.
    hessian : float64 (c p, c p), optional
        Of the mean loss with its penalty, near the solution; it spares making the first one.

    Returns
    -------
    float64 (c, p) or None
        Contrasts; None where there is no finite solution, or (without a penalty) one next to
        separation: its information has an eigenvalue under 1e-7 a row on an orthonormal basis.

    Notes
    -----
    Least squares: QR with one step of refinement. Classes: Newton's method from ``start``, whose
    last step has a Hessian of its own; where it does not arrive, once more from zero by short
    steps.
    """
    if not family.n_classes:
        return _least_squares(X, y, family.ridge)
    if family.ridge:
        return _quick(X, y, family, start, hessian)
    if _one_column_separates(X, y.astype(np.int64), family.n_classes):
        return None
    found = _quick(X, y, family, start, hessian)
    Q, R = scipy.linalg.qr(X, mode="economic", check_finite=False)
    Z = Q * np.sqrt(len(X))
    if found is None:
        inner = _careful(Z, y, family)
        if inner is None:
            return None
        back = scipy.linalg.solve_triangular(R, inner.T, check_finite=False)
        found = np.asarray(back.T) * np.sqrt(len(X))
    low = scipy.linalg.eigvalsh(information(Z, _shares(found @ X.T), family), check_finite=False)
    return found if low[0] >= _CURVATURE else None


def _shares(eta: Floats) -> Floats:
    """Return the probabilities of the free classes, float64 (c, n)."""
    top = np.maximum(eta.max(axis=0), 0.0)
    share = np.exp(eta - top)
    return np.asarray(share / (share.sum(axis=0) + np.exp(-top)))


def _one_column_separates(X: Floats, codes: Ints, k: int) -> bool:
    """Tell whether in some column no row of a class lies above, or below, a row of another."""
    for own in range(k):
        inside, outside = X[codes == own, 1:], X[codes != own, 1:]
        below = inside.max(axis=0) <= outside.min(axis=0)
        above = inside.min(axis=0) >= outside.max(axis=0)
        if (below | above).any():
            return True
    return False


def _careful(Z: Floats, y: Floats, family: Family) -> Floats | None:
    """Fit by short steps from zero, each with a Hessian of its own, on an orthonormal basis."""
    n = len(Z)
    codes = y.astype(np.int64)
    member = np.stack([codes == k for k in family.free]).astype(np.float64)
    C = np.zeros((len(family.free), Z.shape[1]))
    value, share = _loss(C @ Z.T, member, C, family)
    for _ in range(3 * _MAX_STEPS):
        factor = _factor(information(Z, share, family))
        if factor is None or _apart(C @ Z.T, codes, family):
            return None
        gradient = ((share - member) @ Z / n).ravel()
        step = -scipy.linalg.cho_solve(factor, gradient, check_finite=False).reshape(C.shape)
        reach = float(np.ptp(np.vstack([step @ Z.T, np.zeros(n)]), axis=0).max())
        if reach <= _STEP:
            return C + step
        length = min(1.0, _LONGEST / reach)
        slope = float(gradient @ step.ravel())
        for _halving in range(40):
            trial = C + length * step
            after, trial_share = _loss(trial @ Z.T, member, trial, family)
            if after <= value + 1e-4 * length * slope + 1e-15 * abs(value):
                break
            length *= 0.5
        C, value, share = trial, after, trial_share
    return None


def _quick(
    X: Floats, y: Floats, family: Family, start: Floats | None, hessian: Floats | None
) -> Floats | None:
    """Fit by Newton's method from ``start``; None where it does not arrive, for any reason."""
    n, p = X.shape
    codes = y.astype(np.int64)
    member = np.stack([codes == k for k in family.free]).astype(np.float64)
    C = np.zeros((len(family.free), p)) if start is None else start.copy()
    eta = C @ X.T
    value, share = _loss(eta, member, C, family)
    factor = None if hessian is None else _factor(hessian)
    fresh = False
    last = np.inf
    for _ in range(_MAX_STEPS):
        if factor is None:
            factor, fresh, last = _factor(information(X, share, family)), True, np.inf
            if factor is None:
                return None
        gradient = (share - member) @ X / n
        gradient[:, 1:] += family.ridge * (family.form() @ C[:, 1:])
        step = -scipy.linalg.cho_solve(factor, gradient.ravel(), check_finite=False)
        step = step.reshape(C.shape)
        move = step @ X.T
        reach = float(np.ptp(np.vstack([move, np.zeros(n)]), axis=0).max())
        if not np.isfinite(reach):
            return None
        if reach <= (_STEP if fresh else _STALE_STEP) and (fresh or family.ridge):
            return C + step
        if not fresh and (reach <= _STALE_STEP or reach > _FALL * last):
            factor = None
            continue
        length = 1.0
        for _halving in range(40):
            trial = C + length * step
            after, trial_share = _loss(eta + length * move, member, trial, family)
            if after <= value + 1e-12 * (1.0 + abs(value)):
                break
            length *= 0.5
        C, value, share = trial, after, trial_share
        eta = eta + length * move
        last, fresh = reach, False
        if not family.ridge and _apart(eta, codes, family):
            return None
    return None


def _least_squares(X: Floats, y: Floats, ridge: float) -> Floats:
    n, p = X.shape
    if ridge:
        penalty = np.sqrt(n * ridge) * np.eye(p)[1:]
        X, y = np.vstack([X, penalty]), np.concatenate([y, np.zeros(p - 1)])
    Q, R = scipy.linalg.qr(X, mode="economic", check_finite=False)
    b = scipy.linalg.solve_triangular(R, Q.T @ y, check_finite=False)
    b += scipy.linalg.solve_triangular(R, Q.T @ (y - X @ b), check_finite=False)
    return np.asarray(b[None, :])


def _loss(eta: Floats, member: Floats, C: Floats, family: Family) -> tuple[float, Floats]:
    """Return the penalised mean loss and the probabilities of the free classes, (c, n)."""
    top = np.maximum(eta.max(axis=0), 0.0)
    share = np.exp(eta - top)
    total = share.sum(axis=0) + np.exp(-top)
    loss = float(np.mean(top + np.log(total) - (eta * member).sum(axis=0)))
    if family.ridge:
        loss += 0.5 * family.ridge * float((C[:, 1:] * (family.form() @ C[:, 1:])).sum())
    share /= total
    return loss, share


def _apart(eta: Floats, codes: Ints, family: Family) -> bool:
    """Tell whether every row's own class has the largest predictor: no finite solution."""
    full = np.zeros((family.n_classes, eta.shape[1]))
    full[family.free] = eta
    rows = np.arange(eta.shape[1])
    own = full[codes, rows]
    full[codes, rows] = -np.inf
    return bool((own > full.max(axis=0)).all())


def information(X: Floats, share: Floats, family: Family) -> Floats:
    """Return the Hessian of the mean loss with its penalty, float64 (c p, c p)."""
    n, p = X.shape
    c = len(share)
    H = np.empty((c * p, c * p))
    for k in range(c):
        for m in range(k + 1):
            weight = share[k] * ((1.0 if k == m else 0.0) - share[m]) / n
            block = X.T @ (weight[:, None] * X)
            H[k * p : (k + 1) * p, m * p : (m + 1) * p] = block
            H[m * p : (m + 1) * p, k * p : (k + 1) * p] = block
    if family.ridge:
        diagonal = np.ones(p)
        diagonal[0] = 0.0
        H += family.ridge * np.kron(family.form(), np.diag(diagonal))
    return H


def _factor(H: Floats) -> tuple[Floats, bool] | None:
    try:
        factor: tuple[Floats, bool] = scipy.linalg.cho_factor(H, lower=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        return None
    return factor


def hessian_at(X: Floats, contrasts: Floats, family: Family) -> Floats:
    """Return the Hessian of the mean loss with its penalty at given contrasts."""
    return information(X, _shares(contrasts @ X.T), family)


def t_values(X: Floats, y: Floats, contrasts: Floats, family: Family) -> Floats:
    """Return coefficients over their standard errors, float64 (p, C).

    Notes
    -----
    Least squares: s^2 (X'X)^-1 with s^2 = RSS / (n - p). Classes: the inverse (penalised)
    information, and for more than two the delta method on the sum-to-zero coefficients.
    """
    n, p = X.shape
    B = family.reported(contrasts)
    if not family.n_classes:
        R = scipy.linalg.qr(X, mode="economic", check_finite=False)[1]
        inverse = scipy.linalg.solve_triangular(R, np.eye(p), check_finite=False)
        residual = y - X @ contrasts[0]
        variance = (inverse * inverse).sum(axis=1) * float(residual @ residual) / (n - p)
        return np.asarray(B / np.sqrt(variance)[:, None])
    V = scipy.linalg.inv(hessian_at(X, contrasts, family), check_finite=False) / n
    c = len(family.free)
    of_column = np.einsum("ajbj->jab", V.reshape(c, p, c, p))
    T = np.ones((1, 1)) if c == 1 else _sum_to_zero(family.n_classes)
    return np.asarray(B / np.sqrt(np.einsum("ka,jab,kb->jk", T, of_column, T)))
