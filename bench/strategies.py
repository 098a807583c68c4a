"""How many cells of the quick grid each selection strategy meets: ``python bench/strategies.py``.

Prints a Markdown table, the evidence behind the order in which ``Finder`` tries strategies. A cell
counts as met if an independent fit on the selected rows meets the criterion.
"""

from __future__ import annotations

import math
import sys
import time
from collections import defaultdict
from pathlib import Path

from inconvenient.benchmark.grid import _bends, _feasible, _pool_importance, criteria, pool_design
from inconvenient.config import load_params
from inconvenient.data import load_dataset, split_dataset
from inconvenient.selection.engine import Engine
from inconvenient.selection.finding import STRATEGIES, Finder
from inconvenient.selection.reference import fit_reference

ROOT = Path(__file__).parents[1]


def main() -> None:
    params = load_params(ROOT / "params.yaml")
    profile = params.profiles["quick"]
    met: dict[tuple[str, ...], int] = defaultdict(int)
    seconds: dict[tuple[str, ...], float] = defaultdict(float)
    cells: dict[tuple[str, ...], int] = defaultdict(int)
    for name in profile.datasets:
        print(name, file=sys.stderr)
        dataset = load_dataset(name)
        split = split_dataset(dataset, seed=params.split.seed)
        design = pool_design(dataset, split.pool, params)
        engine = Engine(design)
        reference = fit_reference(engine, ridge=params.reference.ridge)
        sizes = [math.ceil(f * engine.n - 1e-9) for f in profile.grid.min_fractions]
        sizes = [size for size in sizes if _feasible(design, size, params)]
        if not sizes:
            continue
        weights = _pool_importance(dataset, split.pool)
        for strategy in (*STRATEGIES, "auto"):
            finder = Finder(
                engine,
                reference,
                sizes=tuple(sizes),
                criteria=criteria(profile.grid),
                seed=params.shifts.seed,
                min_class=params.shifts.min_class,
            )
            for bend in _bends(design, reference, weights, profile.grid.n_single):
                for criterion in criteria(profile.grid):
                    if bend.kind == "group" and criterion.mode == "band":
                        continue
                    key = (criterion.operation, criterion.mode, bend.kind, strategy)
                    start = time.perf_counter()
                    for size in sizes:
                        found = finder.find(bend.aim, criterion, size, strategy)
                        met[key] += found.outcome == "verified"
                        cells[key] += 1
                    seconds[key] += time.perf_counter() - start
    print("| operation | mode | kind | cells | " + " | ".join((*STRATEGIES, "auto")) + " |")
    print("| --- " * 8 + "|")
    for operation, mode, kind in sorted({key[:3] for key in met}):
        keys = [(operation, mode, kind, s) for s in (*STRATEGIES, "auto")]
        shares = [f"{met[k] / cells[k]:.0%} ({1000 * seconds[k] / cells[k]:.0f} ms)" for k in keys]
        print(f"| {operation} | {mode} | {kind} | {cells[keys[0]]} | {' | '.join(shares)} |")


if __name__ == "__main__":
    main()
