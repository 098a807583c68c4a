"""What a user of ``inconvenient evaluate`` and ``ic.evaluate`` can get wrong is told in time."""

from __future__ import annotations

import importlib
import json
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
from scoring import needs_publication, some

import inconvenient as ic
from inconvenient.cli import evaluate as command
from inconvenient.errors import ClusterError, InputError, StoreError
from inconvenient.evaluation import runner
from inconvenient.evaluation.evaluate import evaluate
from inconvenient.store import Store, check_writable
from inconvenient.store.cluster import on_cluster
from inconvenient.store.limits import Limits

pytestmark = [needs_publication, pytest.mark.usefixtures("data_folder")]

TALKS = """
import time


class Talks:
    def fit(self, X, y):
        print("fitted")
        return self

    def predict(self, X):
        return [0.0] * len(X)


class Waits(Talks):
    def fit(self, X, y):
        print("waiting", flush=True)
        time.sleep(60)


class Leaves(Talks):
    def fit(self, X, y):
        raise SystemExit(3)


class Complains(Talks):
    def fit(self, X, y):
        raise ValueError("x" * 100_000)
"""
COMMAND = [sys.executable, "-c", "import sys; from inconvenient.cli import main; sys.exit(main())"]
Cli = Callable[..., tuple[int, str, str]]
QUICK = {"profile": "quick", "controls": 1, "workers": 1}


@pytest.fixture
def arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    (tmp_path / "talks.py").write_text(TALKS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (shift_id,) = some("regression")
    return ["--shifts", shift_id, "--profile", "quick", "--controls", "1"]


def test_an_output_that_cannot_be_written_is_told_before_the_work(
    cli: Cli, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "fit_score", None)  # nothing is fitted
    Path("folder.csv").mkdir()
    Path("file").touch()
    for out, message in (
        ("folder.csv", "folder.csv had to be written, but is a folder; name a file"),
        ("file/scores.csv", "had to be written"),
        ("/proc/scores.csv", "choose a folder that can be written"),
    ):
        named = ["--model", "talks:Talks", *arguments, "--out", out]
        status, said, err = cli("evaluate", *named)
        assert (status, said) == (1, "")
        assert message in err
        assert "failed" not in err


def test_what_can_be_written_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "scores.csv").write_text("old")
    check_writable(tmp_path / "scores.csv")
    check_writable(tmp_path / "new" / "scores.csv")
    assert (tmp_path / "scores.csv").read_text() == "old"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["new", "scores.csv"]


def test_a_disk_that_fills_up_costs_the_file_alone(
    cli: Cli, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(out: Path, result: pd.DataFrame) -> None:
        raise StoreError(f"{out} had to be written, but the disk is full")

    monkeypatch.setattr(command, "_write", full)
    more = ["--workers", "1", "--out", "scores.csv"]
    status, out, err = cli("evaluate", "--model", "talks:Talks", *arguments, *more)
    assert status == 1
    assert "talks:Talks" in out
    assert "scores.csv had to be written, but the disk is full" in err


@pytest.mark.parametrize("workers", ["1", "2"])
def test_what_a_model_prints_stays_out_of_the_json(
    arguments: list[str], tmp_path: Path, workers: str
) -> None:
    done = subprocess.run(
        [*COMMAND, "evaluate", "--model", "talks:Talks", *arguments,
         "--workers", workers, "--json"],
        capture_output=True, text=True, check=True, cwd=tmp_path,
        env={**os.environ, "INCONVENIENT_STORE": str(tmp_path / "store")},
    )  # fmt: skip
    assert json.loads(done.stdout)["summary"][0]["model"] == "talks:Talks"
    assert done.stderr.count("fitted") == 3


def test_ctrl_c_says_how_to_go_on(arguments: list[str], tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "evaluate", "--model", "talks:Waits", *arguments,
         "--workers", "1"],
        stderr=subprocess.PIPE, text=True, cwd=tmp_path, start_new_session=True,
        env={**os.environ, "INCONVENIENT_STORE": str(tmp_path / "store")},
    )  # fmt: skip
    assert process.stderr is not None
    while "waiting" not in process.stderr.readline():
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.endswith("stopped; the same command again goes on from here\n")


def test_command_explains(cli: Cli, arguments: list[str]) -> None:
    for more, message in (
        (["--model", "talks.py:Talks"], "give talks:Talks in the folder of the file"),
        (["--model", "../talks.py:Talks"], "give talks:Talks in the folder of the file"),
        (["--model", "talks:Talks", "--trials", "5"], "--trials is for baselines"),
        (["--model", "talks:Talks", "--limit", "-1"], "got a limit of -1; give 1 or more"),
    ):
        status, out, err = cli("evaluate", *more, *arguments)
        assert (status, out) == (1, "")
        assert message in err
    for option in ("--seed", "--trials"):
        status, _, err = cli("evaluate", "--baseline", "linear", option, "-1", *arguments)
        assert status == 2
        assert f"Invalid value for '{option}'" in err


def test_numbers_that_are_none() -> None:
    (shift_id,) = some("regression")
    for name, value in (("trials", -1), ("trials", 2.5), ("seed", -1), ("seed", 0.5)):
        with pytest.raises(InputError, match=f"{name} must be a whole number from 0 on, got"):
            evaluate("linear", shift_id, **QUICK, **{name: value})


def test_shifts_as_pandas_hands_them_over() -> None:
    ids = pd.Series(some())
    expected = evaluate("linear", ids.tolist(), **QUICK)
    for given in (ids, ids.to_numpy(), set(ids), pd.Index(ids)):
        pd.testing.assert_frame_equal(evaluate("linear", given, **QUICK), expected)
    with pytest.raises(InputError, match="must have the column shift_id, got \\['id'\\]"):
        evaluate("linear", pd.DataFrame({"id": ids}), **QUICK)


def test_a_result_without_its_columns() -> None:
    table = pd.DataFrame({"model": ["m"], "shift_id": some("binary"), "score_ood": [np.nan]})
    with pytest.raises(InputError, match="status, degradation are missing"):
        ic.compare(table, profile="quick")


def test_an_address_without_a_port() -> None:
    with pytest.raises(ClusterError, match="like tcp://HOST:8786, got 'localhost'"):
        next(on_cluster([], address="localhost", limits=Limits(), say=print))


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("Leaves", "SystemExit: 3"),
        ("Complains", f"ValueError: {'x' * 500}... (100,000 characters)"),
    ],
)
def test_a_model_that_exits_or_talks_is_a_row(
    arguments: list[str], name: str, status: str, tmp_path: Path
) -> None:
    model = getattr(importlib.import_module("talks"), name)()
    table = evaluate(model, arguments[1], store=Store(tmp_path / "store"), **QUICK)
    assert list(table["status"]) == [status]
