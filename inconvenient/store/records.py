"""A content-keyed store of records on disk, from which interrupted work goes on."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from inconvenient.errors import StoreError
from inconvenient.store.files import (
    TEMPORARY,
    canonical_json,
    frame_bytes,
    read_frame,
    write_atomic,
)
from inconvenient.store.notes import append_note, read_notes

# Seconds after which no writer is still at a temporary file.
_UNFINISHED = 3600.0

__all__ = ["ALGORITHM", "Store", "content_key", "library_versions"]

#: Algorithm version per stage, part of every key of the record store. Raise a stage's number when
#: an edit changes what it computes; an edit that does not (speed, names) then costs nothing.
ALGORITHM: dict[str, int] = {
    "split": 1,
    "reference": 4,
    "shifts": 6,
    "filter": 2,
    "evaluate": 1,
    "collateral": 2,
    "publish": 1,
    "seeds": 1,
    "report": 1,
}


def content_key(stage: str, version: int, **parts: Any) -> str:
    """Return the key of a record: the SHA-256 of all that its value depends on.

    Parameters
    ----------
    stage : str
        Name of the stage.
    version : int
        Its entry in :data:`ALGORITHM`.
    **parts
        JSON-able values: input hashes, parameters, seeds.

    Returns
    -------
    str
        64 hexadecimal digits.
    """
    text = canonical_json({"stage": stage, "version": version, "parts": parts})
    return hashlib.sha256(text.encode("ascii")).hexdigest()


@functools.cache
def library_versions(*names: str) -> dict[str, str]:
    """Return the versions of the numerical libraries and of those named, for a key.

    A record that another version made must not end up in a table that is to be reproduced byte
    for byte.
    """
    always = ("numpy", "scipy", "pandas", "scikit-learn")
    return {name: _version(name) for name in (*always, *names)}


def _version(name: str) -> str:
    """Return the version of a distribution, or of the one that brings a module of that name."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:  # xgboost may come as xgboost-cpu
        for distribution in importlib.metadata.packages_distributions().get(name, ()):
            return importlib.metadata.version(distribution)
        raise


def _default_root() -> Path:
    named = os.environ.get("INCONVENIENT_STORE")
    if named:
        return Path(named)
    checkout = Path(__file__).resolve().parents[2]
    if (checkout / "dvc.yaml").is_file():
        return checkout / ".store"
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "inconvenient" / "store"


class Store:
    """Bytes by key on disk: written atomically, never changed, safe to share between processes.

    Parameters
    ----------
    root : path, optional
        Folder of the records; ``$INCONVENIENT_STORE``, else ``.store`` of the checkout, else the
        user's cache folder.
    """

    def __init__(self, root: str | Path | None = None) -> None:
        self.root = _default_root() if root is None else Path(root)

    def _path(self, key: str) -> Path:
        return self.root / key[:2] / key[2:]

    def get(self, key: str) -> bytes | None:
        """Return the record of a key, or None."""
        try:
            return self._path(key).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(
                f"the record {self._path(key)} had to be read, but: {error.strerror}; "
                "set INCONVENIENT_STORE to a folder that can be read and written"
            ) from error

    def put(self, key: str, value: bytes) -> None:
        """Write a record with :func:`write_atomic`."""
        write_atomic(self._path(key), value)

    def note(self, key: str, facts: Mapping[str, Any]) -> None:
        """Keep JSON-able facts on how a record was made, beside the records, in ``notes.jsonl``."""
        append_note(self.root / "notes.jsonl", {"key": key, **facts})

    def notes(self, keys: Sequence[str] | None = None) -> pd.DataFrame:
        """Return the last note of each key, one row each; keys without a note are left out.

        Parameters
        ----------
        keys : sequence of str, optional
            All by default.

        Returns
        -------
        DataFrame
            Column ``key`` and one per fact. Those of a unit: ``name``, ``status`` ("done", "ended"
            or "raised"), ``reason``, ``trace``, ``seconds`` (wall time), ``megabytes`` (largest
            resident memory, what was there before included), ``started`` (UTC), ``host``,
            ``threads``, ``workers`` and ``versions`` (JSON); of a baseline's or model's scores
            also ``model`` and ``seed``.
        """
        return read_notes(self.root / "notes.jsonl", keys)

    def sweep(self) -> None:
        """Delete what writers that were killed left unfinished: temporary files an hour old."""
        old = time.time() - _UNFINISHED
        for path in self.root.glob(f"*/{TEMPORARY}*"):
            with contextlib.suppress(OSError):
                if path.stat().st_mtime < old:
                    path.unlink()

    def load(self, key: str) -> pd.DataFrame | None:
        """Return the frame of a key, or None; what is no whole Parquet file counts as absent."""
        value = self.get(key)
        if value is None:
            return None
        try:
            return read_frame(value)
        except pa.ArrowInvalid:  # a damaged disk; the record is made again
            return None

    def frame(self, key: str, compute: Callable[[], pd.DataFrame]) -> pd.DataFrame:
        """Return the frame of a key, computed and stored if it is absent.

        A fresh frame is returned as read back, so that a first and a second call give equal frames.
        """
        stored = self.load(key)
        if stored is not None:
            return stored
        value = frame_bytes(compute())
        self.put(key, value)
        return read_frame(value)
