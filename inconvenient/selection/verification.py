"""Independent fits from scratch that decide whether a selection is what it claims to be."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from inconvenient.selection.separation import is_separable, separated_by_a_column, separates
from inconvenient.selection.softmax import (
    information,
    least_eigenvalue,
    newton,
    probabilities,
)

if TYPE_CHECKING:
    from inconvenient.selection.design import Design

__all__ = [
    "CURVATURE_TOLERANCE",
    "RANK_TOLERANCE",
    "Fit",
    "fit_design",
    "fit_independent",
    "is_separable",
    "next_to_separated",
    "t_values",
]

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

# A sample whose columns, centred and scaled to unit length, have a singular value under this share
# of the largest one has lost rank: its coefficients would be right to fewer than nine digits.
RANK_TOLERANCE = 1e-7

# A fit with a direction of unit variance over the rows in which the mean log likelihood bends by
# less than this is next to separated: there each row has a probability of 0 or 1 to some seven
# digits, the standard error is 3,000 / sqrt(n) or more, and rounding decides whether and where
# Newton's method stops. Counted as separation, so that the order of the rows decides nothing.
CURVATURE_TOLERANCE = 1e-7

# Rows that are centred and scaled at a time where no copy of all of them is needed.
_BLOCK = 65_536


@dataclasses.dataclass(frozen=True, slots=True)
class Fit:
    """An independent fit.

    Parameters
    ----------
    coefficients : ndarray of float64, shape (p, C), read-only
        C = 1 for regression and binary (log odds of class 1), C = K for multiclass, where each row
        sums to zero. All NaN unless ``status`` is "ok".
    status : str
        "ok", "small_class" (a class under ``min_class`` rows, or absent), "constant_column" (a
        column beside the intercept is constant), "rank_loss", or "separation" (no finite
        maximum-likelihood fit, or one so near to it that its information has an eigenvalue under
        1e-7 per row on an orthonormal basis). The first that holds, in this order.
    """

    coefficients: Floats
    status: str


@dataclasses.dataclass(frozen=True, slots=True)
class _Basis:
    """Z = X back with Z'Z = n I, so that ``back`` maps coefficients on Z to those on X."""

    Z: Floats
    back: Floats


def _scaling(X: Floats) -> tuple[Floats, Floats, Floats]:
    """Return mean (if column 0 is an intercept) and scale of the columns, and ``back``."""
    n, p = X.shape
    intercept = bool(np.all(X[:, 0] == 1.0))
    mean = X.mean(axis=0) if intercept else np.zeros(p)
    if intercept:
        mean[0] = 0.0
    square = np.zeros(p)
    for block in _blocks(n):
        W = X[block] - mean
        square += np.einsum("ij,ij->j", W, W)
    scale = np.sqrt(square / n)
    scale[scale == 0.0] = 1.0
    back = np.diag(1.0 / scale)
    if intercept:
        back[0, 1:] = -mean[1:] / scale[1:]
    return mean, scale, back


def _blocks(n: int) -> Iterator[slice]:
    """Divide n rows, so that what is made of a block takes little beside a pool of millions."""
    for start in range(0, n, _BLOCK):
        yield slice(start, min(start + _BLOCK, n))


def _scaled(X: Floats) -> tuple[Floats, Floats]:
    """Return W = X back, centred (if column 0 is an intercept) and scaled, and ``back``."""
    mean, scale, back = _scaling(X)
    W = X - mean
    W /= scale
    return W, back


def _orthonormal(W: Floats, back: Floats) -> _Basis | None:
    """Return the basis sqrt(n) Q of W = Q R, or None if W has lost rank."""
    n, p = W.shape
    if n < p:
        return None
    Q, R = scipy.linalg.qr(W, mode="economic", check_finite=False)
    s = scipy.linalg.svdvals(R, check_finite=False)
    if not s[0] > 0.0 or s[-1] < RANK_TOLERANCE * s[0]:
        return None
    root = np.sqrt(n)
    inverse = scipy.linalg.solve_triangular(R, np.eye(p), check_finite=False)
    return _Basis(Z=Q * root, back=back @ inverse * root)


def _sum_to_zero(contrasts: Floats) -> Floats:
    """Return (p, K) coefficients that sum to zero over classes from (K - 1, p) contrasts."""
    full = np.vstack([contrasts, np.zeros(contrasts.shape[1])])
    mapped: Floats = (full - full.mean(axis=0)).T
    return mapped


def _read_only(array: Floats) -> Floats:
    array = np.ascontiguousarray(array, dtype=np.float64)
    array.flags.writeable = False
    return array


def _least_squares(X: Floats, y: Floats, basis: _Basis, ridge: float) -> Floats:
    """Return OLS or ridge coefficients, shape (p,)."""
    n, p = X.shape
    if ridge == 0.0:
        solved: Floats = basis.back @ (basis.Z.T @ y / n)
        residual = y - X @ solved
        solved += basis.back @ (basis.Z.T @ residual / n)
        return solved
    mean = X[:, 1:].mean(axis=0) if np.all(X[:, 0] == 1.0) else np.zeros(p - 1)
    penalty = np.full(p, np.sqrt(n * ridge))
    penalty[0] = 0.0
    stacked = np.vstack([X, np.diag(penalty)])
    stacked[:n, 1:] -= mean
    Q, R = scipy.linalg.qr(stacked, mode="economic", check_finite=False)
    solved = scipy.linalg.solve_triangular(R, Q[:n].T @ y, check_finite=False)
    solved[0] -= float(mean @ solved[1:])
    return solved


def _classify(
    X: Floats, codes: Codes, n_classes: int, basis: _Basis, ridge: float
) -> tuple[Floats, str]:
    """Return contrasts against the last class, shape (K - 1, p), and a status."""
    p = X.shape[1]
    if ridge == 0.0:
        free = np.zeros(p)
        if separated_by_a_column(X, codes, n_classes):
            return np.full((n_classes - 1, p), np.nan), "separation"
        fit = newton(basis.Z, codes, n_classes, free)
        doubtful = not (fit.converged or fit.overlap or fit.separated)
        if fit.separated or (doubtful and separates(basis.Z, codes, n_classes, fit.coefficients)):
            return fit.coefficients, "separation"
        if not fit.converged:
            fit = newton(basis.Z, codes, n_classes, free, start=fit.coefficients, max_steps=200)
        if fit.curvature < CURVATURE_TOLERANCE:
            return fit.coefficients, "separation"
        contrasts: Floats = fit.coefficients @ basis.back.T
    else:
        intercept = bool(np.all(X[:, 0] == 1.0))
        mean = X.mean(axis=0)
        mean[0] = 0.0
        Z = X - mean if intercept else X
        penalty = np.full(p, ridge)
        penalty[0] = 0.0
        fit = newton(Z, codes, n_classes, penalty, max_steps=200)
        contrasts = fit.coefficients.copy()
        if intercept:
            contrasts[:, 0] -= contrasts[:, 1:] @ mean[1:]
    if not fit.converged or not np.all(np.isfinite(contrasts)):
        return contrasts, "separation"
    return contrasts, "ok"


def next_to_separated(X: Floats, contrasts: Floats) -> bool:
    """Say whether a maximum-likelihood fit is too near to separation to count as one.

    Parameters
    ----------
    X : ndarray of float64, shape (n, p)
        Rows of the design; column 0 is the intercept.
    contrasts : ndarray of float64, shape (K - 1, p)
        Against a base class, from any method.

    Returns
    -------
    bool
        Whether :func:`fit_independent` says "separation" (or "rank_loss") though a fit exists.

    Notes
    -----
    The information of a row has no eigenvalue under the least class probability over K: where
    that is large enough in all rows, no matrix needs to be made; rank is then taken for granted,
    as every method that gave the contrasts needs it.
    """
    with np.errstate(all="ignore"):
        share, _ = probabilities(contrasts @ X.T)
        if float(share.min()) > len(share) * CURVATURE_TOLERANCE:
            return False
        basis = _orthonormal(*_scaled(X))
        if basis is None:
            return True
        H = information(basis.Z, share, np.zeros(X.shape[1]))
        return not least_eigenvalue(H) >= CURVATURE_TOLERANCE


def _constant(X: Floats) -> NDArray[np.bool_]:
    """Return which columns are constant beside an intercept, or zero without one, bool (p,)."""
    low, high = X.min(axis=0), X.max(axis=0)
    if np.all(X[:, 0] == 1.0):
        found: NDArray[np.bool_] = low == high
        found[0] = False
        return found
    zero: NDArray[np.bool_] = (low == 0.0) & (high == 0.0)
    return zero


def fit_independent(
    X: NDArray[Any],
    y: NDArray[Any],
    *,
    task: str,
    n_classes: int,
    ridge: float,
    min_class: int = 5,
) -> Fit:
    """Fit the reference model to some rows, from scratch and to convergence.

    Parameters
    ----------
    X : ndarray of float64, shape (n, p)
        Rows of the design; column 0 is the intercept (a matrix without one is served too, with its
        column 0 free of penalty).
    y : ndarray, shape (n,)
        Target, or class codes 0..K-1.
    task : {"regression", "binary", "multiclass"}
    n_classes : int
        K of the dataset, whatever classes the rows hold; ignored for regression.
    ridge : float
        lambda >= 0 of mean loss + (lambda / 2) ||b||^2, column 0 free. The loss is half the squared
        error or minus the log likelihood; for multiclass b is the K - 1 contrasts against the
        last class, which therefore depend on the order of the classes.
    min_class : int
        Rows that every class must have.

    Returns
    -------
    Fit

    Notes
    -----
    Least squares by QR with one step of refinement. Logistic and multinomial models by Newton's
    method on the orthonormal basis Q of X = Q R, to a last step of at most 1e-8 in any linear
    predictor, which leaves an error of about its square; n (K p)^2 operations a step. No data make
    it raise or warn; what cannot be fitted is said by the status.
    """
    X = np.asarray(X, dtype=np.float64)
    y = np.asarray(y, dtype=np.float64)
    n, p = X.shape
    k = n_classes if task == "multiclass" else 1
    failed = _read_only(np.full((p, k), np.nan))
    codes = np.empty(0, dtype=np.int64)
    if task != "regression":
        codes = y.astype(np.int64)
        counts = np.bincount(codes, minlength=n_classes)
        if counts.min() < max(min_class, 1):
            return Fit(failed, "small_class")
    if n == 0 or _constant(X).any():
        return Fit(failed, "constant_column")
    with np.errstate(all="ignore"):
        basis = _orthonormal(*_scaled(X)) if np.all(np.isfinite(X)) else None
        if basis is None:
            return Fit(failed, "rank_loss")
        if task == "regression":
            solved = _least_squares(X, y, basis, ridge)
            ok = bool(np.all(np.isfinite(solved)))
            return Fit(_read_only(solved[:, None]), "ok") if ok else Fit(failed, "rank_loss")
        contrasts, status = _classify(X, codes, n_classes, basis, ridge)
        if status != "ok":
            return Fit(failed, status)
        if task == "binary":
            return Fit(_read_only(-contrasts.T), "ok")
        return Fit(_read_only(_sum_to_zero(contrasts)), "ok")


def fit_design(
    design: Design, rows: NDArray[np.int64] | None = None, *, ridge: float, min_class: int
) -> Fit:
    """Fit the reference model to rows of a design, all by default; see :func:`fit_independent`."""
    X, y = (design.X, design.y) if rows is None else (design.X[rows], design.y[rows])
    return fit_independent(
        X, y, task=design.task, n_classes=design.n_classes, ridge=ridge, min_class=min_class
    )


def t_values(
    X: NDArray[Any],
    y: NDArray[Any],
    *,
    task: str,
    n_classes: int,
    coefficients: NDArray[Any],
    ridge: float,
) -> Floats:
    """Return coefficients over their standard errors.

    Parameters
    ----------
    X : ndarray of float64, shape (n, p)
    y : ndarray, shape (n,)
    task : {"regression", "binary", "multiclass"}
    n_classes : int
    coefficients : ndarray of float64, shape (p, C)
        As :class:`Fit` holds them.
    ridge : float
        As in :func:`fit_independent`; with a penalty, the inverse of the penalised information
        stands for the covariance.

    Returns
    -------
    ndarray of float64, shape (p, C), read-only
        NaN where no standard error exists (as many rows as coefficients, rank loss).

    Notes
    -----
    Regression: the classical covariance s^2 (X'X)^-1 with s^2 = RSS / (n - p). Binary and
    multiclass: the inverse information at ``coefficients``; the sum-to-zero coefficients of
    multiclass are the contrasts B times L = [I 0] - 1/K, and their covariance follows from it by
    the delta method.
    """
    X = np.asarray(X, dtype=np.float64)
    y = np.asarray(y, dtype=np.float64)
    B = np.asarray(coefficients, dtype=np.float64)
    n, p = X.shape
    none = _read_only(np.full(B.shape, np.nan))
    with np.errstate(all="ignore"):
        mean, scale, back = _scaling(X)
        contrasts = B.T
        if task != "regression":
            contrasts = (-B if task == "binary" else B[:, :-1] - B[:, -1:]).T
        size = len(contrasts) * p
        H = np.zeros((size, size))
        for block in _blocks(n):
            W = (X[block] - mean) / scale
            if task == "regression":
                H += W.T @ W / n
            else:
                share, _ = probabilities(contrasts @ X[block].T)
                H += information(W, share, np.zeros(p)) * (len(W) / n)
        penalty = np.full(p, ridge)
        penalty[0] = 0.0
        # Penalties on X's coefficients; off its first row, ``back`` is diagonal.
        H[np.diag_indices_from(H)] += np.tile(penalty * np.diag(back) ** 2, len(contrasts))
        try:
            inverse = scipy.linalg.inv(H, check_finite=False) / n
        except (scipy.linalg.LinAlgError, ValueError):
            return none
        free = inverse.shape[0] // p
        V = np.einsum(
            "ja,kalb,jb->jkl", back, inverse.reshape(free, p, free, p), back, optimize=True
        )
        if task == "regression":
            residual = y - X @ B[:, 0]
            variance = V[:, :, 0] * (residual @ residual / (n - p) if n > p else np.nan)
        elif task == "binary":
            variance = V[:, :, 0]
        else:
            L = np.eye(free, n_classes) - 1.0 / n_classes
            variance = np.einsum("km,jkl,lm->jm", L, V, L, optimize=True)
        return _read_only(B / np.sqrt(np.where(variance > 0.0, variance, np.nan)))
