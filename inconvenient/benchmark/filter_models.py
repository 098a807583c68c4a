"""The two fixed-setting models behind the filters: linear, and histogram gradient boosting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from inconvenient.baselines import LINEAR, Baseline, Setting
from inconvenient.baselines.encoding import NativeEncoder, expand_classes

__all__ = ["FILTER_MODELS", "BoostingModel"]

MAX_LEVELS = 255


class BoostingModel:
    """Scikit-learn's histogram gradient boosting with native categories and gaps.

    Parameters
    ----------
    setting : dict
        ``max_iter``, ``max_leaf_nodes``, ``learning_rate``.
    task : {"regression", "binary", "multiclass"}
    n_classes : int
    seed : int

    Notes
    -----
    Of a categorical column the 255 most frequent levels of the sample keep a code; rarer and
    unseen ones read as missing. A sample with one class, or with no column that varies, yields a
    constant prediction.
    """

    def __init__(self, setting: Setting, *, task: str, n_classes: int, seed: int) -> None:
        self.setting = setting
        self.task = task
        self.n_classes = n_classes
        self.seed = seed

    def fit(self, X: pd.DataFrame, y: NDArray[Any]) -> BoostingModel:
        """Fit encoder and trees on a training sample."""
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

        self.encoder_ = NativeEncoder.fit(X, max_levels=MAX_LEVELS)
        self.model_: Any = None
        regression = self.task == "regression"
        if regression:
            self.constant_ = np.array([np.mean(y)])
        else:
            self.present_, counts = np.unique(np.asarray(y, dtype=np.int64), return_counts=True)
            self.constant_ = counts / counts.sum()
        if self.encoder_.columns and (regression or self.present_.size > 1):
            kind = HistGradientBoostingRegressor if regression else HistGradientBoostingClassifier
            self.model_ = kind(
                **self.setting,
                categorical_features=self.encoder_.categorical,
                early_stopping=False,
                random_state=self.seed % 2**32,
            ).fit(self.encoder_.transform(X), y)
        return self

    def predict_proba(self, X: pd.DataFrame) -> NDArray[np.float64]:
        """Return class probabilities, shape (n, K)."""
        if self.model_ is None:
            proba = np.tile(self.constant_, (len(X), 1))
        else:
            proba = self.model_.predict_proba(self.encoder_.transform(X))
        return expand_classes(proba, self.present_, self.n_classes)

    def predict(self, X: pd.DataFrame) -> NDArray[Any]:
        """Return predicted values, or the codes of the most probable classes."""
        prediction: NDArray[Any]
        if self.task != "regression":
            prediction = self.predict_proba(X).argmax(axis=1)
        elif self.model_ is None:
            prediction = np.full(len(X), self.constant_[0])
        else:
            prediction = self.model_.predict(self.encoder_.transform(X))
        return prediction


def _boosting_setting(task: str) -> Setting:
    return {"max_iter": 50, "max_leaf_nodes": 15, "learning_rate": 0.1}


def _fixed(trial: Any, task: str, n_rows: int) -> Setting:
    return _boosting_setting(task)


def _make_boosting(setting: Setting, *, task: str, n_classes: int, seed: int) -> BoostingModel:
    return BoostingModel(setting, task=task, n_classes=n_classes, seed=seed)


#: Fixed-setting ridge or logistic regression (penalty 1), and 50 boosted trees of 15 leaves:
#: samples of a few hundred rows fill no more, and the filter fits thousands.
FILTER_MODELS: tuple[Baseline, ...] = (
    LINEAR,
    Baseline("hgb", _boosting_setting, _fixed, _make_boosting),
)
