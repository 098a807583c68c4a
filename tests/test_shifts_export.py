"""Exported shifts: what other programs read is what was published, whatever the names are."""

from __future__ import annotations

import csv
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from publications import published_frame, split_frame, table

from inconvenient.errors import InputError, StoreError
from inconvenient.shifts import export, export_shifts, list_shifts, load_shift, loading
from inconvenient.shifts.tables import column_kinds, table_bytes
from inconvenient.store import read_frame, write_frame

NAME = "binary_a"
ID = f"{NAME}/x1/flip/0.2/at_least"
TEXTS = [
    "plain",
    "",
    "NA",
    "007",
    ' "quoted", ',
    "two\nlines",
    "mac\rline",
    "dos\r\nline",
    "ünd;\t'",
]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a user's folder with the profile quick; the dataset holds everything awkward."""
    import inconvenient.data

    data = table()
    n = len(data.frame)
    values = [TEXTS[i % len(TEXTS)] for i in range(n)]
    data.frame["x2"] = [1 / (i + 1) if i % 7 else np.nan for i in range(n)]
    data.frame['the "text",\nhere'] = pd.Series(values, dtype="str").where(data.frame.index % 5 > 0)
    data.frame["kind"] = pd.Categorical(values, categories=TEXTS)
    data.frame["flag"] = data.frame["x1"] > 1
    data.frame["row_id"] = np.arange(n)[::-1]
    data.features = [name for name in data.frame if name != "y"]
    folder = tmp_path / "home" / "artefacts" / "quick"
    names = [(NAME, "binary"), ("regression_a", "regression")]
    write_frame(folder / "publish" / "shifts.parquet", published_frame(names))
    write_frame(folder / "split" / "split.parquet", split_frame([name for name, _ in names]))
    monkeypatch.setattr(loading, "checkouts", list)
    monkeypatch.setenv("INCONVENIENT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(inconvenient.data, "load_dataset", lambda name: data)
    return tmp_path


def read_csv(path: Path, facts: dict[str, Any]) -> pd.DataFrame:
    """Read a file as README says."""
    kinds = {"text": "str", "integer": "int64", "number": "float64", "boolean": "bool"}
    return pd.read_csv(
        path,
        dtype={name: kinds[kind] for name, kind in facts["columns"].items()},
        keep_default_na=False,
        na_values=[""],
        index_col=facts["row_id"],
    )


def facts_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "shift.json").read_text(encoding="utf-8"))


def tree(folder: Path) -> dict[str, bytes]:
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()
    }


def same(read: pd.DataFrame, X: pd.DataFrame, y: pd.Series) -> None:
    assert read.index.tolist() == X.index.tolist()
    assert read.columns.tolist() == [*X.columns, y.name]
    for name in X:
        values = X[name]
        if column_kinds(X)[name] == "text":
            # pandas cannot tell an empty text from a gap
            values = values.astype(object).where(values.notna() & (values != ""), np.nan)
            assert read[name].fillna("(gap)").tolist() == values.fillna("(gap)").tolist()
        else:
            np.testing.assert_array_equal(read[name].to_numpy(), values.to_numpy())
    assert read[y.name].tolist() == y.tolist()


def test_csv_holds_every_value(home: Path) -> None:
    done = export_shifts([ID], home / "out")
    folder, shift = done.folders[ID], load_shift(ID)
    facts = facts_of(folder)
    assert facts["row_id"] == "row_id_"  # a feature has the other name
    same(read_csv(folder / facts["train"]["file"], facts), *shift.train())
    same(read_csv(folder / facts["test"]["file"], facts), *shift.test())
    for part in ("train", "test", "groups"):
        value = (folder / facts[part]["file"]).read_bytes()
        assert hashlib.sha256(value).hexdigest() == facts[part]["sha256"]
    groups = pd.read_csv(folder / "groups.csv")
    assert groups["row_id"].tolist() == shift.rows.tolist()
    assert groups["group"].tolist() == (shift.rows // 4).tolist()
    # to who reads quotes, an empty text and a gap are two things
    text = (folder / "train.csv").read_bytes().decode("utf-8")
    assert ',"",' in text
    with open(folder / "train.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert {len(row) for row in rows} == {len(shift.train()[0].columns) + 2}


def test_parquet_keeps_types(home: Path) -> None:
    done = export_shifts([ID], home / "out", file_format="parquet")
    facts = facts_of(done.folders[ID])
    read = read_frame(done.folders[ID] / facts["train"]["file"]).set_index(facts["row_id"])
    X, y = load_shift(ID).train()
    pd.testing.assert_frame_equal(read, pd.concat([X, y], axis=1).rename_axis(facts["row_id"]))
    read = read_frame(done.folders[ID] / facts["test"]["file"]).set_index(facts["row_id"])
    X, y = load_shift(ID).test()
    pd.testing.assert_frame_equal(read, pd.concat([X, y], axis=1).rename_axis(facts["row_id"]))


def test_facts_say_what_a_method_may_know_apart_from_the_shift(home: Path) -> None:
    facts = facts_of(export_shifts([ID], home / "out").folders[ID])
    shift = load_shift(ID)
    assert facts["shift_id"] == ID
    assert facts["context"] == {
        "task": "binary",
        "classes": ["no", "yes"],
        "target_name": "y",
        "target_description": "Whether x1 is positive.",
        "dataset_description": "Made up.",
        "feature_descriptions": shift.context.feature_descriptions,
    }
    assert facts["data_hash"] == shift.data_hash
    assert facts["rows_hash"] == shift.rows_hash
    assert facts["shift"]["b_sample"] == shift.b_sample.tolist()
    assert facts["shift"]["columns"] == list(shift.columns)
    assert facts["shift"]["scores"]["linear"]["ood"] == shift.scores["linear"].ood
    assert "rows" not in facts["shift"]


def test_a_second_export_adds_and_changes_nothing(home: Path) -> None:
    out = home / "out"
    ids = list_shifts(NAME)["shift_id"].tolist()[:4]
    told: list[tuple[int, int]] = []
    first = export_shifts(ids[:2], out, progress=lambda done, total: told.append((done, total)))
    assert told == [(0, 2), (1, 2)]
    before = tree(out)
    assert (first.written, len(before)) == (2, 2 * 3 + 2)
    again = export_shifts(ids, out)
    assert (again.written, len(again.folders)) == (2, 4)
    after = tree(out)
    assert all(after[name] == value for name, value in before.items() if name != export.INDEX)
    index = json.loads(after[export.INDEX])
    assert index == {i: folder.relative_to(out).as_posix() for i, folder in again.folders.items()}
    assert sum(name.endswith("test.csv") for name in after) == 1
    # The same, made at once.
    export_shifts(ids, home / "other")
    assert tree(home / "other") == after


@pytest.mark.parametrize("part", ["train.csv", "shift.json", "../test.csv"])
def test_what_is_there_and_differs_stays_unless_told(home: Path, part: str) -> None:
    out = home / "out"
    folder = export_shifts([ID], out).folders[ID]
    published = tree(out)
    (folder / part).write_bytes(b"mine")
    changed = tree(out)
    words = "exists and is no export of this shift as csv; name another folder, or say force"
    with pytest.raises(InputError, match=words):
        export_shifts([f"{NAME}/x1/flip/0.3/at_least", ID], out)
    assert tree(out) == changed
    assert export_shifts([ID], out, force=True).written == 1
    assert tree(out) == published


def test_a_foreign_test_set_and_another_format_are_not_replaced(home: Path) -> None:
    out = home / "out"
    (out / NAME).mkdir(parents=True)
    (out / NAME / "test.csv").write_text("mine")
    with pytest.raises(InputError, match="test.csv exists and is another test set"):
        export_shifts([ID], out)
    export_shifts([ID], out, file_format="parquet")
    assert (out / NAME / "test.csv").read_text() == "mine"
    with pytest.raises(InputError, match="no export of this shift as csv"):
        export_shifts([ID], out)
    with pytest.raises(InputError, match="a folder to write to was needed, got the file"):
        export_shifts([ID], out / NAME / "test.csv")
    with pytest.raises(InputError, match="format must be one of csv, parquet, got 'xlsx'"):
        export_shifts([ID], out, file_format="xlsx")
    with pytest.raises(InputError, match="were needed, got none"):
        export_shifts([], out)


def test_an_unknown_shift_writes_nothing(home: Path) -> None:
    with pytest.raises(InputError, match=f"no shift .*closest are .*{ID}"):
        export_shifts([ID, ID + "x"], home / "out")
    assert not (home / "out").exists()


def test_a_full_disk_leaves_whole_files(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = list_shifts(NAME)["shift_id"].tolist()[:3]
    fsync, left = os.fsync, iter(range(5))

    def full(handle: int) -> None:
        if next(left, None) is None:
            raise OSError(28, os.strerror(28))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="the disk is full"):
        export_shifts(ids, home / "out")
    monkeypatch.setattr(os, "fsync", fsync)
    assert 0 < export_shifts(ids, home / "out").written < 3
    export_shifts(ids, home / "other")
    assert tree(home / "out") == tree(home / "other")


@given(st.text(min_size=1, max_size=300), st.text(max_size=300))
def test_folders_are_safe_on_every_system(dataset: str, rest: str) -> None:
    parts = export.folder_of(f"{dataset}/{rest}").split("/")
    assert len(parts) == 2
    for part in parts:
        assert set(part) <= set("abcdefghijklmnopqrstuvwxyz0123456789._-")
        assert len(part) <= 80
        assert part[0] not in ".-"
        assert part[-1] != "."
        assert part.split(".")[0] not in {"con", "prn", "aux", "nul", "com1", "lpt9"}


def test_folders_tell_apart_what_is_alike() -> None:
    ids = [
        "a/Age/flip", "a/age/flip", "a/age_flip", "A/age/flip", "a/" + "x" * 70, "a/" + "x" * 71,
        "con/x", "CON/x", "a/ä", "a/ö", "a/", "../x", "a/../x",
    ]  # fmt: skip
    folders = [export.folder_of(shift_id) for shift_id in ids]
    assert len({folder.lower() for folder in folders}) == len(ids)
    assert folders[0].startswith("a/age_flip-")


def test_numbers_have_all_their_digits() -> None:
    values = [0.1, 1 / 3, 1e-300, 5e-324, -0.0, 1.7976931348623157e308, np.nan, 2.0**53 + 2]
    frame = pd.DataFrame({"v": values, "i": [2**62, *range(7)], "b": [True, False] * 4})
    lines = table_bytes(frame, "csv").decode().splitlines()
    assert lines[0] == '"v","i","b"'
    read = [line.split(",") for line in lines[1:]]
    assert [float(v) if v else np.nan for v, _, _ in read][:6] == values[:6]
    assert read[6][0] == ""
    assert [int(i) for _, i, _ in read] == frame["i"].tolist()
    assert {b for _, _, b in read} == {"true", "false"}


def test_commands(home: Path, cli: Callable[..., tuple[int, str, str]]) -> None:
    status, out, err = cli("shifts", "list", "--dataset", NAME)
    ids = list_shifts(NAME)["shift_id"].tolist()
    assert status == 0
    assert [line.split()[-1] for line in out.splitlines()[1:]] == ids
    assert max(map(len, out.splitlines())) <= 80
    assert f"{len(ids)} shifts of 1 datasets" in err
    status, out, _ = cli("shifts", "list", "--retained", "--operation", "flip", "--json")
    rows = json.loads(out)
    assert {row["operation"] for row in rows} == {"flip"}
    assert all(row["retained"] for row in rows)
    assert set(rows[0]) == set(list_shifts().columns)
    status, out, _ = cli("shifts", "show", ID)
    assert status == 0
    assert "rows_hash" in out
    assert json.loads(cli("shifts", "show", ID, "--json")[1])["shift_id"] == ID
    assert "closest are" in cli("shifts", "show", ID + "x")[2]

    target = str(home / "out")
    status, out, err = cli("shifts", "export", ID, "--out", target)
    assert (status, err) == (0, "1 of 1 shifts written\n")
    assert (Path(out.strip()) / "train.csv").is_file()
    status, out, _ = cli("shifts", "export", "--dataset", NAME, "--out", target, "--json")
    said = json.loads(out)
    assert (said["written"], list(said["folders"])) == (len(ids) - 1, ids)
    status, _, err = cli("shifts", "export", "--out", target)
    assert (status, err.count("\n")) == (1, 1)
    assert "give ids, or --dataset, or --all" in err
    assert cli("shifts", "export", ID, "--all", "--out", target)[0] == 1
    (Path(said["folders"][ID]) / "train.csv").write_text("mine")
    assert "--force" in cli("shifts", "export", ID, "--out", target)[2]
    assert cli("shifts", "export", ID, "--out", target, "--force")[0] == 0
