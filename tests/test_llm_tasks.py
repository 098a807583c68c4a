"""The question shows a sample in its own units; the truth is a distance in the pool's."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scoring import SMALL, needs_publication

import inconvenient as ic
from inconvenient.errors import InputError
from inconvenient.llm.tasks import Truth, ask_about, truth_of
from inconvenient.shifts.records import Context, Shift

pytestmark = [needs_publication, pytest.mark.usefixtures("data_folder")]


def shift_of(task: str, operation: str = "flip", kind: str = "single") -> Shift:
    table = ic.list_shifts(SMALL[task], "quick", operation=operation)
    return ic.load_shift(table.loc[table["kind"] == kind, "shift_id"].iloc[0], "quick")


def context(task: str, classes: tuple[str, ...], names: list[str]) -> Context:
    return Context(task, classes, "target", "", "", dict.fromkeys(names, ""))


def test_numbers_are_those_of_a_fit_in_the_units_of_the_sample(diabetes: pd.DataFrame) -> None:
    X, y = diabetes.drop(columns="progression").iloc[:150], diabetes["progression"].iloc[:150]
    question = ask_about(X, y, context("regression", (), list(X)))
    Z, target = (X - X.mean()) / X.std(ddof=0), (y - y.mean()) / y.std(ddof=0)
    expected = sm.OLS(target, sm.add_constant(Z)).fit().params[list(X)]
    assert [c.feature for c in question.coefficients] == list(X)
    np.testing.assert_allclose([c.value for c in question.coefficients], expected, rtol=1e-8)
    assert question.rows == 150
    assert not question.penalised


def test_classes_and_levels_are_named() -> None:
    shift = shift_of("multiclass")
    question = ask_about(*shift.train(), shift.context)
    assert {c.class_ for c in question.coefficients} == set(shift.context.classes)
    by_column: dict[tuple[str, str], float] = {}
    for c in question.coefficients:
        by_column[c.feature, c.level] = by_column.get((c.feature, c.level), 0.0) + c.value
    np.testing.assert_allclose(list(by_column.values()), 0.0, atol=1e-7)  # over the classes
    X, _ = shift.train()
    assert question.features == tuple(X.columns)
    leveled = {c.feature for c in question.coefficients if c.level}
    assert leveled
    for feature in leveled:
        seen = {c.level for c in question.coefficients if c.feature == feature}
        assert seen <= {*X[feature].dropna().astype(str), "(other)", "(missing)"}


def test_units_of_the_pool_have_no_part() -> None:
    shift = shift_of("regression")
    X, y = shift.train()
    question = ask_about(X, y, shift.context)
    numbers = X.select_dtypes("number").columns
    other = X.copy()
    other[numbers] = X[numbers] * 1000.0 - 7.0
    again = ask_about(other, y * 3.0 + 1.0, shift.context)
    for a, b in zip(question.coefficients, again.coefficients, strict=True):
        assert (a.feature, a.level, a.class_) == (b.feature, b.level, b.class_)
        np.testing.assert_allclose(a.value, b.value, rtol=1e-6, atol=1e-9)


def test_a_sample_without_a_finite_fit_is_penalised() -> None:
    X = pd.DataFrame({"a": np.arange(40.0), "b": np.arange(40.0) % 7})
    y = pd.Series(np.where(np.arange(40) < 20, "no", "yes"))
    question = ask_about(X, y, context("binary", ("no", "yes"), ["a", "b"]))
    assert question.penalised
    assert 0.0 < question.sizes()["a"] < 100.0


def test_what_is_no_class_is_named() -> None:
    X = pd.DataFrame({"a": np.arange(40.0)})
    with pytest.raises(InputError, match="must hold the classes no, yes, got 'maybe'"):
        ask_about(X, pd.Series(["maybe"] * 40), context("binary", ("no", "yes"), ["a"]))


@pytest.mark.parametrize("task", ["regression", "binary", "multiclass"])
@pytest.mark.parametrize("kind", ["single", "group"])
def test_the_truth_has_moved_at_least_as_far_as_what_was_bent(task: str, kind: str) -> None:
    shift = shift_of(task, kind=kind)
    truth = truth_of(shift)
    assert sorted(truth.order) == sorted(shift.context.feature_descriptions)
    for feature, before, after in zip(
        shift.features, shift.b_reference, shift.b_sample, strict=True
    ):
        assert truth.distances[feature] >= abs(after - before) * (1 - 1e-8)


def test_the_truth_by_an_outside_library() -> None:
    shift = shift_of("binary")
    dataset = ic.load_dataset(shift.dataset)
    assert (shift.ridge, list(dataset.X.select_dtypes("number"))) == (0.0, dataset.features)
    test = pd.concat([shift.test(half)[1] for half in ("filter", "report")]).index
    pool = dataset.X.drop(index=test)
    y = pd.Series(dataset.y).loc[pool.index]
    pool = pool.fillna(pool.median())
    Z = sm.add_constant((pool - pool.mean()) / pool.std(ddof=0))
    whole, sample = (
        sm.Logit(y.loc[rows], Z.loc[rows]).fit(disp=False, tol=1e-12).params
        for rows in (Z.index, shift.rows)
    )
    moved = (sample - whole).drop("const").abs()
    truth = truth_of(shift)
    np.testing.assert_allclose([truth.distances[f] for f in moved.index], moved, rtol=1e-5)
    assert truth.order == tuple(moved.sort_values(ascending=False).index)


def test_a_shift_of_another_version_is_refused() -> None:
    shift = shift_of("regression")
    wrong = dataclasses.replace(shift, b_reference=shift.b_reference * 1.01)
    with pytest.raises(InputError, match="cannot be found again"):
        truth_of(wrong)


def test_top_is_the_head_of_the_order() -> None:
    assert Truth(("b", "a", "c"), {"a": 1.0, "b": 2.0, "c": 0.0}).top(2) == ("b", "a")
