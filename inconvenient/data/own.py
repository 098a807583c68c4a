"""A user's own table as a named dataset: kept with a small YAML file of facts, loaded by name."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from inconvenient.data.columns import closest
from inconvenient.data.dataset import Dataset
from inconvenient.data.frames import as_frame
from inconvenient.data.preparation import prepare_table
from inconvenient.data.reading import read_table
from inconvenient.errors import ConfigError, InputError

__all__ = ["ENTRY_KEYS", "own_name", "own_table", "read_entry"]

#: What an entry may say, and of which type; the first must be there.
ENTRY_KEYS: Mapping[str, type] = {
    "target": str,
    "name": str,
    "task": str,
    "drop": dict,
    "groups": str,
    "missing_target": str,
    "na": list,
    "text": list,
    "decimal": str,
    "sheet": str,
    "description": str,
    "documentation": dict,
    "licence": str,
}

_WRITTEN: dict[Any, str] = {
    str: "a text (quote it)",
    list: "a list, as [a, b]",
    dict: "a mapping, as {column: reason}",
}
_READING = ("na", "text", "decimal", "sheet")


def read_entry(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read what a YAML file says about a table.

    Parameters
    ----------
    path : path
        A mapping with ``target`` and any of the other :data:`ENTRY_KEYS`: ``drop`` maps columns
        to reasons, ``documentation`` columns to texts; the others are arguments of
        :func:`inconvenient.add_dataset` or :func:`read_table`.

    Returns
    -------
    dict

    Raises
    ------
    ConfigError
        If it is no such mapping.
    """
    import yaml

    try:
        raw = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}; name another entry") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is no YAML: {error}") from error
    if not isinstance(raw, dict):
        raise ConfigError(f"{path} must be a mapping with the key target, got {raw!r:.40}")
    check_entry(raw, str(path))
    if "na" in raw:
        # YAML makes numbers of -9 and 99; what a file holds is text.
        raw["na"] = [str(mark) for mark in raw["na"]]
    if "target" not in raw:
        raise ConfigError(f"{path} lacks target, the column to predict")
    return raw


def check_entry(entry: Mapping[str, Any], path: str = "entry") -> None:
    """Refuse an entry with a key that is unknown or of another type, with ConfigError."""
    for key, value in entry.items():
        if key not in ENTRY_KEYS:
            near = difflib.get_close_matches(str(key), ENTRY_KEYS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(ENTRY_KEYS)}"
            raise ConfigError(f"{path} has the unknown key {key!r}; {hint}")
        if not isinstance(value, ENTRY_KEYS[key]):
            raise ConfigError(
                f"{path}: {key} must be {_WRITTEN[ENTRY_KEYS[key]]}, got {value!r:.40}"
            )
        marks: Any = value
        if key == "na" and not all(isinstance(mark, str | int | float) for mark in marks):
            raise ConfigError(f"{path}: na must list texts or numbers, got {value!r:.40}")


def own_name(table: Any, name: str | None) -> str:
    """Return the name of a table as a dataset, "own:<name>"; of its file by default."""
    if name is None:
        if not isinstance(table, str | os.PathLike):
            raise InputError('a table without a file needs a name; pass name="..."')
        name = re.sub(r"\W+", "_", Path(table).stem.lower()).strip("_")
    plain = name.removeprefix("own:")
    if not re.fullmatch(r"\w[\w.-]*", plain):
        raise InputError(
            f"a name is letters, digits and _ . -, got {name!r}; pass another (name=..., --name)"
        )
    return f"own:{plain}"


def own_table(
    table: Any,
    *,
    name: str,
    target: str | None,
    task: str | None = None,
    drop: Sequence[str] | Mapping[str, str] = (),
    groups: str | None = None,
    missing_target: str = "raise",
    entry: Mapping[str, Any] | None = None,
) -> tuple[Dataset, dict[str, Any]]:
    """Prepare a user's table.

    Parameters
    ----------
    table : path, DataFrame or anything that :func:`as_frame` takes
    name : str
        Of the dataset, by :func:`own_name`.
    target, task, drop, groups, missing_target
        As in :func:`prepare_table`; what is given here goes before the entry.
    entry : mapping, optional
        By :func:`read_entry`.

    Returns
    -------
    Dataset
    dict
        Facts to keep with it.

    Raises
    ------
    InputError
        If the table cannot be read or used; the message names file, line and column.
    """
    said = dict(entry or {})
    check_entry(said)
    target = target or said.get("target")
    if not target:
        raise InputError(f"{name}: the column to predict is needed; pass target=... (--target)")
    if isinstance(table, str | os.PathLike):
        frame = read_table(table, **{key: said[key] for key in _READING if key in said})
        source = f"the user's file {Path(table).name}"
    else:
        frame, source = as_frame(table), "the user's table"
    more = drop if isinstance(drop, Mapping) else dict.fromkeys(_names(drop), "dropped by the user")
    reasons = {**said.get("drop", {}), **more}
    documentation = {str(k): str(v) for k, v in said.get("documentation", {}).items()}
    for column in documentation:
        if column not in frame.columns:
            raise InputError(
                f"{name}: documentation names {column!r}, which is no column; "
                f"{closest(column, frame.columns)}"
            )
    dataset = prepare_table(
        frame,
        target=target,
        task=task or said.get("task"),
        drop=tuple(reasons),
        groups=groups or said.get("groups"),
        missing_target=(
            said.get("missing_target", "raise") if missing_target == "raise" else missing_target
        ),
        name=name,
    )
    return dataset, {
        "name": name,
        "title": "",
        "task": dataset.task,
        "target": target,
        "classes": list(dataset.classes),
        "rows": len(dataset),
        "features": len(dataset.features),
        "description": said.get("description", ""),
        "target_description": documentation.get(target, ""),
        "feature_descriptions": {
            c: documentation[c] for c in dataset.features if c in documentation
        },
        "dropped_columns": reasons,
        "dropped_rows": dataset.dropped_rows,
        "dropped_classes": {},
        "licence": said.get("licence", ""),
        "source": source,
        "checksum": dataset.hash,
        "notes": f"clusters by {groups or said['groups']}" if dataset.groups is not None else "",
    }


def _names(names: Sequence[str]) -> Sequence[str]:
    return (names,) if isinstance(names, str) else names
