"""Fit, score and tune a baseline on one training sample; scored rows enter the score alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from inconvenient.baselines.coding import CodedTable, Table, code_table
from inconvenient.baselines.registry import Baseline, Setting, require_module
from inconvenient.errors import InputError
from inconvenient.evaluation.scores import log_loss, r2, score
from inconvenient.store import last_line

if TYPE_CHECKING:
    from inconvenient.data import Dataset

__all__ = [
    "Sample",
    "Trial",
    "Tuned",
    "all_rows",
    "fit_score",
    "inner_split",
    "last_line",
    "sample_rows",
    "tune",
]

HOLDOUT = 0.2


@dataclass(frozen=True, slots=True)
class Sample:
    """Rows of a dataset, to train on or to score.

    Parameters
    ----------
    X : DataFrame or CodedTable
        Raw features; a DataFrame is numbered from 0, because row ids would tell which rows a
        sample lacks.
    y : ndarray, shape (n,)
        float64 targets or int64 class codes.
    groups : ndarray of int64, shape (n,), or None
        Cluster codes.
    """

    X: Table
    y: NDArray[Any]
    groups: NDArray[np.int64] | None = None

    def take(self, positions: NDArray[np.int64]) -> Sample:
        """Return the rows at some positions, as a sample of its own."""
        groups = None if self.groups is None else self.groups[positions]
        if isinstance(self.X, CodedTable):
            return Sample(self.X.take(positions), self.y[positions], groups)
        X = self.X.iloc[positions].reset_index(drop=True)
        return Sample(X, self.y[positions], groups)


def all_rows(dataset: Dataset, *, coded: bool) -> Sample:
    """Return the rows of a dataset, whose positions are their ids; coded rows are taken fast."""
    X = code_table(dataset.X) if coded else dataset.X
    return Sample(X, dataset.y, dataset.groups)


def sample_rows(dataset: Dataset, row_ids: NDArray[np.int64]) -> Sample:
    """Return rows of a dataset by id, in the dataset's order whatever order the ids come in."""
    return all_rows(dataset, coded=False).take(np.sort(row_ids))


def fit_score(
    baseline: Baseline,
    setting: Setting,
    train: Sample,
    test: Sample,
    *,
    task: str,
    n_classes: int,
    seed: int,
) -> float:
    """Fit a baseline with a setting on a training sample and score it once.

    Parameters
    ----------
    baseline : Baseline
    setting : dict
    train, test : Sample
    task : {"regression", "binary", "multiclass"}
    n_classes : int
        Number of classes of the dataset, 0 for regression.
    seed : int
        Seed of the model.

    Returns
    -------
    float
        R2, or macro one-vs-rest AUC-ROC.
    """
    estimator = baseline.make(setting, task=task, n_classes=n_classes, seed=seed)
    estimator.fit(train.X, train.y)
    return score(estimator, test.X, test.y, task=task)


@dataclass(frozen=True, slots=True)
class Trial:
    """One setting that was tried: its objective (NaN if it failed) and why it failed, or ""."""

    setting: Setting
    value: float
    failure: str


@dataclass(frozen=True, slots=True)
class Tuned:
    """The best setting, its objective, and every trial in order."""

    setting: Setting
    value: float
    trials: tuple[Trial, ...]


def tune(
    baseline: Baseline, sample: Sample, *, task: str, n_classes: int, trials: int, seed: int
) -> Tuned:
    """Choose a baseline's setting on a training sample alone.

    Parameters
    ----------
    baseline : Baseline
    sample : Sample
        Training sample; 80 % of it trains, 20 % judges the settings.
    task : {"regression", "binary", "multiclass"}
    n_classes : int
    trials : int
        Number of settings to try.
    seed : int
        Seed of split, sampler and models.

    Returns
    -------
    Tuned
        The first setting with the largest R2, or minus log loss over the dataset's classes. A
        failing trial counts as tried. If all fail (one row cannot be split, say), the default
        setting with value NaN.

    Raises
    ------
    MissingDependencyError
        If Optuna is not installed.
    """
    require_module("optuna", needed_by="tuning")
    import optuna

    parts: tuple[Sample, Sample] | None = None
    problem = ""
    try:
        left, right = inner_split(sample, task=task, seed=seed)
        parts = sample.take(left), sample.take(right)
    except InputError as error:
        problem = last_line(error)

    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        sampler = optuna.samplers.TPESampler(seed=seed % 2**32)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        tried = []
        for _ in range(trials):
            asked = study.ask()
            setting: Setting = {}
            try:
                setting = baseline.suggest(asked, task, len(sample.y))
                if parts is None:
                    raise InputError(problem)
                value = _objective(
                    baseline, setting, *parts, task=task, n_classes=n_classes, seed=seed
                )
            except Exception as error:
                study.tell(asked, state=optuna.trial.TrialState.FAIL)
                tried.append(Trial(setting, float("nan"), last_line(error)))
            else:
                study.tell(asked, value)
                tried.append(Trial(setting, value, ""))
    finally:
        optuna.logging.set_verbosity(verbosity)
    sound = [trial for trial in tried if not trial.failure]
    if not sound:
        return Tuned(baseline.default(task), float("nan"), tuple(tried))
    best = max(sound, key=lambda trial: trial.value)
    return Tuned(best.setting, best.value, tuple(tried))


def _objective(
    baseline: Baseline,
    setting: Setting,
    train: Sample,
    holdout: Sample,
    *,
    task: str,
    n_classes: int,
    seed: int,
) -> float:
    estimator = baseline.make(setting, task=task, n_classes=n_classes, seed=seed)
    estimator.fit(train.X, train.y)
    if task == "regression":
        return r2(holdout.y, estimator.predict(holdout.X))
    return -log_loss(holdout.y, estimator.predict_proba(holdout.X))


def inner_split(
    sample: Sample, *, task: str, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split a training sample 80/20 for tuning.

    Parameters
    ----------
    sample : Sample
        With ``groups``, no group is on both sides, unless it is the only one.
    task : {"regression", "binary", "multiclass"}
        Classes are stratified where each in the sample has two rows.
    seed : int

    Returns
    -------
    train, holdout : ndarray of int64
        Sorted positions; neither is empty.

    Raises
    ------
    InputError
        If the sample has fewer than two rows.

    Notes
    -----
    Groups come in random order, and each goes to the holdout if that brings the holdout's shares
    of the classes nearer to 20 % (sum of squares).
    """
    n = len(sample.y)
    if n < 2:
        raise InputError(f"a sample needs two rows to be split for tuning, got {n}; take more rows")
    rng = np.random.default_rng(seed)
    strata = np.zeros(n, dtype=np.int64)
    if task != "regression":
        _, codes, counts = np.unique(sample.y, return_inverse=True, return_counts=True)
        if counts.min() >= 2:
            strata = codes.astype(np.int64)
    if sample.groups is not None and np.unique(sample.groups).size > 1:
        held = _hold_groups(sample.groups, strata, rng)
    else:
        held = _hold_rows(strata, rng)
    return np.flatnonzero(~held), np.flatnonzero(held)


def _hold_rows(strata: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.bool_]:
    held = np.zeros(strata.size, dtype=bool)
    for stratum in np.unique(strata):
        rows = rng.permutation(np.flatnonzero(strata == stratum))
        held[rows[: max(1, round(HOLDOUT * rows.size))]] = True
    return held


def _hold_groups(
    groups: NDArray[np.int64], strata: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.bool_]:
    _, group = np.unique(groups, return_inverse=True)
    n_groups, n_strata = int(group.max()) + 1, int(strata.max()) + 1
    counts = np.zeros((n_groups, n_strata))
    np.add.at(counts, (group, strata), 1.0)
    shares = counts / counts.sum(axis=0)
    order = rng.permutation(n_groups)
    held = np.zeros(n_groups, dtype=bool)
    share = np.zeros(n_strata)
    for g in order:
        if ((share + shares[g] - HOLDOUT) ** 2).sum() < ((share - HOLDOUT) ** 2).sum():
            held[g] = True
            share = share + shares[g]
    if not held.any():  # every group is large: the one nearest to 20 %
        held[order[((shares[order] - HOLDOUT) ** 2).sum(axis=1).argmin()]] = True
    result: NDArray[np.bool_] = held[group]
    return result
