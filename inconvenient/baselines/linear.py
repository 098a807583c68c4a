"""The linear baseline: ridge or L2 logistic regression on one-hot, standardised columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from inconvenient.baselines.coding import Table
from inconvenient.baselines.encoding import OneHotEncoder, expand_classes
from inconvenient.baselines.registry import Baseline, Setting, register

__all__ = ["LINEAR", "LinearModel"]

ALPHA_RANGE = (1e-3, 1e4)
MAX_NEWTON_COEFFICIENTS = 1000


class LinearModel:
    """Ridge or L2-penalised logistic regression with its encoder, both fitted on the sample.

    Parameters
    ----------
    alpha : float
        Penalty, above 0: regression minimises ||y - Zb||^2 + alpha ||b||^2, classification the sum
        of log losses + (alpha / 2) ||b||^2 (scikit-learn's ``Ridge(alpha)`` and
        ``LogisticRegression(C=1 / alpha)``); the intercept is free.
    task : {"regression", "binary", "multiclass"}
    n_classes : int
        Number of classes of the dataset, 0 for regression.

    Notes
    -----
    A sample with one class yields that class with probability 1. The logistic fit is by Newton
    steps on a Cholesky factorisation (O(n q^2 K^2 + q^3 K^3) each, about ten of them), by L-BFGS
    where q K exceeds 1000.
    """

    def __init__(self, *, alpha: float, task: str, n_classes: int) -> None:
        self.alpha = alpha
        self.task = task
        self.n_classes = n_classes

    def fit(self, X: Table, y: NDArray[Any]) -> LinearModel:
        """Fit the encoder and the coefficients on a training sample."""
        self.encoder_, Z = OneHotEncoder.fit_transform(X)
        if self.task == "regression":
            self._fit_ridge(Z, np.asarray(y, dtype=np.float64))
        else:
            self._fit_logistic(Z, np.asarray(y, dtype=np.int64))
        return self

    def _fit_ridge(self, Z: NDArray[np.float64], y: NDArray[np.float64]) -> None:
        from scipy.linalg import cho_factor, cho_solve

        self.intercept_ = float(y.mean())  # columns have mean 0 in the sample
        gram = Z.T @ Z
        gram[np.diag_indices_from(gram)] += self.alpha
        if gram.size:
            self.coef_ = cho_solve(cho_factor(gram), Z.T @ (y - self.intercept_))
        else:
            self.coef_ = np.empty(0)

    def _fit_logistic(self, Z: NDArray[np.float64], y: NDArray[np.int64]) -> None:
        from sklearn.linear_model import LogisticRegression

        self.present_ = np.unique(y)
        if self.present_.size == 1:
            return
        if Z.shape[1] == 0:
            self.shares_ = np.bincount(y, minlength=self.n_classes)[self.present_] / y.size
            return
        newton = Z.shape[1] * self.present_.size <= MAX_NEWTON_COEFFICIENTS
        self.model_ = LogisticRegression(
            C=1.0 / self.alpha,
            solver="newton-cholesky" if newton else "lbfgs",
            max_iter=200 if newton else 20_000,
            tol=1e-6 if newton else 1e-4,
        ).fit(Z, y)

    def predict_proba(self, X: Table) -> NDArray[np.float64]:
        """Return class probabilities, shape (n, K)."""
        if self.present_.size == 1:
            proba = np.ones((len(X), 1))
        elif self.encoder_.kept.size == 0:
            proba = np.tile(self.shares_, (len(X), 1))
        else:
            proba = self.model_.predict_proba(self.encoder_.transform(X))
        return expand_classes(proba, self.present_, self.n_classes)

    def predict(self, X: Table) -> NDArray[Any]:
        """Return predicted values, or the codes of the most probable classes."""
        if self.task == "regression":
            prediction: NDArray[np.float64] = self.encoder_.transform(X) @ self.coef_
            return prediction + self.intercept_
        codes: NDArray[np.int64] = self.predict_proba(X).argmax(axis=1)
        return codes


def _default(task: str) -> Setting:
    """Scikit-learn's default penalty."""
    return {"alpha": 1.0}


def _suggest(trial: Any, task: str, n_rows: int) -> Setting:
    """Draw from the search space.

    The L2 penalty alone, log-uniform from nearly none to one that leaves shares or the mean. The
    linear models of TabRepo (Salinas and Erickson 2024, "TabRepo: A Large Scale Repository of
    Tabular Model Evaluations and its AutoML Applications") search it too, beside an L1 penalty and
    ways to treat columns, which are left out: the reference model that the shifts are made with is
    linear in the plain columns. The range (C = 1 / alpha from 1e-4 to 1e3) reaches down to where
    only shares or the mean are left, which can be the best that a sample of 50 rows allows.
    """
    return {"alpha": trial.suggest_float("alpha", *ALPHA_RANGE, log=True)}


def _make(setting: Setting, *, task: str, n_classes: int, seed: int) -> LinearModel:
    return LinearModel(alpha=float(setting["alpha"]), task=task, n_classes=n_classes)


LINEAR = register(Baseline("linear", _default, _suggest, _make, takes_codes=True))
