"""Units on a Dask cluster: sent by name and content, computed by any worker, kept here."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any

from inconvenient.errors import ClusterError, InconvenientError, MissingDependencyError
from inconvenient.store.child import lasting, packed
from inconvenient.store.limits import Limits
from inconvenient.store.notes import installed
from inconvenient.store.work import Outcome, begun, last_line

if TYPE_CHECKING:
    from inconvenient.store.units import Unit

__all__ = ["on_cluster"]

#: Seconds in which a scheduler must answer.
_ANSWER = 8.0
#: Units under way for each thread of the cluster: one at work, one waiting.
_AHEAD = 2


def on_cluster(
    units: Sequence[Unit], *, address: str, limits: Limits, say: Callable[[str], None]
) -> Generator[tuple[Unit, Outcome], None, None]:
    """Compute units on a Dask cluster; yield each with its outcome as it comes.

    Parameters
    ----------
    units : sequence of Unit
        In the order in which they are begun.
    address : str
        Of the scheduler, such as "tcp://10.0.0.1:8786".
    limits : Limits
        Each unit runs in a process of its own beside the worker, so that only the unit is ended.
    say : callable
        Is told what a user should know while waiting.

    Raises
    ------
    MissingDependencyError
        If the library distributed is not installed.
    ClusterError
        If no scheduler answers within 8 s or it is lost, or a worker has other packages.

    Notes
    -----
    The units of a worker that dies are given to others by the scheduler; one that was at work on
    several that died (``distributed.scheduler.allowed-failures``, 3) counts as raised.
    """
    client = _connect(address)
    with client:
        if not client.nthreads():
            say(f"no workers at {address} yet; waiting for `dask worker {address} --nthreads 1`")
        yield from _outcomes(client, units, address, limits)


def _connect(address: str) -> Any:
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingDependencyError(
            "a run on a cluster needs the library distributed, which is not installed; "
            "run pip install 'inconvenient[cluster]'"
        ) from error
    if not re.search(r":\d+$|^inproc:", address):
        raise ClusterError(f"a Dask scheduler's address is like tcp://HOST:8786, got {address!r}")
    try:
        return Client(address, timeout=_ANSWER, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise ClusterError(
            f"a Dask scheduler had to answer at {address} within {_ANSWER:g} s and did not "
            f"({last_line(error)}); start one with `dask scheduler` and workers with "
            "`dask worker tcp://HOST:PORT --nthreads 1`, check host, port and firewall, or leave "
            "the cluster away"
        ) from error


def _outcomes(
    client: Any, units: Sequence[Unit], address: str, limits: Limits
) -> Generator[tuple[Unit, Outcome], None, None]:
    from distributed import as_completed

    waiting = iter(units)
    under_way: dict[str, Unit] = {}

    def send(threads: int) -> list[Any]:
        # Few at a time: a unit may carry megabytes, and the scheduler holds what is under way.
        room = _AHEAD * max(1, threads) - len(under_way)
        sent = []
        for unit in itertools.islice(waiting, max(0, room)):
            future = client.submit(_work, packed(unit), limits, installed(), pure=False)
            under_way[future.key] = unit
            sent.append(future)
        return sent

    def threads() -> int:
        return sum(client.nthreads().values())

    queue = as_completed(send(threads()), loop=client.loop)
    for future in queue:
        unit = under_way.pop(future.key)
        outcome = _result(future, address)
        outcome.facts["workers"] = threads()
        queue.update(send(outcome.facts["workers"]))
        yield unit, outcome


def _result(future: Any, address: str) -> Outcome:
    from distributed import KilledWorker

    try:
        outcome: Outcome = future.result()
    except KilledWorker as error:
        text = f"Died: every worker that it was at work on ({last_line(error)})"
        return Outcome(begun(), raised=text)
    except InconvenientError:
        raise
    except ImportError as error:
        raise ClusterError(
            f"a worker at {address} lacks a package ({last_line(error)}); install there what is "
            "installed here"
        ) from error
    except Exception as error:
        lost = future.cancelled() or future.status == "lost"
        raise ClusterError(
            (f"the scheduler at {address} was lost" if lost else f"a worker at {address} failed")
            + f" ({last_line(error)}); what is finished is kept, run again to go on"
        ) from error
    return outcome


def _work(unit: bytes, limits: Limits, versions: dict[str, str]) -> Outcome:
    """Compute a unit beside a worker that has the packages of those who sent it."""
    mine = installed()
    # A patch release of Python changes no record.
    other = [
        f"{name} {mine.get(name, 'is absent')} (needed: {version})"
        for name, version in versions.items()
        if (mine.get(name) != version if name != "python" else not _same_python(version))
    ]
    if other:
        from distributed import get_worker

        raise ClusterError(
            f"the worker {get_worker().address} must have the packages of this process, but has "
            f"{', '.join(other)}; install the same versions on both (constraints.txt)"
        )
    return lasting().run(unit, limits)


def _same_python(version: str) -> bool:
    return version.split(".")[:2] == [str(part) for part in sys.version_info[:2]]
