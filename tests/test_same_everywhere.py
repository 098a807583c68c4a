"""What selection decides has the same bytes on every machine, for every order of the columns."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from selection_digest import TASKS, digests, pool

pytestmark = pytest.mark.jit

ALL = "all"
THREADS = ("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
# Cores that OpenBLAS names; it calls the oldest of them Katmai.
MACHINES: dict[str, dict[str, str]] = {
    "generic compiler target": {"NUMBA_CPU_NAME": "generic"},
    "generic everything, one thread": {
        "NUMBA_CPU_NAME": "generic",
        "OPENBLAS_CORETYPE": "Prescott",
        "NPY_DISABLE_CPU_FEATURES": ALL,
        **dict.fromkeys(THREADS, "1"),
    },
    "Nehalem, one thread": {"OPENBLAS_CORETYPE": "Nehalem", **dict.fromkeys(THREADS, "1")},
    "Sandybridge, two threads": {
        "OPENBLAS_CORETYPE": "Sandybridge",
        "NPY_DISABLE_CPU_FEATURES": ALL,
        **dict.fromkeys(THREADS, "2"),
    },
    "Haswell, two threads": {
        "OPENBLAS_CORETYPE": "Haswell",
        "NPY_DISABLE_CPU_FEATURES": "AVX512",
        **dict.fromkeys(THREADS, "2"),
    },
}


def run(settings: dict[str, str], features: list[str]) -> dict[str, Any]:
    """Return the digests of a process with these settings and what it says of its machine."""
    environment = {k: v for k, v in os.environ.items() if k not in THREADS} | settings
    which = settings.get("NPY_DISABLE_CPU_FEATURES")
    if which:
        off = [f for f in features if which == ALL or "AVX512" in f or f == "X86_V4"]
        environment["NPY_DISABLE_CPU_FEATURES"] = " ".join(off)
    script = Path(__file__).with_name("selection_digest.py")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def here() -> dict[str, Any]:
    return run({}, [])


@pytest.mark.slow
@pytest.mark.parametrize("name", MACHINES)
def test_another_machine(name: str, here: dict[str, Any]) -> None:
    settings = MACHINES[name]
    there = run(settings, here["machine"]["numpy"])
    for task in TASKS:
        assert there[task] == here[task]
    # The settings took effect.
    machine = there["machine"]
    assert machine["compiler"] == settings.get("NUMBA_CPU_NAME", here["machine"]["compiler"])
    core = settings.get("OPENBLAS_CORETYPE")
    if core is not None:
        assert machine["blas"] == ["Katmai" if core == "Prescott" else core]
    if "NUMBA_NUM_THREADS" in settings:
        threads = int(settings["NUMBA_NUM_THREADS"])
        assert machine["numba threads"] == threads
        assert machine["blas threads"] == [min(threads, os.cpu_count() or 1)]
    if settings.get("NPY_DISABLE_CPU_FEATURES") == ALL:
        assert machine["numpy"] == []


@pytest.mark.parametrize("task", TASKS)
def test_another_order_of_the_columns(task: str) -> None:
    expected = digests(task)
    backwards = list(range(pool(task)[0].shape[1]))[::-1]
    for columns in (backwards, np.random.default_rng(0).permutation(backwards)):
        assert digests(task, columns.copy(), turned=True) == expected


@pytest.mark.slow
def test_the_grid_for_another_order_of_the_columns(root: Path, data_folder: Path) -> None:
    from inconvenient.benchmark.grid import make_shifts
    from inconvenient.config import load_params
    from inconvenient.data import load_dataset, split_dataset

    params = load_params(root / "params.yaml")
    dataset = load_dataset("college_graduation_rate")
    backwards = dataset.frame[list(dataset.frame.columns)[::-1]]
    found = []
    for one in (dataset, dataclasses.replace(dataset, frame=backwards)):
        split = split_dataset(one, seed=params.split.seed)
        found.append(make_shifts(one, split, params, params.profiles["quick"].grid)[1])
    assert len(found[0]) > 20
    pd.testing.assert_frame_equal(*found, check_exact=True)
