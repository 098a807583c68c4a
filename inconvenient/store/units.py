"""Units of work: computed once, in one process or several, each stored as soon as it is done."""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pandas as pd

from inconvenient.errors import ConfigError, StoreError
from inconvenient.store.progress import Progress
from inconvenient.store.records import Store

__all__ = ["Unit", "run_units", "worker_count"]


class Unit(NamedTuple):
    """Work that can run in another process: a module-level function that returns a frame."""

    key: str
    function: Callable[..., pd.DataFrame]
    arguments: tuple[Any, ...]
    name: str = ""  # shown while it is at work


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


@functools.cache
def _end_with(parent: int) -> None:
    """End this process with its parent: a worker of a parent that was killed would wait forever."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _run_in_worker(unit: Unit, store: Store, parent: int) -> str:
    _end_with(parent)
    return _run(unit, store)


def _run(unit: Unit, store: Store) -> str:
    """Compute and store a unit; return its key."""
    from threadpoolctl import threadpool_limits

    # One thread in every case: sums over threads would make bytes depend on the number of workers.
    with threadpool_limits(limits=1):
        store.frame(unit.key, lambda: unit.function(*unit.arguments))
    return unit.key


def run_units(
    units: Sequence[Unit], *, store: Store, workers: int, label: str
) -> list[pd.DataFrame]:
    """Compute the units whose records are absent; return the frames of all.

    Parameters
    ----------
    units : sequence of Unit
        Units with equal keys are computed once.
    store : Store
        Each result is stored as soon as it exists; after Ctrl-C or a crash, the next run goes on
        from there.
    workers : int
        Processes; 1 stays in this one. The results do not depend on it.
    label : str
        Shown with the progress, on stderr: a bar on a terminal, else a line a minute.

    Returns
    -------
    list of DataFrame
        In the order of `units`.
    """
    frames = {unit.key: store.load(unit.key) for unit in units}
    todo = list({unit.key: unit for unit in units if frames[unit.key] is None}.values())
    store.sweep()
    with Progress(label, todo, workers) as progress:
        if workers == 1 or len(todo) < 2:
            for unit in todo:
                progress.done(_run(unit, store))
        else:
            from joblib import Parallel, delayed, parallel_config

            with parallel_config(backend="loky", n_jobs=workers, inner_max_num_threads=1):
                # the next unit waits beside each worker, which need not wait for this process;
                # arguments go through the pipe, for files that share them would outlive a kill
                pool = Parallel(
                    return_as="generator_unordered",
                    batch_size=1,
                    pre_dispatch="2*n_jobs",
                    max_nbytes=None,
                )
                work = (delayed(_run_in_worker)(unit, store, os.getpid()) for unit in todo)
                for key in pool(work):
                    progress.done(key)
    frames.update({unit.key: store.load(unit.key) for unit in todo})
    return [_present(frames[unit.key], unit, store) for unit in units]


def _present(frame: pd.DataFrame | None, unit: Unit, store: Store) -> pd.DataFrame:
    if frame is None:
        raise StoreError(
            f"the record {unit.key} was written to {store.root} and is gone; "
            "let nothing empty the store during a run, and run again"
        )
    return frame
