"""The catalogue file: what is known of each dataset before it is built."""

from __future__ import annotations

import dataclasses
import importlib.resources
from collections.abc import Mapping
from typing import Any

from inconvenient.data.dataset import TASKS
from inconvenient.errors import ConfigError

__all__ = ["Entry", "read_entries"]


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """One dataset of the catalogue file.

    Parameters
    ----------
    name : str
    item : tuple of (str, str)
        Package and item of the collection it is exported from.
    task : str
    target : str
        Column to predict.
    domain, licence : str
    target_transform : str
        "" or "log1p".
    target_from : mapping, optional
        ``column`` and ``equals``: the target is whether that column has that value.
    group_column : str
        Cluster column, or "".
    description : str
        Replaces the package's, where that says too little or something wrong.
    family, row_filter, notes : str
        ``row_filter`` reads "<column> is present", "<column> at most <number>", or is empty.
    mend : mapping of str to mapping
        Per column, wrong value to right value (null: missing), each explained in ``notes``.
    drop : mapping of str to str
        Dropped column to reason.
    flags : tuple of str
    documentation : mapping of str to str
        Replaces or adds to the package's; the key "target" is the target's.
    """

    name: str
    item: tuple[str, str]
    task: str
    target: str
    domain: str
    licence: str
    target_transform: str = ""
    target_from: Mapping[str, str] | None = None
    group_column: str = ""
    description: str = ""
    family: str = ""
    row_filter: str = ""
    notes: str = ""
    mend: Mapping[str, Mapping[Any, Any]] = dataclasses.field(default_factory=dict)
    drop: Mapping[str, str] = dataclasses.field(default_factory=dict)
    flags: tuple[str, ...] = ()
    documentation: Mapping[str, str] = dataclasses.field(default_factory=dict)


def _entry(name: str, raw: Any) -> Entry:
    known = {field.name for field in dataclasses.fields(Entry)} - {"name"}
    unknown = sorted(set(raw) - known)
    if unknown:
        raise ConfigError(f"catalogue entry {name} has unknown entries {', '.join(unknown)}")
    values = dict(raw)
    values["item"] = tuple(values["item"])
    values["flags"] = tuple(values.get("flags", ()))
    entry = Entry(name=name, **values)
    if entry.task not in TASKS:
        raise ConfigError(f"catalogue entry {name} has task {entry.task!r}, not one of {TASKS}")
    if entry.target_transform not in ("", "log1p"):
        raise ConfigError(f"catalogue entry {name}: target_transform must be log1p or left out")
    return entry


def read_entries() -> dict[str, Entry]:
    """Return the entries of the catalogue file by name.

    Raises
    ------
    ConfigError
        If an entry is incomplete or has an unknown key.
    """
    import yaml

    text = (
        importlib.resources.files("inconvenient.data")
        .joinpath("catalogue.yaml")
        .read_text(encoding="utf-8")
    )
    raw = yaml.safe_load(text)
    try:
        return {name: _entry(name, raw[name]) for name in sorted(raw)}
    except (TypeError, KeyError) as error:
        raise ConfigError(f"catalogue.yaml has an incomplete entry: {error}") from error
