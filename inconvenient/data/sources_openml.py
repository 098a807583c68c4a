"""Datasets and suites of OpenML, through its own client; the data file comes checked by its MD5."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from inconvenient.data.arff import read_arff
from inconvenient.data.sources import RawTable
from inconvenient.data.sources_web import (
    ATTEMPTS,
    RemoteTable,
    column_texts,
    download,
    missing,
    patient,
    unreachable,
)
from inconvenient.errors import InconvenientError, InputError, NotAvailableError

__all__ = ["SuiteMember", "read_openml", "read_openml_suite"]

# The client's settings are the process's own, and are put back.
_ONE_AT_A_TIME = threading.RLock()
# So many tasks are asked for at once; an address has a limit.
_TASKS_A_CALL = 100

_TASKS = {"Supervised Regression": "regression"}


@dataclasses.dataclass(frozen=True, slots=True)
class SuiteMember:
    """A dataset of a suite, with the target that the suite's task has.

    Parameters
    ----------
    number : int
        The dataset's id.
    name, target : str
    task : str
        "regression", or "" for a classification, whose classes are counted later.
    """

    number: int
    name: str
    target: str
    task: str


def read_openml(item: str, folder: Path) -> RemoteTable:
    """Read a dataset.

    Parameters
    ----------
    item : str
        The dataset's id, digits.
    folder : path
        For what is downloaded; the caller removes it.

    Returns
    -------
    RemoteTable

    Raises
    ------
    InputError
        If there is no such dataset, or its file cannot be read.
    NotAvailableError
        If OpenML cannot be reached or sends something else than it describes.
    MissingDependencyError
        If the client is not installed.
    """
    if not re.fullmatch(r"[1-9]\d*", item):
        raise InputError(f"OpenML's datasets have numbers, as in openml:40945, got {item!r}")
    what = f"dataset {item}"
    with _client(what, folder) as openml:
        described = openml.datasets.get_dataset(
            int(item),
            download_data=False,
            download_qualities=False,
            download_features_meta_data=True,
        )
        file = folder / f"{item}.arff"
        md5 = (described.md5_checksum or "").lower()
        download(described.url, file, host="OpenML", what=f"the file of {what}", md5=md5)
        kinds = {feature.name: feature.data_type for feature in described.features.values()}
        dates = tuple(name for name, kind in kinds.items() if kind == "date")
        frame = _frame(described, _with_dates_as_text(file) if dates else file, what)
    text = (described.description or "").strip()
    names = [str(name) for name in frame.columns]
    target, others = _targets(described.default_target_attribute, names)
    drop = dict.fromkeys(others, "another target of the source")
    drop |= _marked(described.ignore_attribute, names, "the source says to ignore it")
    drop |= _marked(described.row_id_attribute, names, "the source's row id")
    return RemoteTable(
        raw=RawTable(
            frame=frame,
            title=str(described.name),
            description=text,
            columns=column_texts(text, names),
            source=f"OpenML dataset {item}, {described.name} version {described.version}",
        ),
        target=target,
        # A numeric target is a regression, however few values it has; classes are counted later.
        task="regression" if kinds.get(target) == "numeric" else "",
        drop={name: reason for name, reason in drop.items() if name != target},
        dates=dates,
        licence=str(described.licence or ""),
        checksum=md5,
    )


def read_openml_suite(item: str, folder: Path) -> list[SuiteMember]:
    """List the datasets of a benchmarking suite, in the order of its tasks.

    Parameters
    ----------
    item : str
        The suite's id or alias.
    folder : path
        As in :func:`read_openml`.

    Returns
    -------
    list of SuiteMember
        Every dataset once, with the target of its first task.
    """
    with _client(f"suite {item}", folder) as openml:
        tasks = list(openml.study.get_suite(item).tasks or [])
        found: dict[int, SuiteMember] = {}
        for start in range(0, len(tasks), _TASKS_A_CALL):
            wanted = tasks[start : start + _TASKS_A_CALL]
            listed = openml.tasks.list_tasks(task_id=wanted, output_format="dataframe")
            by_id = {int(row["tid"]): row for row in listed.to_dict("records")}
            for number in wanted:
                if number not in by_id:
                    raise NotAvailableError(
                        f"OpenML says nothing of task {number} of suite {item}; try again later"
                    )
                row = by_id[number]
                member = SuiteMember(
                    number=int(row["did"]),
                    name=str(row["name"]),
                    target=_text(row.get("target_feature")),
                    task=_TASKS.get(str(row["task_type"]), ""),
                )
                found.setdefault(member.number, member)
    if not found:
        raise InputError(f"OpenML's suite {item} has no tasks; name another")
    return list(found.values())


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


@contextlib.contextmanager
def _client(what: str, folder: Path) -> Iterator[Any]:
    """Give the client, with its files in a folder of ours and time-outs; explain its errors."""
    try:
        import openml
        from openml import _api_calls as calls
        from openml import exceptions
        from requests import exceptions as network
    except ImportError as error:
        raise missing("openml") from error
    folder.mkdir(parents=True, exist_ok=True)
    # A description of an earlier run may name a file that was replaced meanwhile.
    shutil.rmtree(folder / "client", ignore_errors=True)
    settings = openml.config
    with _ONE_AT_A_TIME, patient(calls) as statuses:
        before = settings.get_config_as_dict()
        settings.set_root_cache_directory(str(folder / "client"))
        # Its own five attempts are for jobs of a night, not for a command that somebody watches.
        settings.set_retry_policy("human", min(ATTEMPTS, int(before["connection_n_retries"])))
        try:
            yield openml
        except InconvenientError:
            raise
        except exceptions.OpenMLPrivateDatasetError as error:
            raise InputError(f"OpenML's {what} is private; name a public one") from error
        except exceptions.OpenMLServerNoResult as error:
            raise InputError(f"OpenML has no {what}; check the number") from error
        except exceptions.OpenMLServerException as error:
            reason = f"it answered with the error {error.code}: {error.message}"
            raise unreachable("OpenML", what, reason) from error
        # The client also fails with KeyError and the like on answers that it does not expect.
        except Exception as error:
            raise unreachable("OpenML", what, _reason(error, statuses, network)) from error
        finally:
            settings.set_root_cache_directory(before["cachedir"])
            settings.set_retry_policy(before["retry_policy"], int(before["connection_n_retries"]))


def _reason(error: Exception, statuses: list[int], network: Any) -> str:
    if isinstance(error, network.Timeout):
        return "it was silent for too long"
    if isinstance(error, network.ConnectionError):
        return "it cannot be reached"
    if statuses and statuses[-1] >= 400:
        return f"it answered with the error {statuses[-1]}"
    return f"its answer cannot be read ({type(error).__name__})"


def _with_dates_as_text(file: Path) -> Path:
    """Return a copy whose columns of dates are declared as text, for the client reads no dates."""
    plain = file.with_suffix(".plain.arff")
    declared = re.compile(r"(\s*@attribute\s+(?:'[^']*'|\"[^\"]*\"|\S+)\s+)date\b.*", re.IGNORECASE)
    with open(file, encoding="utf-8") as old, open(plain, "w", encoding="utf-8") as new:
        head = True
        for line in old:
            found = declared.fullmatch(line.rstrip("\n")) if head else None
            head = head and not line.lstrip().lower().startswith("@data")
            new.write(f"{found.group(1)}string\n" if found else line)
    return plain


def _frame(described: Any, file: Path, what: str) -> pd.DataFrame:
    described.data_file = str(file)
    try:
        if described.format.lower() == "sparse_arff":
            # The client reads those without categories alone.
            data = read_arff(file, file.read_bytes())
        else:
            data = described.get_data(include_row_id=True, include_ignore_attribute=True)[0]
    # The parser's errors and the client's have no base but Exception.
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"OpenML's file of {what} is no ARFF that can be read: {reason}"
        ) from error
    return pd.DataFrame({str(name): _plain(data[name]) for name in data.columns})


def _plain(column: pd.Series) -> pd.Series:
    """Return a column without the client's types: categories as text, small integers as int64."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        values = column.astype(object)
        return values.where(values.isna(), values.map(str)).astype(object)
    if pd.api.types.is_integer_dtype(column.dtype):
        return column.astype("int64")
    return column


def _targets(given: str | None, names: list[str]) -> tuple[str, list[str]]:
    """Return the target, if the source names just one, else those that it names."""
    if not given:
        return "", []
    if given in names:
        return given, []
    several = [name for part in given.split(",") if (name := part.strip()) in names]
    return (several[0], []) if len(several) == 1 else ("", several)


def _marked(given: Any, names: list[str], reason: str) -> dict[str, str]:
    """Return the columns that the source marks; several may stand in one text."""
    marked: list[str] = []
    for text in [given] if isinstance(given, str) else given or []:
        parts = [text] if text in names else [part.strip() for part in text.split(",")]
        marked += [part for part in parts if part in names]
    return dict.fromkeys(marked, reason)
