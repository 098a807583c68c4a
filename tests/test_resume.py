"""A run that is killed or stopped goes on to the same bytes, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from unit_runs import real_units, records

from inconvenient.store import Store, Unit, content_key, frame_bytes, run_units

# Whole groups are killed, and what is left of them is looked for below /proc.
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="process groups as Linux has them")

STAGES = ("split", "reference", "shifts", "filter")
# Two per task.
DATASETS = [
    "arthritis_self_assessment",
    "college_graduation_rate",
    "drug_free_six_months",
    "professor_salaries",
    "respiratory_status",
    "wvs_poverty_attitude",
]
GRID = {
    "min_fractions": [0.5],
    "amplify": [1.5],
    "attenuate": [0.5],
    "n_single": 1,
    "modes": ["at_least"],
}
KILLS = 10

# One process for all stages, for starting Python four times takes longer than the stages.
CODE = """
import sys
from inconvenient.stages.__main__ import main
for stage in sys.argv[1:]:
    status = main([stage, "quick", "--workers", "2"])
    if status:
        sys.exit(status)
"""


class Runs:
    """Starts runs of the stages in a folder of their own, each in a session of its own."""

    def __init__(self, folder: Path, store: Path, root: Path) -> None:
        folder.mkdir()
        params = yaml.safe_load((root / "params.yaml").read_text(encoding="utf-8"))
        params["profiles"]["quick"] |= {"datasets": DATASETS, "grid": GRID}
        params["shifts"]["uniform_samples"] = 20
        params["filter"]["controls"] = 3
        (folder / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")
        self.folder, self.store = folder, store
        self.environment = {**os.environ, "INCONVENIENT_STORE": str(store)}

    def start(self, *stages: str) -> subprocess.Popen[str]:
        """Start stages, all by default."""
        return subprocess.Popen(
            [sys.executable, "-c", CODE, *(stages or STAGES)],
            cwd=self.folder,
            env=self.environment,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def finish(self, *stages: str) -> str:
        """Run stages to their end and return what they said."""
        process = self.start(*stages)
        _, said = process.communicate()
        assert process.returncode == 0, said
        return said

    def records(self) -> list[Path]:
        """Return the records in the store."""
        return [path for path in self.store.glob("*/*") if not path.name.startswith(".")]

    def artefacts(self) -> dict[str, bytes]:
        """Return all files that the stages wrote, with their bytes."""
        base = self.folder / "artefacts"
        files = (path for path in base.rglob("*") if path.is_file())
        return {str(path.relative_to(base)): path.read_bytes() for path in files}


def wait_for(condition: Callable[[], bool], seconds: float = 600.0) -> bool:
    """Return whether a condition comes true within some seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return False


def session(number: int) -> list[str]:
    """Return the command lines of the processes of a session that are alive."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            facts = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_text().replace("\0", " ")
        except OSError:  # ended meanwhile
            continue
        if int(facts[3]) == number and facts[0] != "Z":
            found.append(command)
    return found


@pytest.mark.slow
@pytest.mark.jit
def test_killed_at_ten_moments_and_resumed_a_run_gives_the_bytes_of_an_undisturbed_one(
    tmp_path: Path, root: Path, data_folder: Path
) -> None:
    undisturbed = Runs(tmp_path / "undisturbed", tmp_path / "one", root)
    undisturbed.finish()
    expected = undisturbed.artefacts()
    assert {name.split("/")[1] for name in expected} == set(STAGES)
    shifts = pd.read_parquet(undisturbed.folder / "artefacts/quick/shifts/shifts.parquet")
    assert shifts["dataset"].nunique() == len(DATASETS)
    total = len(undisturbed.records())

    # Moments as shares of the work, so that a slow machine is killed as evenly as a fast one.
    generator = np.random.default_rng(20261130)
    moments = np.sort(generator.integers(0, total - 1, size=KILLS))
    disturbed = Runs(tmp_path / "disturbed", tmp_path / "two", root)
    killed = 0
    for moment, later in zip(moments.tolist(), generator.uniform(0.0, 0.3, KILLS), strict=True):
        process = disturbed.start()
        wait_for(lambda: len(disturbed.records()) > moment or process.poll() is not None)
        time.sleep(later)
        killed += process.poll() is None
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        assert wait_for(lambda: not session(process.pid))
    # The last moments may come when all is done.
    assert killed >= KILLS - 2
    said = disturbed.finish()
    assert "filter@quick" in said
    assert disturbed.artefacts() == expected
    assert len(disturbed.records()) == total
    assert {p.name for p in (disturbed.folder / "artefacts/quick").iterdir()} == set(STAGES)


@pytest.mark.slow
@pytest.mark.jit
@pytest.mark.parametrize("whole_group", [True, False], ids=["terminal", "kill -INT"])
def test_a_stopped_run_says_so_and_leaves_neither_processes_nor_files(
    tmp_path: Path, root: Path, data_folder: Path, whole_group: bool
) -> None:
    runs = Runs(tmp_path / "run", tmp_path / "store", root)
    runs.finish("split", "reference")
    before = len(runs.records())
    process = runs.start("shifts", "filter")
    assert wait_for(lambda: len(runs.records()) > before)
    assert len(session(process.pid)) >= 3
    (os.killpg if whole_group else os.kill)(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert "stopped; what is finished is kept, run again to go on" in said
    assert "Traceback" not in said
    assert wait_for(lambda: not session(process.pid), 60.0), session(process.pid)
    assert not list(runs.store.rglob(".tmp-*"))
    assert not [path for path in Path("/dev/shm").glob("*") if f"-{process.pid}-" in path.name]
    assert not list(Path("/dev/shm").glob(f"joblib_memmapping_folder_{process.pid}_*"))


@pytest.mark.slow
@pytest.mark.jit
def test_workers_of_a_killed_run_end(tmp_path: Path, root: Path, data_folder: Path) -> None:
    runs = Runs(tmp_path / "run", tmp_path / "store", root)
    runs.finish("split")
    process = runs.start("reference", "shifts")
    assert wait_for(lambda: len(runs.records()) > 0)
    assert len(session(process.pid)) >= 3
    process.kill()
    try:
        assert wait_for(lambda: not session(process.pid), 60.0), session(process.pid)
    finally:
        if session(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


# Forks a run of units for each line that comes: what they need is imported once for all runs.
UNITS = """
import os, sys
from unit_runs import Store, real_units
from inconvenient.store import Limits, run_units
units = real_units(20, batch_size=1)
for line in sys.stdin:
    process = os.fork()
    if not process:
        os.setsid()
        limits = Limits(seconds=600.0) if line.strip() == "limits" else None
        run_units(units, store=Store(sys.argv[1]), workers=2, label="units", limits=limits)
        os._exit(0)
    print(process, flush=True)
    os.waitpid(process, 0)
"""


@pytest.mark.slow
def test_units_killed_at_twenty_moments_are_those_of_an_undisturbed_run(
    tmp_path: Path, data_folder: Path
) -> None:
    units = real_units(20, batch_size=1)
    undisturbed, disturbed = Store(tmp_path / "one"), Store(tmp_path / "two")
    run_units(units, store=undisturbed, workers=1, label="undisturbed")
    expected = records(undisturbed)
    assert set(expected) == {unit.key for unit in units}
    generator = np.random.default_rng(20261130)
    killed = turns = 0
    with subprocess.Popen(
        [sys.executable, "-c", UNITS, str(disturbed.root)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as runs:
        assert runs.stdin is not None
        assert runs.stdout is not None
        while killed < 20:
            # A run that ended before it was killed does not count; half its work is to do again.
            if len(records(disturbed)) > 0.8 * len(units):
                for key in sorted(records(disturbed)):
                    if generator.random() < 0.5:
                        (disturbed.root / key[:2] / key[2:]).unlink()
            turns += 1
            assert turns <= 40
            print("limits" if turns % 2 else "none", file=runs.stdin, flush=True)
            process = int(runs.stdout.readline())
            assert wait_for(lambda: bool(session(process)))
            wanted = len(records(disturbed)) + int(generator.integers(0, 10))
            wait_for(lambda: len(records(disturbed)) > wanted or not session(process))
            time.sleep(float(generator.uniform(0.0, 0.1)))
            if session(process):
                killed += 1
                os.killpg(process, signal.SIGKILL)
            # Processes of units are groups of their own, and end with what started them.
            assert wait_for(lambda: not session(process), 60.0)
            assert records(disturbed).items() <= expected.items()
        runs.stdin.close()
    frames = run_units(units, store=disturbed, workers=2, label="resumed")
    assert records(disturbed) == expected
    assert [frame_bytes(frame) for frame in frames] == [expected[unit.key] for unit in units]
    assert set(disturbed.notes()["key"]) == set(expected)


def number(value: int) -> pd.DataFrame:
    return pd.DataFrame({"value": [value]})


def test_what_killed_writers_left_goes_with_the_next_run_and_what_is_being_written_stays(
    tmp_path: Path,
) -> None:
    store = Store(tmp_path)
    unit = Unit(content_key("test", 1, value=1), number, (1,))
    (tmp_path / "ab").mkdir()
    left, fresh = tmp_path / "ab" / ".tmp-left", tmp_path / "ab" / ".tmp-fresh"
    for path in (left, fresh):
        path.write_bytes(b"half a record")
    os.utime(left, (time.time() - 2 * 3600,) * 2)
    run_units([unit], store=store, workers=1, label="swept")
    assert not left.exists()
    assert fresh.exists()
