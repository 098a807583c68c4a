"""The CatBoost baseline: gradient boosted symmetric trees with native categories and gaps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from inconvenient.baselines.registry import Baseline, Setting, register, require_module
from inconvenient.baselines.sample_model import SampleModel, as_single

__all__ = ["CATBOOST", "CatBoostModel"]


class CatBoostModel(SampleModel):
    """CatBoost with its encoder, both fitted on the sample.

    Parameters
    ----------
    setting : dict
        ``n_trees`` and CatBoost's own parameters; a learning rate of None is CatBoost's choice.
    task, n_classes, seed
        See :class:`~inconvenient.baselines.sample_model.SampleModel`.

    Notes
    -----
    CatBoost knows gaps in numbers, but in a category a gap is a level like others; here it is the
    level "-1", to which unseen levels belong. Nothing is written to disk or printed.
    """

    def _train(self, Z: NDArray[np.float64], labels: NDArray[Any]) -> Any:
        require_module("catboost", needed_by="the baseline 'catboost'")
        import catboost

        single = as_single(Z)
        low, high = np.fmin.reduce(single), np.fmax.reduce(single)
        if not ((low < high) | np.isnan(single).any(axis=0)).any():
            return None  # columns that differ in double precision only: an error in CatBoost
        loss = "RMSE"
        if self.task != "regression":
            loss = "Logloss" if self.present_.size == 2 else "MultiClass"
        model = catboost.CatBoost(
            {
                **{k: v for k, v in self.setting.items() if k != "n_trees" and v is not None},
                "iterations": int(self.setting["n_trees"]),
                "loss_function": loss,
                "random_seed": self.seed % 2**31,
                "thread_count": 1,
                "allow_writing_files": False,
                "logging_level": "Silent",
            }
        )
        return model.fit(self._pool(Z, labels))

    def _pool(self, Z: NDArray[np.float64], labels: NDArray[Any] | None = None) -> Any:
        import catboost

        categorical = self.encoder_.categorical
        numeric = [i for i in range(Z.shape[1]) if i not in set(categorical)]
        numbers = as_single(Z[:, numeric]) if numeric else None
        categories = None
        if categorical:
            codes = np.nan_to_num(Z[:, categorical], nan=-1.0).astype(np.int64)
            most = max(len(levels.names) for _, levels in self.encoder_.columns if levels)
            texts = np.array([str(i).encode() for i in range(-1, most)], dtype=object)
            categories = texts[codes + 1]
        return catboost.Pool(catboost.FeaturesData(numbers, categories), labels, thread_count=1)

    def _outcome(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        kind = "RawFormulaVal" if self.task == "regression" else "Probability"
        raw = self.model_.predict(self._pool(Z), prediction_type=kind, thread_count=1)
        return np.asarray(raw, dtype=np.float64)


def _default(task: str) -> Setting:
    """CatBoost's own defaults, written out.

    They are kept at 1,000 trees, ten times those of the other libraries, because the learning rate
    that CatBoost chooses (None) falls with their number; fewer would be another baseline. On one
    core they take 4 s on 2,000 rows of 20 numbers with two classes, 15 s with five, and several
    times that with many categories.
    """
    return {"n_trees": 1000, "learning_rate": None, "depth": 6, "border_count": 254}


def _suggest(trial: Any, task: str, n_rows: int) -> Setting:
    """Draw from the search space.

    Learning rate, depth, L2 penalty and the number of levels up to which a category is one-hot
    are searched by TabRepo (Salinas and Erickson 2024, "TabRepo: A Large Scale Repository of
    Tabular Model Evaluations and its AutoML Applications"). TabRepo stops early on held-out rows,
    which a sample of a few hundred rows cannot spare, so the number of trees is searched and the
    learning rate raised with it (0.005-0.1 there); for the same smallness depth is 2-6 instead of
    4-8 and the penalty 1-10 instead of 1-5. Trees are symmetric, combinations of categories
    (``max_ctr_complexity``, 1-5 there) are left out and numbers have 128 borders instead of 254,
    to save time: on one core and a sample of 2,000 rows and 20 columns, half of them categories, a
    trial with the slowest setting takes 0.9 s for regression and two classes, 3.5 s for five
    classes, for which the trees, each of which serves all classes, are therefore 150 at most.
    """
    most = 150 if task == "multiclass" else 300
    return {
        "n_trees": trial.suggest_int("n_trees", 50, most, log=True),
        "learning_rate": trial.suggest_float("learning_rate", 0.01, 0.3, log=True),
        "depth": trial.suggest_int("depth", 2, 6),
        "l2_leaf_reg": trial.suggest_float("l2_leaf_reg", 1.0, 10.0, log=True),
        "one_hot_max_size": trial.suggest_categorical("one_hot_max_size", [2, 3, 5, 10]),
        "max_ctr_complexity": 1,
        "border_count": 128,
    }


def _make(setting: Setting, *, task: str, n_classes: int, seed: int) -> CatBoostModel:
    return CatBoostModel(setting, task=task, n_classes=n_classes, seed=seed)


CATBOOST = register(
    Baseline("catboost", _default, _suggest, _make, requires=("catboost",), takes_codes=True)
)
