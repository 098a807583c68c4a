"""Ridge and logistic regression with a penalty per row, for fits that must always exist."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["penalised_coefficients"]

FloatArray = NDArray[np.float64]


def penalised_coefficients(
    X: FloatArray,
    y: FloatArray,
    *,
    n_classes: int,
    ridge: float,
    counts: FloatArray | None = None,
) -> FloatArray:
    """Fit ridge or logistic regression with a penalty per row.

    Parameters
    ----------
    X : ndarray of float64, shape (n, q)
        Columns without the intercept.
    y : ndarray of float64, shape (n,)
        Target, or class codes.
    n_classes : int
        0 for regression.
    ridge : float
        Minimised is the mean over rows of half the squared error, or of the log loss, plus
        ``ridge / 2`` times the sum of squared coefficients; the intercept is free.
    counts : ndarray of float64, shape (n,), optional
        How often each row counts, as in a bootstrap's resample; once by default.

    Returns
    -------
    ndarray of float64, shape (q, C)
        C is 1 for regression and two classes, else the number of classes, and then rows sum to 0.
        A class without rows has coefficients 0; with one class alone, all are 0.

    Notes
    -----
    The logistic fits are Newton's to a gradient of 1e-11, O(n q^2 C^2) a step.
    """
    if counts is not None:
        drawn = counts > 0.0
        X, y, counts = X[drawn], y[drawn], counts[drawn]
    total = len(X) if counts is None else float(counts.sum())
    if not n_classes:
        return _ridge(X, y, total * ridge, counts)

    from sklearn.linear_model import LogisticRegression

    out = np.zeros((X.shape[1], 1 if n_classes == 2 else n_classes))
    present, codes = np.unique(y.astype(np.int64), return_inverse=True)
    if present.size == 1:
        return out
    model = LogisticRegression(
        C=1.0 / (total * ridge), solver="newton-cholesky", tol=1e-11, max_iter=200
    ).fit(X, codes, sample_weight=counts)
    if n_classes == 2:
        out[:, 0] = model.coef_[0]
    elif present.size == 2:  # the symmetric form of one contrast
        out[:, present] = np.column_stack([-model.coef_[0], model.coef_[0]]) / 2
    else:
        out[:, present] = model.coef_.T
    return out


def _ridge(X: FloatArray, y: FloatArray, penalty: float, counts: FloatArray | None) -> FloatArray:
    centred = X - (X.mean(axis=0) if counts is None else counts @ X / counts.sum())
    weighted = centred if counts is None else centred * counts[:, None]
    gram = centred.T @ weighted
    gram[np.diag_indices_from(gram)] += penalty
    level = y.mean() if counts is None else counts @ y / counts.sum()
    coefficients: FloatArray = np.linalg.solve(gram, weighted.T @ (y - level))
    return coefficients[:, None]
