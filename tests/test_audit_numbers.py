"""The digits of ic.audit on hostile tables, after hundreds of removals, and its memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from sklearn.linear_model import LinearRegression, LogisticRegression

import inconvenient as ic
import naive
from inconvenient.errors import InputError
from inconvenient.selection import removal_search
from inconvenient.selection.removal import CLASSICAL, COEFFICIENT, HC1, Table
from inconvenient.selection.removal_fit import refit
from inconvenient.selection.removal_models import open_state
from inconvenient.selection.removal_search import greedy

pytestmark = pytest.mark.jit

# Long doubles of 64 bits (ARM, Windows) are no better than doubles.
extended = pytest.mark.skipif(
    np.finfo(np.longdouble).eps > 1e-18, reason="needs extended precision"
)


def scales(rng, X, b):
    powers = 10.0 ** np.linspace(-8, 8, X.shape[1])
    return X * powers, X @ b + rng.normal(size=len(X))


def twins(rng, X, b):
    # Condition 1e6 once standardised.
    X[:, 2] = X[:, 1] + 2e-6 * X[:, 2]
    return X, X @ b + 1e-3 * rng.normal(size=len(X))


def three_on_a_plane(rng, X, b):
    X[:, 2] = X[:, 1] + X[:, 3] - X[:, 4] + 4e-6 * X[:, 2]
    return X, X @ b + 1e-3 * rng.normal(size=len(X))


def outliers(rng, X, b):
    y = X @ b + rng.normal(size=len(X))
    X[:5] *= 1e4
    y[3:9] += 1e6 * rng.normal(size=6)
    return X, y


def absurd_row(rng, X, b):
    y = X @ b + rng.normal(size=len(X))
    X[7, 2], y[7] = 1e9, 1e12
    return X, y


def large_target(rng, X, b):
    return X, X @ b + rng.normal(size=len(X)) + 1e9


def large_columns(rng, X, b):
    return X + 1e7, X @ b + rng.normal(size=len(X))


def tiny_residuals(rng, X, b):
    return X, X @ b + 1e-9 * rng.normal(size=len(X))


# Relative errors allowed for coefficient and t; measured: a tenth to a half of it.
HOSTILE = {
    scales: (1e-13, 1e-13),
    twins: (1e-10, 1e-10),
    three_on_a_plane: (1e-10, 1e-10),
    outliers: (1e-10, 1e-10),
    absurd_row: (1e-10, 1e-10),
    large_target: (1e-10, 1e-10),
    large_columns: (1e-11, 1e-11),
    # A residual of 1e-9 of the target keeps seven of its digits, in whichever way it is computed.
    tiny_residuals: (1e-13, 1e-7),
}


def hostile(make, n, seed=0, p=8):
    rng = np.random.default_rng(seed)
    return make(rng, rng.normal(size=(n, p)), rng.normal(size=p))


@extended
@pytest.mark.parametrize("kind", [COEFFICIENT, CLASSICAL])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("make", HOSTILE, ids=lambda make: make.__name__)
def test_last_step_on_hostile_tables_against_extended_precision(make, intercept, kind):
    if make is large_columns and not intercept:
        pytest.skip("columns of 1e7 plus noise are collinear without an intercept")
    X, y = hostile(make, 1500)
    A = np.ascontiguousarray(np.column_stack([np.ones(len(X)), X]) if intercept else X)
    table = Table(A, y, 2 + intercept, intercept, "regression")
    state = open_state(table, kind)
    assert state.ok
    steps = list(greedy(state, -np.sign(state.value()), 400))
    assert len(steps) == 400
    b, se, hat = naive.ols_extended(A[~state.gone], y[~state.gone])
    j = table.column
    by_kind = dict(zip((COEFFICIENT, CLASSICAL), HOSTILE[make]))
    expected = b[j] if kind == COEFFICIENT else b[j] / se[j]
    assert abs(state.value() / expected - 1) < by_kind[kind]
    # Hat values sum to the rank; the absolute error is what 1 - h depends on.
    np.testing.assert_allclose(state._hat[~state.gone], hat.astype(float), atol=1e-10)
    assert state._hat[~state.gone].sum() == pytest.approx(A.shape[1], rel=1e-10)
    # And the independent fit that everything reported comes from.
    independent = refit(table, np.flatnonzero(state.gone), CLASSICAL)
    assert independent.status == "ok"
    assert abs(independent.coefficient / b[j] - 1) < by_kind[COEFFICIENT]
    assert abs(independent.t / (b[j] / se[j]) - 1) < by_kind[CLASSICAL]


def levers(rng, X, b):
    X[:4] *= 300.0
    return X, None


@extended
@pytest.mark.parametrize("kind", [COEFFICIENT, CLASSICAL])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    "make",
    [scales, twins, three_on_a_plane, large_columns, levers],
    ids=lambda make: make.__name__,
)
def test_last_step_of_two_classes_against_extended_precision(make, intercept, kind):
    if make is large_columns and not intercept:
        pytest.skip("columns of 1e7 plus noise are collinear without an intercept")
    rng = np.random.default_rng(0)
    X, b = rng.normal(size=(1000, 5)), rng.normal(size=5) / 2
    y = (rng.random(1000) < 1 / (1 + np.exp(-X @ b))).astype(float)
    X, _ = make(rng, X, b)
    A = np.ascontiguousarray(np.column_stack([np.ones(1000), X]) if intercept else X)
    table = Table(A, y, 1 + intercept, intercept, "binary")
    state = open_state(table, kind)
    assert state.ok
    assert sum(1 for _ in greedy(state, -np.sign(state.value()), 150)) == 150
    left = ~state.gone
    mean = np.r_[0.0, A[left, 1:].mean(axis=0)] if intercept else 0.0
    b, se = naive.logistic_extended(A[left] - mean, y[left])
    j = table.column
    expected = b[j] if kind == COEFFICIENT else b[j] / se[j]
    # The t value on the way is of first order in what the Hessian has moved.
    assert abs(state.value() / expected - 1) < (1e-10 if kind == COEFFICIENT else 1e-2)
    assert state.polish()
    assert abs(state.value() / expected - 1) < 1e-10
    independent = refit(table, np.flatnonzero(state.gone), CLASSICAL)
    assert abs(independent.coefficient / b[j] - 1) < 2e-10
    assert abs(independent.t / (b[j] / se[j]) - 1) < 2e-10


@extended
@pytest.mark.slow
def test_short_lists_on_many_rows_with_tiny_residuals():
    X, y = hostile(tiny_residuals, 50_000, p=5)
    A = np.ascontiguousarray(np.column_stack([np.ones(len(X)), X]))
    table = Table(A, y, 1, True, "regression")
    state = open_state(table, COEFFICIENT)
    assert sum(1 for _ in greedy(state, -1.0, 3000)) == 3000
    b, *_ = naive.ols_extended(A[~state.gone], y[~state.gone])
    assert abs(state.value() / b[1] - 1) < 1e-14


@pytest.mark.parametrize("make", HOSTILE, ids=lambda make: make.__name__)
def test_audits_of_hostile_tables_hold_or_are_refused(make):
    X, y = hostile(make, 300, p=5 if make is not three_on_a_plane else 6)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    if make in (twins, three_on_a_plane):
        # A design keeps columns of which a share of 1e-5 is their own.
        with pytest.raises(InputError, match="collinear with"):
            ic.audit(frame, y, feature="x2")
        return
    found = ic.audit(frame, y, feature="x1", max_subsets=300, max_rows=60)
    A = np.column_stack([np.ones(len(X)), X])
    for entry in found.entries:
        if not entry.reached:
            continue
        left = np.setdiff1d(np.arange(len(X)), entry.rows)
        b, se, _ = naive.ols_extended(A[left], y[left])
        np.testing.assert_allclose(entry.coefficient_after, float(b[2]), rtol=1e-9)
        if entry.goal != "insignificant_hc1":
            np.testing.assert_allclose(entry.t_after, float(b[2] / se[2]), rtol=2e-7)


# ---------------------------------------------------------------- short lists


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


# ---------------------------------------------------------------- long trajectories of removals


def long_table(task, n=6000, p=7):
    rng = np.random.default_rng(11)
    X = np.column_stack([np.ones(n), rng.normal(size=(n, p - 1)) @ rng.normal(size=(p - 1, p - 1))])
    eta = X @ rng.normal(size=p) / 3
    if task == "regression":
        y = eta + rng.normal(size=n) * np.exp(X[:, 2] / 4)
    else:
        y = (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(float)
    return Table(np.ascontiguousarray(X), y, 2, True, task)


@pytest.mark.parametrize("kind", [COEFFICIENT, CLASSICAL, HC1])
def test_a_thousand_removals_of_least_squares(kind):
    table = long_table("regression")
    state = open_state(table, kind)
    sign = -np.sign(state.value())
    assert sum(1 for _ in greedy(state, sign, 1000)) == 1000
    left = ~state.gone
    fit = sm.OLS(table.y[left], table.X[left]).fit()
    robust = fit.get_robustcov_results("HC1")
    expected = {
        COEFFICIENT: fit.params[2], CLASSICAL: fit.tvalues[2], HC1: robust.tvalues[2],
    }[kind]  # fmt: skip
    assert state.value() == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(
        naive.ols_errors(table.X[left], table.y[left]),
        (fit.bse, robust.bse),
        rtol=1e-9,
    )
    other = LinearRegression().fit(table.X[left, 1:], table.y[left])
    if kind == COEFFICIENT:
        assert state.value() == pytest.approx(other.coef_[1], rel=1e-9)
    # What each further removal does: the closed form of the library, and a refit.
    change = naive.leave_one_out(table.X[left], table.y[left])
    influence = fit.get_influence()
    np.testing.assert_allclose(change, influence.dfbeta, rtol=1e-8, atol=1e-13)
    after = state.values_after()[left]
    if kind == COEFFICIENT:
        np.testing.assert_allclose(after, fit.params[2] - change[:, 2], rtol=1e-9)
    state.refresh()
    np.testing.assert_allclose(state._hat[left], influence.hat_matrix_diag, rtol=1e-9)
    again = np.delete(np.arange(left.sum()), 17)
    one = sm.OLS(table.y[left][again], table.X[left][again]).fit()
    expected = {
        COEFFICIENT: one.params[2],
        CLASSICAL: one.tvalues[2],
        HC1: one.get_robustcov_results("HC1").tvalues[2],
    }[kind]
    # Of first order in the leverage for HC1 errors of so many rows.
    assert after[17] == pytest.approx(expected, rel=1e-6 if kind == HC1 else 1e-9)


@pytest.mark.parametrize("kind", [COEFFICIENT, CLASSICAL])
def test_hundreds_of_removals_of_two_classes(kind):
    table = long_table("binary")
    state = open_state(table, kind)
    assert sum(1 for _ in greedy(state, -np.sign(state.value()), 400)) == 400
    assert state.polish()
    left = ~state.gone
    X, y = table.X[left], table.y[left]
    fit = sm.Logit(y, X).fit(disp=0, tol=1e-13)
    expected = fit.params[2] if kind == COEFFICIENT else fit.tvalues[2]
    assert state.value() == pytest.approx(expected, rel=1e-8)
    b = naive.logistic(X, y)
    share = 1 / (1 + np.exp(-X @ b))
    inverse = np.linalg.inv((X.T * share * (1 - share)) @ X)
    np.testing.assert_allclose(np.sqrt(np.diag(inverse)), fit.bse, rtol=1e-8)
    if kind == COEFFICIENT:
        model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-12, max_iter=999)
        model.fit(X[:, 1:], y)
        assert state.value() == pytest.approx(model.coef_[0, 1], rel=1e-8)
        assert state.value() == pytest.approx(b[2], rel=1e-8)
    independent = refit(table, np.flatnonzero(state.gone), CLASSICAL)
    assert independent.se == pytest.approx(fit.bse[2], rel=1e-8)
    # One Newton step per further removal, from the closed form.
    hat = np.einsum("ij,ij->i", X @ inverse, X)
    weight = share * (1 - share)
    step = b[2] - (X @ inverse)[:, 2] * (y - share) / (1 - weight * hat)
    if kind == COEFFICIENT:
        np.testing.assert_allclose(state.values_after()[left], step, rtol=1e-8)


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
    assert high < 8.0
