from __future__ import annotations

import dataclasses
import pickle
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from synthetic import profile_frames, shift_frames

from inconvenient.errors import InputError, NotAvailableError
from inconvenient.shifts import Context, Shift, list_shifts, load_shift, loading
from inconvenient.shifts.rows import pack_rows, unpack_rows
from inconvenient.shifts.schema import SHIFT_COLUMNS, empty_frame, validate
from inconvenient.store import write_frame

NAME = "binary_a"
ID = f"{NAME}/x1/flip/0.2/at_least"


class Table(SimpleNamespace):
    """What a shift reads of a dataset."""


def table(rows: int = 800) -> Table:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(rows, 3)), columns=["x1", "x2", "x3"])
    frame["y"] = np.where(frame["x1"] > 0, "yes", "no")
    return Table(
        name=NAME,
        frame=frame,
        target="y",
        task="binary",
        classes=("no", "yes"),
        groups=np.arange(rows) // 4,
        description="Made up.",
        target_description="Whether x1 is positive.",
        feature_descriptions={"x1": "first"},
        features=["x1", "x2", "x3"],
    )


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a user's folder with the profile quick."""
    import inconvenient.data

    candidates, shifts = shift_frames([(NAME, "binary"), ("regression_a", "regression")])
    folder = tmp_path / "home" / "artefacts" / "quick"
    write_frame(folder / "shifts" / "candidates.parquet", candidates)
    write_frame(folder / "shifts" / "shifts.parquet", shifts)
    ids = np.arange(800)
    part = np.where(ids % 2 == 0, "pool", np.where(ids % 4 == 1, "filter", "report"))
    split = pd.DataFrame({"dataset": NAME, "row_id": ids, "part": part})
    write_frame(folder / "split" / "split.parquet", split)
    monkeypatch.setattr(loading, "checkouts", list)
    monkeypatch.setenv("INCONVENIENT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(inconvenient.data, "load_dataset", lambda name: table())
    return tmp_path / "home"


def test_listing(home: Path) -> None:
    start = time.perf_counter()
    listed = list_shifts()
    assert time.perf_counter() - start < 0.5
    assert listed["shift_id"].is_monotonic_increasing
    assert set(listed.columns) == set(SHIFT_COLUMNS) - {"rows"}
    own = list_shifts(NAME)
    assert set(own["dataset"]) == {NAME}
    assert 0 < len(own) < len(listed)
    filters = profile_frames(failing=False)["filter/filter"]
    write_frame(home / "artefacts" / "quick" / "filter" / "filter.parquet", filters)
    flagged = list_shifts(profile="quick")
    assert {"retained", "retained_paper"} <= set(flagged.columns)
    assert len(flagged) == len(listed)


def test_loading(home: Path) -> None:
    load_shift(ID)
    start = time.perf_counter()
    shift = load_shift(ID)
    assert time.perf_counter() - start < 0.05
    listed = list_shifts().set_index("shift_id").loc[ID]
    assert isinstance(shift, Shift)
    assert (shift.dataset, shift.operation, shift.factor) == (NAME, "flip", None)
    assert shift.features == ("x1",)
    assert shift.rows_hash == listed["rows_hash"]
    assert shift.b_sample.tolist() == list(listed["b_sample"])
    with pytest.raises(ValueError, match="read-only"):
        shift.rows[0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        shift.size = 3  # type: ignore[misc]

    data = table()
    X, y = shift.train()
    assert list(X.columns) == ["x1", "x2", "x3"]
    assert X.index.tolist() == y.index.tolist() == shift.rows.tolist()
    assert y.tolist() == data.frame["y"].iloc[shift.rows].tolist()
    for half, rest in (("report", 3), ("filter", 1)):
        X, y = shift.test(half)
        assert set(X.index % 4) == {rest}
        assert len(X) == len(y) == 200
    assert shift.test()[0].index.equals(shift.test("report")[0].index)
    with pytest.raises(InputError, match="half must be one of filter, report, got 'pool'"):
        shift.test("pool")
    assert shift.groups is not None
    assert shift.groups.tolist() == (shift.rows // 4).tolist()
    again = pickle.loads(pickle.dumps(shift.context))
    assert again == shift.context


def test_context_says_nothing_about_the_shift(home: Path) -> None:
    flip, amplify = load_shift(ID), load_shift(f"{NAME}/x3/amplify-x3/0.5/band")
    assert amplify.factor == 3.0
    assert flip.context == amplify.context
    assert [f.name for f in dataclasses.fields(Context)] == [
        "task",
        "classes",
        "target_name",
        "target_description",
        "dataset_description",
        "feature_descriptions",
    ]
    assert flip.context.feature_descriptions == {"x1": "first", "x2": "", "x3": ""}
    flip.context.feature_descriptions["x1"] = "changed"
    assert flip.context == amplify.context


def test_unknown_names_get_the_closest(home: Path) -> None:
    with pytest.raises(InputError, match=f"closest are .*{ID}"):
        load_shift(f"{NAME}/x1/flp/0.2/at_least")
    with pytest.raises(InputError, match="closest are binary_a"):
        list_shifts("binary")
    with pytest.raises(InputError, match="profile must be a name"):
        list_shifts(profile="../quick")


def test_absent_shifts_say_what_to_run(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotAvailableError, match="'full'.*dvc pull"):
        list_shifts(profile="full")
    monkeypatch.setenv("INCONVENIENT_HOME", str(home / "empty"))
    with pytest.raises(NotAvailableError, match="dvc pull.*dvc repro"):
        load_shift(ID)


def test_a_checkout_around_the_current_folder_comes_first(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("INCONVENIENT_HOME", str(home))
    checkout = tmp_path / "checkout"
    (checkout / "notebooks").mkdir(parents=True)
    for name in ("params.yaml", "dvc.yaml"):
        (checkout / name).write_text("")
    shifts = shift_frames([("multiclass_a", "multiclass")])[1]
    write_frame(checkout / "artefacts" / "quick" / "shifts" / "shifts.parquet", shifts)
    monkeypatch.chdir(checkout / "notebooks")
    assert set(list_shifts(profile="quick")["dataset"]) == {"multiclass_a"}


def test_shifts_of_another_version_of_the_data(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import inconvenient.data

    monkeypatch.setattr(inconvenient.data, "load_dataset", lambda name: table(100))
    with pytest.raises(InputError, match="has 100 rows; fetch data and shifts of the same"):
        load_shift(ID)


def test_empty_frames_have_the_columns() -> None:
    for name in ("candidates", "shifts"):
        empty = validate(pd.DataFrame(), name)
        assert empty.dtypes.equals(empty_frame(name).dtypes)
        filled = shift_frames([(NAME, "binary")])[name == "shifts"]
        both = pd.concat([empty, filled])
        assert both.dtypes.equals(filled.dtypes)


def _changed(column: str, value: Any) -> pd.DataFrame:
    shifts = shift_frames([(NAME, "binary")])[1]
    values = shifts[column].astype(object)
    values.iat[1] = value
    return shifts.assign(**{column: values})


@pytest.mark.parametrize(
    ("frame", "text"),
    [
        (_changed("operation", "bend"), "'operation' must be one of amplify, .*got 'bend' at"),
        (_changed("size", 2.5), "'size' must hold int64, got 2.5 at"),
        (_changed("features", "x1"), "'features' must hold list of str, got 'x1'"),
        (_changed("dataset", None), "'dataset' must hold str"),
        (_changed("b_sample", [1.0, 2.0, 3.0]), "one entry per bent coefficient"),
        (_changed("outcome", "unmet"), "must be verified, got 'unmet'"),
        (_changed("separable", "no"), "'separable' must hold bool"),
        (_changed("factor", 2.0).drop(columns="rows"), "shifts lacks rows"),
        (_changed("factor", 2.0).assign(more=1), "unknown columns more"),
        (_changed("factor", 2.0).iloc[::-1], "sorted by shift_id"),
        (_changed("factor", 2.0).iloc[[0, 0]], "more than once"),
    ],
)
def test_frames_that_break_the_schema(frame: pd.DataFrame, text: str) -> None:
    with pytest.raises(InputError, match=text):
        validate(frame, "shifts")


def test_the_schema_returns_the_same_rows() -> None:
    shifts = shift_frames([(NAME, "binary")])[1]
    pd.testing.assert_frame_equal(validate(shifts, "shifts"), shifts)
    assert pack_rows(unpack_rows(shifts["rows"][0])) == shifts["rows"][0]
