"""Datasets of the TALENT collection from its archive: a zip or a folder, here or at an address."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from inconvenient.data.columns import closest
from inconvenient.data.sources import RawTable
from inconvenient.data.sources_web import RemoteTable, download
from inconvenient.errors import InputError, NotAvailableError

__all__ = ["ARCHIVE", "read_talent"]

#: Environment variable with the archive's path or address.
ARCHIVE = "INCONVENIENT_TALENT"

_PARTS = ("train", "val", "test")
_TASKS = {"regression": "regression", "binclass": "binary", "multiclass": "multiclass"}
_GAPS = ("", "nan", "NaN", "None")
_WAY_OUT = (
    f"download the archive that the TALENT project publishes, and set {ARCHIVE} (or pass "
    "--archive) to its path or address"
)


def read_talent(item: str, folder: Path, archive: str | None = None) -> RemoteTable:
    """Read a dataset of the collection.

    Parameters
    ----------
    item : str
        Name of the dataset's folder.
    folder : path
        Keeps an archive that is downloaded, for the next dataset.
    archive : str, optional
        Path or address of the zip, or path of its unpacked folder; $INCONVENIENT_TALENT by default.

    Returns
    -------
    RemoteTable
        The rows of train, val and test in this order; columns are ``n0``, ``n1``, ... for numbers
        and ``c0``, ``c1``, ... for categories, unless info.json names them; the target is
        ``target``.

    Raises
    ------
    InputError
        If the archive has no such dataset, or its files do not fit together.
    NotAvailableError
        If no archive is named, or it cannot be had.
    """
    place = archive or os.environ.get(ARCHIVE)
    if not place:
        raise NotAvailableError(
            f"talent:{item} comes from the TALENT archive, and none is named; {_WAY_OUT}"
        )
    files = _files(place, folder)
    read = _dataset(files, item)
    info = _info(item, read("info.json"))
    numbers = _stack(item, read, "N")
    levels = _stack(item, read, "C")
    y = _stack(item, read, "y")
    if y is None or (numbers is None and levels is None):
        raise InputError(f"talent:{item} needs y_*.npy and N_*.npy or C_*.npy; {_WAY_OUT}")
    frame = pd.concat(
        [
            *([_numbers(item, numbers, info)] if numbers is not None else []),
            *([_levels(levels, info)] if levels is not None else []),
        ],
        axis=1,
    )
    if len(frame) != len(y):
        raise InputError(f"talent:{item} has {len(frame)} rows of features and {len(y)} targets")
    target = "target" if "target" not in frame.columns else "target_"
    frame[target] = _target(item, y[:, 0], _TASKS[info["task_type"]])
    texts = {str(k): str(v) for key in _INTROS for k, v in (info.get(key) or {}).items()}
    return RemoteTable(
        raw=RawTable(
            frame=frame,
            title=str(info.get("name") or item),
            description=str(info.get("intro") or info.get("description") or ""),
            columns={name: text for name, text in texts.items() if name in frame.columns},
            source=f"TALENT collection, dataset {item}",
        ),
        target=target,
        task=_TASKS[info["task_type"]],
    )


_INTROS = ("num_feature_intro", "cat_feature_intro")


def _files(place: str, folder: Path) -> zipfile.ZipFile | Path:
    """Return the archive, brought here if it has an address."""
    if place.startswith(("http://", "https://")):
        name = hashlib.sha256(place.encode()).hexdigest()[:16] + ".zip"
        path = folder / name
        download(place, path, host="The server of the TALENT archive", what="the archive")
    else:
        path = Path(place).expanduser()
    if path.is_dir():
        return path
    if not path.exists():
        raise NotAvailableError(f"the TALENT archive was needed at {path}, absent; {_WAY_OUT}")
    try:
        return zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError) as error:
        if place != str(path) and folder in path.parents:
            path.unlink()  # an error page, or a damaged download: not to be taken for it again
        raise NotAvailableError(f"{place} is no zip archive ({error}); {_WAY_OUT}") from error


def _dataset(files: zipfile.ZipFile | Path, item: str) -> Callable[[str], bytes | None]:
    """Return what reads a file of a dataset by name, None if there is none."""
    if isinstance(files, Path):
        infos = [path.relative_to(files).as_posix() for path in files.rglob("info.json")]
    else:
        infos = [name for name in files.namelist() if name.endswith("/info.json")]
    folders = {Path(info).parent.name: info.removesuffix("info.json") for info in infos}
    if item not in folders:
        raise InputError(
            f"the TALENT archive has no dataset {item!r} among its {len(folders)}; "
            f"{closest(item, sorted(folders)).replace('the columns are', 'it holds')}"
        )
    start = folders[item]

    def read(name: str) -> bytes | None:
        try:
            if isinstance(files, Path):
                return (files / start / name).read_bytes()
            return files.read(start + name)
        except (KeyError, FileNotFoundError):
            return None
        except (zipfile.BadZipFile, OSError, EOFError) as error:
            raise NotAvailableError(
                f"{start}{name} of the TALENT archive is damaged ({error}); download it again"
            ) from error

    return read


def _info(item: str, content: bytes | None) -> dict[str, Any]:
    try:
        info = json.loads(content or b"")
    except ValueError as error:
        raise InputError(f"talent:{item}: info.json is no JSON ({error})") from error
    if not isinstance(info, dict) or info.get("task_type") not in _TASKS:
        raise InputError(
            f"talent:{item}: info.json needs a task_type of {', '.join(_TASKS)}, got "
            f"{info.get('task_type') if isinstance(info, dict) else info!r}"
        )
    return info


def _stack(
    item: str, read: Callable[[str], bytes | None], kind: str
) -> npt.NDArray[np.object_] | None:
    """Return the rows of all parts, (n, m), or None if the dataset has no such columns."""
    parts = []
    for part in _PARTS:
        content = read(f"{kind}_{part}.npy")
        if content is None:
            continue
        array = _array(f"talent:{item}: {kind}_{part}.npy", content)
        parts.append(array.reshape(-1, 1) if array.ndim == 1 else array)
    if not parts:
        return None
    if len({part.shape[1] for part in parts}) > 1 or any(part.ndim != 2 for part in parts):
        raise InputError(f"talent:{item}: the parts of {kind} do not have the same columns")
    return np.concatenate([part.astype(object) for part in parts])


class _Values(pickle.Unpickler):
    """Reads arrays of strings and numbers; an array file could otherwise run any program."""

    ALLOWED = frozenset(
        [
            *(("numpy", name) for name in ("ndarray", "dtype", "str_", "float64", "int64")),
            ("numpy._core.multiarray", "_reconstruct"),
            ("numpy._core.multiarray", "scalar"),
            ("_codecs", "encode"),
        ]
    )

    def find_class(self, module: str, name: str) -> Any:
        # What NumPy 1 wrote; NumPy 2 warns at that name.
        module = module.replace("numpy.core.", "numpy._core.")
        if (module, name) not in self.ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return super().find_class(module, name)


def _array(label: str, content: bytes) -> npt.NDArray[Any]:
    file = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(file)
        header = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, _, dtype = header(file)
        if dtype.hasobject:
            values = np.asarray(_Values(file).load(), dtype=object)
            return values.reshape(shape)
        return np.asarray(np.load(io.BytesIO(content), allow_pickle=False))
    except (ValueError, EOFError, pickle.UnpicklingError, AttributeError, TypeError) as error:
        raise InputError(f"{label} is no array of numbers or strings: {error}") from error


def _names(info: dict[str, Any], key: str, count: int, letter: str) -> list[str]:
    named = list(map(str, info.get(key) or {}))
    if len(named) == count:
        return named
    return [f"{letter}{j}" for j in range(count)]


def _numbers(item: str, values: npt.NDArray[np.object_], info: dict[str, Any]) -> pd.DataFrame:
    names = _names(info, "num_feature_intro", values.shape[1], "n")
    try:
        return pd.DataFrame(values.astype(np.float64), columns=names)
    except (ValueError, TypeError) as error:
        raise InputError(f"talent:{item}: N_*.npy holds what is no number: {error}") from error


def _levels(values: npt.NDArray[np.object_], info: dict[str, Any]) -> pd.DataFrame:
    names = _names(info, "cat_feature_intro", values.shape[1], "c")
    text = pd.DataFrame([[str(v) for v in row] for row in values], columns=names, dtype=object)
    return text.where(~text.isin(_GAPS), np.nan)


def _target(item: str, y: npt.NDArray[np.object_], task: str) -> npt.NDArray[Any]:
    if task == "regression":
        try:
            return y.astype(np.float64)
        except (ValueError, TypeError) as error:
            raise InputError(f"talent:{item}: y holds what is no number: {error}") from error
    labels = [str(int(v)) if isinstance(v, float) and v.is_integer() else str(v) for v in y]
    return np.array([np.nan if v in _GAPS else v for v in labels], dtype=object)
