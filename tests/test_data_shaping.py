"""From a package's table to a dataset: what an entry does, and how it fails to fit."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest

from inconvenient.data import shaping
from inconvenient.data.entries import Categories, Entry
from inconvenient.data.shaping import shape
from inconvenient.errors import InputError

NUMBER = Entry("t", ("p", "i"), "regression", "y", "other", "MIT", notes="why")
BINARY = dataclasses.replace(NUMBER, task="binary")


@pytest.fixture(autouse=True)
def _small_tables(monkeypatch) -> None:
    monkeypatch.setattr(shaping, "_LEAST_ROWS", 1)
    monkeypatch.setattr(shaping, "_LEAST_CLASS", 1)


def shaped(entry: Entry, table: dict, **changes) -> shaping.Shaped:
    return shape(dataclasses.replace(entry, **changes), pd.DataFrame(table))


NUMBERS = {
    "y": [1.0, None, 3.0, 101.0, 50.0],
    "x": [1.0, 2.0, None, 4.0, 5.0],
    "z w": ["a", "b", "c", "a", "b"],
}


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("y at most 100", [1.0, 3.0, 50.0]),
        ("y at least 50", [101.0, 50.0]),
        ("y above 3", [101.0, 50.0]),
        ("x is present", [1.0, 101.0, 50.0]),
        ("x is not 4", [1.0, 3.0, 50.0]),
        ("z w is not c", [1.0, 101.0, 50.0]),
        ("z w is not a", [3.0, 50.0]),
        ("z w is c or x at least 5", [3.0, 50.0]),
    ],
)
def test_filters_keep_rows(condition: str, kept: list[float]) -> None:
    done = shaped(NUMBER, NUMBERS, row_filter=(condition,))
    assert done.frame["y"].tolist() == kept
    # Rows without a target are counted, whatever the filter says of them.
    assert done.dropped == 1


def test_filters_hold_together() -> None:
    conditions = ("x is present", "y at most 100")
    done = shaped(NUMBER, NUMBERS, row_filter=conditions)
    assert done.frame.index.tolist() == [0, 1]
    assert done.frame["y"].tolist() == [1.0, 50.0]
    done = shaped(NUMBER, NUMBERS, row_filter=("z w is a",), drop={"z w": "constant"})
    assert done.frame["y"].tolist() == [1.0, 101.0]


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("x below 3", r"row_filter must read"),
        ("u is 3", r"begins with no column"),
        ("x is 9", r"column x has no value '9'"),
        ("x is a", r"column x has no value 'a'"),
        ("z w is not d", r"column z w has no value 'd'"),
        ("z w above 1", r"column z w holds no numbers"),
        ("x above b", r"needs a number"),
        ("y at most 1000", r"keeps all rows"),
        ("x is 4 or x is not 4", r"keeps all rows"),
        ("x is 4 or above 5", r"'above 5' begins with no column"),
        ("y above 1000", r"keeps no rows"),
    ],
)
def test_filters_that_do_not_fit(condition: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        shaped(NUMBER, NUMBERS, row_filter=(condition,))


def test_a_mend_that_no_longer_applies_is_an_error() -> None:
    table = {"y": [1.0, 2.0, 3.0], "x": ["a", "b", "c"]}
    done = shaped(NUMBER, table, mend={"x": {"a": None, "c": "d"}})
    assert done.frame["x"].isna().tolist() == [True, False, False]
    assert done.frame["x"].tolist()[1:] == ["b", "d"]
    with pytest.raises(InputError, match=r"column x has no value 'e' to mend"):
        shaped(NUMBER, table, mend={"x": {"e": "d"}})


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ({"above": 1}, ["no", "yes", "yes"]),
        ({"at_least": 3}, ["no", "no", "yes"]),
        ({"equals": 1}, ["yes", "no", "no"]),
        ({"equals": "1"}, ["yes", "no", "no"]),
        ({"among": [1, 3]}, ["yes", "no", "yes"]),
    ],
)
def test_a_target_of_two_classes_is_made(form: dict, expected: list[str]) -> None:
    table = {"n": [1.0, 2.0, None, 3.0], "x": [1, 2, 3, 4]}
    done = shaped(BINARY, table, target_from={"column": "n", **form}, drop={"n": "source"})
    assert done.frame["y"].tolist() == expected
    assert (done.dropped, done.classes, done.features) == (1, ["no", "yes"], ["x"])


def test_a_target_made_of_an_absent_value_is_an_error() -> None:
    table = {"n": ["a", "b"], "x": [1, 2]}
    with pytest.raises(InputError, match=r"column n has no value 'c'"):
        shaped(BINARY, table, target_from={"column": "n", "equals": "c"}, drop={"n": "source"})
    with pytest.raises(InputError, match=r"target_from: the table has no column m"):
        shaped(BINARY, table, target_from={"column": "m", "equals": "c"})
    with pytest.raises(InputError, match=r"the table has a column y"):
        shaped(
            BINARY,
            {**table, "y": [1, 2]},
            target_from={"column": "n", "equals": "a"},
            drop={"n": "source"},
        )


@pytest.mark.parametrize(
    ("form", "expected"),
    [("mean_of", [1.5, 3.0]), ("sum_of", [3.0, 6.0]), ("share_of", [1 / 3, 1 / 3])],
)
def test_a_number_is_made_of_columns(form: str, expected: list[float]) -> None:
    table = {"a": [1, 2, 3], "b": [2.0, 4.0, None], "x": [1, 2, 3]}
    done = shaped(NUMBER, table, target_from={form: ["a", "b"]}, drop={"a": "part", "b": "part"})
    assert done.frame["y"].tolist() == expected
    assert done.dropped == 1


DUMMIES = {"y": [1.0, 2, 3, 4], "ne": [1, 0, 0, None], "s": ["no", "yes", "no", "no"], "x": 2}


def test_a_category_is_put_together_again() -> None:
    parts = {"region": Categories({"ne": "NE", "s": "S"}, "W")}
    done = shaped(NUMBER, DUMMIES, categories_from=parts, drop={"x": "constant"})
    assert done.features == ["region"]
    assert done.frame["region"].tolist()[:3] == ["NE", "S", "W"]
    assert done.frame["region"].isna().tolist() == [False, False, False, True]


@pytest.mark.parametrize(
    ("columns", "base", "table", "message"),
    [
        ({"ne": "NE", "s": "S"}, "", {}, r"base must name the level of the 1 rows"),
        ({"ne": "NE", "s": "S"}, "W", {"ne": [1, 0, 1, 1]}, r"left out if there is none; got 'W'"),
        ({"ne": "NE", "s": "S"}, "W", {"ne": [1, 1, 0, 0]}, r"1 rows are of several .*ne, s"),
        ({"ne": "NE", "s": "S"}, "W", {"ne": [1, 2, 0, 0]}, r"column ne is not 0/1"),
        ({"nw": "NW", "s": "S"}, "W", {}, r"categories_from: region: the table has no column nw"),
        ({"ne": "NE", "s": "S"}, "W", {"region": 1}, r"the table has a column region"),
    ],
)
def test_dummies_that_do_not_fit(columns: dict, base: str, table: dict, message: str) -> None:
    parts = {"region": Categories(columns, base)}
    with pytest.raises(InputError, match=message):
        shaped(NUMBER, {**DUMMIES, **table}, categories_from=parts, drop={"x": "constant"})


def test_codes_are_text() -> None:
    table = {"y": [1.0, 2.0, 3.0], "x": [1.0, None, 12.0], "z": list("abc")}
    done = shaped(NUMBER, table, categorical=("x",))
    assert done.frame["x"].tolist()[::2] == ["1", "12"]
    assert done.frame["x"].isna().tolist() == [False, True, False]
    with pytest.raises(InputError, match=r"categorical: column z holds no numbers"):
        shaped(NUMBER, table, categorical=("z",))


def test_classes_are_merged_and_dropped() -> None:
    entry = dataclasses.replace(BINARY, task="multiclass")
    table = {"y": [1.0, 2.0, 3.0, 4.0, None, 5.0], "x": [1, 2, 3, 4, 5, 6]}
    done = shaped(entry, table, merge_classes={"2": "1"}, drop_classes={"3": "rare"})
    assert done.frame["y"].tolist() == ["1", "1", "4", "5"]
    assert done.dropped == 1
    with pytest.raises(InputError, match=r"no row is of class '7'; there are 1, 2, 3, 4, 5"):
        shaped(entry, table, drop_classes={"7": "rare"})
    with pytest.raises(InputError, match=r"task binary does not go with 5 classes"):
        shaped(BINARY, table)


def test_small_classes_and_tables_are_refused(monkeypatch) -> None:
    monkeypatch.setattr(shaping, "_LEAST_CLASS", 2)
    with pytest.raises(InputError, match=r"class 'b' has 1 rows, fewer than 2; merge or drop it"):
        shaped(BINARY, {"y": ["a", "a", "b"], "x": [1, 2, 3]})
    monkeypatch.setattr(shaping, "_LEAST_ROWS", 4)
    with pytest.raises(InputError, match=r"3 rows are left, fewer than 4"):
        shaped(NUMBER, {"y": [1, 2, 3], "x": [1, 2, 3]})


def test_clusters_are_codes_and_no_feature() -> None:
    table = {"y": [1.0, 2.0, 3.0], "x": [1, 2, 3], "id": ["b", "a", "b"]}
    done = shaped(NUMBER, table, group_column="id")
    assert done.features == ["x"]
    assert done.groups is not None
    np.testing.assert_array_equal(done.groups, [1, 0, 1])
    with pytest.raises(InputError, match=r"cluster column id has gaps"):
        shaped(NUMBER, {**table, "id": ["b", None, "b"]}, group_column="id")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target": "z"}, r"target: the table has no column z"),
        ({"drop": {"id": "row id"}}, r"drop: the table has no column id"),
        ({"mend": {"id": {1: 2}}}, r"mend: the table has no column id"),
        ({"group_column": "id"}, r"group_column: the table has no column id"),
        ({"categorical": ("id",)}, r"categorical: the table has no column id"),
        ({"documentation": {"X": "text"}}, r"documentation: the table has no column X; did you"),
        ({"drop": {"x": "id"}}, r"no feature is left"),
    ],
)
def test_absent_columns_are_named(changes: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        shaped(NUMBER, {"y": [1.0, 2.0], "x": [1, 2]}, **changes)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([1, 1], r"column x is constant; drop it"),
        ([None, None], r"column x is constant; drop it"),
        (pd.to_datetime(["2020-01-01", "2021-01-01"]), r"t: .*'x'"),
    ],
)
def test_features_of_no_use_are_refused(column, message: str) -> None:
    with pytest.raises(InputError, match=message):
        shaped(NUMBER, {"y": [1.0, 2.0], "x": column})


def test_a_regression_needs_numbers() -> None:
    with pytest.raises(InputError, match=r"column y holds no numbers"):
        shaped(NUMBER, {"y": ["a", "b"], "x": [1, 2]})
    with pytest.raises(InputError, match=r"log1p of a target down to -1"):
        shaped(NUMBER, {"y": [-1.0, 2.0], "x": [1, 2]}, target_transform="log1p")
