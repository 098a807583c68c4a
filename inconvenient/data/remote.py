"""Datasets that a user adds, an own table or one of OpenML, Kaggle or TALENT: kept, then local."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import urllib.parse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from inconvenient.config import user_folder
from inconvenient.data.columns import closest
from inconvenient.data.dataset import Dataset
from inconvenient.data.frames import as_frame
from inconvenient.data.kept import (
    KINDS,
    added_facts,
    is_added,
    is_remote,
    keep,
    load_added,
    parts_of,
)
from inconvenient.data.own import own_name, own_table, read_entry
from inconvenient.data.paper import read_slot
from inconvenient.data.preparation import prepare_table
from inconvenient.errors import InputError

__all__ = ["KINDS", "add_dataset", "is_added", "is_remote", "load_remote", "suite_datasets"]

# Classes under so many rows cannot be predicted.
_RARE = 5
_DATE = "days since 1970-01-01"


def add_dataset(
    source: Any,
    *,
    target: str | None = None,
    name: str | None = None,
    task: str | None = None,
    drop: Sequence[str] = (),
    groups: str | None = None,
    missing_target: str = "raise",
    drop_rare: bool = False,
    again: bool = False,
    archive: str | None = None,
    entry: Mapping[str, Any] | str | os.PathLike[str] | None = None,
) -> Dataset:
    """Keep an own table, or one of OpenML, Kaggle or TALENT, as a dataset that loads by name.

    Parameters
    ----------
    source : path, DataFrame or str
        An own table, as a file (CSV, Excel, ARFF, Parquet, Feather) or in memory; or
        "openml:40945" (id), "kaggle:owner/name/file.csv" or "talent:NAME", fetched once.
    target : str, optional
        The column to predict; what the entry or the source names by default.
    name : str, optional
        Of an own table, which loads as "own:<name>"; that of its file by default.
    task : {"regression", "binary", "multiclass"}, optional
        By default that of the source, or told from the target.
    drop : sequence of str
        Columns to leave out, beside those that the source marks.
    groups : str, optional
        Column of clusters of an own table, which then is no feature.
    missing_target : {"raise", "drop"}
        What to do with rows without a target.
    drop_rare : bool
        Leave out the rows of classes that have fewer than five; not of an own table.
    again : bool
        Replace what is there already.
    archive : str, optional
        Path or address of the TALENT archive; $INCONVENIENT_TALENT by default.
    entry : mapping or path of a YAML file, optional
        What there is to say of an own table, see :func:`inconvenient.data.own.read_entry`.

    Returns
    -------
    Dataset
        Of an own table, what :func:`prepare_table` makes of it; else without what the source marks
        as an id or to be ignored, without constant columns, and with dates as days since
        1970-01-01. It lies in ``$INCONVENIENT_HOME/datasets`` as Parquet with a YAML file of facts.

    Raises
    ------
    InputError
        If the source has no such dataset, it cannot be used as it is, or is there with another
        target; the message has the way out.
    NotAvailableError
        If the source cannot be reached or sends a damaged file.
    MissingDependencyError
        If the source's client is not installed.
    """
    if not (isinstance(source, str) and is_remote(source)):
        goal = {"target": target, "task": task, "drop": drop, "groups": groups}
        return _add_own(source, name, again, entry, missing_target=missing_target, **goal)
    if name is not None or groups is not None or entry is not None:
        raise InputError(f"name, groups and entry are for an own table, not for {source}")
    name = source
    kind, item = parts_of(name)
    if kind == "own":
        raise InputError(
            f"{name} is a dataset that is there or not; to add a table, pass its file or the table"
        )
    if is_added(name) and not again:
        facts = added_facts(name)
        other = target is not None and target != facts["target"]
        if other or (task is not None and task != facts["task"]):
            raise InputError(
                f"{name} is there with the target {facts['target']!r} ({facts['task']}), not "
                f"{target or facts['target']!r} ({task or facts['task']}); "
                "pass again=True (--again) to replace it"
            )
        return load_remote(name)
    downloads = user_folder() / "downloads" / kind
    if kind != "talent":  # whose archive stays for the next dataset
        downloads /= urllib.parse.quote(item, safe=" ")
    from inconvenient.data.sources_web import locked

    with locked(downloads):
        if again or not is_added(name):  # by another process meanwhile
            table = _read(kind, item, downloads, archive)
            options = _Options(target, task, tuple(drop), missing_target, drop_rare)
            dataset, facts = _prepared(name, table, options)
            keep(name, dataset, facts)
        if kind != "talent":
            shutil.rmtree(downloads, ignore_errors=True)
    return load_remote(name)


def _add_own(
    table: Any,
    name: str | None,
    again: bool,
    entry: Mapping[str, Any] | str | os.PathLike[str] | None,
    **goal: Any,
) -> Dataset:
    said = read_entry(entry) if isinstance(entry, str | os.PathLike) else dict(entry or {})
    full = own_name(table, name or said.get("name"))
    dataset, facts = own_table(table, name=full, entry=said, **goal)
    if is_added(full) and not again:
        if added_facts(full)["checksum"] != facts["checksum"]:
            raise InputError(
                f"{full} is there already with other content; pass again=True (--again) to replace "
                "it, or another name (name=..., --name)"
            )
        if not said:  # nothing new, and the texts may have been edited in its file
            return load_added(full)
    keep(full, dataset, facts)
    return load_added(full)


def load_remote(name: str) -> Dataset:
    """Load a dataset of a source, fetched first if it is not here yet.

    Raises
    ------
    InputError
        If it would be an own table, and is not here.
    NotAvailableError
        If its files are damaged, or it is absent and the source cannot be reached.
    """
    parts_of(name)
    if is_added(name):
        return load_added(name)
    if name.startswith("own:"):
        raise InputError(f"there is no {name}; add its table with `inconvenient data add FILE`")
    return add_dataset(name)


def suite_datasets(item: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the datasets of a suite of OpenML and the options of :func:`add_dataset` for each.

    Parameters
    ----------
    item : str
        The suite's number or alias.
    """
    from inconvenient.data.sources_openml import read_openml_suite

    folder = user_folder() / "downloads" / "openml" / "suite"
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        members = read_openml_suite(item, folder)
    return [
        (f"openml:{m.number}", {"target": m.target or None, "task": m.task or None})
        for m in members
    ]


@dataclasses.dataclass(frozen=True, slots=True)
class _Options:
    target: str | None
    task: str | None
    drop: tuple[str, ...]
    missing_target: str
    drop_rare: bool


def _read(kind: str, item: str, folder: Path, archive: str | None) -> Any:
    if kind == "openml":
        from inconvenient.data.sources_openml import read_openml

        return read_openml(item, folder)
    if kind == "kaggle":
        from inconvenient.data.sources_kaggle import read_kaggle

        return read_kaggle(item, folder)
    from inconvenient.data.sources_talent import read_talent

    return read_talent(item, folder, archive)


def _prepared(name: str, table: Any, options: _Options) -> tuple[Dataset, dict[str, Any]]:
    """Return the table as a dataset, and the facts to keep."""
    frame = as_frame(table.raw.frame)
    target, task, notes = _goal(name, table, frame, options)
    dropped = {column: reason for column, reason in table.drop.items() if column != target}
    for column in options.drop:
        if column not in frame.columns:
            raise InputError(f"{name}: drop names {column!r}, which is no column; "
                             f"{closest(column, frame.columns)}")  # fmt: skip
        dropped.setdefault(column, "dropped by the user")
    frame = frame.drop(columns=[column for column in dropped if column in frame.columns])
    texts = dict(table.raw.columns)
    for column in [c for c in frame.columns if c != target]:
        days = _days(frame[column], column in table.dates)
        if days is not None:
            frame = frame.assign(**{column: days})
            texts[column] = f"{texts.get(column, '')} ({_DATE})".strip()
    rows = frame[target].notna().to_numpy() if options.missing_target == "drop" else slice(None)
    present = frame[rows]
    for column in [c for c in frame.columns if c != target]:
        if present[column].nunique() + present[column].isna().any() < 2:
            dropped[column] = "all missing" if present[column].isna().all() else "constant"
    frame = frame.drop(columns=[column for column in dropped if column in frame.columns])
    rare = _rare(frame[target]) if task != "regression" else {}
    if rare and options.drop_rare:
        frame = frame[~frame[target].astype(str).isin(list(rare))]
    try:
        dataset = prepare_table(
            frame, target=target, task=task, missing_target=options.missing_target, name=name
        )
    except InputError as error:
        way = "; drop_rare=True (--drop-rare) leaves out the rows of rare classes" if rare else ""
        raise InputError(f"{name}: {error}{way}") from error
    facts = {
        "name": name,
        "title": table.raw.title,
        "task": dataset.task,
        "target": target,
        "classes": list(dataset.classes),
        "rows": len(dataset),
        "features": len(dataset.features),
        "description": table.raw.description,
        "target_description": texts.get(target, ""),
        "feature_descriptions": {c: texts[c] for c in dataset.features if c in texts},
        "dropped_columns": dropped,
        "dropped_rows": dataset.dropped_rows,
        "dropped_classes": rare if options.drop_rare else {},
        "licence": table.licence,
        "source": table.raw.source,
        "checksum": table.checksum,
        "notes": notes,
    }
    return dataset, facts


def _goal(
    name: str, table: Any, frame: pd.DataFrame, options: _Options
) -> tuple[str, str | None, str]:
    """Return target and task: the user's, else the source's, else the paper suite's."""
    slot = read_slot(name)
    target, notes = options.target or table.target, ""
    if not target and slot is not None and slot["target"] in frame.columns:
        target, notes = slot["target"], "the target is the one of the paper suite's slot"
    if not target:
        raise InputError(
            f"{name}: its source names no target; add it with target=COLUMN (on the command line "
            f"`inconvenient data add {name} --target COLUMN`); "
            f"{_listed(frame)}"
        )
    if target not in frame.columns:
        raise InputError(f"{name}: target {target!r} is no column; "
                         f"{closest(target, frame.columns)}")  # fmt: skip
    task = options.task
    if task is None and slot is not None and slot["target"] == target:
        task = slot["task"]
    if task is None and target == table.target:
        task = table.task or None
    if task is None and not pd.api.types.is_numeric_dtype(frame[target]):
        task = "binary" if frame[target].nunique() == 2 else None
    return target, task, notes


def _listed(frame: pd.DataFrame) -> str:
    shown = ", ".join(map(str, frame.columns[:12]))
    return f"its columns are {shown}{', ...' if frame.shape[1] > 12 else ''}"


def _rare(target: pd.Series) -> dict[str, str]:
    counts = target.dropna().astype(str).value_counts()
    few = counts[counts < _RARE].sort_index()
    return {str(label): f"{count} rows" for label, count in few.items()}


def _days(column: pd.Series, is_date: bool) -> pd.Series | None:
    """Return a column of dates as days since 1970-01-01, None if it holds none."""
    kind = column.dtype.kind if isinstance(column.dtype, np.dtype) else ""
    dated = is_date or kind == "M" or isinstance(column.dtype, pd.DatetimeTZDtype)
    if not dated and column.dtype == object:
        import datetime

        first = column.dropna()
        dated = len(first) > 0 and isinstance(first.iloc[0], datetime.date)
    if not dated:
        return None
    times = pd.to_datetime(column, errors="coerce", utc=True, format="mixed")
    if times.isna().sum() > column.isna().sum():
        return None
    days = (times - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)
    return pd.Series(days.to_numpy(dtype=np.float64), index=column.index)
