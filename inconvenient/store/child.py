"""Processes that compute units one after another and can be killed without loss to others."""

from __future__ import annotations

import contextlib
import functools
import os
import pickle
import subprocess
import sys
import threading
import traceback
from multiprocessing.connection import Connection, Pipe
from types import TracebackType
from typing import TYPE_CHECKING, Any

from inconvenient.errors import UnitError
from inconvenient.store.limits import Limits, Watch, end_family
from inconvenient.store.work import Outcome, begun, compute, end_with, last_line

if TYPE_CHECKING:
    from inconvenient.store.units import Unit

__all__ = ["Children", "lasting", "packed", "serve"]

#: Seconds between two looks at a unit at work.
_STEP = 0.05
#: Seconds that a process waits for work: one in a worker of a cluster may never get more.
_IDLE = 600.0
#: Seconds that a process may take to start, and to end by itself.
_START, _STOP = 120.0, 2.0
_STOPPED = "the run was stopped; what is finished is kept, run again to go on"
#: What says to libraries how many threads to use; some read it when they are imported only.
_THREADS = (
    "BLIS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def packed(unit: Unit) -> bytes:
    """Return a unit as bytes for :meth:`Children.run`, functions of ``__main__`` included."""
    try:
        import cloudpickle
    except ImportError:  # joblib brings its own before 1.6
        from joblib.externals import cloudpickle

    value: bytes = cloudpickle.dumps(unit)
    return value


def serve(handle: int, parent: int) -> None:
    """Compute the units that come through a pipe, until it closes or nothing comes for long."""
    os.set_inheritable(handle, False)
    end_with(parent)
    pipe = Connection(handle)
    pipe.send_bytes(b"ready")
    with contextlib.suppress(EOFError, BrokenPipeError):
        while pipe.poll(_IDLE):
            unit = pipe.recv_bytes()
            try:
                work: Unit = pickle.loads(unit)
            except Exception as error:  # a module that only the parent has
                raised, trace = last_line(error), traceback.format_exc()
                pipe.send_bytes(b"begun")
                pipe.send(Outcome(begun(), raised=raised, trace=trace))
            else:
                pipe.send_bytes(b"begun")
                pipe.send(compute(work))


class _Child:
    """A process that serves: spawned, not forked, and the leader of a group that dies with it."""

    def __init__(self) -> None:
        pipe, theirs = Pipe()
        code = (
            f"import sys; sys.path[:] = {sys.path!r}; "
            f"from inconvenient.store.child import serve; serve({theirs.fileno()}, {os.getpid()})"
        )
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", code],
                env={**os.environ, **dict.fromkeys(_THREADS, "1")},
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                process_group=0,
            )
        self._pipe: Connection[Any, Any] = pipe
        self.used = False
        ready = False
        with contextlib.suppress(EOFError, OSError):
            ready = pipe.poll(_START) and pipe.recv_bytes() == b"ready"
        if not ready:
            self.kill()
            raise UnitError(
                "a process that computes units had to start and did not, see what it said above; "
                "free memory, or leave the limits away to do without such processes"
            )

    def alive(self) -> bool:
        return self._process.poll() is None

    def run(self, unit: bytes, limits: Limits) -> Outcome:
        """Compute a unit; after one that was ended the process is gone."""
        self.used = True
        facts = begun()
        # Its modules are imported first, which is no fault of the unit that happens to be first.
        seconds = None if limits.seconds is None else max(_START, limits.seconds)
        watch = Watch(self._process.pid, Limits(seconds, limits.megabytes))
        try:
            self._pipe.send_bytes(unit)
            reason = self._wait(watch)
            if not reason:
                self._pipe.recv_bytes()
                watch = Watch(self._process.pid, limits)
                reason = self._wait(watch)
            if not reason:
                outcome: Outcome = self._pipe.recv()
                return outcome
        except (EOFError, OSError):
            reason = self._how_it_died()
        self.kill()
        facts["seconds"] = round(watch.seconds(), 4)
        facts["megabytes"] = round(watch.megabytes, 1) or None
        return Outcome(facts, ended=reason)

    def _wait(self, watch: Watch) -> str:
        """Wait until the process says something; return "", or why the unit must end first."""
        while not self._pipe.poll(_STEP):
            reason = watch.verdict()
            if reason:
                return reason
        return ""

    def _how_it_died(self) -> str:
        try:
            status = self._process.wait(_STOP)
        except subprocess.TimeoutExpired:
            return "Died: it closed its pipe"
        return f"Died: signal {-status}" if status < 0 else f"Died: exit status {status}"

    def hang_up(self) -> None:
        """Let the process end by itself if it waits for work."""
        self._pipe.close()

    def kill(self, after: float = 0.0) -> None:
        """Kill the process and all that it started, after some seconds if it still runs then."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(after)
        end_family(self._process.pid)
        self._process.wait()
        self._pipe.close()


class Children:
    """Processes for units, one for each thread that runs one; a context that ends them all."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Child] = []
        self._busy: list[_Child] = []
        self._closed = False

    def __enter__(self) -> Children:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            self._closed = True
            for child in self._idle:
                child.hang_up()
            for child in self._busy:
                end_family(child._process.pid)
            for child in self._idle:
                child.kill(_STOP)

    def run(self, unit: bytes, limits: Limits) -> Outcome:
        """Compute a unit under limits, in this thread's process.

        One that takes too much memory or dies in a process that has computed others is tried again
        in a fresh one: what those left behind is no fault of its own.

        Parameters
        ----------
        unit : bytes
            See :func:`packed`.
        limits : Limits

        Raises
        ------
        UnitError
            If no process can be started, or the context is left meanwhile.
        """
        if self._closed:
            raise UnitError(_STOPPED)
        outcome, used = self._run(self._take(), unit, limits)
        if used and outcome.ended and not outcome.ended.startswith("TimeLimit"):
            outcome, _ = self._run(self._start(), unit, limits)
        return outcome

    def _run(self, child: _Child, unit: bytes, limits: Limits) -> tuple[Outcome, bool]:
        used = child.used
        outcome = child.run(unit, limits)
        with self._lock:
            self._busy.remove(child)
            if not self._closed:
                if not outcome.ended:
                    self._idle.append(child)
                return outcome, used
        if not outcome.ended:  # it was done when the context was left, which did not wait for it
            child.kill()
        raise UnitError(_STOPPED)

    def _take(self) -> _Child:
        with self._lock:
            while self._idle:
                child = self._idle.pop()
                if child.alive():
                    self._busy.append(child)
                    return child
        return self._start()

    def _start(self) -> _Child:
        child = _Child()
        with self._lock:
            self._busy.append(child)
            if not self._closed:
                return child
            self._busy.remove(child)
        child.kill()
        raise UnitError(_STOPPED)


@functools.cache
def lasting() -> Children:
    """Return the processes of a worker of a cluster, which end with it."""
    return Children()
