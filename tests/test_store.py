"""The store: whole or absent, stable bytes, resume, equal results for every number of workers."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from inconvenient.errors import ConfigError, StoreError
from inconvenient.store import (
    Store,
    Unit,
    content_key,
    frame_bytes,
    pack_frames,
    read_frame,
    run_units,
    unpack_frames,
    worker_count,
    write_atomic,
    write_folder,
)


def spectrum(seed: int, log: str) -> pd.DataFrame:
    """Singular values: LAPACK, so the last digits would show a change of threads."""
    with open(log, "a", encoding="utf-8") as file:
        file.write(f"{seed}\n")
    x = np.random.default_rng(seed).normal(size=(300, 40))
    return pd.DataFrame({"seed": seed, "s": np.linalg.svd(x, compute_uv=False)})


def interrupted(seed: int, log: str) -> pd.DataFrame:
    raise KeyboardInterrupt


def units(log: Path, count: int = 4) -> list[Unit]:
    return [
        Unit(content_key("test", 1, seed=seed), spectrum, (seed, str(log))) for seed in range(count)
    ]


def test_parquet_bytes_are_stable_and_round_trip() -> None:
    frame = pd.DataFrame(
        {
            "name": ["a", "b", None],
            "value": [0.1, np.nan, -np.inf],
            "ids": [np.array([1, 2]), np.array([], dtype=np.int64), np.array([3])],
            "level": pd.Categorical(["u", "v", "u"]),
            "blob": [b"x", b"", b"y"],
        },
        index=[5, 6, 7],
    )
    value = frame_bytes(frame, {"b": 1, "a": 2})
    assert value == frame_bytes(frame.copy(), {"a": 2, "b": 1})
    back = read_frame(value)
    assert list(back.index) == [0, 1, 2]
    assert back["ids"].map(list).tolist() == [[1, 2], [], [3]]
    assert back["level"].dtype == "category"
    assert frame_bytes(back, {"a": 2, "b": 1}) == value


def test_content_key_depends_on_every_part_and_on_no_order() -> None:
    key = content_key("s", 1, a=1, b=[1.5, "x"])
    assert key == content_key("s", 1, b=[1.5, "x"], a=1)
    others = [
        content_key("t", 1, a=1, b=[1.5, "x"]),
        content_key("s", 2, a=1, b=[1.5, "x"]),
        content_key("s", 1, a=2, b=[1.5, "x"]),
    ]
    assert len({key, *others}) == 4


def test_atomic_write_leaves_the_old_file_when_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f"
    write_atomic(path, b"old")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="the disk is full; free some space"):
        write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["f"]


def test_unwritable_folder_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match="had to be written, but .* choose a folder"):
        write_atomic(tmp_path / "file" / "x", b"")
    with pytest.raises(StoreError, match="set INCONVENIENT_STORE"):
        Store(tmp_path / "file").get("ab" * 32)


def test_write_folder_replaces_the_whole_folder(tmp_path: Path) -> None:
    write_folder(tmp_path / "out", {"a": b"1", "b": b"2"})
    write_folder(tmp_path / "out", {"b": b"3"})
    assert {p.name: p.read_bytes() for p in (tmp_path / "out").iterdir()} == {"b": b"3"}
    assert os.listdir(tmp_path) == ["out"]


def test_a_failed_write_folder_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_folder(tmp_path / "out", {"a": b"1"})

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError):
        write_folder(tmp_path / "out", {"a": b"2"})
    assert (tmp_path / "out" / "a").read_bytes() == b"1"
    assert os.listdir(tmp_path) == ["out"]


def test_packed_frames_come_back() -> None:
    one, two = pd.DataFrame({"a": [1]}), pd.DataFrame({"b": ["x", "y"]})
    back = unpack_frames(read_frame(frame_bytes(pack_frames(one=one, two=two))))
    assert list(back) == ["one", "two"]
    pd.testing.assert_frame_equal(back["two"], two)


def test_a_damaged_record_is_made_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    frame = store.frame("k" * 64, lambda: pd.DataFrame({"a": [1]}))
    path = store._path("k" * 64)
    path.write_bytes(path.read_bytes()[:-5])
    again = store.frame("k" * 64, lambda: pd.DataFrame({"a": [1]}))
    pd.testing.assert_frame_equal(frame, again)


def test_equal_bytes_for_one_and_two_workers(tmp_path: Path) -> None:
    one = run_units(units(tmp_path / "1"), store=Store(tmp_path / "s1"), workers=1, label="one")
    two = run_units(units(tmp_path / "2"), store=Store(tmp_path / "s2"), workers=2, label="two")
    assert [frame_bytes(f) for f in one] == [frame_bytes(f) for f in two]
    assert [f["seed"].iloc[0] for f in two] == [0, 1, 2, 3]


def test_a_stopped_run_goes_on_where_it_was(tmp_path: Path) -> None:
    store, log = Store(tmp_path / "s"), tmp_path / "log"
    work = units(log)
    broken = [*work[:2], work[2]._replace(function=interrupted), work[3]]
    with pytest.raises(KeyboardInterrupt):
        run_units(broken, store=store, workers=1, label="stopped")
    assert log.read_text().split() == ["0", "1"]
    run_units([*work, work[0]], store=store, workers=1, label="again")
    assert log.read_text().split() == ["0", "1", "2", "3"]


def test_worker_count(monkeypatch: pytest.MonkeyPatch) -> None:
    assert worker_count(3) == 3
    assert worker_count() >= 1
    monkeypatch.setenv("INCONVENIENT_WORKERS", "2")
    assert worker_count() == 2
    monkeypatch.setenv("INCONVENIENT_WORKERS", "many")
    with pytest.raises(ConfigError, match="positive whole number, got 'many'"):
        worker_count()
