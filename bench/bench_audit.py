"""ic.audit, 2,000 removals from 20,000 rows, beside a refit for every removal."""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from threadpoolctl import threadpool_limits

import inconvenient as ic

N, P, REMOVALS = 20_000, 30, 2_000
# The full baselines take up to a minute or two; these tell what a step of theirs costs.
REFITS = 50

FloatArray = npt.NDArray[np.float64]


def make_table() -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(N, P - 1)), columns=[f"x{j:02d}" for j in range(P - 1)])
    return X, 0.3 * X["x00"] + 0.2 * X.sum(axis=1) + rng.normal(size=N)


def audit(X: pd.DataFrame, y: pd.Series) -> ic.Audit:
    """All 2,000 rows are removed, for more would be needed."""
    return ic.audit(X, y, feature="x00", goals="flip", max_rows=REMOVALS)


def by_numpy(A: FloatArray, y: FloatArray, j: int, steps: int) -> list[int]:
    """The same order by `inv` of the Gram matrix and all leave-one-out influences each time."""
    left, order = np.ones(len(A), dtype=bool), []
    for _ in range(steps):
        rows = np.flatnonzero(left)
        Z = A[rows]
        inverse = np.linalg.inv(Z.T @ Z)
        residual = y[rows] - Z @ (inverse @ (Z.T @ y[rows]))
        hat = np.einsum("ij,ij->i", Z @ inverse, Z)
        i = rows[np.argmax(Z @ inverse[j] * residual / (1.0 - hat))]
        left[i] = False
        order.append(int(i))
    return order


def by_scikit_learn(A: FloatArray, y: FloatArray, j: int, steps: int) -> list[int]:
    """The same order by a `LinearRegression` each time, whose residuals are scored in the same way.

    Column 0 is the intercept.
    """
    left, order = np.ones(len(A), dtype=bool), []
    for _ in range(steps):
        rows = np.flatnonzero(left)
        Z = A[rows]
        model = LinearRegression().fit(Z[:, 1:], y[rows])
        residual = y[rows] - model.predict(Z[:, 1:])
        inverse = np.linalg.inv(Z.T @ Z)
        hat = np.einsum("ij,ij->i", Z @ inverse, Z)
        i = rows[np.argmax(Z @ inverse[j] * residual / (1.0 - hat))]
        left[i] = False
        order.append(int(i))
    return order


Baseline = Callable[[FloatArray, FloatArray, int, int], list[int]]
BASELINES: dict[str, Baseline] = {
    "NumPy: one inverse a step": by_numpy,
    "scikit-learn: one LinearRegression a step": by_scikit_learn,
}


def matrix(X: pd.DataFrame, y: pd.Series) -> tuple[FloatArray, FloatArray]:
    return np.ascontiguousarray(np.column_stack([np.ones(N), X.to_numpy()])), y.to_numpy()


def removed(X: pd.DataFrame, y: pd.Series, steps: int) -> list[int]:
    """The order in which the audit removes rows."""
    from inconvenient.selection.removal import COEFFICIENT, Table
    from inconvenient.selection.removal_models import open_state
    from inconvenient.selection.removal_search import greedy

    A, target = matrix(X, y)
    state = open_state(Table(A, target, 1, True, "regression"), COEFFICIENT)
    return [i for i, _ in greedy(state, -1.0, steps)]


def seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


HEADER = "| case; beside | n | p | ours | beside | median ratio | least to most |"


def threads(call: Callable[[], Any]) -> int | None:
    """Return with how many BLAS threads a call is quicker: one, or as many as there are (None)."""
    taken = {}
    for limit in (1, None):
        with threadpool_limits(limit):
            taken[limit] = min(seconds(call) for _ in range(2))
    return min(taken, key=lambda limit: taken[limit])


def rows(*, steps: int = REMOVALS, repetitions: int = 3) -> list[str]:
    """Return rows of a Markdown table: what, n, p, seconds of both, median ratio, its spread.

    Every step of both sides is made: one repetition of each baseline, and of the audit some right
    before and after it, whose ratios to it give the spread; each with the number of BLAS threads
    that suits it. The orders are compared.
    """
    X, y = make_table()
    A, target = matrix(X, y)
    audit(X, y)
    expected = removed(X, y, steps)
    mine = threads(lambda: audit(X, y))

    def audits() -> list[float]:
        with threadpool_limits(mine):
            return [seconds(lambda: audit(X, y)) for _ in range(repetitions)]

    lines = []
    for name, baseline in BASELINES.items():
        suits = threads(functools.partial(baseline, A, target, 1, 30))
        with threadpool_limits(suits):
            fast = audits()
            start = time.perf_counter()
            order = baseline(A, target, 1, steps)
            slow = (time.perf_counter() - start) * REMOVALS / steps
            fast += audits()
        if order != expected:
            raise AssertionError(f"{name} removes other rows")
        ratios = sorted(slow / one for one in fast)
        lines.append(
            f"| ic.audit, {REMOVALS:,} removals; {name} | {N:,} | {P} "
            f"| {statistics.median(fast):.2f} s | {slow:.1f} s "
            f"| {statistics.median(ratios):.0f}x | {ratios[0]:.0f}x..{ratios[-1]:.0f}x |"
        )
    return lines


@pytest.fixture(scope="module")
def table() -> tuple[pd.DataFrame, pd.Series]:
    X, y = make_table()
    ic.audit(X[:3000], y[:3000], feature="x00", goals="flip", max_rows=100)
    return X, y


@pytest.mark.benchmark(group="2,000 removals")
def test_audit(benchmark: Any, table: Any) -> None:
    found = benchmark.pedantic(audit, args=table, rounds=3)
    assert not found["flip"].reached


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.benchmark(group="50 removals")
def test_refits_of_50_of_them(benchmark: Any, table: Any, name: str) -> None:
    X, y = table
    order = benchmark.pedantic(BASELINES[name], args=(*matrix(X, y), 1, REFITS), rounds=3)
    assert removed(X, y, REFITS) == order


if __name__ == "__main__":
    print(f"{HEADER}\n{'| --- ' * 7}|")
    print("\n".join(rows()))
