"""The XGBoost baseline: gradient boosted trees with native categories and gaps, on one thread."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from inconvenient.baselines.registry import Baseline, Setting, register, require_module
from inconvenient.baselines.sample_model import SampleModel, as_single

__all__ = ["XGBOOST", "XGBoostModel"]


class XGBoostModel(SampleModel):
    """XGBoost with its encoder, both fitted on the sample.

    Parameters
    ----------
    setting : dict
        ``n_trees`` and XGBoost's own parameters.
    task, n_classes, seed
        See :class:`~inconvenient.baselines.sample_model.SampleModel`.

    Notes
    -----
    Categories are split by sets of levels (``feature_types`` "c"), a gap goes to the side that
    gains more.
    """

    def _train(self, Z: NDArray[np.float64], labels: NDArray[Any]) -> Any:
        require_module("xgboost", needed_by="the baseline 'xgboost'")
        import xgboost

        parameters = {
            **{k: v for k, v in self.setting.items() if k != "n_trees"},
            "tree_method": "hist",
            "seed": self.seed % 2**31,
            "nthread": 1,
            "verbosity": 0,
        }
        if self.task == "regression":
            parameters["objective"] = "reg:squarederror"
        elif self.present_.size == 2:
            parameters["objective"] = "binary:logistic"
        else:
            parameters |= {"objective": "multi:softprob", "num_class": self.present_.size}
        return xgboost.train(
            parameters, self._matrix(Z, labels), num_boost_round=int(self.setting["n_trees"])
        )

    def _matrix(self, Z: NDArray[np.float64], labels: NDArray[Any] | None = None) -> Any:
        import xgboost

        types = ["q" if levels is None else "c" for _, levels in self.encoder_.columns]
        return xgboost.DMatrix(
            as_single(Z), labels, feature_types=types, enable_categorical=True, nthread=1
        )

    def _outcome(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        raw: NDArray[np.float64] = self.model_.predict(self._matrix(Z)).astype(np.float64)
        # single precision leaves a remainder that grows with the number of classes
        return raw / raw.sum(axis=1, keepdims=True) if raw.ndim == 2 else raw


def _default(task: str) -> Setting:
    """XGBoost's own defaults, written out."""
    return {
        "n_trees": 100,
        "learning_rate": 0.3,
        "max_depth": 6,
        "min_child_weight": 1.0,
        "subsample": 1.0,
        "colsample_bytree": 1.0,
        "reg_lambda": 1.0,
    }


def _suggest(trial: Any, task: str, n_rows: int) -> Setting:
    """Draw from the search space.

    Learning rate, depth, weight of a child and share of columns are searched by TabRepo (Salinas
    and Erickson 2024, "TabRepo: A Large Scale Repository of Tabular Model Evaluations and its
    AutoML Applications"), with share of rows and L2 penalty also by Gorishniy et al. 2021,
    "Revisiting Deep Learning Models for Tabular Data". Both stop early on held-out rows, which a
    sample of a few hundred rows cannot spare, so the number of trees is searched and the learning
    rate is 0.01-0.3 (0.005-0.1 and 1e-5-1). For the same smallness depth is 2-8 (4-10 and 3-10)
    and a child weighs 0.5-20 (0.5-1.5 and 1e-8-1e5). Twenty trials do not fill the second's wider
    ranges, so the penalty is 0.1-10 (1e-8-100) and an L1 penalty and a least gain are left out. On
    one core and a sample of 2,000 rows and 20 numbers a trial with the slowest setting takes
    0.8 s for two classes, 2.5 s for regression, 3 s for five classes.
    """
    return {
        "n_trees": trial.suggest_int("n_trees", 50, 300, log=True),
        "learning_rate": trial.suggest_float("learning_rate", 0.01, 0.3, log=True),
        "max_depth": trial.suggest_int("max_depth", 2, 8),
        "min_child_weight": trial.suggest_float("min_child_weight", 0.5, 20.0, log=True),
        "subsample": trial.suggest_float("subsample", 0.5, 1.0),
        "colsample_bytree": trial.suggest_float("colsample_bytree", 0.5, 1.0),
        "reg_lambda": trial.suggest_float("reg_lambda", 0.1, 10.0, log=True),
    }


def _make(setting: Setting, *, task: str, n_classes: int, seed: int) -> XGBoostModel:
    return XGBoostModel(setting, task=task, n_classes=n_classes, seed=seed)


XGBOOST = register(
    Baseline("xgboost", _default, _suggest, _make, requires=("xgboost",), takes_codes=True)
)
