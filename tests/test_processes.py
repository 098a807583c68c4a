"""Processes beside this one: what they return, and who hears Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from inconvenient.errors import UnitError
from inconvenient.store.processes import in_processes

pytestmark = pytest.mark.slow
# Windows has neither these masks nor groups that a terminal signals.
posix = pytest.mark.skipif(sys.platform == "win32", reason="signal masks as POSIX has them")


def blocked(number: int) -> tuple[int, int, bool]:
    time.sleep(0.05)  # so that each worker takes some
    return number, os.getpid(), signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def leave(number: int) -> None:
    os._exit(number)


def died() -> str:
    return "a process died"


@posix
def test_interrupts_are_for_this_process_alone() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    calls = [(number,) for number in range(10)]
    found = list(in_processes(blocked, calls, workers=2, died=died))
    assert sorted(number for number, _, _ in found) == list(range(10))
    assert all(kept_off for _, _, kept_off in found)
    assert len({process for _, process, _ in found}) == 2
    assert os.getpid() not in {process for _, process, _ in found}
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
    assert signal.SIGINT not in before


def test_the_death_of_a_process_is_an_error_in_the_words_of_the_caller() -> None:
    with pytest.raises(UnitError, match="a process died"):
        list(in_processes(leave, [(3,), (3,)], workers=2, died=died))
    assert len(list(in_processes(blocked, [(1,), (2,)], workers=2, died=died))) == 2


# Says when it begins, for the moments are counted from there; the workers begin much later.
STOPPED = """
import sys
from test_processes import blocked, died, in_processes
print("begun", flush=True)
try:
    for _ in in_processes(blocked, ((i,) for i in range(10_000)), workers=2, died=died):
        pass
except KeyboardInterrupt:
    sys.exit(130)
"""


@posix
@pytest.mark.parametrize("seconds", [0.0, 0.2, 0.4, 0.8, 1.6])
def test_ctrl_c_at_any_moment_is_heard_once_and_said_by_no_worker(seconds: float) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", STOPPED],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    # Joblib may warn of a semaphore that it was making.
    assert "Traceback" not in said
    assert "KeyboardInterrupt" not in said
