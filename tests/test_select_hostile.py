"""Hostile input to ``select``: an error that names the column and the way out, nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_wine

from inconvenient.errors import InputError, UnmetError
from inconvenient.selection.select import select, trajectory

X, Y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
N = len(X)
WINE, CULTIVAR = load_wine(return_X_y=True, as_frame=True)
RNG = np.random.default_rng(0)
DAYS = pd.date_range("2020-01-01", periods=N)


def flip(X: Any = X, y: Any = Y, **options: Any) -> Any:
    return select(X, y, **{"feature": "bmi", "uniform_samples": 0, **options})


def with_gap(values: Any) -> pd.Series:
    series = pd.Series(values, dtype=object)
    series[3] = None
    return series


CASES: dict[str, tuple[Callable[[], Any], str]] = {
    # the feature
    "absent feature": (lambda: flip(feature="bml"), "feature 'bml' is no column; closest: 'bmi'"),
    "case of a feature": (lambda: flip(feature="BMI"), "did you mean 'bmi' .*case-sensitive"),
    "padded feature": (
        lambda: flip(X.rename(columns={"bmi": "bmi "})),
        "feature 'bmi' is no column; did you mean 'bmi ' .blanks belong to a name",
    ),
    "constant feature": (
        lambda: flip(X.assign(flat=2.0), feature="flat"),
        "feature 'flat' is constant .2.0., and a constant column has no coefficient; name another",
    ),
    "constant string": (lambda: flip(X.assign(flat="a"), feature="flat"), "'flat' is constant"),
    "missing feature": (
        lambda: flip(X.assign(gone=np.nan), feature="gone"),
        "feature 'gone' is all missing",
    ),
    "missing strings": (
        lambda: flip(X.assign(gone=pd.Series([None] * N, dtype=object)), feature="gone"),
        "feature 'gone' is all missing",
    ),
    "collinear pair": (
        lambda: flip(X.assign(twice=2.0 * X["bmi"] + 1.0), feature="bmi"),
        "column 'bmi' is perfectly collinear with 'twice', .*--drop twice",
    ),
    "collinear pair, the other": (
        lambda: flip(X.assign(a_twice=2.0 * X["bmi"] + 1.0), feature="a_twice"),
        "column 'a_twice' is perfectly collinear with 'bmi'",
    ),
    "collinear sum": (
        lambda: flip(X.assign(total=X["bmi"] + X["bp"]), feature="total"),
        "column 'total' is perfectly collinear with 'bmi', 'bp'",
    ),
    "collinear levels": (
        lambda: flip(X.assign(a=np.where(X["sex"] > 1, "m", "f")), feature="a"),
        "column 'a' is perfectly collinear with 'sex'",
    ),
    "rare levels": (
        lambda: flip(X.assign(rare=np.where(np.arange(N) < 2, "x", "y")), feature="rare"),
        "column 'rare' has no coefficient: it hardly varies",
    ),
    "level": (lambda: flip(feature=("bmi", "high")), "level 'high' of column 'bmi'"),
    "level of none": (
        lambda: flip(X.assign(c=list("abc") * 147 + ["a"]), feature=("c", "z")),
        "level 'z' of column 'c' has no coefficient of its own; levels with one: b, c",
    ),
    "triple": (lambda: flip(feature=("a", "b", "c")), "is a pair .column, level."),
    "feature of another type": (lambda: flip(feature=3), "feature '3' is no column"),
    "list of features": (
        lambda: flip(feature=["bmi", "bp"]),
        "feature must be a column name or a pair .*got .'bmi', 'bp'.; use bin",
    ),
    "target as feature": (lambda: flip(feature="target"), "'target' is the target, not a feature"),
    # the target
    "constant target": (lambda: flip(y=np.ones(N)), "target 'target' must vary, .*constant"),
    "missing target": (lambda: flip(y=np.full(N, np.nan)), "target 'target' is all missing"),
    "gaps in the target": (
        lambda: flip(y=with_gap(Y)),
        "target 'target' .*1 of 442 are missing, first in row 3 .*missing_target=\"drop\"",
    ),
    "one row per class": (
        lambda: flip(y=[f"id {i}" for i in range(N)]),
        "target 'target' must have at least 5 rows in each of its 442 classes.*identifier",
    ),
    "infinite target": (lambda: flip(y=Y.where(Y.index != 3, np.inf)), "'target' .*inf in row 3"),
    "datetime target": (lambda: flip(y=DAYS), "target 'target' .*dates or times"),
    "named target": (lambda: flip(y=pd.Series(np.ones(N), name="price")), "target 'price' must"),
    "string regression": (
        lambda: flip(y=["a", "b"] * (N // 2), task="regression"),
        "target 'target' must be numeric",
    ),
    "short target": (lambda: flip(y=Y[:-1]), "equally many rows, got 442 and 441"),
    "two targets": (lambda: flip(y=np.ones((N, 2))), "y must be one-dimensional, got 2"),
    "no target": (lambda: flip(y=None), "y must be one-dimensional, got 0"),
    # the table
    "infinite": (
        lambda: flip(X.assign(bp=X["bp"].where(X.index != 5, np.inf))),
        "feature 'bp' must hold finite numbers .*first inf in row 5",
    ),
    "datetime": (
        lambda: flip(X.assign(when=DAYS)),
        "feature 'when' .*dates or times .*--drop when",
    ),
    "duplicates": (lambda: flip(pd.concat([X, X[["bp"]]], axis=1)), "'bp' occurs more than once"),
    "nested": (lambda: flip(X.assign(l=[[1]] * N)), "feature 'l' .*nested"),
    "one-dimensional": (lambda: flip(X["bmi"].to_numpy()), "X must be two-dimensional"),
    "no rows": (lambda: flip(X[:0], Y[:0]), "needs rows, got none"),
    "one row": (lambda: flip(X[:1], Y[:1]), "must vary, .*1 row.*more rows"),
    "fewer rows than coefficients": (
        lambda: flip(X[:10], Y[:10], task="regression"),
        "more rows than coefficients.*got 10 rows for .* coefficients; use more rows or drop",
    ),
    "fewer rows than coefficients of classes": (
        lambda: flip(WINE[::9], CULTIVAR[::9], feature="alcohol"),
        "more rows than coefficients .*got 20 rows for 28 coefficients",
    ),
    "nothing varies": (lambda: flip(X * 0.0), "at least one feature that varies .*none of the 10"),
    # the arguments
    "min_fraction 20": (
        lambda: flip(min_fraction=20),
        r"min_fraction must be in \(0, 1\], got 20; give a share of the rows, not a row count",
    ),
    "min_fraction 0": (lambda: flip(min_fraction=0.0), r"min_fraction must be in \(0, 1\], got 0"),
    "min_fraction NaN": (lambda: flip(min_fraction=float("nan")), "min_fraction .*got nan"),
    "min_fraction text": (lambda: flip(min_fraction="0.2"), "min_fraction must be a number"),
    "min_fraction small": (
        lambda: flip(min_fraction=0.02),
        "min_fraction 0.02 of 442 rows is 9 rows, but 11 coefficients need more.*above 0.025",
    ),
    "amplify by half": (
        lambda: flip(operation="amplify", factor=0.5),
        r"factor must be in \[1.15, 5.0\] for amplify, got 0.5; attenuate takes",
    ),
    "attenuate by 2": (
        lambda: flip(operation="attenuate", factor=2),
        r"factor must be in \[0.2, 0.9\] for attenuate, got 2.0; amplify takes",
    ),
    "no factor": (lambda: flip(operation="amplify"), "amplify needs a factor in .*got none"),
    "factor of a flip": (lambda: flip(factor=2), "flip takes no factor, got 2"),
    "factor text": (
        lambda: flip(operation="amplify", factor="two"),
        "factor must be a number.*two",
    ),
    "factor NaN": (lambda: flip(operation="amplify", factor=float("nan")), "factor .*got nan"),
    "operation": (
        lambda: flip(operation="invert"),
        "operation must be one of amplify, attenuate, flip, got 'invert'",
    ),
    "mode": (lambda: flip(mode="exact"), "mode must be one of at_least, band, got 'exact'"),
    "band of a flip": (lambda: flip(mode="band"), "mode 'band' needs amplify or attenuate"),
    "strategy": (lambda: flip(strategy="best"), "strategy must be auto or one of .*got 'best'"),
    "on_unmet": (lambda: flip(on_unmet="ignore"), "on_unmet must be raise or best, got 'ignore'"),
    "missing_target": (lambda: flip(missing_target="x"), "missing_target must be raise or drop"),
    "task": (lambda: flip(task="ranking"), "task must be one of .*got 'ranking'"),
    "bin": (lambda: flip(feature=None, bin="high"), "bin must be one of top, middle, bottom"),
    "feature and bin": (lambda: flip(bin="top"), "feature and bin cannot both be given"),
    "small bin": (
        lambda: flip(X[["bmi", "bp"]], feature=None, bin="top"),
        "bin 'top' needs at least two features",
    ),
    "band of a bin": (
        lambda: flip(feature=None, bin="top", operation="amplify", factor=2, mode="band"),
        "mode 'band' needs a single feature",
    ),
    "class of a regression": (lambda: flip(class_="a"), "class_ needs a multiclass target"),
    "absent class": (
        lambda: flip(WINE, CULTIVAR, feature="ash", class_=7),
        "class_ must be one of 0, 1, 2, got 7",
    ),
    "seed": (lambda: flip(seed=-1), "seed must be .*got -1"),
    "seed text": (lambda: flip(seed="a"), "seed must be .*got 'a'"),
    "uniform_samples": (
        lambda: flip(uniform_samples=-5),
        "uniform_samples must be .*got -5",
    ),
    "direction": (lambda: trajectory(X, Y, direction=0), "direction must be 1 or -1, got 0"),
    "trajectory of a constant": (
        lambda: trajectory(X.assign(flat=1), Y, feature="flat"),
        "feature 'flat' is constant",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_refusal_names_the_column_and_the_way_out(case: str) -> None:
    call, words = CASES[case]
    before = X.copy(deep=True), Y.copy(deep=True)
    with pytest.raises(InputError, match=words):
        call()
    pd.testing.assert_frame_equal(X, before[0])
    pd.testing.assert_series_equal(Y, before[1])


def test_masked_targets_are_gaps_and_ragged_ones_are_refused() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    y = np.ma.masked_array(X["a"].to_numpy() + rng.normal(size=60), mask=np.arange(60) < 5)
    with pytest.raises(InputError, match="5 of 60 are missing"):
        select(X, y)
    chosen = select(X, y, missing_target="drop", min_fraction=0.5, on_unmet="raise")
    assert chosen.indices.min() >= 5
    with pytest.raises(InputError, match="got a ragged one"):
        select(X, [1, [2, 3]] * 30)


@pytest.fixture
def exact() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(rng.normal(size=(300, 3)), columns=["a", "b", "c"])


def test_a_coefficient_of_rounding_is_never_bent(exact: pd.DataFrame) -> None:
    target = 2 * exact["a"] + 1
    with pytest.raises(InputError, match="coefficient of 'b' is zero up to rounding"):
        select(exact, target, feature="b")
    with pytest.raises(InputError, match="zero up to rounding"):
        trajectory(exact, target, feature="b")


def test_defaults_and_bins_leave_out_collinear_features(exact: pd.DataFrame) -> None:
    rng = np.random.default_rng(1)
    target = exact.sum(axis=1) + rng.normal(size=300)
    with pytest.raises(InputError, match="'a' is perfectly collinear with 'd'"):
        select(exact[["a"]].assign(d=exact["a"]), target)
    chosen = select(exact.assign(d=exact["a"]), target)
    assert chosen.table["column"].tolist() in (["b"], ["c"])


def test_gaps_in_a_list_of_strings_are_gaps(exact: pd.DataFrame) -> None:
    labels = ["x" if v > 0 else "y" for v in exact["a"][:-20]] + [float("nan")] * 20
    with pytest.raises(InputError, match="20 of 300 are missing"):
        select(exact, labels, feature="b")


def test_sizes_that_cannot_do_say_which_could(exact: pd.DataFrame) -> None:
    labels = pd.cut(exact["a"] + exact["b"], 3, labels=["u", "v", "w"]).astype(str)
    few = exact.iloc[:60]
    with pytest.raises(UnmetError, match="raise min_fraction to at least 0.250"):
        select(few, labels.iloc[:60], min_fraction=0.21)
    with pytest.raises(UnmetError, match="all 300 rows are the reference itself"):
        select(exact, exact["a"] + 1.0 * np.arange(300), min_fraction=1)
    with pytest.raises(InputError, match="uniform_samples must be at most"):
        select(exact, exact["a"] + 1.0 * np.arange(300), uniform_samples=10**9)
