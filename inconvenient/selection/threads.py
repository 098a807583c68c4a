"""Kernels on several threads: each row's result is what it is on one, so the bytes are the same."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

__all__ = ["in_parts"]

# Below so many multiply-adds a part, handing it over costs more than it saves.
_LEAST_WORK = 4_000_000
_MOST_THREADS = 8

_pools: dict[int, ThreadPoolExecutor] = {}


def _threads() -> int:
    """Return how many threads to use: Numba's number, which joblib sets to 1 in full use."""
    from numba import config

    return min(int(config.NUMBA_NUM_THREADS), _MOST_THREADS)


def _pool() -> ThreadPoolExecutor:
    # By process: the threads of a pool do not survive a fork, and waiting for them would hang.
    pid = os.getpid()
    if pid not in _pools:
        _pools.clear()
        _pools[pid] = ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="inconvenient")
    return _pools[pid]


def in_parts(task: Callable[[int, int], object], total: int, work_each: float) -> None:
    """Call ``task(start, stop)`` for consecutive ranges that cover ``range(total)``.

    Parameters
    ----------
    task : callable
        Runs kernels, which let go of the interpreter's lock, on items start to stop - 1; must give
        the same result however the items are divided.
    total : int
        Number of items.
    work_each : float
        Multiply-adds an item takes.
    """
    parts = min(int(total * work_each / _LEAST_WORK), total)
    if parts > 1:
        parts = min(parts, _threads())
    if parts <= 1:
        task(0, total)
        return
    ends = [total * part // parts for part in range(parts + 1)]
    others = [_pool().submit(task, ends[i], ends[i + 1]) for i in range(1, parts)]
    try:
        task(ends[0], ends[1])
    finally:
        for other in others:
            other.result()
