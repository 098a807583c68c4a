"""Fixtures that several test files share: the checkout, the command line, small real tables."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parent.parent

# A shell starts what it runs in the background with Ctrl-C ignored, and so would be all runs that
# tests start and stop.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def root() -> Path:
    """Return the checkout."""
    return ROOT


@pytest.fixture(autouse=True)
def _own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep every test away from the record store of the checkout."""
    monkeypatch.setenv("INCONVENIENT_STORE", str(tmp_path / "store"))
    monkeypatch.delenv("INCONVENIENT_WORKERS", raising=False)
    # the fixture in place of TabPFN's weights, which no test may look for
    monkeypatch.setenv("INCONVENIENT_TABPFN_WEIGHTS", str(ROOT / "tests" / "data"))


@pytest.fixture(scope="session")
def diabetes() -> pd.DataFrame:
    """Regression: 442 rows, numeric features and the target ``progression``."""
    from sklearn.datasets import load_diabetes

    bunch = load_diabetes(as_frame=True, scaled=False)
    return bunch.frame.rename(columns={"target": "progression"})


@pytest.fixture(scope="session")
def cancer() -> pd.DataFrame:
    """Two classes: 569 rows, eight of the features and the target ``diagnosis`` (strings)."""
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer(as_frame=True)
    frame = bunch.data[[c for c in bunch.data.columns if c.startswith("mean")][:8]].copy()
    frame["diagnosis"] = pd.Series(bunch.target_names[bunch.target], dtype=object)
    return frame


@pytest.fixture(scope="session")
def wine() -> pd.DataFrame:
    """Three classes: 178 rows, numeric features and the target ``cultivar``."""
    from sklearn.datasets import load_wine

    return load_wine(as_frame=True).frame.rename(columns={"target": "cultivar"})


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Return the folder of the datasets, or skip with the command that brings it."""
    folder = ROOT / "data"
    if not (folder / "catalogue.parquet").is_file():
        if os.environ.get("CI"):
            pytest.fail("data/ is absent; `make data` brings it")
        pytest.skip("data/ is absent; `make data` brings it")
    return folder


@pytest.fixture
def cli(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Return a function that runs a command in this process: exit status, stdout, stderr."""
    from inconvenient.cli import main

    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str) -> tuple[int, str, str]:
        status = main(list(arguments))
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run
