"""The LightGBM baseline: gradient boosted trees with native categories and gaps, on one thread."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from inconvenient.baselines.registry import Baseline, Setting, register, require_module
from inconvenient.baselines.sample_model import SampleModel

__all__ = ["LIGHTGBM", "LightGBMModel"]


class LightGBMModel(SampleModel):
    """LightGBM with its encoder, both fitted on the sample.

    Parameters
    ----------
    setting : dict
        ``n_trees`` and LightGBM's own parameters.
    task, n_classes, seed
        See :class:`~inconvenient.baselines.sample_model.SampleModel`.

    Notes
    -----
    The sample is handed over as a matrix of numbers and codes, so that no column name meets
    LightGBM's ban on JSON's special characters; unseen categories arrive as missing values. A
    sample with one class, or with no column that varies, yields a constant prediction.
    """

    standardises_target = False  # it splits whatever gains anything

    def _train(self, Z: NDArray[np.float64], labels: NDArray[Any]) -> Any:
        require_module("lightgbm", needed_by="the baseline 'lightgbm'")
        import lightgbm

        objective = "regression"
        if self.task != "regression":
            objective = "binary" if self.present_.size == 2 else "multiclass"
        parameters = {
            **{k: v for k, v in self.setting.items() if k != "n_trees"},
            "objective": objective,
            "num_class": self.present_.size if objective == "multiclass" else 1,
            "seed": self.seed % 2**31,
            "num_threads": 1,
            "deterministic": True,
            "force_row_wise": True,
            "verbosity": -1,
        }
        sample = lightgbm.Dataset(
            Z, labels, categorical_feature=self.encoder_.categorical, params=parameters
        )
        # kept as trained: a copy by way of its text predicts the same and takes a third of the time
        return lightgbm.train(
            parameters,
            sample,
            num_boost_round=int(self.setting["n_trees"]),
            keep_training_booster=True,
        )

    def _outcome(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        raw: NDArray[np.float64] = np.asarray(self.model_.predict(Z, num_threads=1))
        return raw


def _default(task: str) -> Setting:
    """LightGBM's own defaults, written out."""
    return {"n_trees": 100, "learning_rate": 0.1, "num_leaves": 31, "min_data_in_leaf": 20}


def _suggest(trial: Any, task: str, n_rows: int) -> Setting:
    """Draw from the search space.

    The parameters are those of TabRepo's LightGBM space (Salinas and Erickson 2024, "TabRepo: A
    Large Scale Repository of Tabular Model Evaluations and its AutoML Applications"): learning
    rate, feature fraction, rows in a leaf, leaves, extra trees. Three ranges differ. TabRepo stops
    early on held-out rows, which a sample of a few hundred rows cannot spare, so the number of
    trees is searched and the learning rate raised with it (0.005-0.1 there); and 4-64 leaves
    instead of 16-255, for the same smallness.
    """
    return {
        "n_trees": trial.suggest_int("n_trees", 50, 300, log=True),
        "learning_rate": trial.suggest_float("learning_rate", 0.01, 0.3, log=True),
        "num_leaves": trial.suggest_int("num_leaves", 4, 64, log=True),
        "min_data_in_leaf": trial.suggest_int("min_data_in_leaf", 2, 60, log=True),
        "feature_fraction": trial.suggest_float("feature_fraction", 0.4, 1.0),
        "extra_trees": trial.suggest_categorical("extra_trees", [False, True]),
    }


def _make(setting: Setting, *, task: str, n_classes: int, seed: int) -> LightGBMModel:
    return LightGBMModel(setting, task=task, n_classes=n_classes, seed=seed)


LIGHTGBM = register(
    Baseline("lightgbm", _default, _suggest, _make, requires=("lightgbm",), takes_codes=True)
)
