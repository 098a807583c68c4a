"""R2 and macro one-vs-rest AUC-ROC, as every score of the benchmark is computed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from inconvenient.errors import InputError

__all__ = ["auc", "log_loss", "macro_auc", "r2", "score"]


def _finite(values: NDArray[np.float64]) -> NDArray[np.float64]:
    values = np.asarray(values, dtype=np.float64)
    if not np.isfinite(values).all():
        raise InputError("predictions must be finite, got NaN or infinity; mend the estimator")
    return values


def r2(y: NDArray[np.float64], prediction: NDArray[np.float64]) -> float:
    """Return the coefficient of determination, 1 - SSE / SST; at most 1, unbounded below.

    Raises
    ------
    InputError
        If ``y`` is constant or a prediction is not finite.
    """
    y = np.asarray(y, dtype=np.float64)
    total = float(((y - y.mean()) ** 2).sum())
    if not total > 0:
        raise InputError("R2 needs a target that varies over the scored rows, got a constant")
    return 1.0 - float(((y - _finite(prediction)) ** 2).sum()) / total


def auc(positive: NDArray[np.bool_], ranking: NDArray[np.float64]) -> float:
    """Return the area under the ROC curve, in [0, 1]; ties count half.

    Parameters
    ----------
    positive : ndarray of bool, shape (n,)
    ranking : ndarray of float64, shape (n,)
        Larger for rows thought more likely to be positive.

    Raises
    ------
    InputError
        If all rows are of one kind or a value is not finite.

    Notes
    -----
    U / (k (n - k)) for k positive rows of n, with U the number of pairs of a positive and a
    negative row in which the positive one ranks higher (Mann and Whitney), which equals the
    trapezoidal area. U is exact. Cost O(n log n).
    """
    k = int(positive.sum())
    if not 0 < k < positive.size:
        raise InputError("AUC needs positive and negative rows, got one kind alone")
    ranking = _finite(ranking)
    above, below = np.sort(ranking[positive]), np.sort(ranking[~positive])
    lower = np.searchsorted(below, above, side="left").sum()
    lower_or_equal = np.searchsorted(below, above, side="right").sum()
    return (int(lower) + int(lower_or_equal)) / 2 / (k * (positive.size - k))


def macro_auc(y: NDArray[np.int64], proba: NDArray[np.float64]) -> float:
    """Return the mean one-vs-rest AUC over the classes that the scored rows hold.

    Parameters
    ----------
    y : ndarray of int64, shape (n,)
        Class codes 0..K-1.
    proba : ndarray of float64, shape (n, K)
        Used as they are: rows are not renormalised, so a class that the model never saw has 0
        everywhere and AUC 0.5.

    Notes
    -----
    For two classes both terms are the same, and the AUC of the last class is returned.
    """
    y = np.asarray(y, dtype=np.int64)
    if proba.shape[1] == 2:
        return auc(y == 1, proba[:, 1])
    return float(np.mean([auc(y == k, proba[:, k]) for k in np.unique(y)]))


def log_loss(y: NDArray[np.int64], proba: NDArray[np.float64]) -> float:
    """Return the mean log loss over the dataset's classes, probabilities clipped at 1e-15.

    Parameters
    ----------
    y : ndarray of int64, shape (n,)
    proba : ndarray of float64, shape (n, K)
        Not renormalised.
    """
    y = np.asarray(y, dtype=np.int64)
    own = _finite(proba)[np.arange(y.size), y]
    return float(-np.log(np.clip(own, 1e-15, 1.0)).mean())


def score(estimator: Any, X: Any, y: NDArray[Any], *, task: str) -> float:
    """Return the score of a fitted estimator on rows: R2, or macro one-vs-rest AUC-ROC."""
    if task == "regression":
        return r2(y, estimator.predict(X))
    return macro_auc(y, estimator.predict_proba(X))
