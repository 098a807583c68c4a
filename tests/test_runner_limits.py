"""Limits, crashes and errors cost a unit its own record; a full or locked disk loses nothing."""

from __future__ import annotations

import errno
import os
import resource
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
from unit_runs import (
    crash,
    crash_after,
    eat,
    eat_in_a_process,
    fail,
    fork_and_hang,
    hang,
    leave,
    noise,
    note_of,
    real_units,
    records,
    slow_values,
    unit,
    values,
)

from inconvenient.baselines import Baseline, get_baseline
from inconvenient.errors import ConfigError, StoreError, UnitError
from inconvenient.store import Limits, Store, frame_bytes, run_units

# Memory is limited where it can be read, which is below /proc.
linux = pytest.mark.skipif(sys.platform != "linux", reason="/proc as Linux has it")
ROOMY = Limits(seconds=600.0, megabytes=20_000)


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_limits_are_positive() -> None:
    with pytest.raises(ConfigError, match="seconds per unit must be positive, got 0"):
        Limits(seconds=0)
    with pytest.raises(ConfigError, match="megabytes per unit must be positive, got -1"):
        Limits(megabytes=-1)


def test_the_key_of_an_ended_unit_holds_its_own_and_the_limits() -> None:
    keys = {
        Limits(seconds, megabytes).ended_key(key)
        for seconds in (None, 1, 2.0)
        for megabytes in (None, 100)
        for key in ("a" * 64, "b" * 64)
    }
    assert len(keys) == 12
    assert Limits(1).ended_key("a") == Limits(1.0).ended_key("a")


@linux
@pytest.mark.slow
def test_a_unit_that_hangs_eats_or_crashes_costs_its_own_record_only(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    store, undisturbed = Store(tmp_path / "two"), Store(tmp_path / "one")
    bad = {
        unit(hang, 1, failed=note_of): "TimeLimit: over 8 s",
        unit(eat, 3, failed=note_of): "MemoryLimit: over 500 MB",
        unit(crash, 5, failed=note_of): "Died: signal 11",
        unit(leave, 7, failed=note_of): "Died: exit status 3",
        unit(eat_in_a_process, 9, failed=note_of): "MemoryLimit: over 500 MB",
    }
    good = [unit(values, number) for number in range(0, 10, 2)]
    mixed = [one for pair in zip(good, bad, strict=True) for one in pair]
    limits = Limits(seconds=8, megabytes=500)
    frames = run_units(mixed, store=store, workers=2, label="mixed", limits=limits)
    said = capfd.readouterr().err
    assert [frame["reason"][0] for frame in frames[1::2]] == list(bad.values())
    for one, reason in bad.items():
        assert f"mixed: {one.name} ({one.key[:12]}): {reason}; recorded as such" in said
    run_units(good, store=undisturbed, workers=1, label="good")
    kept = records(store)
    assert {key: kept.pop(limits.ended_key(key)) for key in [one.key for one in bad]}
    assert kept == records(undisturbed)

    # Equal limits do not try again, others and none do.
    begun = time.monotonic()
    again = run_units(mixed, store=store, workers=2, label="again", limits=limits)
    assert time.monotonic() - begun < 3.0
    assert [frame_bytes(f) for f in again] == [frame_bytes(f) for f in frames]
    first = next(iter(bad))
    assert store.load(Limits(seconds=9, megabytes=500).ended_key(first.key)) is None
    mended = first._replace(function=values)
    (frame,) = run_units([mended], store=store, workers=1, label="higher", limits=Limits(9, 500))
    assert "reason" not in frame
    # What is finished is finished, whatever the limits.
    (frame,) = run_units([mended], store=store, workers=1, label="equal", limits=limits)
    assert "reason" not in frame

    notes = store.notes([one.key for one in good]).set_index("key")
    assert set(notes["status"]) == {"done"}
    assert notes["megabytes"].between(50, 500).all()
    ended = store.notes([limits.ended_key(one.key) for one in bad]).set_index("name")
    assert dict(ended["reason"]) == {one.name: reason for one, reason in bad.items()}
    assert ended.loc["hang 1", "seconds"] > 8.0
    assert ended.loc["eat 3", "megabytes"] > 500


@linux
@pytest.mark.slow
def test_what_a_unit_started_ends_with_it(tmp_path: Path) -> None:
    file = tmp_path / "process"
    work = unit(fork_and_hang, 1, str(file), failed=note_of)
    run_units([work], store=Store(tmp_path), workers=1, label="fork", limits=Limits(4.0))
    process = int(file.read_text())
    for _ in range(100):
        if not alive(process):
            break
        time.sleep(0.1)
    assert not alive(process)


@linux
@pytest.mark.slow
def test_a_unit_that_dies_after_others_is_tried_in_a_fresh_process(tmp_path: Path) -> None:
    work = [unit(values, 1), unit(crash_after, 2, str(tmp_path / "crashed"), failed=note_of)]
    frames = run_units(work, store=Store(tmp_path), workers=1, label="again", limits=ROOMY)
    assert (tmp_path / "crashed").exists()
    assert "reason" not in frames[1]


@linux
@pytest.mark.slow
def test_a_killed_process_is_replaced_and_others_go_on(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    work = [unit(hang, 0, failed=note_of), *(unit(slow_values, i) for i in range(1, 8))]
    killed: list[int] = []

    def kill() -> None:
        # The process that hangs is the one that has not finished when the others have.
        while len(records(store)) < 7:
            time.sleep(0.05)
        mine = str(os.getpid())
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
                command = (folder / "cmdline").read_text()
            except OSError:
                continue
            if parent == mine and "inconvenient.store.child" in command:
                killed.append(int(folder.name))
                os.kill(int(folder.name), signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    frames = run_units(work, store=store, workers=2, label="kill", limits=ROOMY)
    thread.join()
    assert killed
    assert frames[0]["reason"][0] == "Died: signal 9"
    assert [frame["number"][0] for frame in frames] == list(range(8))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workers", "limits"),
    [(1, None), (2, None), pytest.param(2, ROOMY, marks=linux)],
    ids=["one process", "two workers", "limits"],
)
def test_a_unit_that_raises_is_named_when_all_others_are_done(
    tmp_path: Path, workers: int, limits: Limits | None, capfd: pytest.CaptureFixture[str]
) -> None:
    store = Store(tmp_path)
    work = [unit(values, 0), unit(fail, 1), unit(values, 2), unit(fail, 3), unit(values, 4)]
    message = r"fail \d \([0-9a-f]{12}\): ValueError: no value for \d \(and 1 more\); no record"
    with pytest.raises(UnitError, match=message) as caught:
        run_units(work, store=store, workers=workers, label="raise", limits=limits)
    assert set(records(store)) == {one.key for one in work[::2]}
    assert any("in fail" in note for note in caught.value.__notes__)
    said = capfd.readouterr().err
    assert "raise: fail 1" in said
    assert "raise: fail 3" in said
    note = store.notes([work[1].key]).iloc[0]
    assert note["status"] == "raised"
    assert note["reason"] == "ValueError: no value for 1"
    assert 'raise ValueError(f"no value for {number}")' in note["trace"]


@linux
@pytest.mark.slow
def test_an_ended_unit_without_a_record_of_its_own_is_an_error_that_names_it(
    tmp_path: Path,
) -> None:
    work = [unit(leave, 0), unit(values, 1)]
    store = Store(tmp_path)
    with pytest.raises(UnitError, match=r"leave 0 \(.*\): Died: exit status 3; no record"):
        run_units(work, store=store, workers=1, label="x", limits=ROOMY)
    assert set(records(store)) == {work[1].key}
    work[0] = unit(leave, 0, failed=fail)
    with pytest.raises(UnitError, match="Died: exit status 3; its record: TypeError"):
        run_units(work, store=store, workers=1, label="x", limits=ROOMY)


@pytest.mark.slow
def test_a_dead_worker_without_limits_is_one_clear_error(tmp_path: Path) -> None:
    work = [*(unit(values, number) for number in range(6)), unit(leave, 6), unit(hang, 7)]
    store = Store(tmp_path)
    with pytest.raises(UnitError, match=r"a worker process died while these .* run again with"):
        run_units(work, store=store, workers=2, label="dead")
    assert set(records(store)) == {one.key for one in work[:6]}


@linux
@pytest.mark.slow
def test_workers_that_grow_are_replaced_without_a_word(tmp_path: Path) -> None:
    """Joblib warns of that; as an error the warning would end its thread, and the run never."""
    code = (
        "from unit_runs import *; from inconvenient.store import run_units\n"
        "work = [unit(values, i) for i in range(4)] + [unit(grow, i) for i in range(4, 10)]\n"
        f"run_units(work, store=Store({str(tmp_path)!r}), workers=2, label='x')"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", code],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    assert len(records(Store(tmp_path))) == 10


def test_ctrl_c_ends_the_processes_of_units(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path\n"
        "from unit_runs import *\n"
        "from inconvenient.store import Limits, run_units\n"
        "work = [unit(values, 0), unit(hang, 1), unit(hang, 2), unit(values, 3)]\n"
        f"run_units(work, store=Store({str(tmp_path)!r}), workers=2, label='x', limits=Limits(600))"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )

    def family() -> list[int]:
        out = subprocess.run(
            ["ps", "-o", "pid=", "-s", str(process.pid)], capture_output=True, text=True
        )
        return [int(pid) for pid in out.stdout.split() if alive(int(pid))]

    try:
        for _ in range(1200):
            if records(Store(tmp_path)):
                break
            time.sleep(0.1)
        time.sleep(1.0)
        assert len(family()) >= 2
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert "KeyboardInterrupt" in said
        assert "Died" not in said
        assert not family()
    finally:
        process.kill()
        process.wait()
    assert len(records(Store(tmp_path))) <= 2


class Misbehaving:
    """An estimator that raises, hangs or eats memory when it is fitted."""

    def __init__(self, how: str) -> None:
        self.how = how

    def fit(self, X: Any, y: Any) -> Misbehaving:
        {"raises": fail, "hangs": hang, "eats": eat, "crashes": crash}[self.how](0)
        return self

    def predict(self, X: Any) -> Any:
        raise AssertionError("never fitted")


def no_setting(task: str) -> dict[str, Any]:
    return {}


def make_raises(setting: Any, **facts: Any) -> Misbehaving:
    return Misbehaving("raises")


def make_hangs(setting: Any, **facts: Any) -> Misbehaving:
    return Misbehaving("hangs")


def make_eats(setting: Any, **facts: Any) -> Misbehaving:
    return Misbehaving("eats")


def ended_rows(reason: str, common: Any, batch: Any, *others: Any) -> pd.DataFrame:
    rows = [(common.model.name, item.name, reason) for item in batch]
    return pd.DataFrame(rows, columns=["model", "name", "status"])


@linux
@pytest.mark.slow
def test_a_baseline_that_raises_hangs_or_eats_memory_costs_its_own_units_only(
    tmp_path: Path, data_folder: Path
) -> None:
    models = [get_baseline("linear")] + [
        Baseline(make.__name__, no_setting, no_setting, make)
        for make in (make_raises, make_hangs, make_eats)
    ]
    units = real_units(2, names=["professor_salaries"], models=models, batch_size=8)
    assert len(units) == 4 * 3
    # All of the sound baseline's, and one of each other.
    units = [one._replace(failed=ended_rows) for one in (*units[:3], *units[3::3])]
    limits = Limits(seconds=15.0, megabytes=700)
    store = Store(tmp_path / "two")
    table = pd.concat(run_units(units, store=store, workers=2, label="bad", limits=limits))
    status = table.groupby("model")["status"].agg(set)
    assert status["linear"] == {"ok"}
    assert status["make_raises"] == {"ValueError: no value for 0"}
    assert status["make_hangs"] == {"TimeLimit: over 15 s"}
    assert status["make_eats"] == {"MemoryLimit: over 700 MB"}
    assert table.groupby("model").size()["linear"] == 1 + 2 + 2
    alone = Store(tmp_path / "one")
    run_units(units[:3], store=alone, workers=1, label="linear")
    kept = records(store)
    assert records(alone) == {one.key: kept[one.key] for one in units[:3]}


# A full disk, a file that may not grow, a folder that cannot be written.


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a file system of 800 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = sys.platform == "linux" and os.geteuid() == 0
    if mounted:
        command = ["mount", "-t", "tmpfs", "-o", "size=800k", "tmpfs", str(folder)]
        mounted = subprocess.run(command, capture_output=True).returncode == 0
    if not mounted:
        pytest.skip("only root may mount a small file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def remount(folder: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], check=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workers", "limits"),
    [(1, None), (2, None), (2, ROOMY)],
    ids=["one process", "two workers", "limits"],
)
def test_a_full_and_a_locked_disk_are_one_clear_error_and_lose_nothing(
    small_disk: Path, tmp_path: Path, workers: int, limits: Limits | None
) -> None:
    work = [unit(noise, number) for number in range(12)]
    undisturbed = Store(tmp_path / "undisturbed")
    run_units(work, store=undisturbed, workers=1, label="undisturbed")
    expected = records(undisturbed)
    store = Store(small_disk / "s")

    def run() -> None:
        run_units(work, store=store, workers=workers, label="full", limits=limits)

    with pytest.raises(StoreError, match="the disk is full; free some space and run again"):
        run()
    kept = records(store)
    assert 4 <= len(kept) <= 7
    assert kept.items() <= expected.items()
    assert not list(store.root.rglob(".tmp-*"))

    remount(small_disk, "size=4m,ro")
    with pytest.raises(StoreError, match="the file system is read-only; choose a folder"):
        run()
    assert records(store) == kept

    remount(small_disk, "rw")
    run()
    assert records(store) == expected
    assert set(store.notes()["key"]) == set(expected)


def test_a_file_that_may_not_grow_is_one_clear_error(tmp_path: Path) -> None:
    store = Store(tmp_path)
    work = [unit(values, 0), unit(noise, 1), unit(values, 2)]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        with pytest.raises(StoreError, match="files may not grow so large here; raise the limit"):
            run_units(work, store=store, workers=1, label="small")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert set(records(store)) == {work[0].key}
    run_units(work, store=store, workers=1, label="large")
    assert set(records(store)) == {one.key for one in work}


def test_a_folder_in_which_nothing_can_be_written_is_one_clear_error(tmp_path: Path) -> None:
    work = [unit(values, 0), unit(values, 1)]
    store = Store(tmp_path)
    (tmp_path / work[1].key[:2]).write_text("in the way")
    with pytest.raises(StoreError, match="had to be (read|written), but"):
        run_units(work, store=store, workers=1, label="locked")
    (tmp_path / work[1].key[:2]).unlink()
    run_units(work[:1], store=store, workers=1, label="first")
    if os.geteuid() != 0:  # root may write everywhere
        kept = records(store)
        os.chmod(tmp_path, 0o555)
        try:
            with pytest.raises(StoreError, match="there is no permission to write; choose a"):
                run_units(work, store=store, workers=1, label="locked")
        finally:
            os.chmod(tmp_path, 0o755)
        assert records(store) == kept


# Notes.


def test_notes_say_how_a_record_was_made_and_stay_out_of_it(tmp_path: Path) -> None:
    one, two = Store(tmp_path / "1"), Store(tmp_path / "2")
    work = [unit(slow_values, 0), unit(slow_values, 1)]
    run_units(work, store=one, workers=1, label="one")
    run_units(work, store=two, workers=2, label="two")
    assert records(one) == records(two)
    for store, workers in ((one, 1), (two, 2)):
        notes = store.notes()
        assert set(notes["key"]) == {w.key for w in work}
        assert set(notes["name"]) == {"slow_values 0", "slow_values 1"}
        assert (notes["workers"] == workers).all()
        assert (notes["threads"] == 1).all()
        assert notes["seconds"].between(0.2, 60.0).all()
        assert f'"numpy":"{np.__version__}"' in notes["versions"][0]
        assert list(store.notes([work[1].key, "absent"])["key"]) == [work[1].key]
    assert list(Store(tmp_path / "none").notes().columns) == ["key"]


@linux
def test_the_peak_of_memory_is_that_of_the_unit(tmp_path: Path) -> None:
    from inconvenient.store.notes import forget_peak, peak_megabytes

    forget_peak()
    before = peak_megabytes()
    block = np.ones(25_000_000)
    del block
    after = peak_megabytes()
    forget_peak()
    assert before is not None
    assert after is not None
    assert 150.0 < after - before < 250.0
    assert (peak_megabytes() or 0.0) < after - 100.0


def test_the_last_of_several_notes_counts_and_half_a_line_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    store.note("a", {"x": 1})
    with open(tmp_path / "notes.jsonl", "ab") as file:
        file.write(b'\n{"key":"b","x"')
    store.note("c", {"x": 2, "versions": {"q": "1"}})
    store.note("a", {"x": 3})
    notes = store.notes()
    assert dict(zip(notes["key"], notes["x"], strict=True)) == {"a": 3, "c": 2}
    assert notes["versions"].to_list()[1] == '{"q":"1"}'

    def full(handle: int, value: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StoreError, match="notes.jsonl had to be written, but the disk is full"):
        store.note("d", {})
