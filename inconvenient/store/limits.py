"""Limits on the time and memory of a unit, watched from outside the process that computes it."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from inconvenient.errors import ConfigError
from inconvenient.store.records import content_key

__all__ = ["Limits", "Watch", "end_family"]

#: Seconds between two looks for processes that a unit started; a look reads all of /proc.
_FAMILY = 0.5


@dataclass(frozen=True, slots=True)
class Limits:
    """What a unit may take; None is no limit.

    Parameters
    ----------
    seconds : float, optional
        Wall time from when the modules of the unit's function and arguments are imported.
    megabytes : int, optional
        Resident memory in 10^6 bytes of the process that computes the unit and of those that it
        starts; Python and the libraries (200 to 500 MB) are part of it, and what processes share
        counts for each.

    Raises
    ------
    ConfigError
        If a limit is not positive, or of memory where there is no ``/proc``.
    """

    seconds: float | None = None
    megabytes: int | None = None

    def __post_init__(self) -> None:
        for name in ("seconds", "megabytes"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(
                    f"the limit of {name} per unit must be positive, got {value}; "
                    "give a larger one, or none"
                )
        if self.megabytes is not None and not Path("/proc/self/statm").exists():
            raise ConfigError(
                "a limit of memory needs /proc, which only Linux has; limit the time alone"
            )

    def ended_key(self, key: str) -> str:
        """Return the key of the record of a unit that was ended under these limits.

        It is none of the unit's own, so that higher limits try again and equal ones do not.
        """
        megabytes = None if self.megabytes is None else int(self.megabytes)
        seconds = None if self.seconds is None else float(self.seconds)
        return content_key("ended", 1, unit=key, seconds=seconds, megabytes=megabytes)


class Watch:
    """Time and memory of a process since a unit began in it.

    Parameters
    ----------
    process : int
    limits : Limits
    """

    def __init__(self, process: int, limits: Limits) -> None:
        self._limits = limits
        self._processes = [process]
        self._began = self._looked = time.monotonic()
        self.megabytes = 0.0  # the most that was seen

    def seconds(self) -> float:
        """Return the wall time."""
        return time.monotonic() - self._began

    def verdict(self) -> str:
        """Return why the unit must end, or ""."""
        limits = self._limits
        if limits.seconds is not None and self.seconds() > limits.seconds:
            return f"TimeLimit: over {limits.seconds:,g} s"
        if limits.megabytes is not None:
            if time.monotonic() - self._looked > _FAMILY:
                self._processes = _family(self._processes[0])
                self._looked = time.monotonic()
            self.megabytes = max(self.megabytes, sum(map(_resident, self._processes)))
            if self.megabytes > limits.megabytes:
                return f"MemoryLimit: over {limits.megabytes:,} MB"
        return ""


def _resident(process: int) -> float:
    """Return a process's resident memory in MB, 0 if it has ended."""
    try:
        pages = Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1]
    except OSError:
        return 0.0
    return int(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6


def _family(process: int) -> list[int]:
    """Return a process and those that descend from it; the process alone where /proc is absent."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            facts = (folder / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:  # ended meanwhile
            continue
        children.setdefault(int(facts.rpartition(")")[2].split()[1]), []).append(int(folder.name))
    found = [process]
    for one in found:
        found += children.get(one, [])
    return found


def end_family(process: int) -> None:
    """Kill a process that leads a group, its group, and what descends from it elsewhere."""
    descendants = _family(process)
    for end, number in ((os.killpg, process), *((os.kill, one) for one in descendants)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            end(number, signal.SIGKILL)
