"""One pass over the pool beside the memory's bandwidth: ``python bench/scoring.py``.

The working set is four times the last-level cache, for each number of columns. The bandwidth is
that of a triad, a = b + s c, on arrays of a third of that each, in the same run and on one thread
like the passes. A pass counts the 8 bytes of each entry, of y and of what it fills; the screen the
same, for it does in an eighth of the traffic what the float64 pass does. End to end is a trajectory
to 30 % with the screen over one with float64 passes and the same certified search.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numba import njit
from trajectories import clock, pushed, row, table

import inconvenient.selection.screen as screening
from inconvenient.kernels.linalg import BLOCK
from inconvenient.kernels.ols import ols_numerators
from inconvenient.kernels.screen import CODE_STEPS, encode
from inconvenient.kernels.screen_ols import ols_bounds
from inconvenient.selection.strategies import uniform_order

COLUMNS = (10, 50, 200)
CACHE = Path("/sys/devices/system/cpu/cpu0/cache/index3/size")


@njit
def triad(b: np.ndarray, c: np.ndarray, s: float, a_out: np.ndarray) -> None:
    for i in range(a_out.shape[0]):
        a_out[i] = b[i] + s * c[i]


def last_level_cache() -> int:
    """Return the bytes of the last-level cache, 32 MB where the system does not tell."""
    try:
        text = CACHE.read_text().strip()
    except OSError:
        return 32 * 2**20
    return int(text[:-1]) * {"K": 2**10, "M": 2**20}[text[-1]]


def bandwidth(size: int, task: Callable[[], object], rounds: int) -> list[float]:
    """Return gigabytes per second, one figure a round."""
    task()
    return [size / clock(task)[0] / 1e9 for _ in range(rounds)]


def passes(p: int, size: int, rounds: int) -> dict[str, list[float]]:
    """Return bandwidths of a triad, the float64 pass and the screen, rounds in turn."""
    n = size // (8 * p) // BLOCK * BLOCK
    rng = np.random.default_rng(0)
    part = rng.normal(size=(BLOCK * 64, p))
    X = np.resize(part, (n, p))
    y, out, taken = np.ones(n), np.empty(n), np.zeros(n, dtype=bool)
    b, a = rng.normal(size=p), rng.normal(size=p)
    low, high = part.min(axis=0), part.max(axis=0)
    center, step, error = (low + high) / 2, (high - low) / CODE_STEPS, np.empty(p)
    codes = np.empty((n // BLOCK, p, BLOCK), dtype=np.int8)
    encode(X, center, step, error, codes)
    bound, square = np.empty(n, dtype=np.float32), np.zeros(n, dtype=np.float32)
    third = size // 24
    arrays = [np.ones(third), np.ones(third), np.empty(third)]
    found: dict[str, list[float]] = {"triad": [], "float64 pass": [], "screen": []}
    moved = 8 * n * (p + 2)
    coded = (codes, center, step, error)
    for _ in range(rounds):
        found["triad"] += bandwidth(
            24 * third, lambda: triad(arrays[0], arrays[1], 2.0, arrays[2]), 1
        )
        found["float64 pass"] += bandwidth(moved, lambda: ols_numerators(X, y, b, a, out), 1)
        found["screen"] += bandwidth(
            moved,
            lambda: ols_bounds(*coded, square, y, taken, b, a, 1.0, np.inf, bound),
            1,
        )
    return found


class Unscreened(screening.Screen):
    """The search on float64 passes: bounds without an error, from the entries in full."""

    def __init__(self, engine: object) -> None:
        super().__init__(engine)
        del self._coded
        self._all = np.arange(engine.n)

    def _fill_bounds(self, query: screening._Query, taken: np.ndarray) -> None:
        bound = self._sharpened(query, self._all).astype(np.float32)
        self._bound[:] = np.nextafter(bound, np.float32(np.inf))
        self._bound[taken] = -np.inf


def end_to_end(n: int, p: int, rounds: int) -> list[float]:
    """Return ratios of the time of a trajectory without the screen over that with it."""
    import inconvenient.selection.engine as engines

    X, y = table(n, p)
    start = uniform_order(n, 0)[: 5 * p]
    ratios = []
    for _ in range(rounds):
        fast, with_screen = clock(lambda: pushed(X, y, "regression", start, 3 * n // 10))
        engines.Screen = Unscreened
        try:
            slow, without = clock(lambda: pushed(X, y, "regression", start, 3 * n // 10))
        finally:
            engines.Screen = screening.Screen
        assert np.array_equal(with_screen.rows, without.rows)
        ratios.append(slow / fast)
    return ratios[1:]


def rows(rounds: int = 5) -> list[str]:
    """Return the rows of the table."""
    size = 4 * last_level_cache()
    found = []
    for p in COLUMNS:
        n = size // (8 * p)
        rates = passes(p, size, rounds)
        for name, wanted in (("float64 pass", "0.8"), ("screen", "4.5")):
            ratios = [own / base for own, base in zip(rates[name], rates["triad"], strict=True)]
            beside = f"a triad's bandwidth ({statistics.median(rates['triad']):.0f} GB/s)"
            found.append(row(f"scoring, {name}", n, p, beside, ratios, wanted, digits=2))
    for n in (10_000, 100_000, 1_000_000):
        ratios = end_to_end(n, 50, rounds + 1 if n < 1_000_000 else 3)
        found.append(
            row("OLS trajectory, screened", n, 50, "float64 passes", ratios, "1.3", digits=2)
        )
    return found


def main() -> None:
    """Print the table."""
    from trajectories import HEADER

    print(f"{HEADER}\n{'| --- ' * 7}|")
    print("\n".join(rows()))


if __name__ == "__main__":
    main()
