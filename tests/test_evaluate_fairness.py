"""No score depends on anything but rows to train on and rows to score, each kept in its place."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hostile import few_trees
from scoring import SMALL, needs_publication, some, written
from sklearn.metrics import r2_score, roc_auc_score

import inconvenient as ic
from inconvenient.baselines import BASELINES, Baseline, mlp
from inconvenient.evaluation import runner
from inconvenient.evaluation.estimators import bound, own_model
from inconvenient.evaluation.evaluate import evaluate
from inconvenient.evaluation.protocol import Sample, fit_score, inner_split, sample_rows, tune
from inconvenient.shifts.published import read_published
from inconvenient.store import Store

pytestmark = [needs_publication, pytest.mark.usefixtures("data_folder")]

QUICK = {"profile": "quick", "workers": 1, "controls": 2}
SCORES = ["score_id", "score_control", "control_sd", "score_ood"]


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(tmp_path))
    return written(tmp_path, "own_models")


def halves(task: str) -> tuple[ic.Dataset, Any]:
    """Return a small dataset and its split."""
    return ic.load_dataset(SMALL[task]), read_published(some(task), "quick").splits[SMALL[task]]


def poisoned(dataset: ic.Dataset, rows: np.ndarray) -> ic.Dataset:
    """Return the dataset with other features and targets in some rows."""
    frame = dataset.frame.copy()
    rng = np.random.default_rng(0)
    for column in frame.columns:
        values = frame[column].iloc[rows].to_numpy()
        frame.loc[rows, column] = values[rng.permutation(len(rows))]
        if pd.api.types.is_numeric_dtype(frame[column]) and column != dataset.target:
            frame[column] = frame[column].astype("float64")
            frame.loc[rows, column] = 1e6
    return dataclasses.replace(dataset, frame=frame)


def cheap(setting: dict[str, Any]) -> dict[str, Any]:
    """Return a setting with few trees, and one estimator of TabPFN's."""
    return {k: 1 if k == "n_estimators" else v for k, v in few_trees(setting).items()}


def spied(baseline: Baseline, seen: list[tuple[Any, Sample]]) -> Baseline:
    """Return a baseline that notes each model, and what it was fitted on; few trees are grown."""

    def make(setting: Any, **options: Any) -> Any:
        model = baseline.make(cheap(setting), **options)
        fit = model.fit

        def noted(X: Any, y: Any) -> Any:
            seen.append((model, Sample(X, y)))
            return fit(X, y)

        model.fit = noted
        return model

    return Baseline(baseline.name, baseline.default, baseline.suggest, make)


def predictions(model: Any, X: pd.DataFrame, task: str) -> np.ndarray:
    return model.predict(X) if task == "regression" else model.predict_proba(X)


def test_scores_are_those_of_scikit_learn_on_what_was_predicted(
    models: ModuleType, tmp_path: Path
) -> None:
    ids = some()
    result = evaluate(
        models.Linear(folder=str(tmp_path)), ids, profile="quick", workers=1, controls=1
    ).set_index("shift_id")
    kept = [np.load(path) for path in tmp_path.glob("*.npz")]
    assert len(kept) == 3 * len(ids)
    for shift_id in ids:
        shift = ic.load_shift(shift_id, "quick")
        _, y = shift.test()
        y = y.sort_index()
        found = []
        for one in kept:
            values, labels = one["values"], list(one["labels"])
            if len(values) != len(y) or tuple(labels) != shift.context.classes:
                continue
            if shift.task == "regression":
                found.append(r2_score(y, values))
            elif shift.task == "binary":
                found.append(roc_auc_score(y.astype(str) == labels[1], values[:, 1]))
            else:
                areas = [
                    roc_auc_score(y.astype(str) == label, column)
                    for label, column in zip(labels, values.T)
                ]
                found.append(np.mean(areas))
        expected = result.loc[shift_id, ["score_id", "score_control", "score_ood"]]
        np.testing.assert_allclose(sorted(found), sorted(expected), rtol=1e-12)


def test_an_absent_class_has_probability_zero(models: ModuleType) -> None:
    dataset, split = halves("multiclass")
    model = bound(own_model(models.Linear()), dataset)
    rows = split.pool[dataset.y[split.pool] != 1]
    train, test = sample_rows(dataset, rows), sample_rows(dataset, split.report)
    fitted = model.make({}, task="multiclass", n_classes=3, seed=0).fit(train.X, train.y)
    proba = fitted.predict_proba(test.X)
    assert (proba[:, 1] == 0.0).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    own = [roc_auc_score(test.y == k, proba[:, k]) for k in range(3)]
    assert own[1] == 0.5
    options = {"task": "multiclass", "n_classes": 3, "seed": 0}
    assert fit_score(model, {}, train, test, **options) == pytest.approx(np.mean(own), rel=1e-12)


@pytest.mark.parametrize("task", list(SMALL))
def test_the_order_of_scored_rows_changes_no_score(models: ModuleType, task: str) -> None:
    dataset, split = halves(task)
    model = bound(own_model(models.Linear()), dataset)
    train, test = sample_rows(dataset, split.pool), sample_rows(dataset, split.report)
    order = np.random.default_rng(0).permutation(len(test.y))
    options = {"task": task, "n_classes": len(dataset.classes), "seed": 0}
    scores = [fit_score(model, {}, train, part, **options) for part in (test, test.take(order))]
    assert scores[0] == pytest.approx(scores[1], rel=1e-12)


@pytest.mark.parametrize("task", list(SMALL))
@pytest.mark.parametrize("name", sorted(BASELINES))
def test_nothing_fitted_sees_the_test_set(
    name: str, task: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Models fitted while all test rows are poisoned predict the same, to the last bit."""
    monkeypatch.setattr(mlp, "STEPS", 20)
    dataset, split = halves(task)
    clean = dataset.X.iloc[split.pool[:200]].reset_index(drop=True)
    baseline = BASELINES[name]
    fitted, scores = [], []
    for k, table in enumerate((dataset, poisoned(dataset, split.test))):
        seen: list[tuple[Any, Sample]] = []
        monkeypatch.setattr(runner, "_dataset", lambda name, digest, own=table: own)
        monkeypatch.setitem(BASELINES, name, spied(baseline, seen))
        runner._all_rows.cache_clear()
        result = evaluate(name, some(task), trials=2, store=Store(tmp_path / f"{k}"), **QUICK)
        assert list(result["status"]) == ["ok"]
        scores.append(result)
        fitted.append([predictions(model, clean, task) for model, _ in seen])
    runner._all_rows.cache_clear()
    # trials on three samples, then pool, controls, sample
    assert len(fitted[0]) == len(fitted[1]) == 3 * 2 + 1 + 2 + 1
    for a, b in zip(*fitted, strict=True):
        np.testing.assert_array_equal(a, b)
    assert (scores[0][SCORES] != scores[1][SCORES]).any(axis=None)  # the poison was there


def test_users_models_are_fitted_on_the_training_rows_alone(
    models: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    class Notes(models.Linear):
        def fit(self, X, y, context=None):
            super().fit(X, y, context)
            seen.append((self.model_.coef_, X, y))
            return self

    dataset, split = halves("binary")
    coefficients = []
    for table in (dataset, poisoned(dataset, split.test)):
        monkeypatch.setattr(runner, "_dataset", lambda name, digest, own=table: own)
        runner._all_rows.cache_clear()
        seen.clear()
        with pytest.warns(UserWarning, match="not stored"):
            evaluate(Notes(), some("binary"), **QUICK)
        coefficients.append([coef for coef, _, _ in seen])
    runner._all_rows.cache_clear()
    assert len(coefficients[0]) == 4
    for a, b in zip(*coefficients, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("task", list(SMALL))
@pytest.mark.parametrize("name", sorted(BASELINES))
def test_the_validation_part_never_enters_early_fits(
    name: str, task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The models of the trials are the same whatever the held-out fifth holds."""
    monkeypatch.setattr(mlp, "STEPS", 20)
    dataset, split = halves(task)
    whole = sample_rows(dataset, split.pool)
    _, held = inner_split(whole, task=task, seed=5)
    X = whole.X.copy()
    for column in X.columns:
        if pd.api.types.is_numeric_dtype(X[column]):
            X[column] = X[column].astype("float64")
            X.loc[held, column] = 1e6
        else:
            X.loc[held, column] = X[column].iloc[0]
    # Labels stay: their counts stratify the split itself.
    y = (
        whole.y.copy()
        if task != "regression"
        else np.where(np.isin(range(len(X)), held), -9.0 * whole.y, whole.y)
    )
    options = {"task": task, "n_classes": len(dataset.classes), "trials": 1, "seed": 5}
    found = []
    for sample in (whole, Sample(X, y, whole.groups)):
        seen: list[tuple[Any, Sample]] = []
        tuned = tune(spied(BASELINES[name], seen), sample, **options)
        ((model, fitted_on),) = seen
        assert len(fitted_on.y) == len(whole.y) - len(held)
        assert not tuned.trials[0].failure
        found.append((predictions(model, whole.X, task), tuned.value))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    assert found[0][1] != found[1][1]  # the objective saw the poison


def test_one_and_two_workers_give_the_same(models: ModuleType, tmp_path: Path) -> None:
    ids = some("regression", "multiclass", k=2)
    results = [
        evaluate(model, ids, profile="quick", controls=2, workers=k, store=Store(tmp_path / f"{k}"))
        for model in (models.Linear, "linear")
        for k in (1, 2)
    ]
    pd.testing.assert_frame_equal(results[0], results[1], check_exact=True)
    pd.testing.assert_frame_equal(results[2], results[3], check_exact=True)
    assert set(pd.concat(results)["status"]) == {"ok"}


@pytest.mark.slow
@pytest.mark.parametrize("task", list(SMALL))
def test_records_of_tuned_baselines_depend_on_no_workers_and_threads(
    task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes that one process on all threads and two on one thread store are the same."""
    from unit_runs import records

    names = [name for name in sorted(BASELINES) if name != "tabpfn"]  # runs refuse the fixture
    kept = []
    for workers, threads in ((1, "4"), (2, "1")):
        for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            monkeypatch.setenv(variable, threads)
        store = Store(tmp_path / f"{workers}")
        options = {**QUICK, "workers": workers, "trials": 2, "store": store}
        for name in names:
            assert list(evaluate(name, some(task), **options)["status"]) == ["ok"]
        kept.append(records(store))
    assert kept[0] == kept[1]
    assert len(kept[0]) == 3 * len(names)
