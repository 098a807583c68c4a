"""Scores of baselines on all shifts: units that can run in any process."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from inconvenient.baselines import Baseline, Setting, get_baseline, require
from inconvenient.baselines.registry import require_module
from inconvenient.config import Params, TuningParams
from inconvenient.evaluation.plan import Plan, TrainingSet, drawn_shifts, plans, training_rows
from inconvenient.evaluation.protocol import Sample, all_rows, fit_score, last_line, tune
from inconvenient.evaluation.tables import assemble_default, assemble_tuned
from inconvenient.shifts.rows import rows_hash
from inconvenient.store import ALGORITHM, Unit, content_key, library_versions

if TYPE_CHECKING:
    from inconvenient.data import Dataset, Split

__all__ = [
    "assemble_default",
    "assemble_tuned",
    "default_units",
    "score_units",
    "tune_units",
    "tuned_units",
]

Datasets = Mapping[str, "Dataset"]
Splits = Mapping[str, "Split"]

BATCH = 32  # training sets of one unit and record: seconds of work, and a file for each no more

_COLUMNS = ["dataset", "model", "role", "name", "status", "score", "setting", "trials"]


@dataclass(frozen=True, slots=True)
class _Scoring:
    """What the training sets of one dataset and model have in common, as a worker needs it."""

    dataset: str
    hash: str
    pool: NDArray[np.int64]
    test: NDArray[np.int64]  # ids of the scored rows
    draws_seed: int  # of the uniform samples
    model: Baseline
    seed: int  # of the model

    def key_parts(self, *libraries: str) -> dict[str, Any]:
        """Return what every record depends on, for its key."""
        revision = self.model.revision
        return {
            "dataset": [self.dataset, self.hash],
            "pool": rows_hash(self.pool),
            "test": rows_hash(self.test),
            "draws_seed": self.draws_seed,
            "model": self.model.name if revision == 1 else [self.model.name, revision],
            "seed": self.seed,
            "libraries": library_versions(*self.model.requires, *libraries),
        }

    def facts(self) -> dict[str, Any]:
        """Return what a record's note should tell of its key, which is a hash."""
        return {"model": self.model.name, "seed": self.seed}


def _key(stage: str, batch: Sequence[TrainingSet], parts: Mapping[str, Any], **own: Any) -> str:
    names = [(item.role, item.name) for item in batch]
    return content_key(stage, ALGORITHM[stage], training_sets=names, **parts, **own)


def default_units(
    datasets: Datasets, splits: Splits, shifts: pd.DataFrame, params: Params
) -> list[Unit]:
    """Return the work behind the default-setting scores of every verified shift.

    Parameters
    ----------
    datasets, splits : mapping of str to Dataset, Split
        At least those that have shifts.
    shifts : DataFrame
        Verified shifts.
    params : Params

    Returns
    -------
    list of Unit
        See :func:`score_units`.

    Raises
    ------
    MissingDependencyError
        If a baseline's library is not installed.
    """
    models = [get_baseline(name) for name in params.evaluate.baselines]
    tests = {name: split.report for name, split in splits.items()}
    todo = plans(splits, shifts, controls=params.evaluate.controls, seed=params.shifts.seed)
    return score_units(datasets, todo, tests, models, stage="evaluate", seed=params.evaluate.seed)


def score_units(
    datasets: Datasets,
    todo: Mapping[str, Plan],
    tests: Mapping[str, NDArray[np.int64]],
    models: Sequence[Baseline],
    *,
    stage: str,
    seed: int,
    batch_size: int = BATCH,
    identity: Mapping[str, Any] | None = None,
) -> list[Unit]:
    """Return units that score models with their default settings on all training sets of plans.

    Parameters
    ----------
    datasets : mapping of str to Dataset
    todo : mapping of str to Plan
    tests : mapping of str to ndarray of int64
        Ids of the scored rows by dataset.
    models : sequence of Baseline
    stage : str
    seed : int
        Of the models.
    batch_size : int
        Training sets of a unit, at most.
    identity : mapping, optional
        JSON-able facts that tell a model from others of its name; they enter the keys.

    Returns
    -------
    list of Unit
        A unit is one model on some training sets of one dataset and role, and returns one row
        per training set; a failure is a row, too. A dataset's units stand together, so that a
        process loads it once; the datasets with most work come first.

    Raises
    ------
    MissingDependencyError
        If a model's library is not installed.

    Notes
    -----
    A unit's key holds the hashes of dataset, pool, scored rows and convenience samples, the
    numbers and seed of the uniform samples, the model with its setting and seed, the stage's
    algorithm version, and the versions of the libraries that compute the score: a record made by
    another LightGBM must not end up in a table that is to be reproduced byte for byte.
    """
    for model in models:
        require(model)
    sized: list[tuple[int, list[Unit]]] = []
    for name, plan in todo.items():
        dataset, units = datasets[name], []
        for model in models:
            common = _common(dataset, plan, tests[name], model, seed)
            setting, parts = model.default(dataset.task), common.key_parts()
            if identity is not None:
                parts["identity"] = identity
            for batch in _batches(plan, batch_size):
                key = _key(stage, batch, parts, what="default", setting=setting)
                units.append(
                    Unit(key, _score, (common, batch, setting), name, _ended, common.facts())
                )
        sized.append((_work(dataset, plan), units))
    sized.sort(key=lambda pair: -pair[0])
    return [unit for _, units in sized for unit in units]


def _common(
    dataset: Dataset, plan: Plan, test: NDArray[np.int64], model: Baseline, seed: int
) -> _Scoring:
    return _Scoring(plan.name, dataset.hash, plan.pool, np.sort(test), plan.seed, model, seed)


def _batches(plan: Plan, size: int) -> list[tuple[TrainingSet, ...]]:
    controls = [item for drawn in plan.controls.values() for item in drawn]
    batches: list[tuple[TrainingSet, ...]] = []
    for items in ([plan.full], controls, list(plan.samples.values())):
        batches += [tuple(items[i : i + size]) for i in range(0, len(items), size)]
    return batches


def _work(dataset: Dataset, plan: Plan) -> int:
    sets = [plan.full, *plan.samples.values()]
    sets += [item for drawn in plan.controls.values() for item in drawn]
    return sum(item.size for item in sets) * dataset.X.shape[1] * max(1, len(dataset.classes))


@functools.lru_cache(maxsize=2)
def _dataset(name: str, digest: str) -> Dataset:
    """Load a dataset once per worker process."""
    from inconvenient.data import load_dataset
    from inconvenient.errors import InputError

    dataset = load_dataset(name)
    if dataset.hash != digest:
        raise InputError(
            f"dataset {name} must have the hash {digest}, found {dataset.hash}; "
            "let nothing change the data during a run"
        )
    return dataset


@functools.lru_cache(maxsize=2)
def _all_rows(name: str, digest: str, coded: bool) -> Sample:
    """Return a dataset's rows, coded once per worker process."""
    return all_rows(_dataset(name, digest), coded=coded)


def _score(
    common: _Scoring, batch: Sequence[TrainingSet], setting: Setting, trials: str = "[]"
) -> pd.DataFrame:
    """Score a model with a setting on each training set of a batch; one row each."""
    dataset = _dataset(common.dataset, common.hash)
    table = _all_rows(common.dataset, common.hash, common.model.takes_codes)
    test = table.take(common.test)
    text = json.dumps(setting, sort_keys=True)
    rows = []
    for item in batch:
        status, value = "ok", float("nan")
        train = table.take(_rows(common, item))
        try:
            value = fit_score(
                common.model,
                setting,
                train,
                test,
                task=dataset.task,
                n_classes=len(dataset.classes),
                seed=common.seed,
            )
        except (Exception, SystemExit) as error:
            status = last_line(error)
        rows.append(
            (common.dataset, common.model.name, item.role, item.name, status, value, text, trials)
        )
    return pd.DataFrame(rows, columns=_COLUMNS)


def _ended(
    reason: str,
    common: _Scoring,
    batch: Sequence[TrainingSet],
    setting: Setting,
    trials: str = "[]",
) -> pd.DataFrame:
    """Return the rows of a unit that a limit ended."""
    text = json.dumps(setting, sort_keys=True)
    own = (common.dataset, common.model.name)
    rows = [(*own, i.role, i.name, reason, float("nan"), text, trials) for i in batch]
    return pd.DataFrame(rows, columns=_COLUMNS)


def _ended_tuned(
    reason: str, common: _Scoring, batch: Sequence[TrainingSet], trials: int
) -> pd.DataFrame:
    return _ended(reason, common, batch, {})


def _rows(common: _Scoring, item: TrainingSet) -> NDArray[np.int64]:
    return training_rows(item, common.pool, seed=common.draws_seed, name=common.dataset)


def tuned_units(
    datasets: Datasets,
    splits: Splits,
    shifts: pd.DataFrame,
    params: Params,
    tuning: TuningParams,
) -> list[Unit]:
    """Return the work behind the tuned scores of the drawn shifts.

    A unit tunes one baseline on one training sample (full pool, first control sample of a size,
    convenience sample), refits it on all of that sample and scores it; the control's setting
    serves the other control samples of the size.

    Parameters
    ----------
    datasets, splits, shifts, params
        As in :func:`default_units`.
    tuning : TuningParams
        Shifts per dataset and trials per sample; with 0 of either there is nothing to do.

    Raises
    ------
    MissingDependencyError
        If Optuna or a baseline's library is not installed.
    """
    drawn = drawn_shifts(shifts, tuning, seed=params.evaluate.seed)
    if drawn.empty:
        return []
    models = [get_baseline(name) for name in params.evaluate.baselines]
    todo = plans(splits, drawn, controls=params.evaluate.controls, seed=params.shifts.seed)
    tests = {name: split.report for name, split in splits.items()}
    seed = params.evaluate.seed
    return tune_units(datasets, todo, tests, models, trials=tuning.trials, seed=seed)


def tune_units(
    datasets: Datasets,
    todo: Mapping[str, Plan],
    tests: Mapping[str, NDArray[np.int64]],
    models: Sequence[Baseline],
    *,
    trials: int,
    seed: int,
) -> list[Unit]:
    """Return units that tune models on the training sets of plans, and score them.

    Parameters
    ----------
    datasets, todo, tests, models, seed
        As in :func:`score_units`.
    trials : int
        Settings to try per training set; at least 1.

    Returns
    -------
    list of Unit
        A unit is one model on the full pool, on the control samples of one size (tuned on the
        first), or on one convenience sample; those with most work come first.

    Raises
    ------
    MissingDependencyError
        If Optuna or a model's library is not installed.
    """
    require_module("optuna", needed_by="tuning")
    for model in models:
        require(model)
    sized: list[tuple[int, Unit]] = []
    for name, plan in todo.items():
        dataset = datasets[name]
        batches = [(plan.full,), *plan.controls.values()]
        batches += [(sample,) for sample in plan.samples.values()]
        for model in models:
            common = _common(dataset, plan, tests[name], model, seed)
            parts = {**common.key_parts("optuna"), "default": model.default(dataset.task)}
            for batch in batches:
                key = _key("evaluate", batch, parts, what="tuned", trials=trials)
                work = (trials + len(batch)) * batch[0].size * max(1, len(dataset.classes))
                own = (common, batch, trials)
                unit = Unit(key, _score_tuned, own, name, _ended_tuned, common.facts())
                sized.append((work, unit))
    sized.sort(key=lambda pair: -pair[0])
    return [unit for _, unit in sized]


def _score_tuned(common: _Scoring, batch: Sequence[TrainingSet], trials: int) -> pd.DataFrame:
    dataset = _dataset(common.dataset, common.hash)
    table = _all_rows(common.dataset, common.hash, common.model.takes_codes)
    tuned = tune(
        common.model,
        table.take(_rows(common, batch[0])),
        task=dataset.task,
        n_classes=len(dataset.classes),
        trials=trials,
        seed=common.seed,
    )
    tried = [
        {"setting": t.setting, "value": None if t.failure else t.value, "failure": t.failure}
        for t in tuned.trials
    ]
    return _score(common, batch, tuned.setting, json.dumps(tried, sort_keys=True))
