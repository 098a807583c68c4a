"""The digits of ic.audit on hostile tables and after hundreds of removals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from removal_tables import (
    absurd_row,
    extended,
    hostile,
    large_columns,
    large_target,
    levers,
    long_table,
    outliers,
    scales,
    three_on_a_plane,
    tiny_residuals,
    twins,
)
from sklearn.linear_model import LinearRegression, LogisticRegression

import inconvenient as ic
import naive
from inconvenient.errors import InputError
from inconvenient.selection.removal import CLASSICAL, COEFFICIENT, HC1, Table
from inconvenient.selection.removal_fit import refit
from inconvenient.selection.removal_models import open_state
from inconvenient.selection.removal_search import greedy

pytestmark = pytest.mark.jit

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


def with_and_without_intercept(makes):
    # Columns of 1e7 plus noise are collinear without an intercept: there is nothing to compare.
    pairs = [(m, i) for m in makes for i in (True, False) if i or m is not large_columns]
    return pytest.mark.parametrize(
        ("make", "intercept"), pairs, ids=[f"{m.__name__}-{i}" for m, i in pairs]
    )


@extended
@pytest.mark.parametrize("kind", [COEFFICIENT, CLASSICAL])
@with_and_without_intercept(HOSTILE)
def test_last_step_on_hostile_tables_against_extended_precision(make, intercept, kind):
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


@extended
@pytest.mark.parametrize("kind", [COEFFICIENT, CLASSICAL])
@with_and_without_intercept([scales, twins, three_on_a_plane, large_columns, levers])
def test_last_step_of_two_classes_against_extended_precision(make, intercept, kind):
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
        # A coefficient that has just crossed zero has its error as the digits to compare with.
        error = float(se[2])
        np.testing.assert_allclose(
            entry.coefficient_after, float(b[2]), rtol=1e-9, atol=1e-9 * error
        )
        if entry.goal != "insignificant_hc1":
            np.testing.assert_allclose(entry.t_after, float(b[2] / se[2]), rtol=2e-7, atol=1e-9)


# ---------------------------------------------------------------- long trajectories of removals


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
