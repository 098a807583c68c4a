"""Units on a Dask cluster: the same records, whatever dies meanwhile, or one clear error."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from unit_runs import fail, hang, note_of, real_units, records, slow_values, unit, values

from inconvenient.errors import ClusterError, MissingDependencyError, UnitError
from inconvenient.store import Limits, Store, Unit, run_units

distributed = pytest.importorskip("distributed")
pytestmark = [
    # Dask leaves sockets and loops to the garbage collector when it ends.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Return a cluster of two worker processes of a thread each; nannies replace them."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as local:
        yield local


def workers(cluster: Any) -> list[int]:
    """Return the process numbers of a cluster's workers."""
    return [nanny.pid for nanny in cluster.workers.values() if nanny.pid is not None]


@pytest.mark.slow
def test_a_killed_worker_s_units_are_run_again_by_others(
    cluster: Any, tmp_path: Path, data_folder: Path
) -> None:
    units = [*real_units(1), *(unit(slow_values, number) for number in range(20))]
    one, two = Store(tmp_path / "one"), Store(tmp_path / "two")
    run_units(units, store=one, workers=1, label="undisturbed")
    killed: list[int] = []

    def kill() -> None:
        generator = np.random.default_rng(20261130)
        for moment in (2, len(units) // 2):
            while len(records(two)) < moment:
                time.sleep(0.02)
            time.sleep(float(generator.uniform(0.0, 0.3)))
            process = int(generator.choice(workers(cluster)))
            os.kill(process, signal.SIGKILL)
            killed.append(process)

    thread = threading.Thread(target=kill)
    thread.start()
    frames = run_units(
        units, store=two, workers=2, label="disturbed", cluster=cluster.scheduler_address
    )
    thread.join()
    assert len(killed) == 2
    assert len(frames) == len(units)
    assert records(two) == records(one)
    notes = two.notes()
    assert set(notes["key"]) == {one.key for one in units}
    assert (notes["seconds"] > 0).all()


@pytest.mark.slow
def test_limits_and_errors_cost_a_unit_its_own_record_on_a_cluster(
    cluster: Any, tmp_path: Path
) -> None:
    store, limits = Store(tmp_path), Limits(seconds=4.0)
    good = [unit(values, number) for number in range(3)]
    bad = [unit(hang, 4, failed=note_of), unit(fail, 5)]
    with pytest.raises(UnitError, match="fail 5 .* ValueError: no value for 5; no record stands"):
        run_units(
            [*bad, *good],
            store=store,
            workers=2,
            label="cluster",
            limits=limits,
            cluster=cluster.scheduler_address,
        )
    ended = limits.ended_key(bad[0].key)
    assert set(records(store)) == {*(one.key for one in good), ended}
    frame = store.load(ended)
    assert frame is not None
    assert frame["reason"][0] == "TimeLimit: over 4 s"
    assert (store.notes([ended])["status"] == "ended").all()


@pytest.mark.slow
def test_a_dataset_that_is_another_on_the_worker_is_refused(
    cluster: Any, tmp_path: Path, data_folder: Path
) -> None:
    work = real_units(1, names=["professor_salaries"])[0]
    common, *others = work.arguments
    other = dataclasses.replace(common, hash="0" * 64)
    work = work._replace(arguments=(other, *others))
    with pytest.raises(UnitError, match="professor_salaries must have the hash 0{64}, found"):
        run_units(
            [work],
            store=Store(tmp_path),
            workers=1,
            label="other data",
            cluster=cluster.scheduler_address,
        )


@pytest.mark.slow
def test_other_packages_on_the_workers_are_reported(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from inconvenient.store import cluster as module

    def newer() -> dict[str, str]:
        return {"python": "3.99.1", "numpy": "99.0", "pandas": pd.__version__, "absent": "1"}

    monkeypatch.setattr(module, "installed", newer)
    message = (
        r"the worker tcp://.* must have the packages of this process, but has python 3\.\d+\.\d+ "
        r"\(needed: 3\.99\.1\), numpy .* \(needed: 99\.0\), absent is absent \(needed: 1\); install"
    )
    with pytest.raises(ClusterError, match=message):
        run_units(
            [unit(values, 1)],
            store=Store(tmp_path),
            workers=1,
            label="versions",
            cluster=cluster.scheduler_address,
        )


@pytest.mark.slow
def test_a_scheduler_that_is_lost_is_one_clear_error(tmp_path: Path) -> None:
    code = (
        "import sys, time\n"
        "from distributed import LocalCluster\n"
        "if __name__ == '__main__':\n"
        "    cluster = LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None,\n"
        "                           silence_logs=50)\n"
        "    print(cluster.scheduler_address, flush=True)\n"
        "    time.sleep(600)\n"
    )
    script = tmp_path / "start.py"
    script.write_text(code, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
    )
    store = Store(tmp_path / "s")
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()

        def kill() -> None:
            while not records(store):
                time.sleep(0.05)
            os.killpg(process.pid, signal.SIGKILL)

        thread = threading.Thread(target=kill)
        thread.start()
        work = [unit(slow_values, number) for number in range(300)]
        with pytest.raises(ClusterError, match=f"the scheduler at {address} was lost .* run again"):
            run_units(work, store=store, workers=1, label="lost", cluster=address)
        thread.join()
        assert records(store)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def run_on(address: str, folder: Path, *units: Unit) -> list[pd.DataFrame]:
    work = units or (unit(values, 1),)
    return run_units(work, store=Store(folder), workers=1, label="x", cluster=address)


def test_a_cluster_that_cannot_be_reached_is_one_clear_error_soon(tmp_path: Path) -> None:
    begun = time.monotonic()
    with pytest.raises(
        ClusterError, match=r"had to answer at tcp://127.0.0.1:1 within 8 s .*start"
    ):
        run_on("tcp://127.0.0.1:1", tmp_path)
    assert time.monotonic() - begun < 10.0
    with pytest.raises(ClusterError, match=r"had to answer at nonsense://x:1 .*tcp://HOST:PORT"):
        run_on("nonsense://x:1", tmp_path)


def test_without_work_no_cluster_is_asked(tmp_path: Path) -> None:
    run_units([unit(values, 1)], store=Store(tmp_path), workers=1, label="x")
    assert run_on("tcp://127.0.0.1:1", tmp_path)[0]["number"][0] == 1


def test_without_the_library_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'inconvenient\[cluster\]'"):
        run_on("tcp://127.0.0.1:1", tmp_path)
