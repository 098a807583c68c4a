"""The random forest baseline: scikit-learn's, with native gaps, on one thread."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from inconvenient.baselines.registry import Baseline, Setting, register
from inconvenient.baselines.sample_model import SampleModel, as_single

__all__ = ["RANDOM_FOREST", "RandomForestModel"]


class RandomForestModel(SampleModel):
    """A random forest with its encoder, both fitted on the sample.

    Parameters
    ----------
    setting : dict
        ``n_trees`` and scikit-learn's own parameters.
    task, n_classes, seed
        See :class:`~inconvenient.baselines.sample_model.SampleModel`.

    Notes
    -----
    Scikit-learn's forests know gaps but no categories: a level becomes its rank by falling
    frequency in the sample (ties by name), so that a split parts frequent from rare levels and no
    column with many levels takes the draws of columns for itself, as its one-hot columns would.
    """

    def _train(self, Z: NDArray[np.float64], labels: NDArray[Any]) -> Any:
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

        forest = RandomForestRegressor if self.task == "regression" else RandomForestClassifier
        return forest(
            **{k: v for k, v in self.setting.items() if k != "n_trees"},
            n_estimators=int(self.setting["n_trees"]),
            random_state=self.seed % 2**32,
            n_jobs=1,
        ).fit(self._ranked(Z), labels)

    def _ranked(self, Z: NDArray[np.float64]) -> NDArray[np.float32]:
        """Return numbers as they are and ranks of levels instead of their codes."""
        out = as_single(Z)
        for i, (_, levels) in enumerate(self.encoder_.columns):
            if levels is not None:
                known = ~np.isnan(Z[:, i])
                rank = np.argsort(np.argsort(-levels.counts, kind="stable"))
                out[known, i] = rank[Z[known, i].astype(np.int64)]
        return out

    def _outcome(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        rows = self._ranked(Z)
        raw: NDArray[np.float64]
        if self.task == "regression":
            raw = self.model_.predict(rows)
        else:
            raw = self.model_.predict_proba(rows)
        return raw


def _default(task: str) -> Setting:
    """Scikit-learn's own defaults, written out."""
    return {
        "n_trees": 100,
        "max_features": 1.0 if task == "regression" else "sqrt",
        "min_samples_leaf": 1,
    }


def _suggest(trial: Any, task: str, n_rows: int) -> Setting:
    """Draw from the search space.

    Share of columns and rows in a leaf are searched by TabRepo (Salinas and Erickson 2024,
    "TabRepo: A Large Scale Repository of Tabular Model Evaluations and its AutoML Applications";
    there "sqrt", "log2", 0.5, 0.75 or 1, and nine sizes of 1-80) and by Grinsztajn et al. 2022,
    "Why do tree-based models still outperform deep learning on typical tabular data?" (there
    "sqrt", "log2", 0.1-0.9 or 1, and 2-50). Left out are TabRepo's limit of 5,000 leaves and more,
    which no sample here reaches, and what only the other searches. The number of trees is fixed
    as in both, for more never harm: 100, not 300 or 250, keep a trial on a sample of
    2,000 rows and 20 columns under 1.5 s (one core, the slowest setting).
    """
    return {
        "n_trees": 100,
        "max_features": trial.suggest_float("max_features", 0.1, 1.0),
        "min_samples_leaf": trial.suggest_int("min_samples_leaf", 1, 40, log=True),
    }


def _make(setting: Setting, *, task: str, n_classes: int, seed: int) -> RandomForestModel:
    return RandomForestModel(setting, task=task, n_classes=n_classes, seed=seed)


RANDOM_FOREST = register(Baseline("random_forest", _default, _suggest, _make, takes_codes=True))
