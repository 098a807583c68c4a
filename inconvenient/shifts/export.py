"""Published shifts as plain files for other languages: training sample, report half, and facts."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from inconvenient.errors import InputError
from inconvenient.shifts.loading import list_shifts, load_shift
from inconvenient.shifts.records import Shift
from inconvenient.shifts.tables import column_kinds, table_bytes
from inconvenient.store import write_atomic, write_folder

__all__ = ["FORMATS", "INDEX", "Exported", "export_shifts", "folder_of"]

FORMATS = ("csv", "parquet")
#: Says beside the folders of the datasets in which folder a shift lies.
INDEX = "index.json"
_FACTS = "shift.json"

_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}")
#: Names that Windows keeps for devices.
_DEVICES = re.compile(r"con|prn|aux|nul|com[0-9]|lpt[0-9]")


@dataclasses.dataclass(frozen=True, slots=True)
class Exported:
    """What an export did.

    Parameters
    ----------
    out : path
    folders : dict of str to path
        Where each shift lies now, by id.
    written : int
        Shifts that were not there before.
    """

    out: Path
    folders: dict[str, Path]
    written: int


def folder_of(shift_id: str) -> str:
    """Return the path of a shift's folder below an export.

    Parameters
    ----------
    shift_id : str

    Returns
    -------
    str
        "<dataset>/<rest of the id>-<hash>": letters that some file system refuses, or takes for
        others, are replaced, and the first digits of the id's SHA-256 tell apart what is then
        alike; ``shift.json`` in the folder has the id itself.
    """
    dataset, _, rest = shift_id.partition("/")
    plain = _PLAIN.fullmatch(dataset) and not _DEVICES.fullmatch(dataset)
    return f"{dataset if plain else _safe(dataset, dataset)}/{_safe(rest, shift_id)}"


def _safe(text: str, whole: str) -> str:
    short = re.sub(r"[^a-z0-9._-]", "_", text.lower())[:60].strip("._-")
    return f"{short or 'shift'}-{hashlib.sha256(whole.encode()).hexdigest()[:10]}"


def export_shifts(
    shift_ids: Iterable[str],
    out: str | Path,
    *,
    file_format: str = "csv",
    profile: str | None = None,
    force: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Exported:
    """Write shifts as files that any language reads.

    Parameters
    ----------
    shift_ids : iterable of str
        As listed by :func:`list_shifts`.
    out : path
        A folder; it is made if need be. Below it each dataset has a folder with ``test.csv``, the
        report half of its test set, and a folder per shift: ``train.csv`` (in selection order),
        ``groups.csv`` where rows come in clusters, and ``shift.json`` (what a method may know
        under "context", the shift's facts and scores, and hashes). ``index.json`` names the folder
        of each shift.
    file_format : {"csv", "parquet"}
        CSV is UTF-8; text stands in quotes, which are doubled inside, numbers have all their
        digits, and a gap is nothing between two commas.
    profile : str, optional
        "full" if that is present, else "quick".
    force : bool
        Replace what is there and differs.
    progress : callable, optional
        Called with the shifts that are written and those that will be.

    Returns
    -------
    Exported

    Raises
    ------
    InputError
        If there is no such shift or format, or something else is where a file would be written;
        nothing is written then.
    NotAvailableError
        If the shifts or their datasets are not on this machine.
    StoreError
        If the folder cannot be written. What is there is whole, and the next call goes on.
    """
    if file_format not in FORMATS:
        raise InputError(f"format must be one of {', '.join(FORMATS)}, got {file_format!r}")
    root = Path(out)
    if root.exists() and not root.is_dir():
        raise InputError(f"a folder to write to was needed, got the file {root}; name another")
    ids = list(dict.fromkeys(shift_ids))
    if not ids:
        raise InputError("shifts to export were needed, got none; list_shifts() has their ids")
    listed = list_shifts(profile=profile)
    hashes = zip(listed["rows_hash"], listed["data_hash"])
    known = dict(zip(listed["shift_id"], hashes))
    folders, todo = {}, []
    for shift_id in ids:
        if shift_id not in known:
            load_shift(shift_id, profile)  # says which there are
        folders[shift_id] = folder = root / folder_of(shift_id)
        if force or not _is_there(folder, (shift_id, *known[shift_id], file_format)):
            todo.append(shift_id)
    tests: dict[str, str] = {}
    for done, shift_id in enumerate(todo):
        if progress is not None:
            progress(done, len(todo))
        shift = load_shift(shift_id, profile)
        if shift.dataset not in tests:
            place = folders[shift_id].parent / f"test.{file_format}"
            tests[shift.dataset] = _write_test(shift, place, force)
        files = _files(shift, file_format, tests[shift.dataset])
        write_folder(folders[shift_id], files)
    _write_index(root, folders)
    return Exported(out=root, folders=folders, written=len(todo))


def _is_there(folder: Path, wanted: tuple[str, ...]) -> bool:
    """Tell whether a shift was exported before; InputError if something else is in its place."""
    if not folder.exists():
        return False
    try:
        facts = json.loads((folder / _FACTS).read_text(encoding="utf-8"))
        made_of = tuple(facts[name] for name in ("shift_id", "rows_hash", "data_hash", "format"))
        same = made_of == wanted and all(
            _sha256((folder / facts[part]["file"]).read_bytes()) == facts[part]["sha256"]
            for part in ("train", "test")
        )
    except (OSError, ValueError, TypeError, KeyError):
        same = False
    if not same:
        raise InputError(
            f"{folder} exists and is no export of this shift as {wanted[-1]}; name another "
            "folder, or say force (--force) to replace it"
        )
    return True


def _sha256(value: bytes) -> str:
    return hashlib.sha256(value).hexdigest()


def _write_test(shift: Shift, place: Path, force: bool) -> str:
    """Write the report half once per dataset; return its hash."""
    value = table_bytes(_joined(*shift.test()), place.suffix[1:])
    there = place.read_bytes() if place.is_file() else None
    if there not in (None, value) and not force:
        raise InputError(
            f"{place} exists and is another test set; name another folder, or say force "
            "(--force) to replace it"
        )
    if there != value:
        write_atomic(place, value)
    return _sha256(value)


def _joined(X: pd.DataFrame, y: pd.Series) -> pd.DataFrame:
    """Return row ids, features and target as columns."""
    out = pd.concat([X, y], axis=1)
    name = "row_id"
    while name in out:
        name += "_"
    out.insert(0, name, out.index.to_numpy(dtype=np.int64))
    return out


def _files(shift: Shift, file_format: str, test_hash: str) -> dict[str, bytes]:
    train = _joined(*shift.train())
    value = table_bytes(train, file_format)
    files = {f"train.{file_format}": value}
    facts: dict[str, Any] = {
        "shift_id": shift.shift_id,
        "dataset": shift.dataset,
        "format": file_format,
        "context": dataclasses.asdict(shift.context),
        "row_id": str(train.columns[0]),
        "columns": column_kinds(train),
        "train": {"file": f"train.{file_format}", "sha256": _sha256(value)},
        "test": {"file": f"../test.{file_format}", "sha256": test_hash},
        "data_hash": shift.data_hash,
        "rows_hash": shift.rows_hash,
    }
    if shift.groups is not None:
        groups = pd.DataFrame({"row_id": shift.rows, "group": shift.groups})
        files[f"groups.{file_format}"] = value = table_bytes(groups, file_format)
        facts["groups"] = {"file": f"groups.{file_format}", "sha256": _sha256(value)}
    # What a method must not see stands apart from what it may.
    left_out = {"rows", "shift_id", "dataset", "data_hash", "rows_hash"}
    facts["shift"] = {
        field.name: _json(getattr(shift, field.name))
        for field in dataclasses.fields(shift)
        if field.name not in left_out and not field.name.startswith("_")
    }
    text = json.dumps(facts, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    return {**files, _FACTS: text.encode("utf-8")}


def _json(value: Any) -> Any:
    """Return a fact as JSON knows it, None for NaN."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _json(dataclasses.asdict(value))
    if isinstance(value, dict):
        return {key: _json(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, tuple | list):
        return [_json(item) for item in value]
    return None if isinstance(value, float) and value != value else value


def _write_index(root: Path, folders: dict[str, Path]) -> None:
    path = root / INDEX
    known: dict[str, str] = {}
    if path.is_file():
        try:
            known = dict(json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError):
            known = {}
    known |= {shift_id: folder.relative_to(root).as_posix() for shift_id, folder in folders.items()}
    text = json.dumps(dict(sorted(known.items())), indent=1, ensure_ascii=False) + "\n"
    write_atomic(path, text.encode("utf-8"))
