"""Published shifts: listed and loaded from a checkout or from the user's folder."""

from __future__ import annotations

import contextlib
import difflib
import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from inconvenient.config import PROFILES, checkouts, user_folder
from inconvenient.errors import InputError, NotAvailableError
from inconvenient.shifts.records import Shift, shift_from_row

__all__ = ["list_shifts", "load_shift", "open_table", "profile_folder"]

_SHIFTS = Path("publish") / "shifts.parquet"
_SPLIT = Path("split") / "split.parquet"

_BRING = "bring it again with `inconvenient fetch`, in a checkout with `dvc pull`"


def _roots() -> list[Path]:
    """Return where artefacts may lie; a checkout's own come first."""
    return [root / "artefacts" for root in (*checkouts(), user_folder())]


def profile_folder(profile: str | None = None) -> Path:
    """Return the folder of the artefacts of a profile.

    Parameters
    ----------
    profile : str, optional
        "full" if that is present, else "quick".

    Returns
    -------
    path

    Raises
    ------
    NotAvailableError
        If no shifts of that profile are on this machine.
    """
    if profile is not None and (not profile or Path(profile).name != profile):
        raise InputError(f"profile must be a name such as 'quick', got {profile!r}")
    names = PROFILES if profile is None else (profile,)
    for root in _roots():
        for name in names:
            if (root / name / _SHIFTS).is_file():
                return root / name
    what = "shifts" if profile is None else f"shifts of profile {profile!r}"
    raise NotAvailableError(
        f"{what} were needed, but {' and '.join(str(root) for root in _roots())} hold none; run "
        "`inconvenient fetch`, in a checkout `dvc pull`, or `dvc repro` there to make them"
    )


def list_shifts(
    dataset: str | None = None,
    profile: str | None = None,
    *,
    task: str | None = None,
    operation: str | None = None,
    min_fraction: float | None = None,
) -> pd.DataFrame:
    """List published shifts.

    Parameters
    ----------
    dataset : str, optional
        Only those of one dataset.
    profile : str, optional
        "full" if that is present, else "quick".
    task : {"regression", "binary", "multiclass"}, optional
        Only those of one task.
    operation : {"amplify", "attenuate", "flip"}, optional
        Only those of one operation.
    min_fraction : float, optional
        Only those of one minimum fraction of the pool, in (0, 1].

    Returns
    -------
    DataFrame
        One row per published shift, sorted by ``shift_id``: all its facts except the row ids.
        Those of ``retained`` are there, and of ``retained_paper`` those whose row set is not
        nearly the same as that of another (a Jaccard similarity above 0.95). Scores on the report
        half stand under ``<baseline>_id``, ``_control``, ``_control_sd`` and ``_ood``, those that
        the filters decided by under ``filter_<model>_id`` and so on.

    Raises
    ------
    NotAvailableError
        If no shifts are on this machine.
    InputError
        If no published shift belongs to such a dataset, or there is no such task, operation or
        minimum fraction.
    """
    path = profile_folder(profile) / _SHIFTS
    with open_table(path) as file:
        wanted = [name for name in file.schema_arrow.names if name != "rows"]
        frame: pd.DataFrame = file.read(columns=wanted).to_pandas()
    if dataset is not None and dataset not in set(frame["dataset"]):
        near = _near(str(dataset), sorted(set(frame["dataset"])))
        raise InputError(f"no shift of a dataset {dataset!r} is published; {near}")
    asked = {"task": task, "operation": operation, "min_fraction": min_fraction}
    for name, value in asked.items():
        known = sorted(set(frame[name]))
        if value is not None and value not in known:
            raise InputError(f"{name} must be one of {', '.join(map(str, known))}, got {value!r}")
    for name, value in {"dataset": dataset, **asked}.items():
        if value is not None:
            frame = frame[frame[name] == value]
    return frame.reset_index(drop=True)


def load_shift(shift_id: str, profile: str | None = None) -> Shift:
    """Load one published shift with its dataset.

    Parameters
    ----------
    shift_id : str
        As listed by :func:`list_shifts`.
    profile : str, optional
        "full" if that is present, else "quick".

    Returns
    -------
    Shift

    Raises
    ------
    NotAvailableError
        If the shifts or the dataset are not on this machine.
    InputError
        If there is no such shift; the message names the closest ids.
    """
    from inconvenient.data import load_dataset

    folder = profile_folder(profile)
    row = _row(folder / _SHIFTS, shift_id)
    halves = _halves(folder / _SPLIT, row["dataset"])
    return shift_from_row(row, load_dataset(row["dataset"]), halves)


@contextlib.contextmanager
def open_table(path: Path) -> Iterator[pq.ParquetFile]:
    """Open a table, and turn what a damaged one raises into NotAvailableError."""
    try:
        # For `read_table` imports pyarrow.dataset, which costs more than the listing.
        with pq.ParquetFile(path) as file:
            yield file
    except FileNotFoundError as error:
        raise NotAvailableError(f"{path} was needed and is absent; {_BRING}") from error
    except (OSError, pa.ArrowException) as error:
        raise NotAvailableError(f"{path} cannot be read ({error}); {_BRING}") from error


def _row(path: Path, shift_id: str) -> dict[str, Any]:
    """Read one row of the table of shifts, and only the row group that may hold it."""
    if not isinstance(shift_id, str):
        raise InputError(f"a shift id is a string, got {shift_id!r}; see list_shifts()")
    with open_table(path) as file:
        group = _group(file, shift_id)
        if group is not None:
            table = file.read_row_group(group)
            at = pc.index(table["shift_id"], shift_id).as_py()
            if at >= 0:
                row: dict[str, Any] = table.slice(at, 1).to_pylist()[0]
                return {k: np.nan if v is None else v for k, v in row.items()}
        ids = file.read(columns=["shift_id"])["shift_id"].to_pylist()
    same = [name for name in ids if name.split("/")[0] == shift_id.split("/")[0]]
    raise InputError(f"there is no shift {shift_id!r}; {_near(shift_id, same or ids)}")


def _group(file: pq.ParquetFile, shift_id: str) -> int | None:
    """Return the row group that may hold an id: the table is sorted by it."""
    column: int = file.schema_arrow.names.index("shift_id")  # before every list, so of this place
    low, high = 0, int(file.num_row_groups)
    while low < high:
        middle = (low + high) // 2
        bounds = file.metadata.row_group(middle).column(column).statistics
        if shift_id < bounds.min:
            high = middle
        elif shift_id > bounds.max:
            low = middle + 1
        else:
            return middle
    return None


def _halves(path: Path, dataset: str) -> dict[str, npt.NDArray[np.int64]]:
    """Return the sorted row ids of the two halves of a test set."""
    facts = path.stat() if path.is_file() else None
    changed = (facts.st_mtime_ns, facts.st_size) if facts else (0, 0)
    parts = _parts(path, changed, dataset)
    if set(parts) != {"filter", "report"}:
        raise NotAvailableError(
            f"{path} holds no test set of dataset {dataset!r}: split and shifts are not of one "
            f"version; {_BRING}"
        )
    return parts


@functools.lru_cache(maxsize=256)
def _parts(path: Path, _changed: tuple[int, int], dataset: str) -> dict[str, npt.NDArray[np.int64]]:
    with open_table(path) as file:
        at = file.schema_arrow.names.index("dataset")
        groups = []
        for group in range(file.num_row_groups):
            bounds = file.metadata.row_group(group).column(at).statistics
            if bounds.min <= dataset <= bounds.max:
                groups.append(group)
        table = file.read_row_groups(groups, columns=["dataset", "row_id", "part"])
    own = table.filter(pc.equal(table["dataset"], dataset))
    parts = {}
    for part in ("filter", "report"):
        rows = own.filter(pc.equal(own["part"], part))["row_id"]
        if len(rows):
            ids = np.sort(rows.to_numpy().astype(np.int64))
            ids.flags.writeable = False
            parts[part] = ids
    return parts


def _near(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.3)
    if close:
        return f"closest are {', '.join(close)}"
    return "`inconvenient shifts list` shows those there are"
