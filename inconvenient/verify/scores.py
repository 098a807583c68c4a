"""Scores recomputed: each model is fitted once per training set and scores both halves."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from inconvenient.baselines import Baseline, Setting, get_baseline, require
from inconvenient.benchmark.filter_models import FILTER_MODELS
from inconvenient.evaluation.protocol import Sample, all_rows, last_line
from inconvenient.evaluation.scores import score

if TYPE_CHECKING:
    from inconvenient.data import Dataset, Split
    from inconvenient.verify.settings import Settings

__all__ = ["Model", "Scorer", "models_of"]

Ints = NDArray[np.int64]


@dataclasses.dataclass(frozen=True, slots=True)
class Model:
    """A baseline with its default setting and seed, and the columns that its scores fill.

    Parameters
    ----------
    baseline : Baseline
    setting : dict
    seed : int
    columns : dict of str to str
        Half of the test set to the start of the columns, as {"report": "linear"}.
    """

    baseline: Baseline
    setting: Setting
    seed: int
    columns: dict[str, str]


def models_of(task: str, params: Settings, parts: frozenset[str]) -> list[Model]:
    """Return the models behind published scores; one that serves both halves alike stands once."""
    found: list[Model] = []
    wanted: list[tuple[str, Baseline, int]] = []
    if "scores" in parts:
        names = params.evaluate.baselines
        wanted += [("report", get_baseline(name), params.evaluate.seed) for name in names]
    if "filter" in parts:
        wanted += [("filter", model, params.filter.seed) for model in FILTER_MODELS]
    for half, baseline, seed in wanted:
        require(baseline)
        setting = baseline.default(task)
        for model in found:
            # The linear model draws nothing, so that its seed is no difference.
            same = model.baseline == baseline and model.setting == setting
            if same and (model.seed == seed or baseline.name == "linear"):
                model.columns[half] = baseline.name
                break
        else:
            found.append(Model(baseline, setting, seed, {half: baseline.name}))
    return found


class Scorer:
    """Scores of models of one dataset on both halves, by training set.

    Parameters
    ----------
    dataset : Dataset
    split : Split
    models : list of Model

    Attributes
    ----------
    failures : dict of (half, model) to str
        What went wrong first.
    """

    def __init__(self, dataset: Dataset, split: Split, models: list[Model]) -> None:
        self.models = models
        self._task, self._k = dataset.task, len(dataset.classes)
        self._rows: dict[bool, Sample] = {}
        self._tests: dict[tuple[bool, str], Sample] = {}
        for coded in {model.baseline.takes_codes for model in models}:
            self._rows[coded] = all_rows(dataset, coded=coded)
            for half in ("filter", "report"):
                rows = np.sort(getattr(split, half))
                self._tests[coded, half] = self._rows[coded].take(rows)
        self.failures: dict[tuple[str, str], str] = {}
        self._done: dict[str, dict[tuple[str, str], float]] = {}

    def of(self, name: str, rows: Ints) -> dict[tuple[str, str], float]:
        """Return scores by (half, model) after training on some rows; NaN after a failure.

        Training sets with a name are scored once.
        """
        if name in self._done:
            return self._done[name]
        rows = np.sort(rows)
        train = {coded: whole.take(rows) for coded, whole in self._rows.items()}
        out: dict[tuple[str, str], float] = {}
        for model in self.models:
            out |= self._scores(model, train[model.baseline.takes_codes])
        if name:
            self._done[name] = out
        return out

    def _scores(self, model: Model, train: Sample) -> dict[tuple[str, str], float]:
        coded = model.baseline.takes_codes
        out = dict.fromkeys(model.columns.items(), math.nan)
        try:
            estimator: Any = model.baseline.make(
                model.setting, task=self._task, n_classes=self._k, seed=model.seed
            )
            estimator.fit(train.X, train.y)
            for half, name in model.columns.items():
                test = self._tests[coded, half]
                out[half, name] = score(estimator, test.X, test.y, task=self._task)
        except Exception as error:
            # A failure is published as a missing score; what it was tells why another is not.
            for key in out:
                self.failures.setdefault(key, last_line(error))
        return out
