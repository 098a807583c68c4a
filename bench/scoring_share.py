"""Which share of scoring training sets is model fits: ``python bench/scoring_share.py``.

For each task, two datasets with 64 samples of a tenth to a half of the pool and their controls go
the way of the stages ``filter`` and ``evaluate`` in one process: units are made, datasets loaded,
rows taken, encoded, fitted and scored, records written and read, the table assembled. Prints, per
task and model, the time per training set and the share of it that the libraries spend in fitting
and predicting. On an idle machine; an argument is the number of samples.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from inconvenient.baselines import LIGHTGBM, Baseline
from inconvenient.baselines.lightgbm import LightGBMModel
from inconvenient.baselines.linear import LinearModel
from inconvenient.benchmark.filter_models import FILTER_MODELS
from inconvenient.data import load_dataset, split_dataset
from inconvenient.evaluation.plan import plans
from inconvenient.evaluation.runner import score_units
from inconvenient.evaluation.tables import score_table
from inconvenient.shifts.rows import pack_rows, rows_hash
from inconvenient.store import Store, run_units

DATASETS = {
    "regression": ("college_graduation_rate", "psid_wages_panel"),
    "binary": ("anes_turnout_1984", "email_spam"),
    "multiclass": ("chile_plebiscite_vote", "hpc_job_class"),
}
MODELS = (*FILTER_MODELS, LIGHTGBM)
#: Where the libraries fit and predict. Ridge is a Cholesky factorisation of SciPy's.
INSIDE: tuple[tuple[type, str], ...] = (
    (LinearModel, "_fit_ridge"),
    (LogisticRegression, "fit"),
    (LogisticRegression, "predict_proba"),
    (LightGBMModel, "_train"),
    (lightgbm.Booster, "predict"),
)


class Clock:
    """Seconds spent in fits and predictions."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def on(self) -> Iterator[None]:
        """Count the calls of INSIDE."""
        real = [(kind, name, getattr(kind, name)) for kind, name in INSIDE]
        for kind, name, function in real:
            setattr(kind, name, self._counted(function))
        try:
            yield
        finally:
            for kind, name, function in real:
                setattr(kind, name, function)

    def _counted(self, function: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                self.seconds += time.perf_counter() - start

        return call


def samples(name: str, pool: np.ndarray, count: int) -> pd.DataFrame:
    """Return a table of shifts whose row sets are uniform samples of the pool."""
    rng = np.random.default_rng(0)
    rows = []
    for i in range(count):
        size = int(pool.size * (0.1, 0.2, 0.3, 0.5)[i % 4])
        chosen = np.sort(rng.permutation(pool)[:size])
        rows.append((f"{name}/{i}", name, size, pack_rows(chosen), rows_hash(chosen)))
    return pd.DataFrame(rows, columns=["shift_id", "dataset", "size", "rows", "rows_hash"])


def measure(names: tuple[str, ...], model: Baseline, count: int) -> tuple[int, float, float]:
    """Return the number of training sets, the seconds in all, and those in fits."""
    datasets = {name: load_dataset(name) for name in names}
    splits = {name: split_dataset(dataset, seed=0) for name, dataset in datasets.items()}
    shifts = pd.concat([samples(name, splits[name].pool, count) for name in names])
    tests = {name: split.filter for name, split in splits.items()}
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(limits=1), clock.on():
        start = time.perf_counter()
        todo = plans(splits, shifts, controls=10, seed=0)
        units = score_units(datasets, todo, tests, [model], stage="filter", seed=0)
        frames = run_units(units, store=Store(Path(folder)), workers=1, label=model.name)
        score_table(todo, shifts, [model.name], frames, draws=True)
        seconds = time.perf_counter() - start
    return sum(len(frame) for frame in frames), seconds, clock.seconds


def main() -> None:
    """Print the table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 64
    for model in MODELS:  # what is imported on first use is no part of a run of thousands
        measure(("anes_turnout_1984",), model, 1)
    print("| task | model | training sets | ms each | in fit and predict |")
    print(f"{'| --- ' * 5}|")
    totals = np.zeros(2)
    for task, names in DATASETS.items():
        for model in MODELS:
            sets, seconds, inside = measure(names, model, count)
            totals += seconds, inside
            each = f"{1000 * seconds / sets:.1f}"
            print(f"| {task} | {model.name} | {sets} | {each} | {inside / seconds:.0%} |")
    print(f"| all | all | | | {totals[1] / totals[0]:.0%} |")


if __name__ == "__main__":
    main()
