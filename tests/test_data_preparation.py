"""A user's table at the door: what is taken, what is refused, and in which words."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import fractions
import uuid
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from inconvenient.data import as_frame, check_feature, prepare_table
from inconvenient.errors import InputError
from inconvenient.selection.design import build_design

N = 60


def table(**columns: Any) -> pd.DataFrame:
    """Return a good table of N rows with some columns replaced or added."""
    rng = np.random.default_rng(0)
    base = {
        "age": rng.integers(20, 60, N),
        "height": rng.normal(170.0, 10.0, N),
        "region": rng.choice(["north", "south", "west"], N),
        "price": rng.normal(size=N),
    }
    return pd.DataFrame({**base, **columns})


def prepare(frame: pd.DataFrame, **options: Any) -> Any:
    return prepare_table(frame, **{"target": "price", **options})


def objects(*values: Any) -> pd.Series:
    """Return a column of dtype object that repeats some values."""
    column = np.empty(N, dtype=object)
    for i in range(N):
        column[i] = values[i % len(values)]
    return pd.Series(column, dtype=object)


DAYS = pd.date_range("2020-01-01", periods=N)

# column or its values, the words of the refusal
FEATURES: dict[str, tuple[Any, str]] = {
    "datetime": (
        DAYS,
        r"feature 'when' .*holds dates or times \(datetime64.*--drop when; in Python drop",
    ),
    "datetime with zone": (DAYS.tz_localize("UTC"), "'when' .*dates or times .*--drop when"),
    "all NaT": (pd.Series([pd.NaT] * N), "'when' .*dates or times .*--drop when"),
    "timedelta": (DAYS - DAYS[0], "'when' .*dates or times .*timedelta"),
    "period": (DAYS.to_period("D"), "'when' .*dates or times .*period"),
    "category of dates": (pd.Categorical(DAYS), "'when' .*dates or times"),
    "date objects": (objects(datetime.date(2020, 1, 1), None), "'when' .*dates or times .date"),
    "time objects": (objects(datetime.time(12, 30)), "'when' .*dates or times .time"),
    "dates and strings": (objects(datetime.datetime(2020, 1, 1), "x"), "'when' .*dates or times"),
    "lists": (objects([1, 2], [3]), r"'when' .*nested values \(list\); spread.*--drop when"),
    "dicts and gaps": (objects({"a": 1}, None), r"'when' .*nested values \(dict\)"),
    "tuples": (objects((1, 2)), r"'when' .*nested values \(tuple\)"),
    "arrays": (objects(np.zeros(2)), r"'when' .*nested values \(ndarray\)"),
    "bytes": (objects(b"a", b"b"), "'when' .*holds bytes .*decode"),
    "complex": (np.arange(N) * 1j, "'when' .*complex numbers"),
    "complex objects": (objects(1j, 1.0), "'when' .*complex numbers"),
    "other objects": (objects(uuid.UUID(int=1)), r"'when' .*neither .*UUID.*astype\(str\)"),
    "infinite": (
        np.where(np.arange(N) == 7, np.inf, 1.0),
        r"'when' must hold finite .*1 is infinite, first inf in row 7 .*NaN.*--drop when",
    ),
    "minus infinite": (
        np.where(np.arange(N) >= 7, -np.inf, 1.0),
        "'when' .*53 are infinite, first -inf in row 7",
    ),
    "infinite object": (objects(1.5, float("inf")), "'when' .*30 are infinite, first inf in row 1"),
    "infinite nullable": (
        pd.array([1.0, np.inf] * (N // 2), dtype="Float64"),
        "'when' .*30 are infinite",
    ),
    "infinite float32": (np.full(N, np.inf, dtype=np.float32), "'when' .*60 are infinite"),
    "category with infinity": (
        pd.Categorical(np.where(np.arange(N) == 7, np.inf, 1.0)),
        "'when' .*1 is infinite, first inf in row 7",
    ),
    "huge": (np.full(N, 1e200), r"'when' .*60 are larger than 1e100.*rescale"),
    "integers": (
        2**53 + np.arange(N),
        r"'when' .*integers beyond 2\^53 \(such as 9007199254741051\).*lose digits.*cast it to str",
    ),
    "negative integers": (-(2**53) - np.arange(N), "such as -9007199254741051"),
    "unsigned integers": (np.full(N, 2**64 - 1, dtype=np.uint64), "18446744073709551615"),
    "integer objects": (objects(10**400, 1), r"beyond 2\^53"),
    "integers and gaps": (pd.array([2**60, None] * (N // 2), dtype="Int64"), r"beyond 2\^53"),
    "fractions": (objects(fractions.Fraction(10**400, 3)), "'when' .*no float64.*rescale"),
    "decimals": (objects(decimal.Decimal("1e400")), "'when' .*60 are infinite"),
    "no Unicode": (objects("\ud800", "b"), "'when' .*text that is no Unicode .*decode"),
    "a mixture and no Unicode": (objects("\ud800", 1), "'when' .*text that is no Unicode"),
    "category and no Unicode": (
        pd.Categorical(objects("\ud800", "b")),
        "'when' .*text that is no Unicode",
    ),
    "signalling NaN": (objects(decimal.Decimal("sNaN"), 1.5), "'when' holds signalling NaN"),
}


@pytest.mark.parametrize("case", FEATURES)
def test_feature_that_cannot_be_used_is_named(case: str) -> None:
    values, words = FEATURES[case]
    with pytest.raises(InputError, match=words):
        prepare(table(when=values))
    assert prepare(table(when=values), drop=["when"]).features == ["age", "height", "region"]


TARGETS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "constant": (1.5, {}, r"target 'price' must vary, but it is constant \(1.5, 60 rows\)"),
    "constant once a string": (
        pd.Categorical(objects("1", 1)),
        {},
        r"target 'price' must vary, but it is constant \(1, as a string\)",
    ),
    "constant string": ("a", {}, r"target 'price' must vary, but it is constant \(a, 60 rows\)"),
    "all missing": (np.nan, {}, r"target 'price' is all missing \(60 rows\); name another"),
    "all missing, dropped": (None, {"missing_target": "drop"}, "'price' is all missing"),
    "gaps": (
        objects(1.5, 2.5, None),
        {},
        "'price' must be known .*20 of 60 are missing, first in row 2 .*missing_target=\"drop\"",
    ),
    "one row per class": (
        [f"id {i}" for i in range(N)],
        {},
        "'price' must have at least 5 rows in each of its 60 classes, but 'id 0' has 1.*identifier",
    ),
    "numeric, one row per class": (
        np.arange(N) / 7,
        {"task": "multiclass"},
        'at least 5 rows .*60 classes.*too many classes for a numeric target.*task="regression"',
    ),
    "rare count": (
        np.where(np.arange(N) < 4, 7, np.arange(N) % 2),
        {},
        "'price' .*3 classes, but '7' has 4; too many classes for a numeric target",
    ),
    "rare class": (objects(*"aaaaaaaaaaaaaaaaaaab"), {}, "2 classes, but 'b' has 3; merge rare"),
    "strings as regression": (
        objects("a", "b"),
        {"task": "regression"},
        "'price' must be numeric for task=\"regression\", got a and others",
    ),
    "three as binary": (objects("a", "b", "c"), {"task": "binary"}, 'got 3; pass task="multi'),
    "numbers as binary": (np.arange(N), {"task": "binary"}, 'got 60; pass task="regression"'),
    "two as multiclass": (objects("a", "b"), {"task": "multiclass"}, 'pass task="binary"'),
    "datetime": (DAYS, {}, "target 'price' .*dates or times .*or name another target"),
    "infinite": (np.where(np.arange(N) == 3, np.inf, 0.5), {}, "target 'price' .*inf in row 3"),
    "lists": (objects([1]), {}, "target 'price' .*nested"),
    "signalling NaN": (objects(decimal.Decimal("sNaN")), {}, "target 'price' holds signalling"),
    "identifiers": (2**60 + np.arange(N), {}, r"target 'price' .*2\^53"),
}


@pytest.mark.parametrize("case", TARGETS)
def test_target_that_cannot_be_used_is_named(case: str) -> None:
    values, options, words = TARGETS[case]
    with pytest.raises(InputError, match=words):
        prepare(table(price=values), **options)


ARGUMENTS: dict[str, tuple[Callable[[], Any], str]] = {
    "absent": (lambda: prepare(table(), target="prise"), "target 'prise' is no .*closest: 'price'"),
    "case": (lambda: prepare(table(), target="Price"), "did you mean 'price' .*case-sensitive"),
    "padded": (
        lambda: prepare(table().rename(columns={"price": "price "})),
        r"target 'price' is no column; did you mean 'price ' \(blanks belong to a name\)",
    ),
    "nothing near": (
        lambda: prepare(table(), target="zzz"),
        "the columns are 'age', 'height', 'region', 'price'",
    ),
    "absent drop": (lambda: prepare(table(), drop=["aga"]), "drop names 'aga', .*closest: 'age'"),
    "drop target": (lambda: prepare(table(), drop=["price"]), "drop names the target 'price'"),
    "drop all": (
        lambda: prepare(table(), drop=["age", "height", "region"]),
        "at least one feature is needed beside target 'price'",
    ),
    "task": (lambda: prepare(table(), task="ranking"), "task must be one of .*got 'ranking'"),
    "missing_target": (
        lambda: prepare(table(), missing_target="impute"),
        "missing_target must be raise or drop, got 'impute'",
    ),
    "duplicates": (
        lambda: prepare(pd.concat([table(), table()[["age", "region"]]], axis=1)),
        "column names must differ, but 'age', 'region' occur more than once; rename",
    ),
    "no rows": (lambda: prepare(table().iloc[:0]), "needs rows, got none"),
    "one row": (lambda: prepare(table().iloc[:1]), r"constant \(.*, 1 row\).*more rows"),
    "absent groups": (lambda: prepare(table(), groups="ages"), "groups 'ages' is no .*'age'"),
    "target groups": (lambda: prepare(table(), groups="price"), "groups 'price' is the target"),
    "short groups": (lambda: prepare(table(), groups=[1, 2]), "one label per row, 60, got 2"),
    "table of groups": (
        lambda: prepare(table(), groups=np.zeros((N, 2))),
        r"groups need one label per row, 60, got shape \(60, 2\)",
    ),
    "ragged groups": (lambda: prepare(table(), groups=[[1], [1, 2]]), "one label per row, got"),
    "missing groups": (
        lambda: prepare(table(house=objects("a", None)), groups="house"),
        "groups 'house' must name a cluster .*30 are missing, first in row 1",
    ),
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_argument_that_cannot_be_used_is_explained(case: str) -> None:
    call, words = ARGUMENTS[case]
    with pytest.raises(InputError, match=words):
        call()


CLEANED: dict[str, tuple[Any, list[Any], str]] = {
    "decimals": (objects(decimal.Decimal("1.5"), None), [1.5, np.nan], "float64"),
    "integers": (objects(1, 2), [1, 2], "int64"),
    "integers and gaps": (objects(1, pd.NA), [1.0, np.nan], "float64"),
    "nullable": (pd.array([1, None] * (N // 2), dtype="Int64"), [1.0, np.nan], "float64"),
    "nullable, full": (pd.array([1, 2] * (N // 2), dtype="UInt8"), [1, 2], "uint64"),
    "nullable boolean": (
        pd.array([True, None] * (N // 2), dtype="boolean"),
        ["True", np.nan],
        "object",
    ),
    "booleans": (objects(True, np.False_), [True, False], "bool"),
    "mixture": (objects("1", 2, 2.5, None, True), ["1", "2", "2.5", np.nan, "True"], "object"),
    "string with NA": (
        pd.array(["a", None] * (N // 2), dtype="string[python]"),
        ["a", np.nan],
        "object",
    ),
    "sparse": (pd.arrays.SparseArray([0.0, 1.0] * (N // 2)), [0.0, 1.0], "float64"),
    "intervals": (
        pd.cut(pd.Series([1, 2] * (N // 2)), [0, 1, 2]).astype(object),
        ["(0, 1]", "(1, 2]"],
        "object",
    ),
    "float16": (np.array([1.5, np.nan] * (N // 2), dtype=np.float16), [1.5, np.nan], "float64"),
    "float32": (np.array([1.5, np.nan] * (N // 2), dtype=np.float32), [1.5, np.nan], "float32"),
    "arrow integers": (
        pd.array([1, None] * (N // 2), dtype="int64[pyarrow]"),
        [1.0, np.nan],
        "float64",
    ),
    "arrow doubles": (
        pd.array([1.5, 2.0] * (N // 2), dtype="double[pyarrow]"),
        [1.5, 2.0],
        "float64",
    ),
    "arrow booleans": (
        pd.array([True, False] * (N // 2), dtype="bool[pyarrow]"),
        [True, False],
        "bool",
    ),
    "all missing": (objects(None, pd.NA, np.nan), [np.nan], "float64"),
    "empty strings": (objects("", "a"), ["", "a"], "object"),
    "largest integers": (objects(2**53, -(2**53)), [2**53, -(2**53)], "int64"),
}


@pytest.mark.parametrize("case", CLEANED)
def test_column_becomes_plain(case: str) -> None:
    values, expected, dtype = CLEANED[case]
    result = prepare(table(extra=values)).frame["extra"]
    assert str(result.dtype) == dtype
    want = pd.Series([expected[i % len(expected)] for i in range(N)], dtype=dtype, name="extra")
    pd.testing.assert_series_equal(result, want)


def test_level_that_no_row_has_is_ignored() -> None:
    values = pd.Categorical([1.0, 2.0] * (N // 2), categories=[1.0, 2.0, np.inf])
    assert prepare(table(extra=values)).features[-1] == "extra"


@pytest.mark.parametrize(
    ("values", "task", "classes"),
    [
        (objects("b", "a"), "binary", ("a", "b")),
        (objects("b", "a", "c"), "multiclass", ("a", "b", "c")),
        (objects(True, False), "binary", ("False", "True")),
        (pd.Categorical(objects(2, 1), categories=[1, 2, 3]), "binary", ("1", "2")),
        (np.arange(N) % 10, "multiclass", tuple("0123456789")),
        (np.arange(N) % 10 + 1.0, "multiclass", ("1", "10", *"23456789")),
        (np.arange(N) % 11, "regression", ()),
        (np.arange(N) % 2 / 2, "regression", ()),
        (np.arange(N) / 3, "regression", ()),
        (pd.array([0, 1] * (N // 2), dtype="Int8"), "binary", ("0", "1")),
    ],
)
def test_task_is_inferred(values: Any, task: str, classes: tuple[str, ...]) -> None:
    dataset = prepare(table(price=values))
    assert (dataset.task, dataset.classes) == (task, classes)
    if classes:
        labels = pd.Series(values).map(lambda v: str(int(v)) if isinstance(v, float) else str(v))
        assert [classes[code] for code in dataset.y] == labels.tolist()
        assert dataset.y.dtype == np.int64
    else:
        np.testing.assert_array_equal(dataset.y, np.asarray(values, dtype=np.float64))


def test_task_can_be_given() -> None:
    counts = np.arange(N) % 3
    assert prepare(table(price=counts), task="regression").y.dtype == np.float64
    assert prepare(table(price=counts % 2 == 0), task="regression").y.tolist()[:2] == [1.0, 0.0]
    assert prepare(table(price=counts % 2 / 2), task="binary").classes == ("0.0", "0.5")


def test_rows_without_target_are_dropped_and_counted() -> None:
    frame = table(price=np.where(np.arange(N) % 4 == 1, np.nan, np.arange(N) / 7))
    dataset = prepare(frame, missing_target="drop", groups=np.arange(N) // 2)
    assert dataset.dropped_rows == 15
    assert len(dataset.frame) == 45
    assert dataset.frame.index.tolist() == list(range(45))
    kept = np.flatnonzero(np.arange(N) % 4 != 1)
    assert dataset.frame["age"].tolist() == frame["age"].iloc[kept].tolist()
    assert len(np.unique(dataset.groups)) == 30
    # rows of a message are those of the caller's table
    frame.loc[6, "height"] = np.inf
    with pytest.raises(InputError, match="first inf in row 6"):
        prepare(frame, missing_target="drop")
    frame.loc[6, "price"] = np.nan
    prepare(frame, missing_target="drop")


def test_groups_are_no_feature() -> None:
    dataset = prepare(table(house=np.repeat(list("cab"), N // 3)), groups="house")
    assert "house" not in dataset.frame
    assert dataset.groups.tolist() == np.repeat([0, 1, 2], N // 3).tolist()
    assert not dataset.groups.flags.writeable


def test_input_stays_as_it_was() -> None:
    frame = table(mixed=objects("a", 1), gaps=objects(1.5, None))
    frame.index = [3] * N
    before = frame.copy(deep=True)
    dataset = prepare(frame, drop=["age"])
    pd.testing.assert_frame_equal(frame, before)
    dataset.frame.loc[0, "height"] = -1.0
    pd.testing.assert_frame_equal(frame, before)


def test_hash_is_of_the_content() -> None:
    frame = table(text=objects("a", None, "bc"))
    base = prepare(frame).hash
    assert len(base) == 64
    same = [
        frame[frame.columns[::-1]],
        frame.set_axis(range(5, 5 + N)),
        frame.astype({"text": object, "region": object, "age": float}),
        frame.assign(text=frame["text"].astype("string")),
        frame.assign(region=frame["region"].astype("category")),
    ]
    assert {prepare(other).hash for other in same} == {base}
    swapped = frame.rename(columns={"age": "height", "height": "age"})
    changed = [
        frame.assign(text=objects("a", None, "b")),
        frame.iloc[::-1],
        frame.iloc[1:],
        swapped,
    ]
    hashes = {prepare(other).hash for other in changed} | {
        prepare(frame, target="height").hash,
        prepare(frame, groups=np.arange(N)).hash,
        prepare(frame, drop=["age"]).hash,
        base,
    }
    assert len(hashes) == 8


def test_check_feature() -> None:
    frame = table(
        flat=3.5, gone=np.nan, half=objects(2.0, None), letter="x", flag=objects("x", None)
    )
    dataset = prepare(frame)
    cases = {
        "price": "'price' is the target",
        "aeg": "feature 'aeg' is no column; closest: 'age'",
        "flat": r"feature 'flat' is constant \(3.5\), and a constant column has no coefficient",
        "gone": "feature 'gone' is all missing",
        "half": "feature 'half' is constant",
        "letter": "feature 'letter' is constant",
    }
    for feature, words in cases.items():
        with pytest.raises(InputError, match=words):
            check_feature(dataset, feature)
    for feature in ("age", "height", "region", "flag"):
        check_feature(dataset, feature)


def test_as_frame_names_columns_by_position() -> None:
    assert as_frame(np.zeros((2, 3))).columns.tolist() == ["x0", "x1", "x2"]
    wide = as_frame(np.zeros((2, 101))).columns.tolist()
    assert wide == sorted(wide)
    assert wide[7] == "x007"
    assert as_frame([[1, "a"], [2, "1"]])["x1"].tolist() == ["a", "1"]
    assert as_frame(pd.Series([1, 2], name="one")).columns.tolist() == ["one"]
    assert as_frame(pd.Series([1, 2])).columns.tolist() == ["x0"]
    assert as_frame(pd.DataFrame(np.zeros((2, 2)))).columns.tolist() == ["0", "1"]
    assert as_frame(np.zeros(2, dtype=[("a", float), ("b", int)])).columns.tolist() == ["a", "b"]
    masked = np.ma.masked_array([[1.0, 2.0]], mask=[[True, False]])
    assert as_frame(masked).isna().to_numpy().tolist() == [[True, False]]
    for matrix in (sparse.csr_matrix([[1.0, 0.0]]), sparse.csc_array([[1.0, 0.0]])):
        assert as_frame(matrix).to_numpy().tolist() == [[1.0, 0.0]]
    frame = table()
    assert as_frame(frame) is frame
    levels = frame[["age", "height"]].set_axis(
        pd.MultiIndex.from_tuples([("a", 1), ("a", 2)]), axis=1
    )
    assert as_frame(levels).columns.tolist() == ["('a', 1)", "('a', 2)"]
    assert levels.columns.nlevels == 2


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.zeros(3), r"X must be two-dimensional, got 1 dimensions; .*reshape\(-1, 1\)"),
        (np.zeros((2, 2, 2)), "X must be two-dimensional, got 3 dimensions"),
        (5, "X must be two-dimensional, got 0 dimensions"),
        ([[1, 2], [3]], "rows of equal length"),
        (np.zeros((0, 2)), "needs rows, got none for the columns 'x0', 'x1'"),
        (np.zeros((2, 0)), "at least one column"),
        (pd.DataFrame(index=[0, 1]), "at least one column"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "must differ, but 'a' occurs more than once;"),
        (
            pd.DataFrame([[1, 2]], columns=pd.Index(["a", "\ud800"], dtype=object)),
            r"name '\\ud800' is no Unicode.*rename",
        ),
        (pd.DataFrame([[1, 2]], columns=[1, "1"]), "'1' occurs more than once once they are str"),
    ],
)
def test_as_frame_refuses(X: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        as_frame(X)


def test_record_is_complete() -> None:
    dataset = prepare(table(), name="mine")
    assert dataset.name == "mine"
    assert dataclasses.is_dataclass(dataset)
    assert dataset != prepare(table(), name="mine")  # by identity: frames have no truth value
    assert {dataset: 1}[dataset] == 1
    assert dataset.features == ["age", "height", "region"]


CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**60), 2**60),
    st.integers(-3, 3),
    st.floats(),
    st.floats(-1e3, 1e3),
    st.text(max_size=3),
    st.sampled_from(["a", "b", "", "(missing)", "(other)", "nan"]),
    st.decimals(allow_nan=False),  # pandas itself fails on a signalling one
    st.dates(min_value=datetime.date(1990, 1, 1)),
    st.binary(max_size=2),
    st.lists(st.integers(), max_size=2),
    st.complex_numbers(),
)
TAME = [
    st.floats(-1e3, 1e3),
    st.integers(-3, 3),
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from(["a", "b", None]),
    st.booleans(),
]
WILD = [
    st.floats(),
    st.floats(-1e110, 1e110),
    st.floats(-1e100, 1e100),
    st.floats(-1e-150, 1e-150),
    st.floats(1.0, 1.0 + 1e-9),
    st.integers(-(2**54), 2**54),
    st.text(max_size=2),
    st.just(1.0),
    st.none(),
    CELLS,
]
NAMES = st.sampled_from(["y", "a", "b", "y ", "a=b", "", "c"])


@st.composite
def hostile_tables(draw: st.DrawFn) -> tuple[pd.DataFrame, dict[str, Any]]:
    rows = draw(st.one_of(st.integers(15, 40), st.integers(0, 40)))
    rare = draw(st.integers(0, 9)) == 0
    names = draw(st.lists(NAMES, max_size=5) if rare else st.lists(NAMES, max_size=5, unique=True))
    if not rare and "y" not in names:
        names.append("y")
    columns = []
    for _ in names:
        kind = draw(st.one_of(st.sampled_from(TAME), st.sampled_from(WILD)))
        few = draw(st.lists(kind, min_size=2, max_size=12))
        spread = draw(st.lists(st.integers(0, len(few) - 1), min_size=rows, max_size=rows))
        column = np.empty(rows, dtype=object)
        for i, j in enumerate(spread):
            column[i] = few[j]
        series = pd.Series(column, dtype=object)
        if draw(st.booleans()):
            series = series.infer_objects()
        columns.append(series)
    frame = pd.concat(columns, axis=1) if columns else pd.DataFrame(index=range(rows))
    frame.columns = pd.Index(names, dtype=object)
    options = {
        "target": draw(st.sampled_from(["y"] * 8 + ["a", "nowhere"])),
        "task": draw(st.sampled_from([None] * 5 + ["regression", "binary", "multiclass"])),
        "missing_target": draw(st.sampled_from(["raise", "drop", "drop"])),
    }
    return frame, options


@settings(max_examples=150, deadline=None, derandomize=True)
@given(hostile_tables())
def test_any_table_is_prepared_or_refused(drawn: tuple[pd.DataFrame, dict[str, Any]]) -> None:
    frame, options = drawn
    before = frame.copy(deep=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            dataset = prepare_table(frame, **options)
            design = build_design(
                dataset.X,
                dataset.y,
                task=dataset.task,
                n_classes=len(dataset.classes),
                rare_level_share=0.01,
            )
        except InputError:
            pass
        else:
            assert np.isfinite(design.X).all()
            assert np.isfinite(design.y).all()
            assert len(design.X) == len(frame) - dataset.dropped_rows
    pd.testing.assert_frame_equal(frame, before)
