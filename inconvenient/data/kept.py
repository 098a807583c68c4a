"""Datasets that a user added: kept as Parquet with a YAML file of facts, each whole or absent."""

from __future__ import annotations

import hashlib
import re
import warnings
from pathlib import Path
from typing import Any

import pandas as pd

from inconvenient.config import user_folder
from inconvenient.data.dataset import Dataset
from inconvenient.data.stored import GROUP_COLUMN, read_stored
from inconvenient.errors import ConfigError, InputError, NotAvailableError
from inconvenient.store import frame_bytes, write_atomic

__all__ = [
    "KINDS",
    "added_facts",
    "is_added",
    "is_remote",
    "keep",
    "list_added",
    "load_added",
    "parts_of",
]

#: Kinds of sources by the prefix of their names, and how such a name goes on.
KINDS = {"openml": "NUMBER", "kaggle": "OWNER/NAME/FILE.csv", "talent": "NAME", "own": "NAME"}

_FACTS = (
    "name", "title", "task", "target", "classes", "rows", "features", "description",
    "target_description", "feature_descriptions", "dropped_columns", "dropped_rows",
    "dropped_classes", "licence", "source", "checksum", "notes", "sha256",
)  # fmt: skip


def is_remote(name: str) -> bool:
    """Tell whether a name is one that a user adds, as openml:40945 and own:my are."""
    return name.partition(":")[0] in KINDS and ":" in name


def keep(name: str, dataset: Dataset, facts: dict[str, Any]) -> None:
    """Write a dataset and its facts; of a category, levels become strings."""
    frame = _plain_levels(dataset.frame)
    if dataset.groups is not None:
        frame = frame.assign(**{GROUP_COLUMN: dataset.groups})
    text = [c for c in frame.columns if frame[c].dtype.kind not in "bif"]
    content = frame_bytes(frame.astype(dict.fromkeys(text, object)))
    facts["sha256"] = hashlib.sha256(content).hexdigest()
    # The facts come last: a dataset is there once they are.
    _place(name, ".yaml").unlink(missing_ok=True)
    write_atomic(_place(name, ".parquet"), content)
    write_atomic(_place(name, ".yaml"), _yaml({key: facts[key] for key in _FACTS}))


def load_added(name: str) -> Dataset:
    """Load a dataset that is here.

    Raises
    ------
    NotAvailableError
        If its files are damaged.
    """
    facts = added_facts(name)
    path = _place(name, ".parquet")
    witness = path.with_suffix(".yaml").name
    frame, groups = read_stored(path, facts["sha256"], witness=witness, way_out=_way_out(name))
    return Dataset(
        name=name,
        frame=frame,
        target=facts["target"],
        task=facts["task"],
        classes=tuple(facts["classes"]),
        groups=groups,
        description=facts["description"],
        target_description=facts["target_description"],
        feature_descriptions=dict(facts["feature_descriptions"]),
        family=name,
        source=facts["source"],
        licence=facts["licence"],
        hash=facts["sha256"],
        dropped_rows=int(facts["dropped_rows"]),
    )


def _way_out(name: str) -> str:
    given = "FILE" if name.startswith("own:") else name
    return f"run `inconvenient data add {given} --again`"


def is_added(name: str) -> bool:
    """Tell whether a dataset of a source is here already."""
    return _place(name, ".yaml").is_file()


def added_facts(name: str) -> dict[str, Any]:
    """Return what the file of facts of a dataset that was added says."""
    import yaml

    path = _place(name, ".yaml")
    try:
        facts = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise NotAvailableError(f"{path} cannot be read; {_way_out(name)}") from error
    if not isinstance(facts, dict) or set(facts) != set(_FACTS):
        raise ConfigError(
            f"{path} must have exactly the keys {', '.join(_FACTS)}; {_way_out(name)}"
        )
    return facts


def list_added() -> pd.DataFrame:
    """Return one row per dataset that was added, as :func:`inconvenient.data.list_datasets`."""
    folder = user_folder() / "datasets"
    rows = []
    for kind in KINDS:
        for path in sorted((folder / kind).rglob("*.yaml")):
            name = f"{kind}:{path.relative_to(folder / kind).as_posix().removesuffix('.yaml')}"
            try:
                facts = added_facts(name)
            except (ConfigError, NotAvailableError) as error:
                # One damaged file must not hide all other datasets.
                warnings.warn(f"{name} is left out: {error}", stacklevel=3)
                continue
            rows.append(
                {
                    **{key: facts[key] for key in ("name", "task", "rows", "features")},
                    "classes": len(facts["classes"]),
                    "domain": "added",
                    "family": "",
                    **{key: facts[key] for key in ("source", "licence")},
                    "flags": "",
                    "target": facts["target"],
                    "group_column": "",
                }
            )
    return pd.DataFrame(rows)


def parts_of(name: str) -> tuple[str, str]:
    """Return kind and item of a name that can also be a path within a folder."""
    kind, _, item = name.partition(":")
    parts = item.split("/")
    if kind not in KINDS or not item:
        forms = ", ".join(f"{kind}:{form}" for kind, form in KINDS.items())
        raise InputError(f"a dataset of a source is named {forms}, got {name!r}")
    if any(part in ("", ".", "..") or "\0" in part or "\\" in part for part in parts):
        raise InputError(f"{name!r} names no dataset; it must read {kind}:{KINDS[kind]}")
    return kind, item


def _place(name: str, suffix: str) -> Path:
    kind, item = parts_of(name)
    return user_folder() / "datasets" / kind / (item + suffix)


def _yaml(facts: dict[str, Any]) -> bytes:
    import yaml

    text = yaml.safe_dump(facts, sort_keys=False, allow_unicode=True, width=100)
    # YAML reads other line ends than \n back as one.
    return re.sub(r"\r\n?", "\n", text).encode("utf-8")


def _plain_levels(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame whose categories are strings: a file would make numbers of some."""
    categories = [c for c in frame.columns if isinstance(frame[c].dtype, pd.CategoricalDtype)]
    return frame.assign(
        **{c: frame[c].astype(object).map(str, na_action="ignore") for c in categories}
    )
