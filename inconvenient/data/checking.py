"""Checks exported datasets: hash, schema, and what may give a target away."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pandas as pd

from inconvenient.data.croissant import CROISSANT, croissant_bytes
from inconvenient.data.leaks import find_leaks, unanswered
from inconvenient.data.loading import CATALOGUE, CATALOGUE_HASH, catalogue, read_dataset
from inconvenient.errors import NotAvailableError
from inconvenient.store import canonical_json, read_frame

__all__ = ["kinds", "verify", "verify_leaks"]


def kinds(frame: pd.DataFrame) -> dict[str, str]:
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
        if canonical_json({str(c): t for c, t in kinds(frame).items()}) != row["schema"]:
            problems.append(f"{path.name}: its columns are not those of the catalogue")
        if len(frame) != row["rows"]:
            problems.append(f"{path.name}: {len(frame)} rows, the catalogue says {row['rows']}")
    path = place / CROISSANT
    if not problems and path.is_file() and path.read_bytes() != croissant_bytes(place):
        problems.append(f"{CROISSANT}: not of this catalogue; run `inconvenient data croissant`")
    known = {CATALOGUE, CATALOGUE_HASH, CROISSANT, *(f"{name}.parquet" for name in table["name"])}
    stray = sorted(p.name for p in place.iterdir() if p.name not in known)
    problems += [f"{name}: not in the catalogue" for name in stray if not name.startswith(".")]
    return problems


def verify_leaks(folder: str | Path) -> list[str]:
    """Look for leaks in every dataset of a folder.

    Returns
    -------
    list of str
        One line per finding that the catalogue does not answer.

    Raises
    ------
    NotAvailableError
        If the folder or one of its files is absent or damaged.
    """
    place = Path(folder)
    table = catalogue(place)
    problems = []
    for name, answers in zip(table["name"], table["leaks_answered"]):
        dataset = read_dataset(place, name)
        target = dataset.frame[dataset.target].to_numpy()
        found = find_leaks(dataset.X, target, task=dataset.task, groups=dataset.groups)
        left = unanswered(found, json.loads(answers))
        problems += [f"{name}: {finding.key!r}: {finding.text}" for finding in left]
    return problems
