"""The catalogue's files: every one is read, and what is not written as it must be is named."""

from __future__ import annotations

import collections
import hashlib
import json

import pytest

from inconvenient.data import entries as module
from inconvenient.data.entries import entry_names, read_entries, read_excluded
from inconvenient.data.loading import catalogue
from inconvenient.errors import ConfigError, InputError
from inconvenient.store import read_frame

BASE = """
item: [package, item]
task: binary
target: y
domain: other
licence: MIT
"""


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Return a function that reads an entry with lines added to a minimal one."""
    monkeypatch.setattr(module, "_folder", lambda: tmp_path)

    def read(lines: str, base: str = BASE):
        (tmp_path / "mine.yaml").write_text(base + lines, encoding="utf-8")
        return read_entries(["mine"])["mine"]

    return read


def test_every_entry_is_read_and_explains_what_it_drops() -> None:
    entries = read_entries()
    assert list(entries) == entry_names() == sorted(entries)
    assert all(entry.licence and entry.domain for entry in entries.values())
    items = [(entry.source, entry.item, entry.target) for entry in entries.values()]
    assert len(set(items)) == len(items)


def test_nothing_is_both_in_the_catalogue_and_excluded() -> None:
    assert not set(read_excluded()) & set(entry_names())


def test_there_are_enough_datasets_of_every_task() -> None:
    tasks = collections.Counter(entry.task for entry in read_entries().values())
    assert tasks.total() >= 215
    assert tasks["regression"] >= 100
    assert tasks["binary"] >= 70
    assert tasks["multiclass"] >= 40


def test_the_folder_holds_what_the_entries_say(data_folder) -> None:
    entries = read_entries()
    table = catalogue(data_folder).set_index("name")
    assert list(table.index) == list(entries)
    for name, entry in entries.items():
        row = table.loc[name]
        for key in ("task", "target", "domain", "family", "licence", "group_column", "notes"):
            assert row[key] == getattr(entry, key), f"{name}: {key}"
        assert row["target_transform"] == entry.target_transform
        assert row["row_filter"] == "; ".join(entry.row_filter)
        assert json.loads(row["dropped_columns"]) == dict(entry.drop)
        assert json.loads(row["merged_classes"]) == dict(entry.merge_classes)
        assert json.loads(row["dropped_classes"]) == dict(entry.drop_classes)
        assert json.loads(row["leaks_answered"]) == dict(entry.leaks_answered)


def test_every_dataset_is_described(data_folder) -> None:
    table = catalogue(data_folder)
    assert (table["rows"] >= 300).all()
    assert table["description"].str.len().min() > 20
    assert (table["target_description"].str.len() > 0).all()
    assert table["sha256"].is_unique
    for row in table.to_dict("records"):
        features = set(json.loads(row["schema"])) - {row["target"], "__group__"}
        assert set(json.loads(row["feature_descriptions"])) == features, row["name"]


def test_no_table_is_used_twice(data_folder) -> None:
    # Columns of many values that are equal but for the order of the rows belong to one table.
    seen: dict[bytes, str] = {}
    for name in entry_names():
        frame = read_frame(data_folder / f"{name}.parquet").drop(
            columns="__group__", errors="ignore"
        )
        for column in frame.columns:
            values = frame[column].dropna()
            if values.nunique() < 15:
                continue
            content = "\n".join(sorted(map(str, values))).encode()
            assert seen.setdefault(hashlib.sha256(content).digest(), name) == name, column


def test_a_broken_draft_is_no_obstacle_for_others(written, tmp_path) -> None:
    (tmp_path / "draft.yaml").write_text("target: [", encoding="utf-8")
    assert written("").target == "y"
    with pytest.raises(ConfigError, match=r"draft.yaml is no YAML"):
        read_entries()


def test_an_unknown_name_has_the_closest(written) -> None:
    written("")
    with pytest.raises(InputError, match=r"has no dataset mime; closest: mine; a new one needs"):
        read_entries(["mime"])


def test_the_forms_of_an_entry(written) -> None:
    entry = written(
        "row_filter: age is present\n"
        "categories_from: {region: {columns: {ne: NE, s: S}, base: W}}\n"
        "merge_classes: {3: 2}\n"
        "notes: why\n"
        "target_from: {column: n, above: 0}\n"
        "drop: {n: source of the target}\n"
    )
    assert entry.row_filter == ("age is present",)
    assert entry.categories_from["region"].columns == {"ne": "NE", "s": "S"}
    assert entry.categories_from["region"].base == "W"
    assert entry.merge_classes == {"3": "2"}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("targt: y", r"unknown keys targt; did you mean target\?"),
        ("drop: {a: x}\ndrop: {b: x}", r"'drop' stands twice"),
        ("drop: {a: x, a: z}", r"'a' stands twice"),
        ("drop: {no: x}", r"drop holds False, which YAML made of yes/no; quote it"),
        ("drop: [a]", r"drop must be a mapping"),
        ("drop: {a: }", r"drop: a must be a text, got None"),
        ("drop: {a: ''}", r"drop: a has no text"),
        ("categorical: a", r"categorical must be a list"),
        ("target_transform: log1p", r"log1p goes with regression|goes with regression"),
        ("target_from: {above: 0}", r"target_from reads"),
        ("target_from: {column: a, above: 0, equals: 1}", r"target_from reads"),
        ("target_from: {column: a, above: x}", r"above needs a number, got 'x'"),
        ("target_from: {column: a, among: x}", r"among has 'x'"),
        ("target_from: {mean_of: [a, b]}", r"target_from reads"),
        ("target_from: {column: a, above: 0}", r"made from a, which must stand under `drop`"),
        ("categories_from: {a: {base: x}}", r"categories_from: a has `columns`"),
        ("categories_from: {a: {columns: {y: b}}}", r"y is a part of a and goes by itself"),
        ("mend: {a: {1: 2}}", r"mend needs its reason in `notes`"),
        ("mend: {a: 1}\nnotes: why", r"mend: a must map wrong to right"),
    ],
)
def test_what_is_wrong_is_named(written, lines: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        written(lines)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("task: binary", "task: ordinal", r"task must be one of"),
        ("domain: other", "domain: cats", r"domain must be one of"),
        ("licence: MIT", "", r"lacks licence"),
    ],
)
def test_what_is_required_is_named(written, old: str, new: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        written("", BASE.replace(old, new))
