"""ic.audit, 2,000 removals from 20,000 rows, beside a refit for every removal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import inconvenient as ic

N, P, REMOVALS = 20_000, 30, 2_000
# A refit per step takes a minute for all removals; the first 50 tell what one costs.
REFITS = 50


@pytest.fixture(scope="module")
def table() -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(N, P - 1)), columns=[f"x{j:02d}" for j in range(P - 1)])
    y = 0.3 * X["x00"] + 0.2 * X.sum(axis=1) + rng.normal(size=N)
    ic.audit(X[:300], y[:300], feature="x00", goals="flip", max_rows=5)
    return X, y


@pytest.mark.benchmark(group="2,000 removals")
def test_audit(benchmark: Any, table: Any) -> None:
    # More rows would be needed, so that all 2,000 are removed.
    X, y = table
    call = {"feature": "x00", "goals": "flip", "max_rows": REMOVALS}
    found = benchmark.pedantic(ic.audit, args=(X, y), kwargs=call, rounds=3)
    assert not found["flip"].reached


def remove_by_refits(A: Any, y: Any, j: int, steps: int) -> list[int]:
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


@pytest.mark.benchmark(group="2,000 removals")
def test_refits_of_50_of_them(benchmark: Any, table: Any) -> None:
    from inconvenient.selection.removal import Table
    from inconvenient.selection.removal_models import open_state
    from inconvenient.selection.removal_search import greedy

    X, y = table
    A = np.ascontiguousarray(np.column_stack([np.ones(N), X.to_numpy()]))
    order = benchmark.pedantic(remove_by_refits, args=(A, y.to_numpy(), 1, REFITS), rounds=3)
    state = open_state(Table(A, y.to_numpy(), 1, True, "regression"), "coefficient")
    assert [i for i, _ in greedy(state, -1.0, REFITS)] == order
