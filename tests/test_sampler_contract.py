"""``ConvenienceSampler`` passes the checks of others and fits into their pipelines."""

from __future__ import annotations

import doctest
import pickle
import subprocess
import sys
import unittest
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn
from sampler_tables import REGRESSION, TARGETS, mixed
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes, make_classification
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import estimator_checks, get_tags

import inconvenient as ic
from inconvenient.selection import sampler as module

pytestmark = pytest.mark.jit

Sampler = ic.ConvenienceSampler

# It demands that a continuous target be refused; bending a regression is what this sampler is for.
# The other half of the check, refusal of multilabel targets, is in a test below.
EXCLUDED = {"check_target_type"}
# Thirty random rows in which no sample flips the coefficient: the warning is the right answer.
UNMET = {
    "check_sampler_get_feature_names_out",
    "check_sampler_get_feature_names_out_pandas",
}


def checks_of(generator: Iterator[tuple[Any, Any]]) -> list[Any]:
    """Return a parameter per check; partial objects around functions carry the names."""
    found = []
    for estimator, check in generator:
        name = check.func.__name__
        if name not in EXCLUDED:
            found.append(pytest.param(estimator, check, id=name))
    return found


def imblearn_checks() -> list[Any]:
    try:
        from imblearn.utils.estimator_checks import estimator_checks_generator
    except ImportError:
        return []
    return checks_of(estimator_checks_generator(Sampler()))


@pytest.mark.parametrize(("estimator", "check"), imblearn_checks())
def test_checks_of_imbalanced_learn(estimator: Any, check: Any) -> None:
    pytest.importorskip("imblearn")
    if check.func.__name__ in UNMET:
        with pytest.warns(UserWarning, match="was not met: .* Standardised coefficients: "):
            check(estimator)
    else:
        check(estimator)


def test_the_tags_yield_every_sampler_check() -> None:
    checks = pytest.importorskip("imblearn.utils.estimator_checks")
    names = {check.__name__ for check in checks._yield_sampler_checks(Sampler())}
    assert {name for name in dir(checks) if name.startswith("check_sampler")} <= names
    assert len(imblearn_checks()) == len(names - EXCLUDED)


@pytest.mark.parametrize(
    ("estimator", "check"), checks_of(estimator_checks.estimator_checks_generator(Sampler()))
)
def test_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    try:
        check(estimator)
    except unittest.SkipTest as reason:  # arrays of other libraries are not claimed
        pytest.skip(str(reason))


@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_param_validation,
        estimator_checks.check_dataframe_column_names_consistency,
        estimator_checks.check_parameters_default_constructible,
        estimator_checks.check_supervised_y_no_nan,
        estimator_checks.check_get_feature_names_out_error,
        estimator_checks.check_non_transformer_estimators_n_iter,
    ],
)
def test_checks_that_scikit_learn_asks_of_its_own(check: Callable[..., None]) -> None:
    check("ConvenienceSampler", Sampler())


def test_parameter_checks_of_imbalanced_learn() -> None:
    checks = pytest.importorskip("imblearn.utils.estimator_checks")
    checks.check_param_validation("ConvenienceSampler", Sampler())
    checks.check_dataframe_column_names_consistency("ConvenienceSampler", Sampler())


def test_imbalanced_learn_sees_a_sampler_and_is_not_imported() -> None:
    base = pytest.importorskip("imblearn.base")
    assert base.is_sampler(Sampler())
    tags = get_tags(Sampler())
    assert tags.sampler_tags.sample_indices
    assert tags.input_tags.dataframe
    assert tags.target_tags.required
    code = (
        "import sys, inconvenient as ic; assert 'sklearn' not in sys.modules\n"
        "from sklearn.datasets import load_diabetes\n"
        "ic.ConvenienceSampler(feature=2).fit_resample(*load_diabetes(return_X_y=True))\n"
        "assert not {'imblearn', 'sklearn_compat', 'statsmodels'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_docstring_example() -> None:
    tests = doctest.DocTestFinder(recurse=False).find(Sampler, "ConvenienceSampler")
    assert sum(len(test.examples) for test in tests) == 7
    for test in tests:
        assert doctest.DocTestRunner().run(test).failed == 0


def test_parameters_round_trip() -> None:
    sampler = Sampler("attenuate", factor=0.6, feature=("region", "north"), random_state=4)
    twin = clone(sampler)
    assert twin is not sampler
    assert twin.get_params() == sampler.get_params()
    assert twin.set_params(operation="flip", factor=None) is twin
    assert (twin.operation, twin.factor) == ("flip", None)
    assert "attenuate" in repr(sampler)
    assert Sampler().get_params() == {
        "operation": "flip", "feature": None, "bin": None, "factor": None, "min_fraction": 0.2,
        "mode": "at_least", "class_": None, "task": None, "strategy": "auto", "on_unmet": "best",
        "random_state": 0,
    }  # fmt: skip
    with pytest.raises(ValueError, match="Invalid parameter 'fraction'"):
        twin.set_params(fraction=0.1)


def test_fit_selects_nothing_and_a_refit_forgets() -> None:
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    sampler = Sampler().fit(X, y)
    assert not hasattr(sampler, "sample_indices_")
    assert list(sampler.get_feature_names_out()) == list(X.columns)
    sampler.fit(X.to_numpy()[:, :3], y)
    assert not hasattr(sampler, "feature_names_in_")
    assert sampler.n_features_in_ == 3


def test_random_states() -> None:
    X, y = load_diabetes(return_X_y=True)

    def draw(state: Any) -> Any:
        sampler = Sampler(feature=2, strategy="exchange", random_state=state)
        sampler.fit_resample(X, y)
        return sampler.sample_indices_.tolist()

    assert draw(1) == draw(1) == draw(np.int64(1))
    assert draw(np.random.RandomState(1)) == draw(np.random.RandomState(1))
    assert draw(1) != draw(2)
    state = np.random.RandomState(1)
    assert draw(state) != draw(state)
    assert len(draw(None)) >= 0.2 * len(X)


@pytest.mark.parametrize("routing", [False, True])
def test_in_a_pipeline(routing: bool) -> None:
    pipeline = pytest.importorskip("imblearn.pipeline")
    X, y = make_classification(400, n_features=5, n_informative=3, n_redundant=0, random_state=1)
    sampler = Sampler(feature=1, operation="attenuate")
    with sklearn.config_context(enable_metadata_routing=routing):
        steps = pipeline.Pipeline(
            [("scale", StandardScaler()), ("bend", sampler), ("fit", LogisticRegression())]
        )
        steps.fit(X, y)
        assert len(steps.predict(X)) == len(X)
        scaled = StandardScaler().fit_transform(X)
        by_hand = LogisticRegression().fit(*clone(sampler).fit_resample(scaled, y))
        np.testing.assert_array_equal(steps[-1].coef_, by_hand.coef_)
        twin = clone(steps).set_params(bend__feature=0)
        assert twin.named_steps["bend"].feature == 0


def test_in_a_search() -> None:
    pipeline = pytest.importorskip("imblearn.pipeline")
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    steps = pipeline.make_pipeline(Sampler(feature="bmi"), LinearRegression())
    grid = {"conveniencesampler__operation": ["attenuate", "flip"]}
    search = GridSearchCV(steps, grid, cv=3, error_score="raise").fit(X, y)
    assert search.best_params_["conveniencesampler__operation"] == "attenuate"


def test_before_an_encoder() -> None:
    pipeline = pytest.importorskip("imblearn.pipeline")
    X, y = mixed()
    encoder = OneHotEncoder(handle_unknown="ignore")
    steps = pipeline.make_pipeline(Sampler(feature="bmi"), encoder, LinearRegression())
    X = X[["bmi", "sex", "band"]]
    assert np.isfinite(steps.fit(X, y).predict(X)).all()


@pytest.mark.parametrize("kind", ["numbers", "strings", "category"])
def test_in_a_pipeline_that_keeps_its_steps(kind: str, tmp_path: Path) -> None:
    pipeline = pytest.importorskip("imblearn.pipeline")
    X, plain = mixed()
    X, y = X[["bmi", "s5", "sex"]], TARGETS[kind](plain)
    columns = make_column_transformer(
        (StandardScaler(), ["bmi", "s5"]), (OneHotEncoder(sparse_output=False), ["sex"])
    ).set_output(transform="pandas")
    model = LinearRegression() if kind in REGRESSION else LogisticRegression()
    sampler = Sampler(feature="standardscaler__bmi", min_fraction=0.3)
    scores = []
    for memory in (None, str(tmp_path), str(tmp_path)):
        steps = pipeline.Pipeline(
            [("columns", columns), ("bend", sampler), ("fit", model)], memory=memory
        )
        scores.append(steps.fit(X, y).score(X, y))
        assert list(steps["bend"].feature_names_in_)[:2] == [
            "standardscaler__bmi", "standardscaler__s5"
        ]  # fmt: skip
    assert scores[0] == scores[1] == scores[2]


def test_shows_itself_in_a_notebook() -> None:
    assert "ConvenienceSampler" in Sampler(feature="bmi")._repr_html_()


def test_pickles() -> None:
    X, y = load_diabetes(return_X_y=True)
    sampler = Sampler(feature=2)
    sampler.fit_resample(X, y)
    twin = pickle.loads(pickle.dumps(sampler))
    np.testing.assert_array_equal(twin.sample_indices_, sampler.sample_indices_)
    assert module.__all__ == ["ConvenienceSampler"]
