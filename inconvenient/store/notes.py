"""Notes on how records were made: one append-only log beside them, which no record depends on."""

from __future__ import annotations

import functools
import importlib.metadata
import json
import os
import platform
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from inconvenient.store.files import canonical_json, store_error

__all__ = ["append_note", "forget_peak", "installed", "peak_megabytes", "read_notes"]

#: What computes records, where it is installed.
LIBRARIES = (
    "inconvenient",
    "numpy",
    "scipy",
    "numba",
    "pandas",
    "pyarrow",
    "scikit-learn",
    "lightgbm",
    "xgboost",
    "xgboost-cpu",
    "catboost",
    "optuna",
    "torch",
    "tabpfn",
)


def append_note(path: Path, facts: Mapping[str, Any]) -> None:
    """Add a line of JSON to a log; processes may do so at once.

    Raises
    ------
    StoreError
        If the disk is full or the folder cannot be written.
    """
    # A line of its own even after one that a full disk cut short; one write, so that lines of
    # other processes stand before or after it.
    left = f"\n{canonical_json(facts)}\n".encode("ascii")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            while left:
                left = left[os.write(handle, left) :]
        finally:
            os.close(handle)
    except OSError as error:
        raise store_error(path, error) from error


def read_notes(path: Path, keys: Sequence[str] | None = None) -> pd.DataFrame:
    """Return the last note of each key, in the order of `keys` or of the log.

    Lines that are no whole JSON (a full disk, a crash of the machine) are passed over.
    """
    found: dict[str, dict[str, Any]] = {}
    try:
        lines = path.read_text(encoding="ascii", errors="replace").splitlines()
    except FileNotFoundError:
        lines = []
    for line in lines:
        try:
            facts = json.loads(line)
            key = facts["key"]
        except (ValueError, KeyError, TypeError):
            continue
        found[key] = {k: canonical_json(v) if isinstance(v, dict) else v for k, v in facts.items()}
    wanted = found if keys is None else dict.fromkeys(key for key in keys if key in found)
    table = pd.DataFrame([found[key] for key in wanted])
    return table if len(table) else pd.DataFrame({"key": pd.Series(dtype="str")})


@functools.cache
def installed() -> dict[str, str]:
    """Return the versions of Python and of the libraries that compute records."""
    versions = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def forget_peak() -> None:
    """Let :func:`peak_megabytes` begin anew, where the system can."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return


def peak_megabytes() -> float | None:
    """Return this process's largest resident memory since :func:`forget_peak`; None off Linux."""
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        return None
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return None if found is None else round(int(found[1]) * 1024 / 1e6, 1)
