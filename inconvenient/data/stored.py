"""The file of one dataset, as it was written and no other: checked against its hash when read."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from inconvenient.errors import NotAvailableError
from inconvenient.store import read_frame

__all__ = ["GROUP_COLUMN", "read_stored", "with_gaps"]

#: Holds the cluster codes in a dataset's file.
GROUP_COLUMN = "__group__"


def with_gaps(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with NaN where pandas 2 reads a missing string as None."""
    text = [name for name in frame.columns if frame[name].dtype == object]
    return frame.assign(**{name: frame[name].where(frame[name].notna(), np.nan) for name in text})


def read_stored(
    path: Path, sha256: str, *, witness: str, way_out: str
) -> tuple[pd.DataFrame, npt.NDArray[np.int64] | None]:
    """Read a dataset's file.

    Parameters
    ----------
    path : Path
    sha256 : str
        Hash of the file that is wanted, hexadecimal.
    witness : str
        What says so, for the message.
    way_out : str
        What to run where the file is not that one.

    Returns
    -------
    frame : DataFrame (n, m + 1)
        Features and target.
    groups : int64 (n,) or None
        Cluster codes, read-only.

    Raises
    ------
    NotAvailableError
        If the file is absent, damaged or of another version.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise NotAvailableError(f"{path} is needed and absent; {way_out}") from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != sha256:
        raise NotAvailableError(
            f"{path} is damaged or of another version: its SHA-256 is {digest[:12]}..., {witness} "
            f"says {sha256[:12]}...; {way_out}"
        )
    frame = with_gaps(read_frame(content))
    if GROUP_COLUMN not in frame.columns:
        return frame, None
    groups = frame.pop(GROUP_COLUMN).to_numpy(dtype=np.int64)
    groups.setflags(write=False)
    return frame, groups
