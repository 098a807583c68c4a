"""Croissant metadata: valid by its own library, and what it names can be read by it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from inconvenient.data.checking import verify
from inconvenient.data.croissant import CROISSANT, croissant_bytes, write_croissant
from inconvenient.data.loading import CATALOGUE, CATALOGUE_HASH, read_dataset
from inconvenient.errors import NotAvailableError

# What mlcroissant asks of rdflib and pandas; no call of ours.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:rdflib"),
    pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame.reset_index"),
]

NAMES = ["birthweight_ucb", "email_spam", "psid_wages_panel"]


@pytest.fixture
def folder(data_folder: Path, tmp_path: Path) -> Path:
    """Return a folder of three datasets."""
    import hashlib

    from inconvenient.store import frame_bytes, read_frame

    table = read_frame(data_folder / CATALOGUE)
    content = frame_bytes(table[table["name"].isin(NAMES)].reset_index(drop=True))
    (tmp_path / CATALOGUE).write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    (tmp_path / CATALOGUE_HASH).write_text(f"{digest}  {CATALOGUE}\n")
    for name in NAMES:
        shutil.copyfile(data_folder / f"{name}.parquet", tmp_path / f"{name}.parquet")
    return tmp_path


def validated(path: Path) -> Any:
    mlc = pytest.importorskip("mlcroissant")
    dataset = mlc.Dataset(str(path))  # raises on errors
    assert dataset.metadata.issues.report() == ""  # nor warnings
    return dataset


def test_it_is_valid_and_leads_to_the_data(folder: Path) -> None:
    dataset = validated(write_croissant(folder))
    for name in NAMES:
        wanted = read_dataset(folder, name)
        found = pd.DataFrame(list(dataset.records(record_set=name)))
        assert len(found) == len(wanted)
        assert found.shape[1] == wanted.frame.shape[1] + (wanted.groups is not None)
        target = found[f"{name}/{wanted.target}"]
        if wanted.task == "regression":
            np.testing.assert_allclose(target.astype(float), wanted.y)


def test_it_says_what_the_columns_are(folder: Path) -> None:
    said = json.loads(croissant_bytes(folder))
    assert [r["name"] for r in said["recordSet"]] == NAMES
    (spam,) = (r for r in said["recordSet"] if r["name"] == "email_spam")
    wanted = read_dataset(folder, "email_spam")
    fields = {f["name"]: f for f in spam["field"]}
    assert set(fields) == set(wanted.frame.columns)
    assert all(f["description"] for f in fields.values())
    assert fields[wanted.target]["description"].startswith("Target (binary).")
    (panel,) = (r for r in said["recordSet"] if r["name"] == "psid_wages_panel")
    (cluster,) = (f for f in panel["field"] if f["name"] == "__group__")
    assert cluster["description"] == "Cluster of the row, by id; no feature."
    assert all("licence: " in f["description"] for f in said["distribution"])


def test_the_same_data_give_the_same_bytes(folder: Path, cli: Callable[..., Any]) -> None:
    first = croissant_bytes(folder)
    status, out, _ = cli("data", "croissant", "--folder", str(folder))
    assert (status, out) == (0, f"{folder / CROISSANT}\n")
    assert (folder / CROISSANT).read_bytes() == first
    assert verify(folder) == []
    (folder / CROISSANT).write_bytes(first + b" ")
    assert verify(folder) == [
        "croissant.json: not of this catalogue; run `inconvenient data croissant`"
    ]


def test_an_absent_file_is_named(folder: Path) -> None:
    (folder / "email_spam.parquet").unlink()
    with pytest.raises(NotAvailableError, match="email_spam.parquet is needed and absent"):
        croissant_bytes(folder)


@pytest.mark.slow
def test_the_whole_suite_is_valid(data_folder: Path, tmp_path: Path) -> None:
    path = tmp_path / CROISSANT
    path.write_bytes(croissant_bytes(data_folder))
    for file in data_folder.glob("*.parquet"):
        (tmp_path / file.name).symlink_to(file)
    assert len(validated(path).metadata.record_sets) == len(list(tmp_path.glob("*.parquet"))) - 1
