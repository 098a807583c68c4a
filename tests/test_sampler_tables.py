"""What goes into ``ConvenienceSampler`` comes out: containers, dtypes, names and row labels."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sampler_tables import REGRESSION, TARGETS, mixed
from scipy import sparse
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import LinearRegression

import inconvenient as ic

pytestmark = pytest.mark.jit

Sampler = ic.ConvenienceSampler


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
