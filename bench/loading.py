"""What a table costs on its way to a design: ``python bench/loading.py``.

Prints, with its limit, on an idle machine:

- the median and the slowest load of the datasets here, each the best of five, hash check included;
- the peak of memory of ``build_design`` over its float64 matrix, on the dataset with most cells;
- what ``prepare_table`` takes for 300,000 rows by 40 columns, a quarter of them text, over the time
  in which pandas alone reads them from CSV, and the same for reading and design; the best of three
  each, turn by turn.

Ends with status 1 if a limit is passed.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import inconvenient as ic
from inconvenient.data import prepare_table, read_table
from inconvenient.selection.design import Design, build_design

MEDIAN_SECONDS = 0.1
DESIGN_MEMORY = 3.0
PREPARE_TIME = 2.0

ROWS, COLUMNS = 300_000, 40
HEADER = "| what | measured | limit |"


def seconds(call: Callable[[], Any]) -> float:
    """Return the seconds of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def load_times() -> dict[str, float]:
    """Return the least seconds of five loads, by dataset."""
    names = ic.list_datasets()["name"]
    return {n: min(seconds(lambda n=n: ic.load_dataset(n)) for _ in range(5)) for n in names}


def largest() -> str:
    """Return the dataset with the most cells."""
    listed = ic.list_datasets()
    return str(listed["name"].iloc[(listed["rows"] * listed["features"]).argmax()])


def design_of(dataset: ic.Dataset) -> Design:
    """Return the design of all rows of a dataset."""
    n_classes = len(dataset.classes)
    return build_design(
        dataset.X, dataset.y, task=dataset.task, n_classes=n_classes, rare_level_share=0.01
    )


def design_memory(dataset: ic.Dataset) -> tuple[float, Design]:
    """Return the peak of allocations while a design is built over its bytes, and the design."""
    design_of(dataset)  # compiles
    tracemalloc.start()
    try:
        design = design_of(dataset)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return peak / design.X.nbytes, design


def mixed_table() -> pd.DataFrame:
    """Return numbers, whole and not, gaps, texts of few and of many levels."""
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {f"x{j}": rng.normal(size=ROWS).round(4) for j in range(20)}
    columns |= {f"k{j}": rng.integers(0, 1000, ROWS) for j in range(9)}
    columns |= {f"s{j}": rng.choice(["red", "green", "a longer level"], ROWS) for j in range(9)}
    columns["street"] = np.array([f"street {i}" for i in range(2000)])[rng.integers(0, 2000, ROWS)]
    columns["y"] = columns["x0"] + rng.normal(size=ROWS).round(4)
    frame = pd.DataFrame(columns)
    frame.loc[::7, ["x1", "x2", "s1"]] = np.nan
    return frame[list(columns)[:COLUMNS]]


def table_times(path: Path, rounds: int = 3) -> dict[str, float]:
    """Return the least seconds of pandas and of each step of ours, for one file."""
    found: dict[str, list[float]] = {}

    def timed(step: str, call: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = call()
        found.setdefault(step, []).append(time.perf_counter() - start)
        return result

    for _ in range(rounds):
        timed("pandas.read_csv", lambda: pd.read_csv(path))
        frame = timed("read_table", lambda: read_table(path))
        dataset = timed("prepare_table", lambda f=frame: prepare_table(f, target="y"))
        timed("build_design", lambda d=dataset: design_of(d))
    return {step: min(values) for step, values in found.items()}


def figures() -> list[tuple[str, float, float | None]]:
    """Return what was measured, and its limit where there is one."""
    taken = load_times()
    slowest = max(taken, key=lambda n: taken[n])
    dataset = ic.load_dataset(largest())
    memory, design = design_memory(dataset)
    shape = " by ".join(map(str, design.X.shape))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        mixed_table().to_csv(path, index=False)
        steps = table_times(path)
    theirs = steps.pop("pandas.read_csv")
    median = statistics.median(taken.values())
    return [
        (f"load_dataset, median of {len(taken)}, seconds", median, MEDIAN_SECONDS),
        (f"load_dataset, slowest ({slowest}), seconds", taken[slowest], None),
        (f"build_design, {dataset.name} ({shape}), peak over it", memory, DESIGN_MEMORY),
        (f"pandas.read_csv, {ROWS} by {COLUMNS}, seconds", theirs, None),
        *(
            (
                f"{step}, over pandas.read_csv",
                value / theirs,
                PREPARE_TIME if step == "prepare_table" else None,
            )
            for step, value in steps.items()
        ),
    ]


def line(figure: tuple[str, float, float | None]) -> str:
    """Return a row of the table."""
    what, measured, limit = figure
    return f"| {what} | {measured:.3g} | {'' if limit is None else limit} |"


def rows() -> list[str]:
    """Return the rows of the table."""
    return list(map(line, figures()))


def main() -> int:
    """Print the table; 1 if a limit is passed."""
    found = figures()
    print(f"{HEADER}\n| --- | ---: | ---: |")
    print("\n".join(map(line, found)))
    return int(any(limit is not None and measured > limit for _, measured, limit in found))


if __name__ == "__main__":
    sys.exit(main())
