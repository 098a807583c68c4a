"""Where the construction's time goes: ``python bench/construction.py [--write] [DATASET ...]``.

Builds the shifts of a handful of datasets of every task and size by the grid of profile ``full``,
scores them with the filter models and decides what is retained, all in this process on one thread,
and says how much of the time is spent inside kernels, inside fits and predictions of models, and
on everything else, by part. Functions are timed by wrappers: time counts for the innermost wrapped
function that runs. It is time of the processor, so that other work on the machine does not count.
``--write`` puts the result into ``bench/CONSTRUCTION.md``.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import pandas as pd
from threadpoolctl import threadpool_limits

HERE = Path(__file__).parent
LIMIT = 0.20

DATASETS = (
    "star98_math",
    "college_graduation_rate",
    "cran_check_time",
    "king_county_houses",
    "respiratory_status",
    "credit_status",
    "mothers_work_1980",
    "wvs_poverty_attitude",
    "kershaw_pitch_result_class",
)

KERNELS = "kernels"
FITS = ("independent fits", "fits of the pool", "filter models")

# Functions to be timed, "module:name" or "module:class.name" below inconvenient, by part.
SPOTS = {
    "independent fits": ["selection.finding:fit_design", "selection.chance:fit_design"],
    "fits of the pool": ["selection.reference:t_values", "selection.reference:is_separable"],
    "filter models": [
        "baselines.linear:LinearModel._fit_ridge",
        "baselines.linear:LinearModel._fit_logistic",
        "baselines.lightgbm:LightGBMModel._train",
    ],
    "design, importance": ["benchmark.grid:pool_design", "benchmark.grid:importance"],
    "search": ["selection.finding:Finder.find"],
    "search: exchange": ["selection.finding:exchange"],
    "search: steering": ["selection.finding:steer"],
    "search: pushing": ["selection.finding:push"],
    "search: best rows": ["selection.engine:Engine.best_rows"],
    "search: refits": ["selection.engine:Engine.fit", "selection.engine:Engine.grow"],
    "verification: row sets": ["selection.finding:Finder._fit"],
    "chance": [
        "selection.chance:UniformFits.share_meeting",
        "selection.chance:UniformFits.coefficients",
    ],
    "composition": ["selection.composition:Comparison.of", "selection.composition:label_bins"],
    "row ids: packing, hashing": ["benchmark.grid:pack_rows", "benchmark.grid:rows_hash"],
    "tables, Parquet": ["store.files:frame_bytes", "benchmark.grid:_sorted"],
    "filter: encoding": [
        "baselines.encoding:OneHotEncoder.fit_transform",
        "baselines.encoding:OneHotEncoder.transform",
        "baselines.encoding:NativeEncoder.transform",
        "baselines.encoding:code_table",
    ],
    "filter: retention": ["benchmark.retention:retain", "benchmark.retention:published"],
}


class Clock:
    """Time of this thread by part; a part that calls another does not count the other's time."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self._running = ["else"]
        self._since = time.thread_time()

    def lap(self) -> None:
        """Count the time since the last lap for the part that runs."""
        now = time.thread_time()
        self.seconds[self._running[-1]] += now - self._since
        self._since = now

    def restart(self) -> None:
        """Forget all times."""
        self.seconds = Counter()
        self._since = time.thread_time()

    def timed(self, function: Callable[..., Any], part: str) -> Callable[..., Any]:
        """Return a function that counts its time for a part."""

        @functools.wraps(function)
        def call(*arguments: Any, **options: Any) -> Any:
            self.lap()
            self._running.append(part)
            try:
                return function(*arguments, **options)
            finally:
                self.lap()
                self._running.pop()

        return call

    def watch(self, owner: Any, name: str, part: str) -> None:
        """Replace a function of a module or class by its timed form."""
        setattr(owner, name, self.timed(getattr(owner, name), part))


def watch_all(clock: Clock) -> None:
    """Time every kernel, the models' libraries and the functions of SPOTS."""
    import lightgbm
    from numba.core.dispatcher import Dispatcher
    from sklearn.linear_model import LogisticRegression

    import inconvenient.kernels

    for module in pkgutil.iter_modules(inconvenient.kernels.__path__):
        owner = importlib.import_module(f"inconvenient.kernels.{module.name}")
        for name, value in list(vars(owner).items()):
            if isinstance(value, Dispatcher):
                clock.watch(owner, name, KERNELS)
    clock.watch(LogisticRegression, "predict_proba", "filter models")
    clock.watch(lightgbm.Booster, "predict", "filter models")
    for part, spots in SPOTS.items():
        for spot in spots:
            holder, name = found(spot)
            if isinstance(vars(holder).get(name), classmethod):
                setattr(holder, name, staticmethod(clock.timed(getattr(holder, name), part)))
            else:
                clock.watch(holder, name, part)


def found(spot: str) -> tuple[Any, str]:
    """Return the module or class that holds a function of SPOTS, and its name there."""
    module_name, _, name = spot.partition(":")
    holder: Any = importlib.import_module(f"inconvenient.{module_name}")
    *outer, name = name.split(".")
    for step in outer:
        holder = getattr(holder, step)
    return holder, name


def construct(name: str) -> tuple[str, int, int, Callable[[], int], Callable[[], int]]:
    """Return a dataset's task, rows, columns, and what makes and what filters its shifts."""
    from inconvenient.benchmark import filters, grid, retention
    from inconvenient.config import load_params
    from inconvenient.data import load_dataset, split_dataset
    from inconvenient.store import files

    params = load_params(HERE.parent / "params.yaml")
    dataset = load_dataset(name)
    split = split_dataset(dataset, seed=params.split.seed)
    made: list[pd.DataFrame] = []

    def make() -> int:
        candidates, shifts = grid.make_shifts(dataset, split, params, params.profiles["full"].grid)
        files.frame_bytes(files.pack_frames(candidates=candidates, shifts=shifts))
        made.append(shifts)
        return len(shifts)

    def score() -> int:
        (shifts,) = made
        if shifts.empty:
            return 0
        splits = {name: split}
        units = filters.filter_units({name: dataset}, splits, shifts, params)
        frames = [unit.function(*unit.arguments) for unit in units]
        for frame in frames:
            files.frame_bytes(frame)
        scores = filters.filter_scores(splits, shifts, params, frames)
        table = retention.retain(scores, shifts, params.filter)
        return int(retention.published(table, shifts, params.filter).sum())

    return dataset.task, len(dataset.frame), dataset.X.shape[1], make, score


def shares(seconds: Counter[str]) -> tuple[float, float, float]:
    """Return the shares of kernels, of fits and of everything else."""
    total = sum(seconds.values())
    kernels = seconds[KERNELS] / total
    fits = sum(seconds[part] for part in FITS) / total
    return kernels, fits, 1.0 - kernels - fits


def line(first: str, seconds: Counter[str]) -> str:
    """Return a row of the table of datasets."""
    numbers = " | ".join(f"{share:.0%}" for share in shares(seconds))
    return f"| {first} | {sum(seconds.values()):.1f} | {numbers} |"


def report(names: list[str]) -> str:
    """Build and filter the shifts of some datasets; return the tables."""
    clock = Clock()
    watch_all(clock)
    by_stage: dict[str, Counter[str]] = {"shifts": Counter(), "filter": Counter()}
    rows = []
    # What is compiled, loaded or imported once per process is no part of the construction.
    for name in ("star98_math", "respiratory_status", "arthritis_self_assessment"):
        for step in construct(name)[3:]:
            step()
    for name in names:
        task, n, m, make, score = construct(name)
        for stage, step in (("shifts", make), ("filter", score)):
            clock.restart()
            count = step()
            clock.lap()
            by_stage[stage] += clock.seconds
            word = "verified" if stage == "shifts" else "published"
            rows.append(
                line(f"{name} | {task} | {n:,} | {m} | {stage} | {count} {word}", clock.seconds)
            )
            print(rows[-1], file=sys.stderr, flush=True)
    whole = by_stage["shifts"] + by_stage["filter"]
    for stage, seconds in (*by_stage.items(), ("both", whole)):
        rows.append(line(f"all | | | | {stage} | ", seconds))
    outside = shares(whole)[2]
    total = sum(whole.values())
    parts = [
        f"| {part} | {value:.1f} | {value / total:.1%} |" for part, value in whole.most_common()
    ]
    verdict = "met" if outside <= LIMIT else "missed"
    return "\n".join(
        [
            "| dataset | task | rows | features | stage | shifts | s | kernels | fits | else |",
            "| --- " * 10 + "|",
            *rows,
            "",
            f"Outside kernels and fits: {outside:.1%} of the time; at most {LIMIT:.0%} was wanted "
            f"({verdict}).",
            "",
            "| part | s | share |",
            "| --- | --- | --- |",
            *parts,
            "",
        ]
    )


TEXT = """# Where the time of the construction goes

Written by `python bench/construction.py --write`: the shifts of a handful of datasets by the grid
of profile `full`, and their filter, on one thread; seconds are the processor's. "fits" are the
independent fits that verify, the fits of the pool beside the kernels' own, and fits and predictions
of the filter models. Fits of uniform samples and of the search are kernels.

"""


def main(arguments: list[str]) -> None:
    """Print the tables, or write them."""
    warnings.simplefilter("ignore")
    numba.config.NUMBA_NUM_THREADS = 1  # as in a worker; the clock is of this thread alone
    names = [name for name in arguments if name != "--write"] or list(DATASETS)
    with threadpool_limits(limits=1):
        text = report(names)
    if "--write" in arguments:
        (HERE / "CONSTRUCTION.md").write_text(TEXT + text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main(sys.argv[1:])
