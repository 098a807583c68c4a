"""Versioned datasets, listed and loaded from a checkout or from the user's folder."""

from __future__ import annotations

import difflib
import functools
import hashlib
import json
from pathlib import Path
from typing import Any

import pandas as pd

from inconvenient.config import checkouts, user_folder
from inconvenient.data.dataset import Dataset
from inconvenient.data.kept import added_facts, is_remote, list_added
from inconvenient.data.paper import read_paper
from inconvenient.data.remote import load_remote
from inconvenient.data.stored import read_stored, with_gaps
from inconvenient.errors import InputError, NotAvailableError
from inconvenient.store import read_frame

__all__ = [
    "catalogue",
    "data_folder",
    "dataset_entry",
    "list_datasets",
    "load_dataset",
    "read_dataset",
]

CATALOGUE = "catalogue.parquet"
CATALOGUE_HASH = "catalogue.sha256"

_WAY_OUT = (
    "run `inconvenient fetch`, in a checkout `dvc pull data.dvc`, or `inconvenient data build` to "
    "export it anew"
)


def data_folder() -> Path:
    """Return the folder of the datasets: a checkout's own first, then the user's.

    Raises
    ------
    NotAvailableError
        If neither holds a catalogue.
    """
    folders = [root / "data" for root in (*checkouts(), user_folder())]
    for folder in folders:
        if (folder / CATALOGUE).is_file():
            return folder
    places = " nor ".join(str(folder) for folder in dict.fromkeys(folders))
    raise NotAvailableError(f"datasets were needed, but neither {places} holds any; {_WAY_OUT}")


@functools.lru_cache(maxsize=4)
def _read_catalogue(path: Path, stamp: tuple[int, int]) -> pd.DataFrame:
    try:
        content = path.read_bytes()
        words = path.with_name(CATALOGUE_HASH).read_text(encoding="ascii").split()
    except (OSError, ValueError) as error:
        raise NotAvailableError(
            f"{path.parent} lacks its catalogue ({error}); {_WAY_OUT}"
        ) from error
    if words != [hashlib.sha256(content).hexdigest(), CATALOGUE]:
        raise NotAvailableError(
            f"{path} is damaged: its SHA-256 is not in {CATALOGUE_HASH}; {_WAY_OUT}"
        )
    return with_gaps(read_frame(content))


def catalogue(folder: Path) -> pd.DataFrame:
    """Return the catalogue of a folder of datasets, one row per dataset.

    Raises
    ------
    NotAvailableError
        If it is absent or damaged.
    """
    path = folder / CATALOGUE
    try:
        stamps = [place.stat().st_mtime_ns for place in (path, folder / CATALOGUE_HASH)]
    except OSError as error:
        raise NotAvailableError(f"{folder} lacks its catalogue ({error}); {_WAY_OUT}") from error
    return _read_catalogue(path.absolute(), (stamps[0], stamps[1]))


def list_datasets(*, suite: str | None = None) -> pd.DataFrame:
    """List the datasets on this machine, or the slots of a suite.

    Parameters
    ----------
    suite : {"paper"}, optional
        "paper" for the 200 slots of the paper's suite, on this machine or not; see
        :func:`inconvenient.data.paper.read_paper`.

    Returns
    -------
    DataFrame
        One row per dataset: name, task, rows, features, classes, domain, family, source, licence,
        flags, target, group_column. Those that the user added come last.

    Raises
    ------
    InputError
        If there is no such suite.
    NotAvailableError
        If there are none.
    """
    if suite == "paper":
        return read_paper()
    if suite is not None:
        raise InputError(f"the one suite is paper, got {suite!r}; leave it out for what is here")
    columns = ["name", "task", "rows", "features", "classes", "domain", "family", "source"]
    columns += ["licence", "flags", "target", "group_column"]
    added = list_added()
    try:
        table = catalogue(data_folder())[columns]
    except NotAvailableError:
        if added.empty:
            raise
        return added[columns]
    return table.copy() if added.empty else pd.concat([table, added[columns]], ignore_index=True)


def load_dataset(name: str) -> Dataset:
    """Load a dataset and check it against its hash.

    Parameters
    ----------
    name : str
        As in :func:`list_datasets`, "own:NAME" for an own table; or "openml:NUMBER",
        "kaggle:OWNER/NAME/FILE.csv" or "talent:NAME", which is fetched first if it is not here
        yet, see :func:`inconvenient.add_dataset`.

    Returns
    -------
    Dataset

    Raises
    ------
    InputError
        If there is no dataset of that name; the message has the closest ones.
    NotAvailableError
        If its file is absent or damaged; the message says what to run.
    """
    name = _text(name)
    return load_remote(name) if is_remote(name) else read_dataset(data_folder(), name)


def _text(name: Any) -> str:
    if not isinstance(name, str):
        raise InputError(f"a dataset is named by a text, got {name!r}; ic.list_datasets() has all")
    return name


def read_dataset(folder: Path, name: str) -> Dataset:
    """Load a dataset from a folder; see :func:`load_dataset`."""
    table = catalogue(folder)
    found = table[table["name"] == name]
    if found.empty:
        close = difflib.get_close_matches(name, table["name"], n=3, cutoff=0.4)
        hint = f"closest: {', '.join(close)}" if close else "see `inconvenient data list`"
        raise InputError(f"no dataset is named {name!r}; {hint}")
    entry = found.iloc[0]
    frame, groups = read_stored(
        folder / f"{name}.parquet", entry["sha256"], witness="the catalogue", way_out=_WAY_OUT
    )
    return Dataset(
        name=name,
        frame=frame,
        target=str(entry["target"]),
        task=str(entry["task"]),
        classes=tuple(json.loads(entry["class_labels"])),
        groups=groups,
        description=str(entry["description"]),
        target_description=str(entry["target_description"]),
        feature_descriptions=json.loads(entry["feature_descriptions"]),
        family=str(entry["family"]) or name,
        domain=str(entry["domain"]),
        source=str(entry["source"]),
        licence=str(entry["licence"]),
        hash=str(entry["sha256"]),
        dropped_rows=int(entry["dropped_rows"]),
    )


def dataset_entry(name: str) -> dict[str, Any]:
    """Return what is known of a dataset beside its content, as in a row of the catalogue."""
    if not is_remote(name):
        table = catalogue(data_folder())
        row = table[table["name"] == name].iloc[0]
        return {str(key): value for key, value in row.items()}
    facts = added_facts(name)
    return {
        **facts,
        "group_column": "",
        "row_filter": "",
        "flags": "",
        "dropped_columns": json.dumps(facts["dropped_columns"]),
        "dropped_classes": json.dumps(facts["dropped_classes"]),
    }
