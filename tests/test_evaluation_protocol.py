"""Scores against scikit-learn; tuning, its split, and fairness of the protocol."""

from __future__ import annotations

import numpy as np
import pytest
from hostile import few_trees, hostile_frame, hostile_target
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics
from sklearn.dummy import DummyRegressor

from inconvenient.baselines import BASELINES, Baseline
from inconvenient.errors import InputError
from inconvenient.evaluation.protocol import (
    Sample,
    fit_score,
    inner_split,
    last_line,
    sample_rows,
    tune,
)
from inconvenient.evaluation.scores import auc, log_loss, macro_auc, r2

TASKS = [("regression", 0), ("binary", 2), ("multiclass", 4)]

#: Networks compute in single precision (2^-24 = 6e-8), and their products are cut into blocks in
#: which the place of a row may matter: measured, R2 moves by 2e-10 (mlp) and 6e-10 (tabpfn).
ORDER_RTOL = {"mlp": 1e-8, "tabpfn": 1e-8}


def test_r2_equals_scikit_learn():
    rng = np.random.default_rng(0)
    y, prediction = rng.normal(size=(2, 100))
    assert r2(y, prediction) == pytest.approx(metrics.r2_score(y, prediction), rel=1e-12)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=2, max_size=60))
def test_auc_equals_scikit_learn_with_ties(rows):
    positive, ranking = np.array([r[0] for r in rows]), np.array([float(r[1]) for r in rows])
    if positive.all() or not positive.any():
        with pytest.raises(InputError, match="positive and negative rows"):
            auc(positive, ranking)
        return
    # the trapezoid sums in another order
    assert auc(positive, ranking) == pytest.approx(
        metrics.roc_auc_score(positive, ranking), rel=1e-12, abs=1e-14
    )


def test_macro_auc_averages_binary_terms_without_renormalising():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 200)
    proba = rng.dirichlet(np.ones(4), 200)
    proba[:, 2] = 0.0  # a class that the model never saw
    terms = [metrics.roc_auc_score(y == k, proba[:, k]) for k in range(4)]
    assert terms[2] == 0.5
    assert macro_auc(y, proba) == pytest.approx(np.mean(terms), rel=1e-12)
    only = y != 3  # the mean is over the classes of the scored rows
    assert macro_auc(y[only], proba[only]) == pytest.approx(
        np.mean([metrics.roc_auc_score(y[only] == k, proba[only, k]) for k in range(3)])
    )


def test_binary_auc_is_that_of_the_last_class():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 50)
    p = rng.random(50)
    assert macro_auc(y, np.column_stack([1 - p, p])) == pytest.approx(metrics.roc_auc_score(y, p))


def test_log_loss_clips_and_equals_scikit_learn():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 80)
    proba = rng.dirichlet(np.ones(3), 80)
    assert log_loss(y, proba) == pytest.approx(metrics.log_loss(y, proba), rel=1e-12)
    assert log_loss(np.array([2]), np.array([[1.0, 0.0, 0.0]])) == pytest.approx(-np.log(1e-15))


def test_undefined_scores_are_refused():
    with pytest.raises(InputError, match="target that varies"):
        r2(np.ones(3), np.ones(3))
    with pytest.raises(InputError, match="predictions must be finite"):
        r2(np.arange(3.0), np.array([0.0, np.nan, 1.0]))


def sample(n_classes, n=200, groups=None):
    X = hostile_frame(n)
    return Sample(X, hostile_target(X, n_classes), groups)


@pytest.mark.parametrize("name", sorted(BASELINES))
@pytest.mark.parametrize(("task", "n_classes"), TASKS)
def test_tuning_is_deterministic_and_keeps_every_trial(name, task, n_classes):
    options = {"task": task, "n_classes": n_classes, "trials": 4}
    data = sample(n_classes)
    first = tune(BASELINES[name], data, **options, seed=1)
    again = tune(BASELINES[name], data, **options, seed=1)
    assert first == again
    assert len(first.trials) == 4
    assert first.value == max(trial.value for trial in first.trials)
    assert first.setting in [trial.setting for trial in first.trials]
    other = tune(BASELINES[name], data, **options, seed=2)
    assert [t.setting for t in other.trials] != [t.setting for t in first.trials]


def _broken_at(fail):
    calls = []

    def make(setting, **_):
        calls.append(setting)
        if fail(len(calls)):
            raise ValueError("broken\n on purpose")
        return DummyRegressor(strategy="constant", constant=setting["level"])

    return Baseline(
        "broken",
        lambda task: {"level": -1.0},
        lambda trial, task, n: {"level": trial.suggest_float("level", 0, 1)},
        make,
    )


def test_a_failing_trial_is_a_failed_trial():
    tuned = tune(
        _broken_at(lambda i: i % 2 == 0),
        sample(0),
        task="regression",
        n_classes=0,
        trials=6,
        seed=0,
    )
    assert [t.failure for t in tuned.trials][:2] == ["", "ValueError: broken on purpose"]
    assert tuned.value == max(t.value for t in tuned.trials if not t.failure)


def test_where_all_trials_fail_the_default_setting_serves():
    model = _broken_at(lambda i: True)
    tuned = tune(model, sample(0), task="regression", n_classes=0, trials=3, seed=0)
    assert tuned.setting == {"level": -1.0}
    assert np.isnan(tuned.value)
    one = sample(0).take(np.arange(1))
    tuned = tune(BASELINES["linear"], one, task="regression", n_classes=0, trials=2, seed=0)
    assert tuned.setting == {"alpha": 1.0}
    assert "needs two rows" in tuned.trials[0].failure


def test_a_sample_with_absent_classes_is_tuned():
    data = sample(4)
    rows = np.flatnonzero(data.y != 2)
    rows = np.r_[rows[data.y[rows] != 3], np.flatnonzero(data.y == 3)[:1]]
    for model in BASELINES.values():
        tuned = tune(
            model, data.take(np.sort(rows)), task="multiclass", n_classes=4, trials=2, seed=0
        )
        assert not any(t.failure for t in tuned.trials)


@settings(max_examples=60, deadline=None)
@given(
    counts=st.lists(st.integers(1, 12), min_size=1, max_size=4),
    n_groups=st.integers(0, 8),
    seed=st.integers(0, 5),
)
def test_inner_split(counts, n_groups, seed):
    y = np.repeat(np.arange(len(counts)), counts)
    groups = np.random.default_rng(seed).integers(0, n_groups, y.size) if n_groups else None
    data = Sample(hostile_frame(max(y.size, 2)).iloc[: y.size], y, groups)
    if y.size < 2:
        with pytest.raises(InputError, match="two rows"):
            inner_split(data, task="multiclass", seed=seed)
        return
    train, holdout = inner_split(data, task="multiclass", seed=seed)
    assert sorted([*train, *holdout]) == list(range(y.size))
    assert train.size
    assert holdout.size
    if groups is not None and np.unique(groups).size > 1:
        assert not set(groups[train]) & set(groups[holdout])
    elif min(counts) >= 2:
        for k, count in enumerate(counts):
            assert (y[holdout] == k).sum() == max(1, round(0.2 * count))


def test_many_groups_give_a_fifth_of_every_class():
    rng = np.random.default_rng(0)
    y, groups = rng.integers(0, 3, 600), rng.integers(0, 150, 600)
    data = Sample(hostile_frame(600), y, groups)
    _, holdout = inner_split(data, task="multiclass", seed=0)
    shares = np.bincount(y[holdout]) / np.bincount(y)
    np.testing.assert_allclose(shares, 0.2, atol=0.03)


@pytest.mark.parametrize("name", sorted(BASELINES))
@pytest.mark.parametrize(("task", "n_classes"), TASKS)
def test_scored_rows_enter_the_score_alone(name, task, n_classes):
    """Poisoned test rows leave the model equal, and their order changes no score.

    Of networks the order may change a score by less than single precision resolves.
    """
    data = sample(n_classes, 300)
    train, test = data.take(np.arange(150)), data.take(np.arange(150, 300))
    models = []

    def make(setting, **options):
        models.append(BASELINES[name].make(setting, **options))
        return models[-1]

    own = BASELINES[name]
    spy = Baseline(name, own.default, own.suggest, make)
    options = {"task": task, "n_classes": n_classes, "seed": 0}
    setting = few_trees(own.default(task))
    expected = fit_score(spy, setting, train, test, **options)
    shuffled = test.take(np.random.default_rng(0).permutation(150))
    rtol = ORDER_RTOL.get(name, 1e-12)
    assert fit_score(spy, setting, train, shuffled, **options) == pytest.approx(expected, rel=rtol)
    poisoned = test.X.assign(number=1e9, text="poison", gaps=np.nan)
    fit_score(spy, setting, train, Sample(poisoned, test.y[::-1].copy()), **options)
    predict = "predict" if task == "regression" else "predict_proba"
    first, _, last = (getattr(model, predict)(test.X) for model in models)
    np.testing.assert_array_equal(first, last)


def test_samples_hide_their_row_ids_and_their_order():
    from hostile import diabetes_table

    table = diabetes_table()
    ids = np.array([30, 4, 17])
    data = sample_rows(table, ids)
    assert list(data.X.index) == [0, 1, 2]
    np.testing.assert_array_equal(data.y, table.y[[4, 17, 30]])


def test_last_line():
    assert last_line(ValueError("two\nlines")) == "ValueError: two lines"
    assert last_line(ValueError()) == "ValueError"
