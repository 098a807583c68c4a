"""``ConvenienceSampler`` is a good neighbour: contracts of others, containers in and out."""

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
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes, load_iris, make_classification
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import estimator_checks, get_tags

import inconvenient as ic
from inconvenient.errors import InputError, UnmetError
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


# -- tables -----------------------------------------------------------------------------------


def mixed() -> tuple[pd.DataFrame, pd.Series]:
    """Return real data with a column of every kind, gaps, and labels that repeat."""
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    X = X[["bmi", "bp", "s5", "age", "sex", "s4"]].copy()
    X["smoker"] = pd.Series(X["sex"] > 1)
    X["maybe"] = pd.Series(X["s4"] > 4).astype("boolean").mask(X.index % 11 == 0)
    X["sex"] = np.where(X["sex"] > 1, "male", "female")
    X["town"] = pd.Series(np.where(X.index % 2, "east", "west"), dtype="string[python]")
    X["town"] = X["town"].mask(X.index % 17 == 0)
    X["ward"] = pd.Categorical.from_codes(X.index % 4 - 1, ["north", "south", "nowhere", "hills"])
    X["name"] = pd.Series(X["sex"], dtype=object).mask(X.index % 13 == 0)
    X["name"] = X["name"].where(X.index % 3 != 0, "other")
    X["band"] = pd.cut(X["age"], [0, 35, 50, 65, 90], labels=["d", "c", "b", "a"])
    X.loc[::9, ["band", "bp"]] = None
    X["age"] = X["age"].astype("Int64").mask(X.index % 7 == 0)
    X["s5"] = X["s5"].astype("float32")
    X["s4"] = X["s4"].astype("Float64")
    X.index = pd.Index([f"row {i % 300}" for i in range(len(X))], name="patient")
    return X, y.set_axis(X.index)


TARGETS: dict[str, Callable[[pd.Series], Any]] = {
    "numbers": lambda y: y,
    "nullable numbers": lambda y: y.astype("Float64"),
    "frame": lambda y: y.to_frame(),
    "array": lambda y: y.to_numpy(),
    "column": lambda y: y.to_numpy()[:, None],
    "strings": lambda y: pd.Series(np.where(y > 140, "high", "low"), index=y.index, name="y"),
    "nullable strings": lambda y: (y > 140).map({True: "high", False: "low"}).astype("string"),
    "objects": lambda y: (y > 140).map({True: "high", False: "low"}).astype(object),
    "category": lambda y: pd.cut(y, [0, 90, 180, 400], labels=["low", "mid", "high"]),
    "boolean": lambda y: (y > 140).astype("boolean"),
    "integers": lambda y: (y > 140).astype("Int8"),
    "one-hot frame": lambda y: pd.get_dummies(pd.cut(y, [0, 90, 180, 400], labels=list("abc"))),
    "nullable integers": lambda y: pd.cut(y, [0, 90, 180, 400], labels=[1, 2, 3]).astype("Int64"),
    "list": lambda y: y.tolist(),
}

REGRESSION = {"numbers", "nullable numbers", "frame", "array", "column", "list"}


def same(left: Any, right: Any) -> None:
    assert type(left) is type(right)
    if isinstance(left, pd.DataFrame):
        pd.testing.assert_frame_equal(left, right)
    elif isinstance(left, pd.Series):
        pd.testing.assert_series_equal(left, right)
    else:
        np.testing.assert_array_equal(left, right)
        if isinstance(left, np.ndarray):
            assert left.dtype == right.dtype


def rows(table: Any, indices: Any) -> Any:
    if isinstance(table, list):
        return [table[i] for i in indices]
    return table.iloc[indices] if hasattr(table, "iloc") else table[indices]


@pytest.mark.parametrize("kind", TARGETS)
def test_pandas_in_pandas_out(kind: str) -> None:
    X, plain = mixed()
    y = TARGETS[kind](plain)
    before, y_before = X.copy(), pickle.loads(pickle.dumps(y))
    sampler = Sampler(feature="bmi", min_fraction=0.3)
    X_bent, y_bent = sampler.fit_resample(X, y)
    same(X, before)
    same(y, y_before)
    chosen = sampler.sample_indices_
    assert chosen.dtype == np.int64
    assert len(np.unique(chosen)) == len(chosen) >= 0.3 * len(X)
    same(X_bent, X.iloc[chosen])
    same(y_bent, rows(y, chosen))
    assert (X_bent.dtypes == X.dtypes).all()
    assert X_bent.index.name == "patient"
    assert sampler.selection_.verified
    assert list(sampler.feature_names_in_) == list(X.columns)
    assert sampler.n_features_in_ == X.shape[1]
    counts = sampler.sampling_strategy_
    assert sum(counts.values()) == (0 if kind in REGRESSION else len(chosen))
    # What is returned is a copy.
    X_bent.iloc[:, 0] = 0.0
    same(X, before)


def test_the_table_has_a_column_of_every_kind_with_gaps() -> None:
    X, _ = mixed()
    gaps = {str(dtype) for dtype, gap in zip(X.dtypes, X.isna().any()) if gap}
    assert gaps >= {"float64", "Int64", "boolean", "string", "object", "category"}
    assert {"Float64", "float32", "bool"} <= {str(dtype) for dtype in X.dtypes}
    assert not X.index.is_unique


def test_rows_are_paired_by_position_and_keep_their_own_labels() -> None:
    X, y = mixed()
    expected = Sampler(feature="bmi")
    expected.fit_resample(X, y)
    X = X.set_axis(pd.MultiIndex.from_arrays([X.index, np.arange(len(X))]))
    y = y.set_axis(pd.date_range("2026-11-30", periods=len(y)))
    sampler = Sampler(feature="bmi")
    X_bent, y_bent = sampler.fit_resample(X, y)
    np.testing.assert_array_equal(sampler.sample_indices_, expected.sample_indices_)
    same(X_bent, X.iloc[sampler.sample_indices_])
    same(y_bent, y.iloc[sampler.sample_indices_])


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("classes", [None, 2, 3])
def test_arrays_stay_unchanged(classes: int | None, order: Any) -> None:
    X, score = load_diabetes(return_X_y=True)
    y = score if classes is None else np.digitize(score, [140] if classes == 2 else [100, 200])
    X = np.asarray(X.astype(np.float32), order=order)
    X[::7, 3] = np.nan
    X.flags.writeable = y.flags.writeable = False
    before = X.tobytes(), y.tobytes()
    sampler = Sampler(feature=2)
    X_bent, y_bent = sampler.fit_resample(X, y)
    assert (X.tobytes(), y.tobytes()) == before
    assert (X_bent.dtype, y_bent.dtype) == (X.dtype, y.dtype)
    assert X_bent.flags.writeable
    np.testing.assert_array_equal(X_bent, X[sampler.sample_indices_])
    np.testing.assert_array_equal(y_bent, y[sampler.sample_indices_])


def test_the_sample_is_that_of_select() -> None:
    X, y = mixed()
    sampler = Sampler(operation="amplify", feature=("band", "c"), random_state=3)
    sampler.fit_resample(X, y)
    direct = ic.select(X, y, operation="amplify", feature=("band", "c"), factor=2.0, seed=3)
    np.testing.assert_array_equal(sampler.sample_indices_, direct.indices)
    pd.testing.assert_frame_equal(sampler.selection_.table, direct.table)


@pytest.mark.parametrize(("operation", "factor"), [("amplify", 2.0), ("attenuate", 0.5)])
def test_a_factor_need_not_be_given(operation: str, factor: float) -> None:
    X, y = load_diabetes(return_X_y=True)
    sampler = Sampler(operation, feature=2)
    sampler.fit_resample(X, y)
    ratio = sampler.selection_.table["ratio"].iloc[0]
    assert ratio >= factor if operation == "amplify" else 0.0 <= ratio <= factor
    assert sampler.factor is None


def test_a_refit_by_another_library_has_the_sign_flipped() -> None:
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    everything = LinearRegression().fit(X, y).coef_
    X_bent, y_bent = Sampler(feature="bmi").fit_resample(X, y)
    j = X.columns.get_loc("bmi")
    assert LinearRegression().fit(X_bent, y_bent).coef_[j] * everything[j] < 0


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("make", ["array", "matrix"])
def test_sparse_in_sparse_out(form: str, make: str) -> None:
    dense, y = load_diabetes(return_X_y=True)
    dense = np.where(np.abs(dense) < 0.02, 0.0, dense)
    if form == "dia":  # the format warns at more than a hundred diagonals
        dense, y = dense[:85], y[:85]
    X = getattr(sparse, f"csr_{make}")(dense).asformat(form)
    sampler = Sampler(feature=2, operation="attenuate")
    X_bent, y_bent = sampler.fit_resample(X, y)
    if form == "dia":  # scattered rows have no diagonals
        assert X_bent.format == "csr"
    else:
        assert type(X_bent) is type(X)
    assert X_bent.dtype == X.dtype
    np.testing.assert_array_equal(X.toarray(), dense)
    np.testing.assert_array_equal(X_bent.toarray(), dense[sampler.sample_indices_])
    np.testing.assert_array_equal(y_bent, y[sampler.sample_indices_])
    as_dense = Sampler(feature=2, operation="attenuate").fit_resample(dense, y)[0]
    np.testing.assert_array_equal(X_bent.toarray(), as_dense)


def test_containers_of_the_same_values_give_the_same_sample() -> None:
    array, y = load_diabetes(return_X_y=True)
    tables = [array, array.tolist(), pd.DataFrame(array), np.asfortranarray(array)]
    found = []
    for X in tables:
        sampler = Sampler(feature=8)
        same(type(sampler.fit_resample(X, y)[0]), type(X))
        found.append(sampler.sample_indices_)
        assert not hasattr(sampler, "feature_names_in_")
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


def test_objects_and_strings_in_arrays_stay() -> None:
    X, y = mixed()
    array = X[["bmi", "sex", "name"]].to_numpy(dtype=object)
    X_bent, _ = Sampler(feature=0).fit_resample(array, y.to_numpy())
    assert X_bent.dtype == object
    assert {type(value) for value in X_bent[:, 0]} == {float}


def test_tables_of_other_kinds() -> None:
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    expected = Sampler(feature="bmi")
    expected.fit_resample(X, y)
    records = X.to_records(index=False)
    arrow = pytest.importorskip("pyarrow").Table.from_pandas(X)
    masked = np.ma.masked_array(y.to_numpy(), np.zeros(len(y)))
    for table, target in [(records, masked), (arrow, y.astype("Float64").array), (X, pd.Index(y))]:
        sampler = Sampler(feature="bmi")
        X_bent, y_bent = sampler.fit_resample(table, target)
        assert (type(X_bent), type(y_bent)) == (type(table), type(target))
        np.testing.assert_array_equal(sampler.sample_indices_, expected.sample_indices_)
        assert list(sampler.feature_names_in_) == list(X.columns)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, lambda y: y.tolist()])
def test_one_hot_targets_in_any_container(make: Callable[[Any], Any]) -> None:
    X, y = load_iris(return_X_y=True)
    X = X[:, 1:3]
    hot = make(np.eye(3, dtype=np.int64)[y])
    one, two = Sampler(feature=0, class_=1), Sampler(feature=0, class_=1)
    _, y_bent = one.fit_resample(X, hot)
    two.fit_resample(X, y)
    assert type(y_bent) is type(hot)
    np.testing.assert_array_equal(one.sample_indices_, two.sample_indices_)
    dense = y_bent.toarray() if sparse.issparse(y_bent) else np.asarray(y_bent)
    np.testing.assert_array_equal(dense.argmax(axis=1), y[one.sample_indices_])
    assert one.sampling_strategy_ == {str(k): v for k, v in two.sampling_strategy_.items()}


def test_one_hot_columns_give_the_classes_their_names() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = load_iris().target_names
    hot = pd.DataFrame(np.eye(3)[y], columns=names)
    sampler = Sampler(feature="sepal width (cm)", class_="virginica")
    sampler.fit_resample(X.iloc[:, 1:3], hot)
    assert set(sampler.selection_.table["class_"]) == {"virginica"}
    assert set(sampler.sampling_strategy_) == set(names)


# -- refusals ---------------------------------------------------------------------------------


def test_multilabel_targets_are_refused() -> None:
    X = np.random.default_rng(0).random((20, 2))
    y = np.random.RandomState(42).randint(2, size=(20, 3))
    with pytest.raises(InputError, match="Multilabel and multioutput targets are not supported"):
        Sampler().fit_resample(X, y)
    with pytest.raises(InputError, match="one-hot"):
        Sampler().fit(X, X)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"operation": "bend"}, "The 'operation' parameter of ConvenienceSampler must be"),
        ({"min_fraction": 20}, "The 'min_fraction' parameter .* in the range"),
        ({"factor": 2.0}, "flip takes no factor"),
        ({"feature": "bmj"}, "closest: 'bmi'"),
        ({"feature": "bmi", "bin": "top"}, "cannot both be given"),
        ({"class_": 1}, "class_ needs a multiclass target"),
        ({"mode": "band"}, "'band' needs amplify or attenuate"),
    ],
)
def test_parameters_are_checked_when_used(change: dict[str, Any], message: str) -> None:
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    sampler = Sampler(**change)
    with pytest.raises(ValueError, match=message):
        sampler.fit_resample(X, y)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.ones((5, 2)), None, "requires y to be passed"),
        (np.ones((5, 2)), np.ones(4), "equally many rows, got 5 and 4"),
        (np.ones((5, 2)), np.ones((5, 2, 1)), "got 3 dimensions"),
        (np.ones((5, 2)), np.ones(5), "at least two values or classes"),
        (np.ones((5, 0)), np.arange(5), "0 feature"),
        (np.ones((5, 2)) * 1j, np.arange(5), "Complex data not supported in X"),
        (np.ones((5, 2)), np.arange(5) * 1j, "Complex data not supported in y"),
        (np.ones(5), np.arange(5), "reshape"),
        (np.ones((9, 2)), [None, *range(8)], "known in every row, but 1 of 9 .* first in row 0"),
        (np.ones((3, 2)), np.ma.masked_array([1.0, 2, 3], [0, 0, 1]), "missing, first in row 2"),
        (np.ones((2, 2)), [[1], [2, 3]], "one column or one-hot columns, got rows"),
        (np.ones((3, 2)), [1.0, np.inf, 2.0], "must hold finite numbers .* first inf in row 1"),
        (np.ones((2, 2)), pd.to_datetime(["2026-11-30", "2026-12-01"]), "holds dates or times"),
    ],
)
def test_tables_that_cannot_be_used(X: Any, y: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Sampler().fit_resample(X, y)


# -- unmet ------------------------------------------------------------------------------------

WISH = {"operation": "amplify", "factor": 5.0, "feature": "bmi", "min_fraction": 0.9}


def test_the_nearest_sample_comes_with_the_coefficient_that_it_reached() -> None:
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    sampler = Sampler(**WISH)
    with pytest.warns(UserWarning, match="was not met") as caught:
        X_bent, _ = sampler.fit_resample(X, y)
    assert caught[0].filename == __file__
    table = sampler.selection_.table
    text = str(caught[0].message)
    assert f"bmi is {table['sample'][0]:.4g}, on all rows {table['reference'][0]:.4g}" in text
    assert not sampler.selection_.verified
    assert len(X_bent) >= 0.9 * len(X)


def test_or_an_error_that_holds_it() -> None:
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    with pytest.raises(UnmetError, match="was not met") as caught:
        Sampler(**WISH, on_unmet="raise").fit_resample(X, y)
    assert len(caught.value.best.indices) >= 0.9 * len(X)


def test_where_a_sample_is_too_small_for_a_fit_a_larger_one_is_found() -> None:
    X, y = load_iris(return_X_y=True)
    X, y = X[50:, 1:2], y[50:]  # six of a hundred rows cannot have five of both classes
    sampler = Sampler(min_fraction=0.06)
    sampler.fit_resample(X, y)
    assert sampler.selection_.verified
    assert min(sampler.sampling_strategy_.values()) >= 5


def test_a_band_does_not_grow_in_silence() -> None:
    X, y = load_iris(return_X_y=True)
    wish = {"operation": "amplify", "factor": 1.5, "mode": "band", "min_fraction": 0.06}
    with pytest.warns(UserWarning, match="no sample of min_fraction 0.06 has a fit; larger:"):
        Sampler(**wish).fit_resample(X[50:, 1:2], y[50:])


# -- scikit-learn's machinery -----------------------------------------------------------------


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
