"""What the runner costs beside fits, and what a second worker brings: ``python bench/harness.py``.

LightGBM with its default setting on samples of 2,000 rows of a dataset goes the way of
``evaluate``: units are made, the dataset is loaded, rows are taken, encoded, fitted and scored,
records and notes written and read. Prints

- the overhead: the share of a run's wall time in one process that is not inside fit and predict
  (below 10 %), with the usual 32 samples a unit, and with one a unit, as for one's own model,
- the same with a process beside this one for the units, as limits of time and memory need it,
- the wall time of one worker over that of two, in the same run (at least 1.7 on two idle cores).

On an idle machine; the load is printed. An argument is the number of samples.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from scoring_share import Clock
from threadpoolctl import threadpool_limits

from inconvenient.baselines import LIGHTGBM
from inconvenient.data import load_dataset, split_dataset
from inconvenient.evaluation.plan import plans
from inconvenient.evaluation.runner import BATCH, score_units
from inconvenient.shifts.rows import pack_rows, rows_hash
from inconvenient.store import Limits, Store, Unit, run_units

ROWS = 2000
#: Of each task, one whose pool has more rows than that.
DATASETS = {
    "regression": "stackoverflow_salary",
    "binary": "resume_callback",
    "multiclass": "police_force_type",
}


def units(name: str, count: int, batch_size: int = BATCH) -> list[Unit]:
    """Return units that score LightGBM on samples of 2,000 rows, as many each as is usual."""
    dataset = load_dataset(name)
    split = split_dataset(dataset, seed=0)
    rng = np.random.default_rng(0)
    rows = []
    for i in range(count):
        chosen = np.sort(rng.permutation(split.pool)[:ROWS])
        rows.append((f"{name}/{i}", name, ROWS, pack_rows(chosen), rows_hash(chosen)))
    shifts = pd.DataFrame(rows, columns=["shift_id", "dataset", "size", "rows", "rows_hash"])
    todo = plans({name: split}, shifts, controls=0, seed=0)
    made = score_units(
        {name: dataset},
        todo,
        {name: split.report},
        [LIGHTGBM],
        stage="evaluate",
        seed=0,
        batch_size=batch_size,
    )
    return made[1:]  # without the full pool


def seconds(work: list[Unit], workers: int, limits: Limits | None = None) -> float:
    """Return the wall time of a run with an empty store."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        run_units(work, store=Store(Path(folder)), workers=workers, label="harness", limits=limits)
        return time.perf_counter() - start


def overhead(name: str, count: int, batch_size: int = BATCH) -> tuple[float, float]:
    """Return the wall time of a run in this process, and what of it is inside fit and predict."""
    clock = Clock()
    with threadpool_limits(limits=1), clock.on():
        start = time.perf_counter()
        seconds(units(name, count, batch_size), workers=1)
        return time.perf_counter() - start, clock.seconds


def main() -> None:
    """Print the tables."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    begun = os.getloadavg()[0]
    for name in DATASETS.values():  # what is imported on first use is no part of long runs
        overhead(name, 1)
    print("| task | dataset | samples | ms each | outside fit and predict | a unit each |")
    print(f"{'| --- ' * 6}|")
    for task, name in DATASETS.items():
        wall, inside = overhead(name, count)
        alone, inside_alone = overhead(name, count, 1)
        each, share = f"{1000 * wall / count:.0f}", f"{1 - inside / wall:.1%}"
        apart = f"{1 - inside_alone / alone:.1%}"
        print(f"| {task} | {name} | {count} | {each} | {share} | {apart} |", flush=True)
    work = [unit for name in DATASETS.values() for unit in units(name, count, 4)]
    seconds(work[:4], workers=2)  # the workers of joblib stay for the next run
    one, two = seconds(work, 1), seconds(work, 2)
    beside = seconds(work, 1, Limits(seconds=600.0))
    print(f"\none worker {one:.1f} s, two workers {two:.1f} s: {one / two:.2f} times as fast")
    print(f"one worker under limits {beside:.1f} s: {beside / one - 1:+.1%}, its start included")
    cores = len(os.sched_getaffinity(0))
    busy = "idle" if begun < 0.3 else f"busy (load {begun:.1f} at the start)"
    print(f"{cores} cores, {busy}")


if __name__ == "__main__":
    main()
