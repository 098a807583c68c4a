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
import pyarrow.parquet as pq

from inconvenient.config import checkouts, user_folder
from inconvenient.errors import InputError, NotAvailableError
from inconvenient.shifts.records import Shift, shift_from_row
from inconvenient.shifts.schema import SHIFT_COLUMNS

__all__ = ["list_shifts", "load_shift", "profile_folder"]

#: Profiles by falling preference.
PROFILES = ("full", "quick")

_SHIFTS = Path("shifts") / "shifts.parquet"
_CANDIDATES = Path("shifts") / "candidates.parquet"
_SPLIT = Path("split") / "split.parquet"
_FILTER = Path("filter") / "filter.parquet"

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


def list_shifts(dataset: str | None = None, profile: str | None = None) -> pd.DataFrame:
    """List published shifts.

    Parameters
    ----------
    dataset : str, optional
        Only those of one dataset.
    profile : str, optional
        "full" if that is present, else "quick".

    Returns
    -------
    DataFrame
        One row per verified shift, sorted by ``shift_id``: all its facts except the row ids, and
        ``retained`` and ``retained_paper`` where the filters have run.

    Raises
    ------
    NotAvailableError
        If no shifts are on this machine.
    InputError
        If no candidate belongs to such a dataset.
    """
    folder = profile_folder(profile)
    wanted = [name for name in SHIFT_COLUMNS if name != "rows"]
    frame: pd.DataFrame = _read(folder / _SHIFTS, wanted).to_pandas()
    if (folder / _FILTER).is_file():
        flags = ["shift_id", "retained", "retained_paper"]
        frame = frame.merge(_read(folder / _FILTER, flags).to_pandas(), how="left", on="shift_id")
    if dataset is None:
        return frame
    own: pd.DataFrame = frame[frame["dataset"] == dataset].reset_index(drop=True)
    if own.empty:
        known = set(frame["dataset"])
        if (folder / _CANDIDATES).is_file():
            known |= set(_read(folder / _CANDIDATES, ["dataset"])["dataset"].to_pylist())
        if dataset not in known:
            raise InputError(f"no dataset {dataset!r} has shifts; {_near(dataset, sorted(known))}")
    return own


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
    if not (folder / _SPLIT).is_file():
        raise NotAvailableError(f"the split was needed at {folder / _SPLIT}; {_BRING}")
    dataset = load_dataset(row["dataset"])
    return shift_from_row(row, dataset, _halves(folder / _SPLIT, row["dataset"]))


def _read(path: Path, columns: Sequence[str]) -> pa.Table:
    # ParquetFile, for `read_table` imports pyarrow.dataset, which costs more than the listing.
    with _readable(path), pq.ParquetFile(path) as file:
        return file.read(columns=list(columns))


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn what a damaged file raises into NotAvailableError."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise NotAvailableError(f"{path} cannot be read ({error}); {_BRING}") from error


def _stamp(path: Path) -> tuple[str, int, int]:
    """Name a state of a file, so that what was read from it can be kept until it changes."""
    facts = path.stat()
    return str(path), facts.st_mtime_ns, facts.st_size


@functools.lru_cache(maxsize=4)
def _ids(path: str, _changed: int, _size: int) -> dict[str, int]:
    found = _read(Path(path), ["shift_id"])["shift_id"].to_pylist()
    return {name: position for position, name in enumerate(found)}


@functools.lru_cache(maxsize=4)
def _parts(path: str, _changed: int, _size: int) -> dict[str, dict[str, npt.NDArray[np.int64]]]:
    frame = _read(Path(path), ["dataset", "row_id", "part"]).to_pandas()
    frame = frame[frame["part"] != "pool"]
    parts: dict[str, dict[str, npt.NDArray[np.int64]]] = {}
    for (dataset, part), rows in frame.groupby(["dataset", "part"], sort=True)["row_id"]:
        ids = np.sort(rows.to_numpy(dtype=np.int64))
        ids.flags.writeable = False
        parts.setdefault(str(dataset), {})[str(part)] = ids
    return parts


def _row(path: Path, shift_id: str) -> dict[str, Any]:
    """Read one row of the table of shifts, and only the row group that holds it."""
    ids = _ids(*_stamp(path))
    if not isinstance(shift_id, str):
        raise InputError(f"a shift id is a string, got {shift_id!r}; see list_shifts()")
    if shift_id not in ids:
        same = [name for name in ids if name.split("/")[0] == shift_id.split("/")[0]]
        raise InputError(f"there is no shift {shift_id!r}; {_near(shift_id, same or list(ids))}")
    position = ids[shift_id]
    with _readable(path), pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            inside = file.metadata.row_group(group).num_rows
            if position < inside:
                table = file.read_row_group(group, columns=list(SHIFT_COLUMNS))
                row: dict[str, Any] = table.slice(position, 1).to_pylist()[0]
                return {k: np.nan if v is None else v for k, v in row.items()}
            position -= inside
    raise NotAvailableError(f"{path} is damaged; {_BRING}")


def _halves(path: Path, dataset: str) -> dict[str, npt.NDArray[np.int64]]:
    parts = _parts(*_stamp(path)).get(dataset, {})
    if set(parts) != {"filter", "report"}:
        raise NotAvailableError(
            f"{path} holds no test set of dataset {dataset!r}: split and shifts are not of one "
            f"version; {_BRING}"
        )
    return parts


def _near(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.3)
    if close:
        return f"closest are {', '.join(close)}"
    return "`inconvenient shifts list` shows those there are"
