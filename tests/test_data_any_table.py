"""Any table that a user may bring is prepared, or refused with the documented error."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hostile import INDEXES, NAMES, REFUSED, USABLE
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inconvenient.data import prepare_table
from inconvenient.errors import InputError
from inconvenient.selection.problem import pose_problem

HOSTILE = {**USABLE, **REFUSED}


@st.composite
def codes(draw: st.DrawFn, rows: int) -> np.ndarray:
    few = draw(st.sampled_from([1, 2, 3, 7, 1000]))
    return np.random.default_rng(draw(st.integers(0, 5))).integers(0, few, rows)


@st.composite
def tables(draw: st.DrawFn) -> pd.DataFrame:
    rows = draw(st.sampled_from([0, 1, 2, 9, *[40, 60, 150] * 4]))
    kinds = draw(st.lists(st.sampled_from(sorted(USABLE)), min_size=1, max_size=4))
    if draw(st.integers(0, 3)) == 0:
        kinds.append(draw(st.sampled_from(sorted(REFUSED))))
    kinds += draw(st.sampled_from([["floats"], ["codes", "floats"], []]))
    names: list[Any] = [f"x{j}" for j in range(len(kinds))]
    if draw(st.booleans()):
        unique = str if draw(st.integers(0, 4)) else None
        known = NAMES if draw(st.integers(0, 4)) == 0 else NAMES[:-3]
        names = draw(
            st.lists(
                st.sampled_from(known),
                min_size=len(kinds),
                max_size=len(kinds),
                unique_by=unique,
            )
        )
    columns = [series(kind, draw(codes(rows))) for kind in kinds]
    frame = pd.concat(columns, axis=1)
    frame.index = INDEXES[draw(st.sampled_from(sorted(INDEXES)))](rows)
    header = np.empty(len(names), dtype=object)
    header[:] = names
    frame.columns = pd.Index(header, dtype=object, tupleize_cols=False)
    return frame


def series(kind: str, codes: np.ndarray) -> pd.Series:
    values = HOSTILE[kind](codes)
    # Objects stay what they are: pandas would try to make strings of them.
    plain = isinstance(values, np.ndarray) and values.dtype == object
    return pd.Series(values, dtype=object if plain else None)


TASKS = st.sampled_from([None, None, None, "regression", "binary", "multiclass"])
GAPS = st.sampled_from(["raise", "drop", "drop"])
WHICH = st.sampled_from([-1, -1, -1, 0, 1, 2])  # the last column is the tamest
KINDS = st.sampled_from([*["floats", "codes", "bool", "ordered"] * 12, *sorted(HOSTILE)])


def state(table: pd.DataFrame) -> list[Any]:
    """Return what must not change: labels, dtypes, and the values as they print."""
    return [list(map(repr, axis)) for axis in (table.index, table.columns, table.dtypes)] + [
        [list(map(repr, table.iloc[:20, j].array)) for j in range(table.shape[1])]
    ]


@settings(max_examples=400, deadline=None, derandomize=True,
          suppress_health_check=[HealthCheck.too_slow])  # fmt: skip
@given(table=tables(), which=WHICH, task=TASKS, missing=GAPS, grouped=st.booleans())
def test_prepare_table(
    table: pd.DataFrame, which: int, task: str | None, missing: str, grouped: bool
) -> None:
    names = [str(name) for name in table.columns]
    groups = names[0] if grouped and len(names) > 2 else None
    before = state(table)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            dataset = prepare_table(
                table, target=names[which % len(names)], task=task, groups=groups,
                missing_target=missing,
            )  # fmt: skip
        except InputError:
            pass
        else:
            check(dataset, table)
    assert state(table) == before


def check(dataset: Any, table: pd.DataFrame) -> None:
    """Whatever is let in has plain values, a target without gaps, and equal rows everywhere."""
    assert len(dataset) == len(table) - dataset.dropped_rows
    assert isinstance(dataset.frame.index, pd.RangeIndex)
    assert np.isfinite(dataset.y.astype(float)).all()
    for name in dataset.features:
        column = dataset.frame[name]
        if pd.api.types.is_numeric_dtype(column):
            values = column.to_numpy(dtype=np.float64)
            assert not np.isinf(values).any()
        else:
            for value in column.dropna().astype(object).unique():
                str(value).encode()
    if dataset.groups is not None:
        assert len(dataset.groups) == len(dataset)
    if dataset.classes:
        assert np.bincount(dataset.y, minlength=len(dataset.classes)).min() >= 5


@pytest.mark.jit
@settings(max_examples=300, deadline=None, derandomize=True,
          suppress_health_check=[HealthCheck.too_slow])  # fmt: skip
@given(table=tables(), kind=KINDS, task=TASKS, missing=GAPS, data=st.data())
def test_pose_problem(
    table: pd.DataFrame, kind: str, task: str | None, missing: str, data: st.DataObject
) -> None:
    target = series(kind, data.draw(codes(len(table))))
    as_given = data.draw(st.sampled_from(["series", "series", "list", "array", "masked"]))
    y: Any = target.set_axis(table.index).rename(data.draw(st.sampled_from(["y", None, 7, "x0"])))
    if as_given != "series":
        y = list(target) if as_given == "list" else target.to_numpy()
    if as_given == "masked":
        y = np.ma.masked_array(y, mask=np.arange(len(y)) % 5 == 0)
    before = state(table)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            problem = pose_problem(table, y, task, missing)
        except InputError:
            pass
        else:
            check(problem.dataset, table)
            assert np.isfinite(problem.design.X).all()
            assert len(problem.kept) == len(problem.design.X)
    assert state(table) == before


@pytest.mark.parametrize("kind", sorted(HOSTILE))
@pytest.mark.parametrize("role", ["feature", "target", "groups"])
def test_every_kind_in_every_role(kind: str, role: str) -> None:
    rows = 120
    x = np.random.default_rng(1)
    table = pd.DataFrame({"x": x.normal(size=rows), "y": x.normal(size=rows)})
    table["odd"] = series(kind, np.random.default_rng(2).integers(0, 5, rows))
    options: dict[str, Any] = {"target": "odd" if role == "target" else "y"}
    if role == "groups":
        options["groups"] = "odd"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            check(prepare_table(table, missing_target="drop", **options), table)
        except InputError as refusal:
            said = str(refusal)
        else:
            said = "odd"
    assert "odd" in said


def wide(columns: int, rows: int = 30) -> pd.DataFrame:
    values = np.random.default_rng(0).normal(size=(rows, columns))
    return pd.DataFrame(values, columns=[f"c{j}" for j in range(columns)])


@pytest.mark.jit
def test_five_thousand_columns() -> None:
    frame = wide(5000)
    assert len(prepare_table(frame, target="c7").features) == 4999
    with pytest.raises(InputError, match="more rows than coefficients are needed, got 30 rows"):
        pose_problem(frame.drop(columns="c0"), frame["c0"], None, "raise")
    objects = wide(5000, 12).astype(object)
    assert len(prepare_table(objects, target="c7").features) == 4999
    frame.columns = ["same"] * 5000
    with pytest.raises(InputError, match="'same' occurs more than once"):
        prepare_table(frame, target="same")


@pytest.mark.jit
def test_ten_thousand_levels() -> None:
    rows = 12_000
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"x": rng.normal(size=rows), "text": [f"l{i % 10_000}" for i in range(rows)]}
    )
    for column in (frame["text"], frame["text"].astype("category")):
        problem = pose_problem(frame.assign(text=column), frame["x"] * 2 + rng.normal(size=rows),
                               None, "raise")  # fmt: skip
        # Each level is rare, and all others together are the most frequent.
        assert problem.design.columns == ("(intercept)", "text=(other)", "x") or (
            problem.design.columns == ("(intercept)", "x")
        )
    with pytest.raises(InputError, match="at least 5 rows in each of its 10000 classes"):
        prepare_table(frame, target="text")


@pytest.mark.parametrize("rows", [0, 1])
def test_zero_and_one_row(rows: int) -> None:
    for kind in HOSTILE:
        table = pd.DataFrame({"a": series(kind, np.zeros(rows, dtype=np.int64)), "y": 1.0})
        with pytest.raises(InputError, match="row|missing|must|holds"):
            prepare_table(table, target="y"), kind
        with pytest.raises(InputError):
            # Not table[["a"]]: pandas before 3 cannot take columns in another byte order.
            pose_problem(table["a"].to_frame(), table["y"], None, "drop")


@pytest.mark.jit
@pytest.mark.parametrize("kind", sorted(HOSTILE))
@pytest.mark.parametrize("how", ["series", "list", "array"])
def test_every_kind_as_a_target_of_a_problem(kind: str, how: str) -> None:
    rows = 120
    rng = np.random.default_rng(1)
    y: Any = series(kind, rng.integers(0, 5, rows))
    if how != "series":
        y = list(y) if how == "list" else y.to_numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            problem = pose_problem(rng.normal(size=(rows, 2)), y, None, "drop")
        except InputError as refusal:
            said = str(refusal)
        else:
            said = "target" if len(problem.kept) == len(problem.design.X) else ""
    assert "target" in said
