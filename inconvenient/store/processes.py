"""Calls in processes beside this one, which end with it and leave Ctrl-C to it."""

from __future__ import annotations

import contextlib
import os
import signal
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, TypeVar

from inconvenient.errors import UnitError
from inconvenient.store.work import end_with

__all__ = ["in_processes"]

_Result = TypeVar("_Result")


def in_processes(
    function: Callable[..., _Result],
    calls: Iterable[tuple[Any, ...]],
    *,
    workers: int,
    died: Callable[[], str],
) -> Generator[_Result, None, None]:
    """Yield what a function returns for each tuple of arguments, as soon as it is there.

    Parameters
    ----------
    function : callable
        Of a module; it runs on one thread of any library that asks for the number.
    calls : iterable of tuple
        Begun in this order.
    workers : int
        Processes; they stay for the next calls.
    died : callable
        Returns the message of the error if a process dies.

    Raises
    ------
    UnitError
        If a process died.
    """
    from joblib import Parallel, delayed, parallel_config
    from joblib.externals.loky.process_executor import BrokenProcessPool

    with (
        parallel_config(backend="loky", n_jobs=workers, inner_max_num_threads=1),
        warnings.catch_warnings(),
    ):
        # A worker that has grown by 300 MB (PyTorch will do) is replaced between two calls, of
        # which joblib warns; made an error, that would end the thread all results come through.
        warnings.filterwarnings("ignore", module=r"(joblib\.externals\.)?loky\.")
        # the next call waits beside each worker, which need not wait for this process;
        # arguments go through the pipe, for files that share them would outlive a kill
        pool = Parallel(
            return_as="generator_unordered",
            batch_size=1,
            pre_dispatch="2*n_jobs",
            max_nbytes=None,
        )
        work = (delayed(_call)(os.getpid(), function, arguments) for arguments in calls)
        try:
            with _without_interrupts():  # which the workers and the thread that renews them inherit
                results = pool(work)
            yield from results
        except BrokenProcessPool as error:
            raise UnitError(died()) from error


def _call(parent: int, function: Callable[..., _Result], arguments: tuple[Any, ...]) -> _Result:
    end_with(parent)
    return function(*arguments)


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Keep Ctrl-C from what this thread starts: a terminal signals all processes.

    One that comes meanwhile is delivered at the end, or to another thread.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    from multiprocessing import resource_tracker

    from joblib.externals.loky.backend import resource_tracker as loky_tracker

    # Both run beside the workers; some versions lift the block when they start.
    resource_tracker.ensure_running()
    loky_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
