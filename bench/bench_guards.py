"""Guards of speed: kernels beside what one would use instead, in one run, far above a floor.

Floors are about a quarter of what an idle machine measures (bench/RESULTS.md), so that they fail
where a kernel lost its vector loops or its cache, and not where a machine is busy.
"""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from trajectories import grown, pushed, table, usual_logistic, usual_ols

from inconvenient.kernels.ols import ols_numerators
from inconvenient.kernels.screen import CODE_STEPS, column_ranges, encode
from inconvenient.kernels.screen_ols import ols_bounds
from inconvenient.selection.strategies import uniform_order


def best(call: Callable[[], Any], rounds: int) -> float:
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def ratio(slow: Callable[[], Any], fast: Callable[[], Any], rounds: int = 3) -> float:
    fast()
    return best(slow, rounds) / best(fast, 3 * rounds)


@pytest.mark.parametrize(("task", "floor"), [("regression", 10.0), ("binary", 3.0)])
def test_a_trajectory_beside_refits_by_scikit_learn(task: str, floor: float) -> None:
    n, p = 10_000, 50
    X, y = table(n, p, 2 if task == "binary" else 0)
    start = uniform_order(n, 0)[: 8 * p]
    fast = functools.partial(pushed, X, y, task, start, 3000)
    batches = np.diff(fast().sizes)
    usual = usual_ols if task == "regression" else usual_logistic
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = ratio(lambda: grown(n, start, batches, usual(X, y)), fast, rounds=2)
    assert found > floor


def test_the_screen_beside_the_float64_pass() -> None:
    n, p = 100_096, 50
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, p)), rng.normal(size=n)
    b, a, out = rng.normal(size=p), rng.normal(size=p), np.empty(n)
    low, high, error = np.empty(p), np.empty(p), np.empty(p)
    column_ranges(X, low, high)
    center, step = (low + high) / 2, (high - low) / CODE_STEPS
    codes = np.empty((n // 128, p, 128), dtype=np.int8)
    encode(X, center, step, error, codes)
    square, bound = np.zeros(n, dtype=np.float32), np.empty(n, dtype=np.float32)
    taken = np.zeros(n, dtype=bool)
    coded = (codes, center, step, error)
    found = ratio(
        lambda: ols_numerators(X, y, b, a, out),
        lambda: ols_bounds(*coded, square, y, taken, b, a, 1.0, np.inf, bound),
    )
    assert found > 2.0


def test_the_float64_pass_beside_its_naive_version() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 20)), rng.normal(size=2000)
    b, a, out = rng.normal(size=20), rng.normal(size=20), np.empty(2000)
    assert ratio(lambda: naive_numerators(X, y, b, a), lambda: ols_numerators(X, y, b, a, out)) > 20


def naive_numerators(X: np.ndarray, y: np.ndarray, b: np.ndarray, a: np.ndarray) -> list[float]:
    return [float((a @ x) * (target - x @ b)) for x, target in zip(X, y, strict=True)]
