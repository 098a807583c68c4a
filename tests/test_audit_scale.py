"""ic.audit on many rows: short lists that change nothing, and memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from removal_tables import absurd_row, hostile, long_table, outliers, scales

import inconvenient as ic
from inconvenient.selection import removal_search
from inconvenient.selection.removal import CLASSICAL, COEFFICIENT, HC1, Table
from inconvenient.selection.removal_models import open_state
from inconvenient.selection.removal_search import greedy

pytestmark = pytest.mark.jit


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("make", [scales, outliers, absurd_row, "levels", "repeats", "bent"])
def test_short_lists_remove_the_rows_that_greedy_removes(make, sign, monkeypatch):
    if callable(make):
        X, y = hostile(make, 3000)
    else:
        rng = np.random.default_rng(3)
        X = rng.normal(size=(3000, 4))
        if make == "levels":  # columns that few rows carry
            X = (rng.random((3000, 4)) < [0.5, 0.1, 0.01, 0.002]).astype(float)
        if make == "repeats":  # every row three times, so that equals compete
            X = np.repeat(X[:1000], 3, axis=0)
        y = X @ [1.0, 0.5, 0.2, 0.1] + rng.standard_t(2, size=3000)
        if make == "repeats":
            y = np.repeat(y[::3], 3)
        if make == "bent":
            y = y * np.exp(X[:, 0])
    A = np.ascontiguousarray(np.column_stack([np.ones(len(X)), X]))
    table = Table(A, y, 1, True, "regression")
    quick = open_state(table, COEFFICIENT)
    listed = list(greedy(quick, sign, 500))
    assert quick.left == 2500
    monkeypatch.setattr(removal_search, "pays", lambda state, most: False)
    slow = open_state(table, COEFFICIENT)
    plain = list(greedy(slow, sign, 500))
    if make == "repeats":  # rounding decides which of three equal rows goes first
        values = [value for _, value in plain]
        np.testing.assert_allclose([value for _, value in listed], values, rtol=1e-10)
        return
    assert [i for i, _ in listed] == [i for i, _ in plain]
    np.testing.assert_allclose(
        [value for _, value in listed], [value for _, value in plain], rtol=1e-10, atol=1e-13
    )
    np.testing.assert_allclose(quick.values_after(), slow.values_after(), rtol=1e-9, atol=1e-13)


ORDER = """
import hashlib
import numpy as np
from inconvenient.selection.removal import Table
from inconvenient.selection.removal_models import open_state
from inconvenient.selection.removal_search import Goal, greedy, two_groups

rng = np.random.default_rng(4)
A = np.column_stack([np.ones(4000), rng.integers(-9, 10, size=(4000, 6))])
y = A @ [9.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.0] + rng.integers(-300, 301, size=4000)  # exact
state = open_state(Table(np.ascontiguousarray(A), y, 1, True, "regression"), "coefficient")
steps = list(greedy(state, -1.0, 600))
assert len(steps) == 600
digest = hashlib.sha256(np.array([i for i, _ in steps]).tobytes())
digest.update(np.array([v for _, v in steps]).tobytes())
half = np.ascontiguousarray(np.column_stack([np.ones(400), np.arange(400) % 2]))
goal = Goal("halve", "coefficient", -1.0, lambda v, left: v <= 0.4)
table = Table(half, (np.arange(400) % 5 < 1 + 2 * half[:, 1]).astype(float), 1, True, "binary")
digest.update(two_groups(table, goal).tobytes())
print(digest.hexdigest())
"""


@pytest.mark.slow
def test_short_lists_are_the_same_on_an_older_processor():
    old = {"NUMBA_CPU_NAME": "generic", "OPENBLAS_CORETYPE": "Prescott"}
    digests = [
        subprocess.run(
            [sys.executable, "-c", ORDER],
            env={**os.environ, **extra},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for extra in ({}, old)
    ]
    assert digests[0] == digests[1] != ""


# ---------------------------------------------------------------- memory


@pytest.mark.parametrize("task", ["regression", "binary"])
def test_a_state_holds_one_blocked_copy_of_its_table(task):
    table = long_table(task, n=8000, p=40)
    size = table.X.nbytes

    def peak(call):
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        result = call()
        high = tracemalloc.get_traced_memory()[1] - before
        tracemalloc.stop()
        return high / size, result

    open_state(table, COEFFICIENT)
    high, state = peak(lambda: open_state(table, COEFFICIENT))
    # A vector of n numbers is 1/40 of the table.
    assert high < 1.5
    high, twins = peak(lambda: [state.copy(), state.follow(CLASSICAL), state.without([1, 2])])
    assert high < 1.0
    assert all(twin._blocks is state._blocks for twin in twins)
    high, _ = peak(lambda: list(greedy(state, -1.0, 300)))
    assert high < 0.7
    if task == "regression":
        # Two dozen vectors; the exact errors of few rows need no more either.
        high, _ = peak(state.follow(HC1).values_after)
        assert high < 0.7


def test_an_audit_needs_a_few_copies_of_its_table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 30))
    y = 0.3 * X[:, 0] + rng.normal(size=20_000)
    frame = pd.DataFrame(X, columns=[f"x{j:02d}" for j in range(30)])
    call = {"feature": "x00", "max_rows": 200, "max_subsets": 0}
    ic.audit(frame[:3000], y[:3000], **call)
    tracemalloc.start()
    ic.audit(frame, y, **call)
    high = tracemalloc.get_traced_memory()[1] / X.nbytes
    tracemalloc.stop()
    # The table, its blocked copy, and the four of an independent fit.
    assert high < 6.0
