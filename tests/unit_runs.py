"""Units for tests of the runner: small real ones, and some that misbehave."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from inconvenient.baselines import Baseline, get_baseline
from inconvenient.data import load_dataset, split_dataset
from inconvenient.evaluation.plan import plans
from inconvenient.evaluation.runner import score_units
from inconvenient.shifts.rows import pack_rows, rows_hash
from inconvenient.store import Store, Unit, content_key

#: One per task, of a few hundred rows.
DATASETS = ("professor_salaries", "arthritis_self_assessment", "drug_free_six_months")
MODELS = ("linear", "lightgbm")


def samples(name: str, pool: np.ndarray, count: int) -> pd.DataFrame:
    """Return a table of shifts whose row sets are uniform samples of half the pool."""
    rng = np.random.default_rng(0)
    rows = []
    for i in range(count):
        chosen = np.sort(rng.permutation(pool)[: pool.size // 2])
        rows.append((f"{name}/{i}", name, chosen.size, pack_rows(chosen), rows_hash(chosen)))
    return pd.DataFrame(rows, columns=["shift_id", "dataset", "size", "rows", "rows_hash"])


def real_units(
    count: int,
    *,
    names: Sequence[str] = DATASETS,
    models: Sequence[Baseline] | None = None,
    batch_size: int = 2,
) -> list[Unit]:
    """Return units that score baselines on some samples of real datasets."""
    datasets = {name: load_dataset(name) for name in names}
    splits = {name: split_dataset(dataset, seed=0) for name, dataset in datasets.items()}
    shifts = pd.concat([samples(name, splits[name].pool, count) for name in names])
    return score_units(
        datasets,
        plans(splits, shifts, controls=2, seed=0),
        {name: split.report for name, split in splits.items()},
        [get_baseline(name) for name in MODELS] if models is None else models,
        stage="evaluate",
        seed=0,
        batch_size=batch_size,
    )


def records(store: Store) -> dict[str, bytes]:
    """Return the records of a store by key."""
    paths = [path for path in store.root.glob("*/*") if not path.name.startswith(".")]
    return {path.parent.name + path.name: path.read_bytes() for path in paths}


def values(number: int) -> pd.DataFrame:
    """Singular values: LAPACK, so the last digits would show a change of threads."""
    x = np.random.default_rng(number).normal(size=(300, 40))
    return pd.DataFrame({"number": number, "s": np.linalg.svd(x, compute_uv=False)})


held: list[np.ndarray] = []


def grow(number: int) -> pd.DataFrame:
    """Keep 400 MB, as a library would that a unit is the first to import."""
    if len(held) < 1:
        held.append(np.ones(50_000_000))
    time.sleep(1.2)
    return values(number)


def slow_values(number: int) -> pd.DataFrame:
    time.sleep(0.2)
    return values(number)


def noise(number: int) -> pd.DataFrame:
    """100 kB that no compression makes smaller."""
    return pd.DataFrame({"bytes": [np.random.default_rng(number).bytes(100_000)]})


def hang(number: int) -> pd.DataFrame:
    time.sleep(3600.0)
    return values(number)


def fork_and_hang(number: int, file: str) -> pd.DataFrame:
    """Start a process that would outlive this one, and wait for it."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
    Path(file).write_text(str(process.pid), encoding="ascii")
    process.wait()
    return values(number)


def eat(number: int) -> pd.DataFrame:
    """Take memory until something ends it, not all at once."""
    kept = []
    for _ in range(60):  # 3 GB, should nothing end it
        kept.append(b"x" * 50_000_000)
        time.sleep(0.01)
    return hang(number)


def eat_in_a_process(number: int) -> pd.DataFrame:
    code = "import time; x = b'x' * 600_000_000; time.sleep(3600)"
    subprocess.run([sys.executable, "-c", code], check=True)
    return values(number)


def crash(number: int) -> pd.DataFrame:
    ctypes.string_at(0)
    return values(number)


def leave(number: int) -> pd.DataFrame:
    os._exit(3)


def fail(number: int) -> pd.DataFrame:
    raise ValueError(f"no value for {number}")


def crash_after(number: int, file: str) -> pd.DataFrame:
    """Crash in the first process that computes it, not in a second."""
    path = Path(file)
    if not path.exists():
        path.touch()
        crash(number)
    return values(number)


def note_of(reason: str, number: int, *others: object) -> pd.DataFrame:
    """Return the record of a unit that was ended."""
    return pd.DataFrame({"number": [number], "reason": [reason]})


def unit(function: object, number: int, *others: object, **options: object) -> Unit:
    """Return a unit of this module's functions."""
    name = f"{function.__name__} {number}"
    key = content_key("test", 1, function=name)
    return Unit(key, function, (number, *others), name, **options)
