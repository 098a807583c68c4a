"""The MLP: the same bytes for a seed, whatever the threads; better than a line where it bends."""

from __future__ import annotations

import numpy as np
import optuna
import pandas as pd
import pytest
import torch
from hostile import hostile_frame, hostile_target

from inconvenient.baselines import BASELINES
from inconvenient.baselines.mlp import BATCH, MLP, MLPModel
from inconvenient.evaluation.protocol import Sample, tune
from inconvenient.evaluation.scores import r2, score

SMALL = {**MLP.default("regression"), "width": 16, "n_layers": 1}


def fitted(X, y, task, n_classes=0, seed=0, **changes) -> MLPModel:
    setting = {**MLP.default(task), **changes}
    return MLP.make(setting, task=task, n_classes=n_classes, seed=seed).fit(X, y)


@pytest.fixture(scope="module")
def bent() -> tuple[pd.DataFrame, np.ndarray]:
    """A table whose target depends on a product: a linear model explains nothing of it."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(1200, 3)), columns=list("abc"))
    return X, (X["a"] * X["b"]).to_numpy() + 0.1 * rng.normal(size=1200)


def test_it_learns_what_no_line_can(bent):
    X, y = bent
    ours = fitted(X[:600], y[:600], "regression").predict(X[600:])
    assert r2(y[600:], ours) > 0.8
    codes = np.digitize(y, np.quantile(y, [1 / 3, 2 / 3]))
    parts = []
    for model in (MLP, BASELINES["linear"]):
        setting = model.default("multiclass")
        estimator = model.make(setting, task="multiclass", n_classes=3, seed=0)
        estimator.fit(X[:600], codes[:600])
        parts.append(score(estimator, X[600:], codes[600:], task="multiclass"))
    assert parts[0] > 0.9
    assert parts[1] < 0.6


@pytest.mark.parametrize(("task", "n_classes"), [("regression", 0), ("multiclass", 3)])
def test_the_same_bytes_whatever_the_threads_and_the_random_state(task, n_classes):
    X = hostile_frame()
    y = hostile_target(X, n_classes)
    predict = "predict" if task == "regression" else "predict_proba"
    before = torch.get_num_threads()
    found = []
    try:
        for threads, state in ((1, 3), (2, 4)):
            torch.set_num_threads(threads)
            torch.manual_seed(state)
            expected = torch.rand(5)
            torch.manual_seed(state)
            model = fitted(X, y, task, n_classes, n_layers=1, width=64)
            found.append(getattr(model, predict)(X))
            assert torch.get_num_threads() == threads
            assert torch.equal(torch.rand(5), expected)
    finally:
        torch.set_num_threads(before)
    np.testing.assert_array_equal(*found)


def test_threads_are_restored_when_a_fit_fails():
    X = hostile_frame()
    before = torch.get_num_threads()
    with pytest.raises(ValueError, match="dropout probability"):
        fitted(X, hostile_target(X, 0), "regression", dropout=2.0)
    assert torch.get_num_threads() == before


def test_each_seed_and_each_parameter_gives_another_model():
    X = hostile_frame()[["number", "gaps", "flag"]]
    y = hostile_target(hostile_frame(), 0)
    first = fitted(X, y, "regression", **SMALL)
    assert [tuple(p.shape) for p in first.model_.parameters()] == [
        (16, 4), (16,), (1, 16), (1,)
    ]  # fmt: skip
    changes = [
        {"seed": 1}, {"n_layers": 2}, {"width": 17}, {"dropout": 0.3}, {"learning_rate": 2e-3},
        {"weight_decay": 1.0},
    ]  # fmt: skip
    for change in changes:
        other = fitted(X, y, "regression", **{**SMALL, **change})
        assert not np.array_equal(other.predict(X), first.predict(X)), change


def test_strong_weight_decay_leads_to_the_mean(bent):
    X, y = bent
    strong = fitted(X, y, "regression", **{**SMALL, "weight_decay": 300.0})
    assert np.abs(strong.predict(X) - y.mean()).max() < 0.2 * y.std()


def test_the_unit_of_the_target_does_not_matter(bent):
    X, y = bent[0][:200], bent[1][:200]
    ours = fitted(X, y, "regression", **SMALL).predict(X)
    scaled = fitted(X, 1e6 + 1e3 * y, "regression", **SMALL).predict(X)
    # the standardised target differs in its last digits, single precision
    np.testing.assert_allclose((scaled - 1e6) / 1e3, ours, atol=1e-3)


def test_order_and_company_of_the_rows_to_predict_do_not_matter():
    X = hostile_frame()
    y = hostile_target(X, 3)
    model = fitted(X[:200], y[:200], "multiclass", 3, n_layers=1, width=32)
    whole = model.predict_proba(X)
    order = np.random.default_rng(0).permutation(len(X))
    # single precision: how a product is cut into blocks may depend on the number of rows
    np.testing.assert_allclose(model.predict_proba(X.iloc[order]), whole[order], atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(X.iloc[:7]), whole[:7], atol=1e-6)


def test_rows_far_from_the_sample_have_finite_predictions(bent):
    X, y = bent
    far = X[:2] * 1e200
    assert np.isfinite(fitted(X, y, "regression", **SMALL).predict(far)).all()
    codes = (y > 0).astype(np.int64)
    proba = fitted(X, codes, "binary", 2, **SMALL).predict_proba(far)
    np.testing.assert_allclose(proba.sum(axis=1), 1)


def test_a_batch_holds_every_row_once_a_pass():
    from itertools import islice

    from inconvenient.baselines.mlp import _batches

    n = 2 * BATCH + 3
    parts = list(islice(_batches(torch, n), 6))
    assert [len(part) for part in parts[:3]] == [87, 86, 86]
    for one_pass in (parts[:3], parts[3:]):
        assert sorted(torch.cat(one_pass).tolist()) == list(range(n))
    assert next(_batches(torch, BATCH)) == slice(None)


def test_settings_drawn_from_the_space_are_fitted(bent):
    X, codes = bent[0][:80], (bent[1][:80] > 0).astype(np.int64)
    tuned = tune(MLP, Sample(X, codes), task="binary", n_classes=2, trials=2, seed=0)
    assert [trial.failure for trial in tuned.trials] == [""] * 2
    assert set(tuned.setting) == set(MLP.default("binary"))
    again = tune(MLP, Sample(X, codes), task="binary", n_classes=2, trials=2, seed=0)
    assert again == tuned


def test_the_default_setting_lies_in_the_search_space():
    default = MLP.default("binary")
    trial = optuna.trial.FixedTrial(default)
    assert MLP.suggest(trial, "binary", 100) == default
