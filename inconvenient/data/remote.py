"""Datasets that a user adds from OpenML, Kaggle or TALENT: fetched once, kept, then local."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from inconvenient.config import user_folder
from inconvenient.data.columns import closest
from inconvenient.data.dataset import Dataset
from inconvenient.data.frames import as_frame
from inconvenient.data.paper import read_slot
from inconvenient.data.preparation import prepare_table
from inconvenient.errors import ConfigError, InputError, NotAvailableError
from inconvenient.store import frame_bytes, read_frame, write_atomic

__all__ = [
    "KINDS",
    "add_dataset",
    "added_facts",
    "is_added",
    "is_remote",
    "list_added",
    "load_remote",
    "suite_datasets",
]

#: Kinds of sources by the prefix of their names, and how such a name goes on.
KINDS = {"openml": "NUMBER", "kaggle": "OWNER/NAME/FILE.csv", "talent": "NAME"}

_FACTS = (
    "name", "title", "task", "target", "classes", "rows", "features", "description",
    "target_description", "feature_descriptions", "dropped_columns", "dropped_rows",
    "dropped_classes", "licence", "source", "checksum", "notes", "sha256",
)  # fmt: skip
# Classes under so many rows cannot be predicted.
_RARE = 5
_DATE = "days since 1970-01-01"


def is_remote(name: str) -> bool:
    """Tell whether a name is one of a source on the network, as openml:40945 is."""
    return name.partition(":")[0] in KINDS and ":" in name


def add_dataset(
    name: str,
    *,
    target: str | None = None,
    task: str | None = None,
    drop: Sequence[str] = (),
    missing_target: str = "raise",
    drop_rare: bool = False,
    again: bool = False,
    archive: str | None = None,
) -> Dataset:
    """Fetch a dataset from OpenML, Kaggle or TALENT and keep it; later loads need no network.

    Parameters
    ----------
    name : str
        "openml:40945" (id), "kaggle:owner/name/file.csv" or "talent:NAME".
    target : str, optional
        The column to predict; what the source names by default.
    task : {"regression", "binary", "multiclass"}, optional
        By default that of the source, or told from the target.
    drop : sequence of str
        Columns to leave out, beside those that the source marks.
    missing_target : {"raise", "drop"}
        What to do with rows without a target.
    drop_rare : bool
        Leave out the rows of classes that have fewer than five.
    again : bool
        Fetch anew what is there already.
    archive : str, optional
        Path or address of the TALENT archive; $INCONVENIENT_TALENT by default.

    Returns
    -------
    Dataset
        Without what the source marks as an id or to be ignored, and without constant columns;
        dates are days since 1970-01-01. It lies in ``$INCONVENIENT_HOME/datasets`` as Parquet
        with a YAML file of facts.

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
    kind, item = _parts(name)
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
    downloads = user_folder() / "downloads" / kind / ("" if kind == "talent" else item)
    table = _read(kind, item, downloads, archive)
    options = _Options(target, task, tuple(drop), missing_target, drop_rare)
    dataset, facts = _prepared(name, table, options)
    text = [c for c in dataset.frame.columns if dataset.frame[c].dtype.kind not in "bif"]
    content = frame_bytes(dataset.frame.astype(dict.fromkeys(text, object)))
    facts["sha256"] = hashlib.sha256(content).hexdigest()
    # The facts come last: a dataset is there once they are.
    _place(name, ".yaml").unlink(missing_ok=True)
    write_atomic(_place(name, ".parquet"), content)
    write_atomic(_place(name, ".yaml"), _yaml({key: facts[key] for key in _FACTS}))
    if kind != "talent":
        shutil.rmtree(downloads, ignore_errors=True)
    return load_remote(name)


def load_remote(name: str) -> Dataset:
    """Load a dataset of a source, fetched first if it is not here yet.

    Raises
    ------
    NotAvailableError
        If its files are damaged, or it is absent and the source cannot be reached.
    """
    _parts(name)
    if not is_added(name):
        return add_dataset(name)
    facts = added_facts(name)
    path = _place(name, ".parquet")
    way_out = f"run `inconvenient data add {name} --again`"
    try:
        content = path.read_bytes()
    except OSError as error:
        raise NotAvailableError(f"{path} is needed and absent; {way_out}") from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != facts["sha256"]:
        raise NotAvailableError(
            f"{path} is damaged: its SHA-256 is {digest[:12]}..., {path.with_suffix('.yaml').name} "
            f"says {facts['sha256'][:12]}...; {way_out}"
        )
    frame = read_frame(content)
    text = [column for column in frame.columns if frame[column].dtype == object]
    frame = frame.assign(**{c: frame[c].where(frame[c].notna(), np.nan) for c in text})
    return Dataset(
        name=name,
        frame=frame,
        target=facts["target"],
        task=facts["task"],
        classes=tuple(facts["classes"]),
        description=facts["description"],
        target_description=facts["target_description"],
        feature_descriptions=dict(facts["feature_descriptions"]),
        family=name,
        source=facts["source"],
        licence=facts["licence"],
        hash=digest,
        dropped_rows=int(facts["dropped_rows"]),
    )


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
        raise NotAvailableError(
            f"{path} cannot be read; run `inconvenient data add {name} --again`"
        ) from error
    if not isinstance(facts, dict) or set(facts) != set(_FACTS):
        raise ConfigError(
            f"{path} must have exactly the keys {', '.join(_FACTS)}; "
            f"run `inconvenient data add {name} --again`"
        )
    return facts


def list_added() -> pd.DataFrame:
    """Return one row per dataset that was added, as :func:`inconvenient.data.list_datasets`."""
    folder = user_folder() / "datasets"
    rows = []
    for kind in KINDS:
        for path in sorted((folder / kind).rglob("*.yaml")):
            name = f"{kind}:{path.relative_to(folder / kind).as_posix().removesuffix('.yaml')}"
            facts = added_facts(name)
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


def _parts(name: str) -> tuple[str, str]:
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
    kind, item = _parts(name)
    return user_folder() / "datasets" / kind / (item + suffix)


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


def _yaml(facts: dict[str, Any]) -> bytes:
    import yaml

    text = yaml.safe_dump(facts, sort_keys=False, allow_unicode=True, width=100)
    # YAML reads other line ends than \n back as one.
    return re.sub(r"\r\n?", "\n", text).encode("utf-8")
