"""Cross-validated scores of one column and of all, for the leak check."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from inconvenient.data.columns import is_numeric

__all__ = [
    "Target",
    "alone",
    "auc",
    "boosted",
    "folds_of",
    "level_means",
    "levels",
    "linear_fit",
    "standard",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Fold = tuple[IntArray, IntArray]

_FOLDS = 3
_SEED = 0


class Target:
    """A target as numbers, and how well a prediction ranks or explains it."""

    def __init__(self, y: npt.NDArray[Any], task: str) -> None:
        self.regression = task == "regression"
        if self.regression:
            values = np.asarray(y, dtype=np.float64)
            ranks = pd.Series(values).rank().to_numpy()
            self.labels = np.zeros(len(values), dtype=np.int64)
            self.values = np.column_stack([standard(values), standard(ranks)])
        else:
            codes, self.classes = pd.factorize(pd.Series(y).astype(str), sort=True)
            self.labels = codes.astype(np.int64)
            self.values = np.eye(len(self.classes))[self.labels]

    def scores(self, predicted: FloatArray) -> FloatArray:
        """Return R2 of values and ranks, or the AUC of every class, in [0, 1]."""
        if self.regression:
            error = ((self.values - predicted) ** 2).sum(axis=0)
            return np.asarray(np.clip(1.0 - error / (self.values**2).sum(axis=0), 0.0, 1.0))
        each = [auc(self.labels == k, predicted[:, k]) for k in range(predicted.shape[1])]
        return np.array(each)

    def overall(self, scores: FloatArray) -> float:
        """Return the larger R2, or the mean AUC of the classes."""
        return float(scores.max() if self.regression else scores.mean())

    @property
    def metric(self) -> str:
        """Name of the score."""
        return "R2" if self.regression else "AUC"


def standard(values: npt.NDArray[Any]) -> FloatArray:
    """Return values with mean 0 and standard deviation 1, or all 0 if they are constant."""
    centred = values - values.mean()
    return np.asarray(centred / (centred.std() or 1.0))


def auc(positive: npt.NDArray[np.bool_], score: FloatArray) -> float:
    """Return the area under the ROC curve, ties counting half."""
    ranks = pd.Series(score).rank().to_numpy()
    count = int(positive.sum())
    rest = len(positive) - count
    if not count or not rest:
        return 0.5
    return float((ranks[positive].sum() - count * (count + 1) / 2) / (count * rest))


def folds_of(target: Target, groups: IntArray | None) -> list[Fold]:
    """Return three folds; no cluster is on both sides of one."""
    from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

    rows = np.zeros((len(target.labels), 1))
    if groups is not None and len(np.unique(groups)) >= _FOLDS:
        return list(GroupKFold(_FOLDS).split(rows, groups=groups))
    kind = KFold if target.regression else StratifiedKFold
    return list(kind(_FOLDS, shuffle=True, random_state=_SEED).split(rows, target.labels))


def alone(column: pd.Series, target: Target, folds: list[Fold]) -> FloatArray:
    """Return predictions from one column, each made by a model of the other folds."""
    from sklearn.tree import DecisionTreeRegressor

    predicted = np.empty_like(target.values)
    number = is_numeric(column)
    values = column.to_numpy(dtype=np.float64, na_value=np.nan) if number else levels(column)
    for train, test in folds:
        if number:
            # Squared error of class indicators is the Gini criterion, so that one tree serves all.
            leaf = max(5, len(train) // 200)
            tree = DecisionTreeRegressor(max_depth=8, min_samples_leaf=leaf, random_state=_SEED)
            fitted = tree.fit(values[train, None], target.values[train])
            predicted[test] = fitted.predict(values[test, None]).reshape(len(test), -1)
        else:
            predicted[test] = level_means(values, target.values, train)[values[test]]
    return predicted


def levels(column: pd.Series) -> IntArray:
    """Return codes from 0, a gap being a level of its own."""
    codes, _ = pd.factorize(column.astype(object), use_na_sentinel=False)
    return codes.astype(np.int64)


def level_means(codes: IntArray, values: FloatArray, train: IntArray) -> FloatArray:
    """Return the mean per level, drawn to the mean of all as if by one row of it."""
    size = int(codes.max()) + 1
    mean = values[train].mean(axis=0)
    count = np.bincount(codes[train], minlength=size)[:, None]
    total = [np.bincount(codes[train], weights=v[train], minlength=size) for v in values.T]
    return np.asarray((np.column_stack(total) + mean) / (count + 1))


def boosted(X: pd.DataFrame, target: Target, folds: list[Fold]) -> FloatArray:
    """Return predictions of boosted trees from all columns, made as by :func:`alone`."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    matrix = np.column_stack(
        [
            X[name].to_numpy(dtype=np.float64, na_value=np.nan)
            if is_numeric(X[name])
            else levels(X[name]).astype(np.float64)
            for name in X.columns
        ]
    )
    options = {"max_iter": 40, "max_leaf_nodes": 15, "learning_rate": 0.2, "random_state": _SEED}
    options |= {"early_stopping": False, "min_samples_leaf": 10}
    predicted = np.zeros_like(target.values)
    # One thread: sums over several need not have one order, and small fits are no slower.
    with threadpool_limits(1):
        for train, test in folds:
            if target.regression:
                for k in range(target.values.shape[1]):
                    model = HistGradientBoostingRegressor(**options)
                    model.fit(matrix[train], target.values[train, k])
                    predicted[test, k] = model.predict(matrix[test])
            else:
                model = HistGradientBoostingClassifier(**options)
                model.fit(matrix[train], target.labels[train])
                predicted[np.ix_(test, model.classes_)] = model.predict_proba(matrix[test])
    return predicted


def linear_fit(X: pd.DataFrame, target: Target, folds: list[Fold]) -> FloatArray:
    """Return predictions of ridge regression on values or class indicators."""
    matrix = _matrix(X)
    predicted = np.empty_like(target.values)
    for train, test in folds:
        mean, scale = matrix[train].mean(axis=0), matrix[train].std(axis=0)
        scaled = (matrix - mean) / np.where(scale > 0, scale, 1.0)
        offset = target.values[train].mean(axis=0)
        left = scaled[train].T @ scaled[train] + 1e-3 * len(train) * np.eye(matrix.shape[1])
        right = scaled[train].T @ (target.values[train] - offset)
        predicted[test] = scaled[test] @ np.linalg.solve(left, right) + offset
    return predicted


def _matrix(X: pd.DataFrame) -> FloatArray:
    """Return numbers with means for gaps, and indicators of the 20 most frequent levels."""
    parts: list[FloatArray] = []
    for name in X.columns:
        if is_numeric(X[name]):
            values = X[name].to_numpy(dtype=np.float64, na_value=np.nan)
            missing = np.isnan(values)
            mean = values[~missing].mean() if not missing.all() else 0.0
            parts.append(np.where(missing, mean, values)[:, None])
            if missing.any():
                parts.append(missing[:, None].astype(np.float64))
        else:
            codes = levels(X[name])
            frequent = np.argsort(-np.bincount(codes), kind="stable")[:20]
            parts.append((codes[:, None] == frequent).astype(np.float64))
    return np.column_stack(parts)
