"""Exports the catalogue's datasets to Parquet, the same bytes on every run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from inconvenient.data.checking import kinds
from inconvenient.data.croissant import write_croissant
from inconvenient.data.entries import Entry, entry_names, read_entries
from inconvenient.data.leaks import find_leaks, unanswered
from inconvenient.data.loading import CATALOGUE, CATALOGUE_HASH, catalogue
from inconvenient.data.shaping import Shaped, shape
from inconvenient.data.sources import RawTable, read_raw
from inconvenient.data.stored import GROUP_COLUMN
from inconvenient.errors import InputError, NotAvailableError
from inconvenient.store import canonical_json, frame_bytes, write_atomic

__all__ = ["build", "undocumented"]


def build(
    folder: str | Path, names: Sequence[str] | None = None, *, allow_leaks: bool = False
) -> list[str]:
    """Export datasets.

    Parameters
    ----------
    folder : path
        Gets one ``<name>.parquet`` per dataset, ``catalogue.parquet``, with the hash of the
        latter in the format of sha256sum ``catalogue.sha256``, and ``croissant.json``. Rows of
        other datasets are kept from a catalogue that is there.
    names : sequence of str, optional
        All of the catalogue by default; only the entries of these are read.

    allow_leaks : bool
        Export in spite of findings of the leak check that the catalogue does not answer.

    Returns
    -------
    list of str
        What was built.

    Raises
    ------
    ConfigError
        If an entry is not written as it must be.
    InputError
        If a name is unknown, tables are not as the catalogue says, or a finding of the leak check
        has no answer; nothing is written then.
    MissingDependencyError
        If a package that the datasets come from is not installed.
    """
    entries = read_entries(names)
    target = Path(folder)
    exports: dict[str, tuple[bytes, dict[str, Any]]] = {}
    problems = []
    for name, entry in entries.items():
        try:
            exports[name] = _export(entry, allow_leaks)
        except InputError as error:
            problems.append(str(error))
    if problems:
        raise InputError("\n".join(problems))
    known = set(entry_names())
    rows: dict[str, dict[Any, Any]] = {}
    for row in _old_catalogue(target).to_dict("records"):
        if row["name"] in known:
            rows[str(row["name"])] = row
    for name, (content, facts) in exports.items():
        write_atomic(target / f"{name}.parquet", content)
        rows[name] = facts
    content = _parquet(pd.DataFrame([rows[name] for name in sorted(rows)]))
    write_atomic(target / CATALOGUE, content)
    line = f"{hashlib.sha256(content).hexdigest()}  {CATALOGUE}\n"
    write_atomic(target / CATALOGUE_HASH, line.encode("ascii"))
    write_croissant(target)
    return list(entries)


def _old_catalogue(folder: Path) -> pd.DataFrame:
    try:
        return catalogue(folder)
    except NotAvailableError:
        return pd.DataFrame({"name": []})


def _export(entry: Entry, allow_leaks: bool) -> tuple[bytes, dict[str, Any]]:
    """Return a dataset's file and its row of the catalogue."""
    raw = read_raw(entry.source, entry.item)
    shaped = shape(entry, raw.frame)
    frame = shaped.frame
    if not allow_leaks:
        _check_leaks(entry, shaped)
    if shaped.groups is not None:
        frame = frame.assign(**{GROUP_COLUMN: shaped.groups})
    content = _parquet(frame)
    return content, {
        "name": entry.name,
        "task": entry.task,
        "target": entry.target,
        "rows": len(frame),
        "features": len(shaped.features),
        "classes": len(shaped.classes),
        "class_labels": json.dumps(shaped.classes),
        "domain": entry.domain,
        "family": entry.family,
        "source": raw.source,
        "licence": entry.licence,
        "flags": ", ".join(entry.flags),
        "description": entry.description
        or ". ".join(filter(None, [raw.title.rstrip("."), raw.description])),
        "target_description": _target_text(entry, raw),
        "feature_descriptions": canonical_json(_texts(entry, raw, shaped.features)),
        "group_column": entry.group_column,
        "target_transform": entry.target_transform,
        "dropped_columns": canonical_json(dict(entry.drop)),
        "row_filter": "; ".join(entry.row_filter),
        "merged_classes": canonical_json(dict(entry.merge_classes)),
        "dropped_classes": canonical_json(dict(entry.drop_classes)),
        "dropped_rows": shaped.dropped,
        "notes": entry.notes,
        "leaks_answered": canonical_json(dict(entry.leaks_answered)),
        "sha256": hashlib.sha256(content).hexdigest(),
        "schema": canonical_json({str(c): str(t) for c, t in kinds(frame).items()}),
    }


def _check_leaks(entry: Entry, shaped: Shaped) -> None:
    target = shaped.frame[entry.target].to_numpy()
    features = shaped.frame[shaped.features]
    findings = find_leaks(features, target, task=entry.task, groups=shaped.groups)
    if left := unanswered(findings, entry.leaks_answered):
        lines = "\n".join(f"  {finding.key!r}: {finding.text}" for finding in left)
        raise InputError(
            f"{entry.name}: these may give the target away; mend the entry, or answer each by its "
            f"key under `leaks_answered` with the reason why it is no leak\n{lines}"
        )


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
    text = [name for name, kind in kinds(frame).items() if kind == "text"]
    return frame_bytes(frame.astype(dict.fromkeys(text, object)))


def undocumented(folder: str | Path, names: Sequence[str]) -> dict[str, list[str]]:
    """Return, by dataset of a folder, the features and the target that no text explains."""
    table = catalogue(Path(folder))
    found = {}
    for row in table[table["name"].isin(list(names))].to_dict("records"):
        texts = {row["target"]: row["target_description"]}
        texts |= json.loads(row["feature_descriptions"])
        columns = [c for c in json.loads(row["schema"]) if c != GROUP_COLUMN]
        if absent := [column for column in columns if not texts.get(column)]:
            found[str(row["name"])] = absent
    return found
