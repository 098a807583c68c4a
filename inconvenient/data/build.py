"""Exports the catalogue's datasets to Parquet, the same bytes on every run, and verifies them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from inconvenient.data.catalogue import Entry, read_entries
from inconvenient.data.loading import CATALOGUE, CATALOGUE_HASH, GROUP_COLUMN, catalogue
from inconvenient.data.sources import RawTable, read_raw
from inconvenient.errors import InputError, NotAvailableError
from inconvenient.store import canonical_json, frame_bytes, read_frame, write_atomic

__all__ = ["build", "verify"]

# Classes under this many rows cannot be split with ten rows a side; none is merged silently.
_LEAST_CLASS = 40


def build(folder: str | Path, names: Sequence[str] | None = None) -> list[str]:
    """Export datasets.

    Parameters
    ----------
    folder : path
        Gets one ``<name>.parquet`` per dataset, ``catalogue.parquet`` and, with the hash of the
        latter in the format of sha256sum, ``catalogue.sha256``. Entries of datasets
        that are not named are kept from a catalogue that is there.
    names : sequence of str, optional
        All of the catalogue by default.

    Returns
    -------
    list of str
        What was built.

    Raises
    ------
    InputError
        If a name is unknown, or a table is not as the catalogue says.
    MissingDependencyError
        If the collection that the datasets come from is not installed.
    """
    entries = read_entries()
    wanted = list(entries) if names is None else list(names)
    unknown = sorted(set(wanted) - set(entries))
    if unknown:
        raise InputError(
            f"the catalogue has no dataset {', '.join(unknown)}; it has {', '.join(entries)}"
        )
    target = Path(folder)
    exports = {name: _export(entries[name]) for name in wanted}
    rows: dict[str, dict[Any, Any]] = {}
    for row in _old_catalogue(target).to_dict("records"):
        if row["name"] in entries:
            rows[str(row["name"])] = row
    for name, (content, facts) in exports.items():
        write_atomic(target / f"{name}.parquet", content)
        rows[name] = facts
    table = pd.DataFrame([rows[name] for name in sorted(rows)])
    content = _parquet(table)
    write_atomic(target / CATALOGUE, content)
    line = f"{hashlib.sha256(content).hexdigest()}  {CATALOGUE}\n"
    write_atomic(target / CATALOGUE_HASH, line.encode("ascii"))
    return wanted


def _old_catalogue(folder: Path) -> pd.DataFrame:
    try:
        return catalogue(folder)
    except NotAvailableError:
        return pd.DataFrame({"name": []})


def _export(entry: Entry) -> tuple[bytes, dict[str, Any]]:
    """Return a dataset's file and its row of the catalogue."""
    raw = read_raw(*entry.item)
    frame, dropped = _frame(entry, raw)
    groups = _groups(entry, frame)
    features = [c for c in frame.columns if c not in (entry.target, entry.group_column)]
    frame = frame[[*features, entry.target]].copy()
    labels: list[str] = []
    if entry.task != "regression":
        labels = _check_classes(entry, frame[entry.target])
    if groups is not None:
        frame[GROUP_COLUMN] = groups
    content = _parquet(frame)
    return content, {
        "name": entry.name,
        "task": entry.task,
        "target": entry.target,
        "rows": len(frame),
        "features": len(features),
        "classes": len(labels),
        "class_labels": json.dumps(labels),
        "domain": entry.domain,
        "family": entry.family,
        "source": raw.source,
        "licence": entry.licence,
        "flags": ", ".join(entry.flags),
        "description": entry.description
        or ". ".join(filter(None, [raw.title.rstrip("."), raw.description])),
        "target_description": _target_text(entry, raw),
        "feature_descriptions": canonical_json(_texts(entry, raw, features)),
        "group_column": entry.group_column,
        "target_transform": entry.target_transform,
        "dropped_columns": canonical_json(dict(entry.drop)),
        "row_filter": entry.row_filter,
        "dropped_rows": dropped,
        "notes": entry.notes,
        "sha256": hashlib.sha256(content).hexdigest(),
        "schema": canonical_json({str(c): str(t) for c, t in _kinds(frame).items()}),
    }


def _frame(entry: Entry, raw: RawTable) -> tuple[pd.DataFrame, int]:
    """Return the table with its target, and how many rows had none."""
    frame = _mended(entry, raw.frame)
    if entry.target_from is not None:
        source = frame[entry.target_from["column"]]
        frame = frame.assign(
            **{
                entry.target: np.where(
                    source.astype(str) == entry.target_from["equals"], "yes", "no"
                )
            }
        )
    absent = sorted({*entry.drop, entry.target} - set(frame.columns))
    if absent:
        raise InputError(f"{entry.name}: the table has no column {', '.join(absent)}")
    present = frame[entry.target].notna()
    frame, dropped = frame[present], int((~present).sum())
    frame = frame[_kept(entry, frame)].drop(columns=list(entry.drop)).reset_index(drop=True)
    target = frame[entry.target]
    if entry.task != "regression":
        if pd.api.types.is_float_dtype(target) and (target == target.round()).all():
            target = target.astype(np.int64)
        frame[entry.target] = target.astype(str)
    elif entry.target_transform == "log1p":
        # To ten digits: the last one of log1p depends on the processor.
        frame[entry.target] = [float(f"{v:.9e}") for v in np.log1p(target.astype(np.float64))]
    return frame, dropped


def _mended(entry: Entry, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with the wrong values that the catalogue names put right."""
    mended = {}
    for column, changes in entry.mend.items():
        values = frame[column].astype(object)
        absent = [old for old in changes if not (values == old).any()]
        if absent:
            raise InputError(f"{entry.name}: column {column} has no value {absent[0]!r} to mend")
        right = [np.nan if (new := changes.get(v, v)) is None else new for v in values]
        mended[column] = pd.Series(right, index=frame.index)
    return frame.assign(**mended)


def _kept(entry: Entry, frame: pd.DataFrame) -> pd.Series:
    """Return which rows the catalogue's row filter keeps, bool (n,)."""
    if not entry.row_filter:
        return pd.Series(True, index=frame.index)
    column, _, rest = entry.row_filter.partition(" ")
    if rest == "is present":
        return frame[column].notna()
    words = rest.removeprefix("at most ")
    if words == rest:
        raise InputError(
            f"{entry.name}: row_filter must read '<column> is present' or "
            f"'<column> at most <number>', got {entry.row_filter!r}"
        )
    return frame[column] <= float(words)


def _groups(entry: Entry, frame: pd.DataFrame) -> np.ndarray | None:
    if not entry.group_column:
        return None
    codes, _ = pd.factorize(frame[entry.group_column], sort=True)
    if (codes < 0).any():
        raise InputError(f"{entry.name}: the cluster column {entry.group_column} has gaps")
    return codes.astype(np.int64)


def _check_classes(entry: Entry, target: pd.Series) -> list[str]:
    counts = target.value_counts()
    if counts.min() < _LEAST_CLASS:
        raise InputError(
            f"{entry.name}: class {counts.idxmin()!r} has {counts.min()} rows, fewer than "
            f"{_LEAST_CLASS}; merge or drop it in the catalogue, with the reason"
        )
    labels = sorted(map(str, counts.index))
    if (entry.task == "binary") != (len(labels) == 2):
        raise InputError(f"{entry.name}: task {entry.task} does not go with {len(labels)} classes")
    return labels


def _target_text(entry: Entry, raw: RawTable) -> str:
    text = entry.documentation.get("target") or raw.columns.get(entry.target, "")
    if entry.target_transform:
        text += f" ({entry.target_transform} of the value is predicted)"
    return text.strip()


def _texts(entry: Entry, raw: RawTable, features: list[str]) -> dict[str, str]:
    texts = {**raw.columns, **{k: v for k, v in entry.documentation.items() if k != "target"}}
    return {name: texts[name] for name in features if name in texts}


def _parquet(frame: pd.DataFrame) -> bytes:
    # As objects, for pandas 2 and 3 would write text as different types of Parquet.
    text = [name for name, kind in _kinds(frame).items() if kind == "text"]
    return frame_bytes(frame.astype(dict.fromkeys(text, object)))


def _kinds(frame: pd.DataFrame) -> dict[str, str]:
    """Return number, integer, boolean or text per column, whatever the version of pandas."""
    kinds = {}
    for name in frame.columns:
        kind = frame[name].dtype.kind
        kinds[str(name)] = {"f": "number", "i": "integer", "u": "integer", "b": "boolean"}.get(
            kind, "text"
        )
    return kinds


def verify(folder: str | Path) -> list[str]:
    """Check every dataset of a folder against hash and schema.

    Returns
    -------
    list of str
        One line per problem; empty if all is well.
    """
    place = Path(folder)
    try:
        table = catalogue(place)
    except NotAvailableError as error:
        return [str(error)]
    problems = []
    for row in table.to_dict("records"):
        path = place / f"{row['name']}.parquet"
        if not path.is_file():
            problems.append(f"{path.name}: absent")
            continue
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != row["sha256"]:
            problems.append(f"{path.name}: its SHA-256 is not the catalogue's")
            continue
        frame = read_frame(content)
        if canonical_json({str(c): t for c, t in _kinds(frame).items()}) != row["schema"]:
            problems.append(f"{path.name}: its columns are not those of the catalogue")
        if len(frame) != row["rows"]:
            problems.append(f"{path.name}: {len(frame)} rows, the catalogue says {row['rows']}")
    known = {CATALOGUE, CATALOGUE_HASH, *(f"{name}.parquet" for name in table["name"])}
    stray = sorted(p.name for p in place.iterdir() if p.name not in known)
    problems += [f"{name}: not in the catalogue" for name in stray if not name.startswith(".")]
    return problems
