"""Forests and boosted trees: what their libraries train, with one result for a seed."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from catboost import CatBoostClassifier, CatBoostRegressor
from hostile import few_trees, hostile_frame, hostile_target
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from xgboost import XGBClassifier, XGBRegressor

from inconvenient.baselines import BASELINES
from inconvenient.baselines.random_forest import RandomForestModel

TREES = ["catboost", "lightgbm", "random_forest", "xgboost"]
TASKS = [("regression", 0), ("binary", 2), ("multiclass", 5)]
SEED = 7
TREES_OF_CATBOOST = 200  # of its 1,000, to save time
LIBRARIES = {
    "catboost": lambda task: (CatBoostRegressor if task == "regression" else CatBoostClassifier)(
        iterations=TREES_OF_CATBOOST,
        random_seed=SEED,
        thread_count=1,
        verbose=False,
        allow_writing_files=False,
    ),
    "random_forest": lambda task: (
        RandomForestRegressor if task == "regression" else RandomForestClassifier
    )(random_state=SEED),
    "xgboost": lambda task: (XGBRegressor if task == "regression" else XGBClassifier)(
        random_state=SEED, n_jobs=1
    ),
}


def fitted(name, X, y, task, n_classes, *, trees=None):
    model = BASELINES[name]
    setting = model.default(task)
    if trees is not None:
        setting["n_trees"] = trees
    return model.make(setting, task=task, n_classes=n_classes, seed=SEED).fit(X, y)


@pytest.mark.parametrize("name", sorted(LIBRARIES))
@pytest.mark.parametrize("frame", ["diabetes", "cancer", "wine"])
def test_the_default_setting_is_what_the_library_trains_by_itself(name, frame, request):
    """On numbers without gaps, on rows that did not train."""
    table = request.getfixturevalue(frame)
    X, target = table.iloc[:, :-1], table.iloc[:, -1]
    if frame == "diabetes":
        y, n_classes, task = target.to_numpy(dtype=np.float64), 0, "regression"
    else:
        y, n_classes = pd.factorize(target, sort=True)[0], target.nunique()
        task = "binary" if n_classes == 2 else "multiclass"
    train, test = np.arange(0, len(X), 2), np.arange(1, len(X), 2)
    trees = TREES_OF_CATBOOST if name == "catboost" else None
    ours = fitted(name, X.iloc[train], y[train], task, n_classes, trees=trees)
    theirs = LIBRARIES[name](task)
    if task == "regression":
        mean, scale = y[train].mean(), y[train].std()
        theirs.fit(X.iloc[train].to_numpy(), (y[train] - mean) / scale)
        expected = theirs.predict(X.iloc[test].to_numpy()) * scale + mean
        np.testing.assert_allclose(ours.predict(X.iloc[test]), expected, rtol=1e-6)
    else:
        theirs.fit(X.iloc[train].to_numpy(), y[train])
        expected = theirs.predict_proba(X.iloc[test].to_numpy())
        # XGBoost's probabilities are in single precision
        np.testing.assert_allclose(ours.predict_proba(X.iloc[test]), expected, atol=1e-6)


CODE = """
import hashlib, json, sys
sys.path.insert(0, sys.argv[1])
from hostile import hostile_frame, hostile_target
from inconvenient.baselines import BASELINES

X, found = hostile_frame(), {}
for name in sys.argv[2:]:
    for task, n_classes in (("regression", 0), ("binary", 2), ("multiclass", 3)):
        y = hostile_target(X, n_classes)
        setting = {**BASELINES[name].default(task), "n_trees": 30}
        model = BASELINES[name].make(setting, task=task, n_classes=n_classes, seed=7).fit(X, y)
        out = model.predict_proba(X) if n_classes else model.predict(X)
        found[f"{name} {task}"] = [str(out.dtype), hashlib.sha256(out.tobytes()).hexdigest()]
print(json.dumps(found))
"""


def test_equal_bytes_in_processes_with_one_thread_and_four(root, tmp_path):
    import json

    results = []
    for threads in ("1", "4"):
        done = subprocess.run(
            [sys.executable, "-c", CODE, str(root / "tests"), *TREES],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "OMP_NUM_THREADS": threads, "PYTHONHASHSEED": threads},
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        results.append(json.loads(done.stdout.strip()))  # nothing else is printed
    assert results[0] == results[1]
    assert len(results[0]) == 3 * len(TREES)
    assert {dtype for dtype, _ in results[0].values()} == {"float64"}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", TREES)
def test_the_seed_decides(name):
    X = hostile_frame()
    y = hostile_target(X, 0)
    model = BASELINES[name]
    # LightGBM's and XGBoost's defaults draw nothing
    draws = {"lightgbm": {"feature_fraction": 0.5}, "xgboost": {"subsample": 0.5}}
    setting = {**few_trees(model.default("regression")), **draws.get(name, {})}
    one, two = (
        model.make(setting, task="regression", n_classes=0, seed=seed).fit(X, y).predict(X)
        for seed in (1, 2**40 + 2)
    )
    assert (one != two).any()


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize(("task", "n_classes"), TASKS)
def test_unseen_levels_are_missing_values(name, gaps, task, n_classes):
    X = hostile_frame()[["number", "text", "levels", "category"]]
    y = hostile_target(hostile_frame(), n_classes)
    if not gaps:
        X = X.assign(text=X["text"].fillna("u"), category=X["category"].fillna("p"))
    estimator = fitted(name, X, y, task, n_classes, trees=20)
    predict = estimator.predict_proba if n_classes else estimator.predict
    new = X.assign(text="never seen", levels=X["levels"] + "!", category="none of them")
    empty = X.assign(**dict.fromkeys(["text", "levels", "category"], None))
    np.testing.assert_array_equal(predict(new), predict(empty))
    assert np.isfinite(predict(new)).all()


@pytest.mark.parametrize("name", TREES)
def test_categories_and_gaps_are_learned(name):
    """A level and a gap tell the classes apart, each alone."""
    rng = np.random.default_rng(0)
    n = 2000  # LightGBM groups levels of 100 rows and more
    y = rng.integers(0, 2, n)
    levels = pd.Series(np.where(y == 1, rng.choice(list("ace"), n), rng.choice(list("bdf"), n)))
    gaps = pd.Series(np.where(y == 1, np.nan, rng.normal(size=n)))
    for column in (levels, gaps, pd.Series(np.where(y == 1, None, "a"), dtype=object)):
        X = pd.DataFrame({"x": column, "noise": rng.normal(size=n)})
        half = n // 2
        proba = fitted(name, X[:half], y[:half], "binary", 2, trees=30).predict_proba(X[half:])
        assert (proba.argmax(axis=1) == y[half:]).mean() > 0.99


@pytest.mark.parametrize("name", TREES)
def test_columns_beyond_single_precision(name):
    """Values that single precision cannot tell apart or hold, alone and in the rows to predict."""
    y = np.arange(40) % 2
    for values in (1e9 + y, np.where(y == 1, 1e300, -1e300), np.where(y == 1, np.nan, 1e-300)):
        X = pd.DataFrame({"x": values})
        proba = fitted(name, X, y, "binary", 2, trees=20).predict_proba(X)
        np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-12)
        assert np.isfinite(fitted(name, X, y * 1.0, "regression", 0, trees=20).predict(X)).all()
    X = pd.DataFrame({"x": np.arange(40.0)})
    proba = fitted(name, X, y, "binary", 2, trees=20).predict_proba(X * 1e300)
    assert np.isfinite(proba).all()


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("factor", [1e-9, 1e9])
def test_the_unit_of_the_target_does_not_matter(name, factor):
    X = hostile_frame()
    y = hostile_target(X, 0)
    expected = fitted(name, X, y, "regression", 0, trees=50).predict(X)
    found = fitted(name, X, y * factor, "regression", 0, trees=50).predict(X) / factor
    # a forest breaks ties between columns by the last digits
    tolerance = {"random_forest": 0.1 * y.std()}.get(name, 1e-6)
    assert np.sqrt(((found - expected) ** 2).mean()) < tolerance


@pytest.mark.parametrize("name", TREES)
def test_a_small_spread_far_from_zero_is_learned(name):
    X = hostile_frame()
    y = hostile_target(X, 0) + 1e9
    prediction = fitted(name, X, y, "regression", 0, trees=50).predict(X)
    if name == "lightgbm":  # keeps its own single precision, as its library does
        assert np.isfinite(prediction).all()
    else:
        assert np.corrcoef(prediction, y)[0, 1] > 0.8


@pytest.mark.parametrize("name", TREES)
def test_bools_and_times_are_columns_like_others(name):
    X = hostile_frame()
    y = hostile_target(X, 2)
    times = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(400) % 9, unit="D")
    X = pd.DataFrame({"flag": y == 1, "time": times, "number": X["number"]})
    proba = fitted(name, X, y, "binary", 2, trees=50).predict_proba(X)
    assert (proba.argmax(axis=1) == y).all()


def test_a_forest_sees_levels_by_falling_frequency():
    X = pd.DataFrame({"x": ["b"] * 3 + ["c"] * 2 + ["a"] * 2 + [None], "n": np.arange(8.0)})
    forest = BASELINES["random_forest"].make(
        {"n_trees": 1, "max_features": 1.0}, task="regression", n_classes=0, seed=0
    )
    assert isinstance(forest, RandomForestModel)
    forest.fit(X, np.arange(8.0))
    ranked = forest._ranked(forest.encoder_.transform(X))
    np.testing.assert_array_equal(ranked[:, 0], [0, 0, 0, 2, 2, 1, 1, np.nan])
    np.testing.assert_array_equal(ranked[:, 1], np.arange(8))
