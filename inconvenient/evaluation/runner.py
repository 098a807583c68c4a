"""Scores of baselines on all shifts: units that can run in any process."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from inconvenient.baselines import Baseline, Setting, get_baseline, require
from inconvenient.baselines.registry import require_module
from inconvenient.config import Params, TuningParams
from inconvenient.evaluation.plan import Plan, TrainingSet, drawn_shifts, plans
from inconvenient.evaluation.protocol import Sample, fit_score, last_line, sample_rows, tune
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
    "tuned_units",
]

Datasets = Mapping[str, "Dataset"]
Splits = Mapping[str, "Split"]

_COLUMNS = ["dataset", "model", "role", "rows_hash", "status", "score", "setting", "trials"]


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
        Full pools first. Each returns one row per training set; a failure is a row, too.

    Raises
    ------
    MissingDependencyError
        If a baseline's library is not installed.

    Notes
    -----
    A unit's key holds the dataset's hash, the hashes of training and scored rows, the baseline
    with its setting, the seed, the stage's algorithm version, and the versions of the libraries
    that compute the score: a record made by another LightGBM must not end up in a table that is
    to be reproduced byte for byte.
    """
    models = [_checked(name) for name in params.evaluate.baselines]
    tests = {name: split.report for name, split in splits.items()}
    todo = plans(splits, shifts, controls=params.evaluate.controls, seed=params.shifts.seed)
    return score_units(datasets, todo, tests, models, stage="evaluate", seed=params.evaluate.seed)


def _checked(name: str) -> Baseline:
    baseline = get_baseline(name)
    require(baseline)
    return baseline


def score_units(
    datasets: Datasets,
    todo: Mapping[str, Plan],
    tests: Mapping[str, NDArray[np.int64]],
    models: Sequence[Baseline],
    *,
    stage: str,
    seed: int,
) -> list[Unit]:
    """Return units that score models with their default settings on all training sets of plans.

    A unit is one model on a full pool, on the control samples of one size, or on one convenience
    sample. ``tests`` holds the ids of the scored rows per dataset.
    """
    sized: list[tuple[int, Unit]] = []
    for name, plan in todo.items():
        dataset, test = datasets[name], np.sort(tests[name])
        batches: list[tuple[str, tuple[TrainingSet, ...]]] = [("id", (plan.full,))]
        batches += [("control", drawn) for drawn in plan.controls.values()]
        batches += [("ood", (sample,)) for sample in plan.samples.values()]
        for model in models:
            setting = model.default(dataset.task)
            for role, batch in batches:
                key = content_key(
                    stage,
                    ALGORITHM[stage],
                    what="default",
                    dataset=dataset.hash,
                    test=rows_hash(test),
                    train=[item.digest for item in batch],
                    role=role,
                    model=model.name,
                    setting=setting,
                    seed=seed,
                    libraries=library_versions(*model.requires),
                )
                arguments = (name, dataset.hash, role, batch, test, model, setting, seed)
                work = sum(item.rows.size for item in batch) * max(1, len(dataset.classes))
                sized.append((work, Unit(key, _score_default, arguments)))
    sized.sort(key=lambda pair: -pair[0])
    return [unit for _, unit in sized]


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


def _score_default(
    name: str,
    digest: str,
    role: str,
    batch: tuple[TrainingSet, ...],
    test: NDArray[np.int64],
    model: Baseline,
    setting: Setting,
    seed: int,
) -> pd.DataFrame:
    dataset = _dataset(name, digest)
    scored = sample_rows(dataset, test)
    rows = [_record(dataset, item, scored, model, role, setting, seed) for item in batch]
    return pd.DataFrame(rows, columns=_COLUMNS)


def _record(
    dataset: Dataset,
    item: TrainingSet,
    scored: Sample,
    model: Baseline,
    role: str,
    setting: Setting,
    seed: int,
    trials: str = "[]",
) -> tuple[Any, ...]:
    status, value = "ok", float("nan")
    try:
        value = fit_score(
            model,
            setting,
            sample_rows(dataset, item.rows),
            scored,
            task=dataset.task,
            n_classes=len(dataset.classes),
            seed=seed,
        )
    except Exception as error:
        status = last_line(error)
    text = json.dumps(setting, sort_keys=True)
    return dataset.name, model.name, role, item.digest, status, value, text, trials


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
    require_module("optuna", needed_by="tuning")
    todo = plans(splits, drawn, controls=params.evaluate.controls, seed=params.shifts.seed)
    seed = params.evaluate.seed
    sized: list[tuple[int, Unit]] = []
    for name, plan in todo.items():
        dataset, test = datasets[name], np.sort(splits[name].report)
        batches: list[tuple[str, tuple[TrainingSet, ...]]] = [("id", (plan.full,))]
        batches += [("control", samples) for samples in plan.controls.values()]
        batches += [("ood", (sample,)) for sample in plan.samples.values()]
        for model in (_checked(name) for name in params.evaluate.baselines):
            for role, batch in batches:
                key = content_key(
                    "evaluate",
                    ALGORITHM["evaluate"],
                    what="tuned",
                    dataset=dataset.hash,
                    test=rows_hash(test),
                    train=[item.digest for item in batch],
                    role=role,
                    model=model.name,
                    trials=tuning.trials,
                    seed=seed,
                    libraries=library_versions(*model.requires, "optuna"),
                )
                arguments = (name, dataset.hash, role, batch, test, model, tuning.trials, seed)
                fits = tuning.trials + len(batch)
                work = fits * batch[0].rows.size * max(1, len(dataset.classes))
                sized.append((work, Unit(key, _score_tuned, arguments)))
    sized.sort(key=lambda pair: -pair[0])
    return [unit for _, unit in sized]


def _score_tuned(
    name: str,
    digest: str,
    role: str,
    batch: tuple[TrainingSet, ...],
    test: NDArray[np.int64],
    model: Baseline,
    trials: int,
    seed: int,
) -> pd.DataFrame:
    dataset = _dataset(name, digest)
    scored = sample_rows(dataset, test)
    tuned = tune(
        model,
        sample_rows(dataset, batch[0].rows),
        task=dataset.task,
        n_classes=len(dataset.classes),
        trials=trials,
        seed=seed,
    )
    tried = [
        {"setting": t.setting, "value": None if t.failure else t.value, "failure": t.failure}
        for t in tuned.trials
    ]
    text = json.dumps(tried, sort_keys=True)
    rows = [
        _record(dataset, item, scored, model, role, tuned.setting, seed, text) for item in batch
    ]
    return pd.DataFrame(rows, columns=_COLUMNS)
