"""Baselines on the samples that biased selection yields: gaps, absent classes, unseen levels."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hostile import few_trees, hostile_frame, hostile_target
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import OneHotEncoder as SklearnOneHot

from inconvenient.baselines import BASELINES, Baseline, get_baseline, register, require
from inconvenient.baselines.coding import code_table
from inconvenient.baselines.encoding import NativeEncoder, OneHotEncoder
from inconvenient.benchmark.filter_models import FILTER_MODELS
from inconvenient.data import load_dataset
from inconvenient.errors import InputError, MissingDependencyError

MODELS = {**BASELINES, **{f"filter {model.name}": model for model in FILTER_MODELS}}
TASKS = [("regression", 0), ("binary", 2), ("multiclass", 5)]


def fitted(model: Baseline, X, y, task, n_classes, setting=None):
    setting = setting or few_trees(model.default(task))
    estimator = model.make(setting, task=task, n_classes=n_classes, seed=7)
    estimator.fit(X, y)
    return estimator


@pytest.mark.parametrize("name", sorted(MODELS))
@pytest.mark.parametrize(("task", "n_classes"), TASKS)
@pytest.mark.parametrize("rows", ["all", "40", "12", "2", "1", "one class", "two classes"])
def test_hostile_samples(name, task, n_classes, rows):
    X = hostile_frame()
    y = hostile_target(X, n_classes)
    chosen = {
        "all": np.arange(len(X)),
        "40": np.arange(40),
        "12": np.arange(12),
        "2": np.arange(2),
        "1": np.arange(1),
        "one class": np.flatnonzero(y == y[0]),
        "two classes": np.flatnonzero((y == y.max()) | (y == y.min())),
    }[rows]
    estimator = fitted(MODELS[name], X.iloc[chosen], y[chosen], task, n_classes)
    prediction = estimator.predict(X)
    assert prediction.shape == (len(X),)
    assert np.isfinite(prediction).all()
    if task == "regression":
        return
    proba = estimator.predict_proba(X)
    assert proba.shape == (len(X), n_classes)
    absent = np.setdiff1d(np.arange(n_classes), y[chosen])
    assert (proba[:, absent] == 0).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-6)
    if rows in ("1", "one class"):
        assert (proba[:, y[chosen[0]]] == 1).all()


@pytest.mark.parametrize("name", sorted(MODELS))
@pytest.mark.parametrize("columns", [["all missing", "empty text", "constant"], []])
def test_nothing_but_empty_columns(name, columns):
    X = hostile_frame()[columns]
    y = hostile_target(hostile_frame(), 2)
    proba = fitted(MODELS[name], X, y, "binary", 2).predict_proba(X)
    np.testing.assert_allclose(proba, np.tile(np.bincount(y) / y.size, (len(X), 1)))
    target = y.astype(np.float64)
    prediction = fitted(MODELS[name], X, target, "regression", 0).predict(X)
    np.testing.assert_allclose(prediction, target.mean())


@pytest.mark.parametrize("name", sorted(MODELS))
@pytest.mark.parametrize("kind", ["text", "category", "number"])
def test_columns_first_filled_in_the_test_rows(name, kind):
    """A column empty or constant in the sample, and levels it never saw, are no obstacle."""
    X = hostile_frame()
    y = hostile_target(X, 3)
    train, test = X.iloc[:200].copy(), X.iloc[200:].copy()
    train[kind] = np.nan if kind == "number" else pd.Series([None] * 200, dtype=object)
    estimator = fitted(MODELS[name], train, y[:200], "multiclass", 3)
    first = estimator.predict_proba(test)
    test[kind] = 1e6 if kind == "number" else "never seen"
    np.testing.assert_array_equal(first, estimator.predict_proba(test))


@pytest.mark.parametrize("name", sorted(MODELS))
@pytest.mark.parametrize(("task", "n_classes"), TASKS)
def test_a_coded_table_gives_the_model_that_a_frame_gives(name, task, n_classes):
    X = hostile_frame()
    y = hostile_target(X, n_classes)
    rows = np.arange(0, 400, 3)
    whole = code_table(X)
    predict = "predict" if task == "regression" else "predict_proba"
    one = fitted(MODELS[name], X.iloc[rows], y[rows], task, n_classes)
    two = fitted(MODELS[name], whole.take(rows), y[rows], task, n_classes)
    np.testing.assert_array_equal(getattr(one, predict)(X), getattr(two, predict)(whole))


@pytest.mark.parametrize("name", sorted(MODELS))
def test_same_seed_same_model_whatever_holds_the_strings(name):
    X = hostile_frame()
    y = hostile_target(X, 3)
    expected = fitted(MODELS[name], X, y, "multiclass", 3).predict_proba(X)
    other = X.assign(
        text=pd.Categorical(X["text"], categories=list("zyxwvuts")),
        category=X["category"].astype(object),
        levels=X["levels"].astype(object),
    )
    np.testing.assert_array_equal(
        fitted(MODELS[name], other, y, "multiclass", 3).predict_proba(other), expected
    )


def test_linear_is_ridge_and_logistic_regression():
    X = hostile_frame()[["number", "flag"]].astype(np.float64)
    Z = (X - X.mean()) / X.std(ddof=0)
    y = hostile_target(hostile_frame(), 0)
    ours = fitted(BASELINES["linear"], X, y, "regression", 0, {"alpha": 3.0})
    np.testing.assert_allclose(ours.predict(X), Ridge(alpha=3.0).fit(Z, y).predict(Z), rtol=1e-9)
    codes = hostile_target(hostile_frame(), 3)
    ours = fitted(BASELINES["linear"], X, codes, "multiclass", 3, {"alpha": 3.0})
    theirs = LogisticRegression(C=1 / 3, tol=1e-10, max_iter=1000).fit(Z, codes)
    # both stop at a gradient, not at the optimum
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(Z), atol=1e-5)


@pytest.mark.parametrize(("task", "n_classes"), TASKS)
def test_lightgbm_is_what_its_library_trains(task, n_classes):
    """A model kept as trained predicts what the library's own copy of it does, to the last bit."""
    import lightgbm

    X = hostile_frame()
    y = hostile_target(X, n_classes)
    encoder = NativeEncoder.fit(X)
    Z = encoder.transform(X)
    parameters = {
        "objective": task, "num_class": n_classes if task == "multiclass" else 1,
        "verbosity": -1, "num_threads": 1, "deterministic": True, "force_row_wise": True, "seed": 7,
    }  # fmt: skip
    sample = lightgbm.Dataset(
        Z, y, categorical_feature=encoder.categorical, params=dict(parameters)
    )
    expected = lightgbm.train(parameters, sample, num_boost_round=100).predict(Z)
    model = BASELINES["lightgbm"]
    ours = fitted(model, X, y, task, n_classes, model.default(task))
    if task == "regression":
        np.testing.assert_array_equal(ours.predict(X), expected)
    elif task == "binary":
        np.testing.assert_array_equal(ours.predict_proba(X)[:, 1], expected)
    else:
        np.testing.assert_array_equal(ours.predict_proba(X), expected)


@pytest.mark.parametrize("alpha", [1e-3, 1e4])
def test_separated_classes_converge(alpha):
    X = pd.DataFrame({"x": np.r_[np.arange(50.0), np.arange(100.0, 150.0)]})
    y = np.repeat([0, 1], 50)
    proba = fitted(BASELINES["linear"], X, y, "binary", 2, {"alpha": alpha}).predict_proba(X)
    assert (proba.argmax(axis=1) == y).all()


def test_wide_logistic_samples_go_to_lbfgs():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 400)), columns=[f"x{i}" for i in range(400)])
    y = np.arange(60) % 3
    proba = fitted(BASELINES["linear"], X, y, "multiclass", 3, {"alpha": 1e-3}).predict_proba(X)
    assert (proba.argmax(axis=1) == y).all()


def test_one_hot_equals_scikit_learn():
    text = pd.Series(["a"] * 50 + ["b"] * 40 + ["c"] * 2 + ["d"])
    train = pd.DataFrame({"text": text})
    test = pd.DataFrame({"text": ["a", "b", "c", "d", "new"]})
    theirs = SklearnOneHot(
        min_frequency=3, handle_unknown="infrequent_if_exist", sparse_output=False
    ).fit(train)
    raw = theirs.transform(train)
    expected = (theirs.transform(test) - raw.mean(axis=0)) / raw.std(axis=0)
    np.testing.assert_allclose(OneHotEncoder.fit(train).transform(test), expected)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_gaps_are_filled_with_the_median(n):
    values = np.random.default_rng(n).normal(size=n)
    encoder = OneHotEncoder.fit(pd.DataFrame({"x": [*values, np.nan]}))
    assert encoder.columns == (("x", np.median(values), True),)


def test_one_hot_without_rare_levels_ignores_the_unseen():
    train = pd.DataFrame({"text": ["a", "b"] * 20})
    encoder = OneHotEncoder.fit(train)
    np.testing.assert_allclose(
        encoder.transform(pd.DataFrame({"text": ["new", None]})), np.full((2, 2), -1.0)
    )


CODED = {
    **{name: (lambda name=name: load_dataset(name).X) for name in ("flchain_death", "kakadu_wtp")},
    "hostile": lambda: hostile_frame().rename(columns={"number": ("a", 1)}),
}


@pytest.mark.parametrize("encoder", [NativeEncoder, OneHotEncoder])
@pytest.mark.parametrize("name", sorted(CODED))
def test_rows_of_a_coded_table_are_encoded_like_a_frame_of_them(name, encoder, data_folder):
    X = CODED[name]()
    whole = code_table(X)
    rng = np.random.default_rng(0)
    for size in (1, 2, 20, 300):
        rows, others = (np.sort(rng.permutation(len(X))[:size]) for _ in range(2))
        frame, coded = X.iloc[rows].reset_index(drop=True), whole.take(rows)
        ours, theirs = encoder.fit(coded), encoder.fit(frame)
        for some, same in ((coded, frame), (whole.take(others), X.iloc[others])):
            np.testing.assert_array_equal(ours.transform(some), theirs.transform(same))
            np.testing.assert_array_equal(ours.transform(same), theirs.transform(some))
        if encoder is OneHotEncoder:
            again, Z = encoder.fit_transform(coded)
            np.testing.assert_array_equal(Z, again.transform(coded))


def test_a_level_absent_from_the_sample_is_unseen_though_the_table_has_a_code_for_it():
    whole = code_table(pd.DataFrame({"x": ["b", "a", None, "c", "a"]}))
    encoder = NativeEncoder.fit(whole.take(np.array([0, 2, 3])))
    codes = encoder.transform(whole)[:, 0]
    np.testing.assert_array_equal(codes, [0, np.nan, np.nan, 1, np.nan])


def test_columns_that_change_their_type_between_sample_and_rows():
    """Numbers come as objects, categories as numbers; both mean what they say."""
    numbers = pd.DataFrame({"x": [1.0, 2.0, 4.0]})
    objects = pd.DataFrame({"x": pd.Series([2, None, 4], dtype=object)})
    np.testing.assert_array_equal(
        NativeEncoder.fit(numbers).transform(objects)[:, 0], [2, np.nan, 4]
    )
    levels = pd.DataFrame({"x": pd.Categorical([1, 2, 4])})
    codes = NativeEncoder.fit(levels).transform(pd.DataFrame({"x": [4.0, np.nan, 1.0, 3.0]}))
    np.testing.assert_array_equal(codes[:, 0], [2, np.nan, 0, np.nan])


@settings(max_examples=30, deadline=None)
@given(
    values=st.lists(
        st.one_of(st.none(), st.floats(-1e6, 1e6), st.sampled_from([0.0, 1.0])), min_size=1
    ),
    texts=st.lists(st.one_of(st.none(), st.sampled_from("abc")), min_size=1),
)
def test_encoders_never_fail_and_never_look_beyond_the_sample(values, texts):
    n = min(len(values), len(texts))
    train = pd.DataFrame(
        {
            "x": np.array(values[:n], dtype=np.float64),
            "t": pd.Series(texts[:n], dtype=object),
        }
    )
    test = pd.DataFrame({"x": [np.nan, 1e7], "t": pd.Series([None, "zz"], dtype=object)})
    encoder = OneHotEncoder.fit(train)
    Z = encoder.transform(train)
    if Z.size:
        np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-6)
        np.testing.assert_allclose(Z.std(axis=0), 1, atol=1e-6)
    assert np.isfinite(encoder.transform(test)).all()
    assert NativeEncoder.fit(train).transform(test).shape[0] == 2


def test_infinite_values_and_absent_columns_are_named():
    X = hostile_frame()[["number", "gaps"]]
    with pytest.raises(InputError, match="column 'number' must be finite or missing"):
        OneHotEncoder.fit(X.assign(number=np.inf))
    with pytest.raises(InputError, match="column 'gaps' of the training sample is absent"):
        OneHotEncoder.fit(X).transform(X[["number"]])


@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_model_names_a_column_with_infinite_values(name):
    X = hostile_frame()[["number", "gaps", "text"]]
    y = hostile_target(hostile_frame(), 2)
    worse = X.assign(number=np.where(np.arange(len(X)) == 5, -np.inf, X["number"]))
    with pytest.raises(InputError, match="column 'number' must be finite or missing"):
        fitted(MODELS[name], worse, y, "binary", 2)
    with pytest.raises(InputError, match="column 'number' must be finite or missing"):
        fitted(MODELS[name], X, y, "binary", 2).predict(worse)


def test_registry():
    assert get_baseline("linear") is BASELINES["linear"]
    assert {"linear", "random_forest", "xgboost", "lightgbm", "catboost"} <= set(BASELINES)
    known = ", ".join(sorted(BASELINES))
    with pytest.raises(InputError, match=f"must be one of {known}, got 'magic'"):
        get_baseline("magic")
    linear = BASELINES["linear"]
    assert register(linear) is linear
    with pytest.raises(InputError, match="registered already"):
        register(Baseline("linear", linear.default, linear.suggest, linear.make, ("other",)))


@pytest.mark.parametrize("name", ["lightgbm", "xgboost", "catboost"])
def test_a_missing_library_names_the_extra(name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    X, model = hostile_frame(), BASELINES[name]
    for attempt in (
        lambda: require(model),
        lambda: fitted(model, X, hostile_target(X, 2), "binary", 2),
    ):
        with pytest.raises(
            MissingDependencyError, match=r"pip install 'inconvenient\[baselines\]'"
        ):
            attempt()


def test_importing_the_baselines_imports_no_optional_library():
    code = (
        "import sys, inconvenient.baselines, inconvenient.evaluation.protocol;"
        "print(sorted({'lightgbm', 'xgboost', 'catboost', 'torch', 'tabpfn', 'optuna',"
        " 'sklearn'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
