"""One unit: computed, and what became of it kept."""

from __future__ import annotations

import datetime
import functools
import os
import platform
import sys
import threading
import time
import traceback
from typing import TYPE_CHECKING, Any, NamedTuple

from inconvenient.store.files import frame_bytes
from inconvenient.store.notes import forget_peak, installed, peak_megabytes

if TYPE_CHECKING:
    from inconvenient.store.limits import Limits
    from inconvenient.store.records import Store
    from inconvenient.store.units import Unit

__all__ = ["Kept", "Outcome", "compute", "end_with", "keep", "last_line"]


class Outcome(NamedTuple):
    """What became of a unit: the bytes of its record, or why there are none."""

    facts: dict[str, Any]
    value: bytes = b""
    raised: str = ""  # the last line of the traceback of its function
    ended: str = ""  # why it was ended: a limit, or the death of its process
    trace: str = ""


class Kept(NamedTuple):
    """What there is to say of a unit whose outcome was kept; nothing if all went well."""

    said: str = ""
    lost: bool = False  # no record stands for it
    trace: str = ""


def compute(unit: Unit) -> Outcome:
    """Compute a unit on one thread; an error of its function is an outcome, too."""
    facts = begun()
    forget_peak()
    start = time.perf_counter()
    value, raised, trace = b"", "", ""
    # One thread in every case: sums over threads would make bytes depend on the number of workers.
    with _thread_pools(len(sys.modules)).limit(limits=1):
        try:
            value = frame_bytes(unit.function(*unit.arguments))
        except (Exception, SystemExit) as error:
            raised, trace = last_line(error), traceback.format_exc()
    facts["seconds"] = round(time.perf_counter() - start, 4)
    facts["megabytes"] = peak_megabytes()
    return Outcome(facts, value, raised, trace=trace)


@functools.lru_cache(maxsize=1)
def _thread_pools(modules: int) -> Any:
    """Return the thread pools of this process; they are looked for anew (3 ms) for new modules."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def begun() -> dict[str, Any]:
    """Return the facts on a unit that are known when it begins."""
    now = datetime.datetime.now(datetime.UTC)
    return {
        "host": platform.node(),
        "started": now.isoformat(timespec="seconds"),
        "threads": 1,
        "versions": installed(),
    }


def keep(
    unit: Unit, outcome: Outcome, *, store: Store, limits: Limits | None, workers: int
) -> Kept:
    """Write the record of a unit, or the one that stands for it where it was ended, and a note.

    Raises
    ------
    StoreError
        If the store cannot be written.
    """
    facts = {"name": unit.name, **(unit.facts or {}), "workers": workers, **outcome.facts}
    title = f"{unit.name or 'unit'} ({unit.key[:12]})"
    if outcome.value:
        # The note first: a kill between the two must not leave a record that nothing is known of.
        store.note(unit.key, {**facts, "status": "done"})
        store.put(unit.key, outcome.value)
        return Kept()
    reason, trace = outcome.raised or outcome.ended, outcome.trace
    if outcome.ended and limits is not None and unit.failed is not None:
        try:
            value = frame_bytes(unit.failed(outcome.ended, *unit.arguments))
        except Exception as error:
            reason, trace = f"{reason}; its record: {last_line(error)}", traceback.format_exc()
        else:
            key = limits.ended_key(unit.key)
            store.note(key, {**facts, "status": "ended", "reason": reason})
            store.put(key, value)
            return Kept(f"{title}: {reason}; recorded as such")
    status = "ended" if outcome.ended else "raised"
    store.note(unit.key, {**facts, "status": status, "reason": reason, "trace": trace})
    return Kept(f"{title}: {reason}", lost=True, trace=trace)


# Characters of a message in a record: some print the table that they failed on.
_LONGEST = 500


def last_line(error: BaseException) -> str:
    """Return the last line of a traceback, "Type: message": on one line, and cut if long."""
    text = " ".join(str(error).split())
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}... ({len(text):,} characters)"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


@functools.cache
def end_with(parent: int) -> None:
    """End this process with its parent: a worker of a parent that was killed would wait forever."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
