"""Units of work: computed once, in one process or several, each stored as soon as it is done."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from inconvenient.errors import ConfigError, StoreError, UnitError
from inconvenient.store.limits import Limits
from inconvenient.store.processes import in_processes
from inconvenient.store.progress import Progress
from inconvenient.store.records import Store
from inconvenient.store.work import Kept, compute, keep

__all__ = ["Unit", "run_units", "worker_count"]


class Unit(NamedTuple):
    """Work that can run in another process: a module-level function that returns a frame."""

    key: str
    function: Callable[..., pd.DataFrame]
    arguments: tuple[Any, ...]
    name: str = ""  # shown while it is at work
    # Given the reason and the arguments, returns what stands for a unit that was ended.
    failed: Callable[..., pd.DataFrame] | None = None
    # What its key was made of and its note should say, JSON-able: model and seed, say.
    facts: Mapping[str, Any] | None = None


def worker_count(workers: int | None = None) -> int:
    """Return the processes to use: those given, else ``$INCONVENIENT_WORKERS``, else the cores.

    Raises
    ------
    ConfigError
        If the number is not positive.
    """
    value: int | str = os.environ.get("INCONVENIENT_WORKERS", "") if workers is None else workers
    if value == "":
        return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    try:
        count = int(value)
    except ValueError:
        count = 0
    if count < 1:
        raise ConfigError(
            f"the number of workers must be a positive whole number, got {value!r}; "
            "give --workers or INCONVENIENT_WORKERS one"
        )
    return count


def run_units(
    units: Sequence[Unit],
    *,
    store: Store,
    workers: int,
    label: str,
    limits: Limits | None = None,
    cluster: str | None = None,
) -> list[pd.DataFrame]:
    """Compute the units whose records are absent; return the frames of all.

    Parameters
    ----------
    units : sequence of Unit
        Units with equal keys are computed once.
    store : Store
        Each result is stored as soon as it exists; after Ctrl-C or a crash, the next run goes on
        from there. Times, memory and versions are in ``store.notes``.
    workers : int
        Processes; 1 stays in this one. The results do not depend on it.
    label : str
        Shown with the progress, on stderr: a bar on a terminal, else a line a minute.
    limits : Limits, optional
        Of each unit, which then runs in a process beside this one. One that goes over them, or
        whose process dies, is ended; what its ``failed`` returns stands for it in a run with equal
        limits, while one with others tries again.
    cluster : str, optional
        Address of a Dask scheduler ("tcp://host:port") whose workers compute the units in place
        of processes of this machine; `workers` does not matter then.

    Returns
    -------
    list of DataFrame
        In the order of `units`.

    Raises
    ------
    UnitError
        When all others are done, if a unit's function raised, or if a unit without ``failed`` was
        ended; tracebacks are its notes. Also if a process died in a run without limits.
    StoreError
        At once, if the store cannot be written.
    ClusterError, MissingDependencyError
        If the cluster cannot be reached, or has other packages.
    """
    frames = {unit.key: _stored(unit, store, limits) for unit in units}
    todo = list({unit.key: unit for unit in units if frames[unit.key] is None}.values())
    store.sweep()
    lost: list[Kept] = []
    with Progress(label, todo, workers) as progress:
        if cluster is not None and todo:
            source = _cluster(todo, store, workers, limits, cluster, progress)
        elif limits is not None:
            source = _watched(todo, store, workers, limits)
        elif workers == 1 or len(todo) < 2:
            source = _here(todo, store)
        else:
            source = _processes(todo, store, workers, progress)
        with contextlib.closing(source):
            for key, kept in source:
                progress.done(key)
                if kept.said:
                    progress.say(kept.said)
                if kept.lost:
                    lost.append(kept)
    if lost:
        raise _unit_error(lost, store)
    frames.update({unit.key: _stored(unit, store, limits) for unit in todo})
    return [_present(frames[unit.key], unit, store) for unit in units]


def _stored(unit: Unit, store: Store, limits: Limits | None) -> pd.DataFrame | None:
    frame = store.load(unit.key)
    if frame is None and limits is not None and unit.failed is not None:
        frame = store.load(limits.ended_key(unit.key))
    return frame


Source = Generator[tuple[str, Kept], None, None]


def _here(units: Sequence[Unit], store: Store) -> Source:
    for unit in units:
        yield unit.key, _run(unit, store, 1)


def _processes(units: Sequence[Unit], store: Store, workers: int, progress: Progress) -> Source:
    def died() -> str:
        return (
            f"a worker process died while these were at work: {progress.at_work() or 'units'}; "
            "the memory was used up, or a library crashed; what is finished is kept; run again "
            "with limits, under which such a unit is ended alone, or with fewer workers"
        )

    calls = ((unit, store, workers) for unit in units)
    return in_processes(_run_in_worker, calls, workers=workers, died=died)


def _run_in_worker(unit: Unit, store: Store, workers: int) -> tuple[str, Kept]:
    return unit.key, _run(unit, store, workers)


def _run(unit: Unit, store: Store, workers: int) -> Kept:
    """Compute and store a unit, unless another process has done so meanwhile."""
    if store.load(unit.key) is not None:
        return Kept()
    return keep(unit, compute(unit), store=store, limits=None, workers=workers)


def _watched(units: Sequence[Unit], store: Store, workers: int, limits: Limits) -> Source:
    from concurrent.futures import ThreadPoolExecutor, as_completed

    from inconvenient.store.child import Children, packed

    # The processes are ended before the threads, which wait for them, are waited for.
    with ThreadPoolExecutor(workers) as threads, Children() as children:

        def run(unit: Unit) -> tuple[str, Kept]:
            outcome = children.run(packed(unit), limits)
            return unit.key, keep(unit, outcome, store=store, limits=limits, workers=workers)

        for future in as_completed([threads.submit(run, unit) for unit in units]):
            yield future.result()


def _cluster(
    units: Sequence[Unit],
    store: Store,
    workers: int,
    limits: Limits | None,
    address: str,
    progress: Progress,
) -> Source:
    from inconvenient.store.cluster import on_cluster

    under = Limits() if limits is None else limits
    outcomes = on_cluster(units, address=address, limits=under, say=progress.say)
    with contextlib.closing(outcomes):
        for unit, outcome in outcomes:
            yield unit.key, keep(unit, outcome, store=store, limits=limits, workers=workers)


def _unit_error(lost: Sequence[Kept], store: Store) -> UnitError:
    first, more = lost[0], len(lost) - 1
    others = "" if not more else f" (and {more} more)"
    error = UnitError(
        f"{first.said}{others}; no record stands for that, all others are kept; "
        f"see its traceback in {store.root / 'notes.jsonl'}, and run again when it is mended"
    )
    for kept in lost:
        if kept.trace:
            error.add_note(f"{kept.said}\n{kept.trace}")
    return error


def _present(frame: pd.DataFrame | None, unit: Unit, store: Store) -> pd.DataFrame:
    if frame is None:
        raise StoreError(
            f"the record {unit.key} was written to {store.root} and is gone; "
            "let nothing empty the store during a run, and run again"
        )
    return frame
