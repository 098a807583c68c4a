"""Fits after hundreds of batches against fits from scratch: naive, statsmodels and scikit-learn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from removal_tables import extended
from sklearn.linear_model import LinearRegression, LogisticRegression

import naive
from inconvenient.kernels import ols
from inconvenient.selection.design import Design, build_design
from inconvenient.selection.engine import Engine
from inconvenient.selection.verification import fit_independent, t_values

pytestmark = [pytest.mark.jit, pytest.mark.slow]

N, P, START, BATCH = 6000, 6, 400, 10
CLASSES = {"regression": 0, "binary": 2, "multiclass": 3}
# Close to each other, as the columns of a design may be.
MIXING = np.eye(P - 1) + 0.6


def pool(task):
    rng = np.random.default_rng(5)
    raw = rng.standard_t(5, size=(N, P - 1)) @ MIXING
    X = np.column_stack([np.ones(N), (raw - raw.mean(axis=0)) / raw.std(axis=0)])
    eta = X @ (rng.normal(size=(P, 3)) / 2)
    if task == "regression":
        y = eta[:, 0] + np.exp(X[:, 1] / 3) * rng.normal(size=N)
        y = (y - y.mean()) / y.std()
    elif task == "binary":
        y = (rng.random(N) < 1 / (1 + np.exp(-eta[:, 0]))).astype(float)
    else:
        y = np.argmax(eta + rng.gumbel(size=eta.shape), axis=1).astype(float)
    names = tuple(f"x{j}" for j in range(1, P))
    design = Design(
        X=np.ascontiguousarray(X), y=y, task=task, n_classes=CLASSES[task],
        columns=("(intercept)", *names), features=names, feature_of=np.arange(-1, P - 1),
        removed=(), dependencies=(), encoding=(), y_mean=0.0, y_scale=1.0,
    )  # fmt: skip
    return Engine(design)


@pytest.fixture(scope="module", params=list(CLASSES))
def grown(request):
    """A sample that grew by 520 batches, in the order in which one coefficient is pushed."""
    engine = pool(request.param)
    X, y = engine.design.X, engine.design.y
    rows = np.random.default_rng(1).permutation(N)
    # Biased as selections are: rows that lean one way come early.
    lean = X[rows, 2] * (y[rows] - y.mean()) + np.random.default_rng(2).normal(size=N)
    rows = rows[np.argsort(-lean, kind="stable")]
    start = np.random.default_rng(3).permutation(N)[:START].astype(np.int64)
    rows = np.concatenate([start, rows[~np.isin(rows, start)]])
    state = engine.fit(start)
    batches = 0
    for at in range(START, N - 400, BATCH):
        state = engine.grow(state, rows[at : at + BATCH])
        batches += 1
    assert batches >= 500
    assert len(state.rows) >= 5000
    return engine, state


def sample_of(grown):
    engine, state = grown
    return engine.design.task, engine.design.X[state.rows], engine.design.y[state.rows], state


def library(task, X, y):
    """The fit of statsmodels; classes turned round, for its base is the first."""
    if task == "regression":
        return sm.OLS(y, X).fit()
    if task == "binary":
        return sm.Logit(y, X).fit(disp=0, tol=1e-13)
    return sm.MNLogit(2 - y, X).fit(disp=0, method="newton", tol=1e-13)


def test_coefficients_of_the_last_step(grown):
    task, X, y, state = sample_of(grown)
    if task == "regression":
        expected = naive.ols(X, y)[:, None]
        model = LinearRegression().fit(X[:, 1:], y)
        other = np.append(model.intercept_, model.coef_)[:, None]
        theirs = library(task, X, y).params[:, None]
    else:
        model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-12, max_iter=999)
        model.fit(X[:, 1:], y)
        other = np.column_stack([model.intercept_, model.coef_]).T
        if task == "binary":
            expected = naive.logistic(X, y)[:, None]
            theirs = library(task, X, y).params[:, None]
        else:
            other = other - other.mean(axis=1, keepdims=True)
            expected = naive.sum_to_zero(naive.multinomial(X, y.astype(int), 3))
            theirs = naive.sum_to_zero(library(task, X, y).params[:, ::-1])
    scale = np.abs(expected).max()
    np.testing.assert_allclose(state.coefficients, expected, rtol=1e-9, atol=1e-11 * scale)
    np.testing.assert_allclose(state.coefficients, theirs, rtol=1e-8, atol=1e-10 * scale)
    np.testing.assert_allclose(state.coefficients, other, rtol=1e-8, atol=1e-10 * scale)


def test_standard_errors_and_inverse_information_of_the_last_step(grown):
    task, X, y, state = sample_of(grown)
    k = CLASSES[task]
    fit = fit_independent(X, y, task=task, n_classes=k, ridge=0.0)
    t = t_values(X, y, task=task, n_classes=k, coefficients=fit.coefficients, ridge=0.0)
    other = library(task, X, y)
    # The factor of the state is that of X'X or of the information.
    inverse = np.linalg.inv(state.factor @ state.factor.T)
    if task == "regression":
        classical, _ = naive.ols_errors(X, y)
        np.testing.assert_allclose(inverse, other.normalized_cov_params, rtol=1e-8, atol=1e-13)
        np.testing.assert_allclose(classical, other.bse, rtol=1e-9)
        np.testing.assert_allclose(t[:, 0], other.tvalues, rtol=1e-8)
    elif task == "binary":
        np.testing.assert_allclose(inverse, other.cov_params(), rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(t[:, 0], other.tvalues, rtol=1e-8)
    else:
        # Contrasts of both count from the same base, in opposite order.
        turned = np.r_[np.arange(P, 2 * P), np.arange(P)]
        V = np.asarray(other.cov_params())
        np.testing.assert_allclose(inverse[np.ix_(turned, turned)], V, rtol=1e-8, atol=1e-11)
        H = naive.multinomial_hessian(X, naive.probabilities(X, state.contrasts.T))
        np.testing.assert_allclose(inverse, np.linalg.inv(H), rtol=1e-8, atol=1e-11)
        C = np.kron(np.full((1, 2), -1 / 3), np.eye(P))
        errors = np.sqrt(np.diag(C @ V @ C.T))
        np.testing.assert_allclose(t[:, 2], fit.coefficients[:, 2] / errors, rtol=1e-7)


def test_influence_after_the_last_step(grown):
    """Of every row that could still join: the closed form, and brute force for some."""
    engine, state = grown
    task, X, y, _ = sample_of(grown)
    outside = np.setdiff1d(np.arange(N), state.rows)[:40].astype(np.int64)
    codes, everything = engine.design.y, engine.design.X
    functional = np.zeros(state.coefficients.shape)
    functional[2, 0] = 1.0
    a = engine.solve_functional(state, functional)
    got = engine.influence(state, a, outside)
    rows = state.rows
    if task == "regression":
        expected = naive.ols_influence(everything, codes, rows, outside)[:, 2]
        brute = naive.refit_influence(lambda s: naive.ols(everything[s], codes[s]), rows, outside)
        np.testing.assert_allclose(got, brute[:, 2], rtol=1e-7, atol=1e-13)
        hat = np.empty(len(rows))
        ols.hat_values(everything, rows, state.factor, hat)
        influence = library(task, X, y).get_influence()
        np.testing.assert_allclose(hat, influence.hat_matrix_diag, rtol=1e-9)
        np.testing.assert_allclose(hat, naive.leverages(X), rtol=1e-9)
        assert hat.sum() == pytest.approx(P, rel=1e-11)
        np.testing.assert_allclose(
            naive.leave_one_out(X, y), influence.dfbeta, rtol=1e-8, atol=1e-14
        )
    elif task == "binary":
        b = naive.logistic(X, y)
        expected = naive.logistic_influence(everything, codes, rows, outside, b)[:, 2]
    else:
        B = naive.multinomial(X, y.astype(int), 3)
        expected = naive.sum_to_zero(
            naive.one_step_influence(everything, codes.astype(int), 3, rows, outside, B)
        )[:, 2, 0]
    np.testing.assert_allclose(got, expected, rtol=1e-8, atol=1e-9 * np.abs(expected).max())
    if task == "regression":
        return
    # One Newton step is a refit but for terms of second order in the row's leverage.
    for i in range(5):
        joined = np.append(rows, outside[i])
        fit = fit_independent(
            everything[joined], codes[joined], task=task, n_classes=CLASSES[task], ridge=0.0
        )
        change = fit.coefficients[2, 0] - state.coefficients[2, 0]
        assert got[i] == pytest.approx(change, rel=0.05, abs=0.02 * np.abs(got).max())


def scales(rng, X, y):
    powers = 10.0 ** np.linspace(-8, 8, X.shape[1])
    return X * powers, y


def near_twins(rng, X, y):
    # Three times the share of its own that a column needs to stay in the design.
    return np.column_stack([X, X[:, 1] + 3e-5 * rng.normal(size=len(X))]), y


def outliers(rng, X, y):
    X[:5] *= 1e4
    return X, y + 1e5 * (rng.random(len(y)) < 0.001)


def far_from_zero(rng, X, y):
    return X + 1e7, y + 1e9


def tiny_residuals(rng, X, y):
    return X, X @ np.arange(1.0, 1.0 + X.shape[1]) + 1e-9 * y


@extended
@pytest.mark.parametrize("task", ["regression", "binary"])
@pytest.mark.parametrize(
    ("make", "rtol"),
    [
        (scales, 1e-13),
        (near_twins, 1e-9),
        (outliers, 1e-12),
        (far_from_zero, 1e-13),
        (tiny_residuals, 1e-13),
    ],
)
def test_hostile_tables_after_hundreds_of_batches(make, rtol, task):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(5400, 6))
    X, y = make(rng, X, X @ rng.normal(size=6) + rng.normal(size=5400))
    if task == "binary":
        y = (y > np.median(y)) ^ (rng.random(len(y)) < 0.2)
    design = build_design(
        pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]),
        y.astype(float),
        task=task,
        n_classes=CLASSES[task],
        rare_level_share=0.01,
    )
    assert not design.removed
    engine = Engine(design)
    order = rng.permutation(len(y)).astype(np.int64)
    state = engine.fit(order[:START])
    for at in range(START, 5000, BATCH):
        state = engine.grow(state, order[at : at + BATCH])
    exact = naive.ols_extended if task == "regression" else naive.logistic_extended
    b = exact(design.X[state.rows], design.y[state.rows])[0]
    # The intercept of standardised data is zero but for rounding.
    errors = np.abs(state.coefficients[1:, 0] / b[1:] - 1)
    assert errors.max() < rtol
