from __future__ import annotations

import dataclasses
import pickle
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from publications import HASH, published_frame, split_frame, table
from synthetic import shift_frames

from inconvenient.errors import InputError, NotAvailableError
from inconvenient.shifts import Context, Scores, Shift, list_shifts, load_shift, loading
from inconvenient.shifts.rows import pack_rows, unpack_rows
from inconvenient.shifts.schema import PUBLISHED_COLUMNS, empty_frame, validate
from inconvenient.store import files, write_frame

NAME = "binary_a"
ID = f"{NAME}/x1/flip/0.2/at_least"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a user's folder with the profile quick."""
    import inconvenient.data

    names = [(NAME, "binary"), ("regression_a", "regression")]
    folder = tmp_path / "home" / "artefacts" / "quick"
    write_frame(folder / "publish" / "shifts.parquet", published_frame(names))
    write_frame(folder / "split" / "split.parquet", split_frame([NAME]))
    monkeypatch.setattr(loading, "checkouts", list)
    monkeypatch.setenv("INCONVENIENT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(inconvenient.data, "load_dataset", lambda name: table())
    return tmp_path / "home"


def test_listing(home: Path) -> None:
    start = time.process_time()
    listed = list_shifts()
    assert time.process_time() - start < 0.5
    assert listed["shift_id"].is_monotonic_increasing
    assert "rows" not in listed
    assert set(PUBLISHED_COLUMNS) - set(listed) == {"rows"}
    assert {"linear_id", "lightgbm_control_sd", "filter_linear_ood"} <= set(listed)
    assert (listed["retained"] | listed["retained_paper"]).all()
    own = list_shifts(NAME, profile="quick")
    assert set(own["dataset"]) == {NAME}
    assert own.index.tolist() == list(range(len(own)))
    assert 0 < len(own) < len(listed)


@pytest.mark.parametrize(
    ("name", "value", "wrong", "words"),
    [
        ("task", "regression", "ranking", "binary, regression"),
        ("operation", "flip", "turn", "amplify, attenuate, flip"),
        ("min_fraction", 0.2, 20, "0.2, 0.3, 0.5"),
    ],
)
def test_listing_some(home: Path, name: str, value: Any, wrong: Any, words: str) -> None:
    listed = list_shifts()
    own = list_shifts(**{name: value})
    expected = listed[listed[name] == value].reset_index(drop=True)
    assert 0 < len(own) < len(listed)
    pd.testing.assert_frame_equal(own, expected)
    with pytest.raises(InputError, match=f"{name} must be one of {words}, got {wrong!r}"):
        list_shifts(**{name: wrong})


def test_loading(home: Path) -> None:
    load_shift(ID)
    start = time.process_time()
    shift = load_shift(ID)
    assert time.process_time() - start < 0.05
    listed = list_shifts().set_index("shift_id").loc[ID]
    assert isinstance(shift, Shift)
    assert (shift.dataset, shift.operation, shift.factor) == (NAME, "flip", None)
    assert shift.features == ("x1",)
    assert shift.rows_hash == listed["rows_hash"]
    assert shift.b_sample.tolist() == list(listed["b_sample"])
    facts = ("retained", "retained_paper", "gap", "gap_paper", "collateral", "data_hash")
    assert all(getattr(shift, name) == listed[name] for name in facts)
    assert set(shift.scores) == {"linear", "lightgbm"}
    assert shift.scores["linear"] == Scores(
        listed["linear_id"],
        listed["linear_control"],
        listed["linear_control_sd"],
        listed["linear_ood"],
    )
    with pytest.raises(ValueError, match="read-only"):
        shift.rows[0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        shift.size = 3

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
    shifts = published_frame([("multiclass_a", "multiclass")])
    write_frame(checkout / "artefacts" / "quick" / "publish" / "shifts.parquet", shifts)
    monkeypatch.chdir(checkout / "notebooks")
    assert set(list_shifts(profile="quick")["dataset"]) == {"multiclass_a"}


def test_shifts_of_another_version_of_the_data(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import inconvenient.data

    other = table()
    other.hash = "e" * 64
    monkeypatch.setattr(inconvenient.data, "load_dataset", lambda name: other)
    words = f"with hash {HASH[:12]}..., the one here has e{{12}}...; fetch data and shifts of the"
    with pytest.raises(InputError, match=words):
        load_shift(ID)


def test_every_shift_is_found_whatever_the_row_groups(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = home / "artefacts" / "quick" / "publish" / "shifts.parquet"
    split = path.parents[1] / "split" / "split.parquet"
    write_frame(split, split_frame(["a", NAME, "z"]))
    listed = list_shifts(NAME)
    for rows in (1, 7, 1000):
        monkeypatch.setattr(files, "_GROUP_WITH_BYTES", rows)
        monkeypatch.setattr(files, "_GROUP", 100 * rows)
        write_frame(path, pd.read_parquet(path))
        write_frame(split, pd.read_parquet(split))
        loading._parts.cache_clear()
        assert pq.ParquetFile(path).num_row_groups == -(-len(list_shifts()) // rows)
        for shift_id, digest in zip(listed["shift_id"], listed["rows_hash"]):
            shift = load_shift(shift_id)
            assert shift.rows_hash == digest
            assert shift.test()[0].index.tolist() == list(range(3, 800, 4))
        for wrong in ("", "a", "zzz/x", ID + "x", ID[:-1]):
            with pytest.raises(InputError, match="there is no shift"):
                load_shift(wrong)


@pytest.mark.parametrize("name", ["publish/shifts", "split/split"])
def test_damaged_files_say_what_to_do(home: Path, name: str) -> None:
    path = home / "artefacts" / "quick" / f"{name}.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(NotAvailableError, match=f"{path.name} cannot be read .*inconvenient fetch"):
        load_shift(ID)
    path.unlink()
    words = "was needed and is absent" if "split" in name else "shifts were needed"
    with pytest.raises(NotAvailableError, match=words):
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
