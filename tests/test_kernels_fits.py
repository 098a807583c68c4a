"""Kernels of fits and influence against the naive versions, statsmodels and scikit-learn."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.linear_model import LogisticRegression

import naive
from inconvenient.kernels import (
    elementary,
    linalg,
    logistic,
    multinomial,
    multinomial_influence,
    ols,
    ranking,
)

RIDGES = [0.0, 0.01]


def design(raw):
    columns = [np.ones(len(raw)), (raw - raw.mean(0)) / raw.std(0)]
    X = np.ascontiguousarray(np.column_stack(columns))
    X.flags.writeable = False
    return X


def diabetes():
    raw, y = load_diabetes(return_X_y=True, scaled=False)
    return design(raw[:150, :6]), (y[:150] - y.mean()) / y.std()


def cancer():
    raw, y = load_breast_cancer(return_X_y=True)
    return design(raw[:160, [1, 4, 8, 11]]), y[:160].astype(float)


def wine():
    raw, y = load_wine(return_X_y=True)
    return design(raw[:, [1, 2, 3, 7]]), y.astype(float)


def blocks_of(X):
    n, p = X.shape
    out = np.full((-(-n // linalg.BLOCK), p, linalg.BLOCK), np.nan)
    linalg.to_blocks(X, out)
    return out


def ols_state(X, y, rows, ridge=0.0):
    p = X.shape[1]
    A, c, L, b = np.zeros((p, p)), np.zeros(p), np.empty((p, p)), np.empty(p)
    ols.ols_add(X, y, rows, 1.0, A, c)
    assert ols.ols_solve(A, c, ridge * len(rows), L, b) == 0
    ols.ols_refine(X, y, rows, ridge * len(rows), L, b)
    return L, b


def logistic_state(X, y, rows, ridge=0.0):
    p = X.shape[1]
    L, b = np.empty((p, p)), np.zeros(p)
    status = logistic.logistic_fit(X, y, rows, 0, ridge * len(rows), 40, np.zeros_like(L), L, b)
    return status, L, b


def multinomial_state(X, y, rows, n_classes, ridge=0.0):
    size = (n_classes - 1) * X.shape[1]
    L, b = np.empty((size, size)), np.zeros((n_classes - 1, X.shape[1]))
    status = multinomial.multinomial_fit(
        X, y, rows, 0, ridge * len(rows), 40, np.zeros_like(L), L, b
    )
    return status, L, b


def some_rows(n, k, seed=0):
    return np.random.default_rng(seed).permutation(n)[:k].astype(np.int64)


def solve(L, t):
    a = np.empty(t.size)
    linalg.solve(L, np.ascontiguousarray(t, dtype=float).ravel(), a)
    return a.reshape(t.shape)


# ---------------------------------------------------------------- building blocks


def test_exp_and_log_round_like_the_real_ones():
    x = np.concatenate([np.linspace(-700, 700, 3001), np.linspace(-2, 2, 1001), [-800.0]])
    out = np.empty_like(x)
    elementary.exp_array(x, out)
    np.testing.assert_allclose(out[:-1], np.exp(x[:-1]), rtol=4e-16 * 2)
    assert out[-1] == 0.0
    for value in np.exp(np.linspace(-30, 30, 301)):
        assert elementary.log(value) == pytest.approx(np.log(value), rel=1e-14, abs=1e-15)
    for value in (-745.0, -40.0, -1.0, 0.0, 1.0, 40.0, 745.0):
        assert elementary.expit(value) == pytest.approx(
            np.exp(-np.logaddexp(0, -value)), rel=1e-13, abs=1e-307
        )


def test_cholesky_solve_and_inverse():
    X, _ = diabetes()
    A = X.T @ X + np.diag(np.arange(7.0))
    L, inverse, x = np.empty_like(A), np.empty_like(A), np.empty(7)
    assert linalg.cholesky(np.tril(A), L) == 0  # the upper triangle is never read
    np.testing.assert_allclose(L, np.linalg.cholesky(A), rtol=1e-12, atol=1e-14)
    linalg.inverse(L, inverse)
    np.testing.assert_allclose(inverse @ A, np.eye(7), atol=1e-11)
    linalg.solve(L, A @ np.arange(7.0), x)
    np.testing.assert_allclose(x, np.arange(7.0), atol=1e-11)
    singular = np.ones((2, 2))
    assert linalg.cholesky(singular, np.empty((2, 2))) == 2


def test_blocks_hold_the_pool_and_zeros():
    X, _ = diabetes()
    blocks = blocks_of(X)
    back = blocks.transpose(0, 2, 1).reshape(-1, X.shape[1])
    np.testing.assert_array_equal(back[: len(X)], X)
    assert not back[len(X) :].any()


def test_column_moments():
    raw = load_diabetes(scaled=False).data[:150].astype(float)
    mean, scale = np.empty(10), np.empty(10)
    linalg.column_moments(np.ascontiguousarray(raw), mean, scale)
    np.testing.assert_allclose(mean, raw.mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(scale, raw.std(axis=0), rtol=1e-12)


@pytest.mark.parametrize("case", ["none", "copy", "sum", "two sums", "zero"])
def test_independent_columns_agree_with_elimination_on_the_rows(case):
    X = design(load_wine().data[:, :6])[:, 1:]
    extra = {
        "none": [],
        "copy": [X[:, 2]],
        "sum": [X[:, 0] + X[:, 1]],
        "two sums": [X[:, 0] + X[:, 1], X[:, 2] - 3.0 * X[:, 0]],
        "zero": [np.zeros(len(X))],
    }[case]
    X = np.ascontiguousarray(np.column_stack([*extra, X]))
    order = np.empty(X.shape[1], dtype=np.int64)
    rank = linalg.independent_columns(X.T @ X, 1e-5, order)
    assert order[:rank].tolist() == naive.independent_columns(X, 1e-5)
    assert rank == np.linalg.matrix_rank(X)
    assert sorted(order) == list(range(X.shape[1]))


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=40), st.integers(0, 45), st.randoms())
@settings(max_examples=60, deadline=None)
def test_top_rows(values, k, random):
    score = np.array(values, dtype=float)
    taken = np.array([random.random() < 0.3 for _ in values])
    out = np.full(max(k, 1), -1, dtype=np.int64)
    count = ranking.top_rows(score, taken, k, out)
    assert out[:count].tolist() == naive.top_rows(score, taken, k)


# ---------------------------------------------------------------- fits


@pytest.mark.parametrize("ridge", RIDGES)
def test_ols(ridge):
    X, y = diabetes()
    rows = some_rows(len(y), 90)
    _, b = ols_state(X, y, rows, ridge)
    np.testing.assert_allclose(b, naive.ols(X[rows], y[rows], ridge), rtol=1e-10, atol=1e-13)
    if ridge == 0.0:
        np.testing.assert_allclose(b, sm.OLS(y[rows], X[rows]).fit().params, rtol=1e-10)


@pytest.mark.parametrize("ridge", RIDGES)
def test_logistic(ridge):
    X, y = cancer()
    rows = some_rows(len(y), 110)
    status, _, b = logistic_state(X, y, rows, ridge)
    assert status == logistic.CONVERGED
    np.testing.assert_allclose(b, naive.logistic(X[rows], y[rows], ridge), rtol=1e-9)
    if ridge == 0.0:
        other = sm.Logit(y[rows], X[rows]).fit(disp=0, tol=1e-13).params
    else:
        model = LogisticRegression(
            C=1 / (len(rows) * ridge), tol=1e-13, max_iter=999, solver="newton-cholesky"
        ).fit(X[rows, 1:], y[rows])
        other = np.append(model.intercept_, model.coef_)
    np.testing.assert_allclose(b, other, rtol=1e-8)


@pytest.mark.parametrize("ridge", RIDGES)
def test_multinomial(ridge):
    X, y = wine()
    rows = some_rows(len(y), 130)
    status, _, b = multinomial_state(X, y, rows, 3, ridge)
    assert status == logistic.CONVERGED
    expected = naive.multinomial(X[rows], y[rows].astype(int), 3, ridge)
    np.testing.assert_allclose(b.T, expected, rtol=1e-8, atol=1e-11)
    if ridge == 0.0:
        other = sm.MNLogit(2 - y[rows], X[rows]).fit(disp=0, method="newton", tol=1e-13)
        np.testing.assert_allclose(b.T[:, ::-1], other.params, rtol=1e-8)


def test_warm_start_reaches_the_same_optimum():
    X, y = cancer()
    rows = some_rows(len(y), 110)
    _, _, cold = logistic_state(X, y, rows)
    L, warm = np.empty((5, 5)), logistic_state(X, y, rows[:90], 0.01)[2]
    status = logistic.logistic_fit(X, y, rows, 0, 0.0, 40, np.zeros_like(L), L, warm)
    assert status == logistic.CONVERGED
    np.testing.assert_allclose(warm, cold, rtol=1e-11)


def test_rows_taken_out_again_leave_the_gram_matrix():
    X, y = diabetes()
    rows, more = np.arange(0, 60), np.arange(60, 100)
    A, c = np.zeros((7, 7)), np.zeros(7)
    ols.ols_add(X, y, rows, 1.0, A, c)
    before = A.copy(), c.copy()
    ols.ols_add(X, y, more, 1.0, A, c)
    ols.ols_add(X, y, more, -1.0, A, c)
    np.testing.assert_allclose(np.tril(A), np.tril(before[0]), atol=1e-12)
    np.testing.assert_allclose(c, before[1], atol=1e-12)
    other = np.zeros((7, 7))
    linalg.add_gram(X, rows, 1.0, other)
    np.testing.assert_array_equal(other, before[0])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("n", "rare"), [(300, 1), pytest.param(4000, 8, marks=pytest.mark.jit)])
def test_no_fit_is_reported_under_quasi_complete_separation(n, rare, n_classes):
    # A level whose few rows are all of one class: on the others the classes overlap, so the
    # decrement falls below any tolerance while the level's coefficient still grows by one a step.
    rng = np.random.default_rng(1)
    raw = rng.standard_normal((n, 3))
    raw[:, 1] = np.arange(n) < rare
    y = rng.integers(0, n_classes, n).astype(float)
    y[:rare] = 1.0
    X = design(raw)
    rows = np.arange(n)
    assert naive.separable(X, y.astype(int), n_classes)
    if n_classes == 2:
        status = logistic_state(X, y, rows)[0]
    else:
        status = multinomial_state(X, y, rows, n_classes)[0]
    assert status == logistic.NOT_CONVERGED


def test_no_fit_is_reported_under_rank_loss_and_complete_separation():
    X, y = cancer()
    rows = np.arange(len(y))
    bent = (X[:, 1] + X[:, 2] > 0).astype(float)
    assert logistic_state(X, bent, rows)[0] == logistic.NOT_CONVERGED
    assert logistic_state(X, bent, rows, 0.01)[0] == logistic.CONVERGED
    twice = np.ascontiguousarray(np.column_stack([X, X[:, 1]]))
    assert logistic_state(twice, y, rows)[0] == logistic.NOT_CONVERGED
    A, c, L, b = np.zeros((6, 6)), np.zeros(6), np.empty((6, 6)), np.empty(6)
    ols.ols_add(twice, y, rows, 1.0, A, c)
    assert ols.ols_solve(A, c, 0.0, L, b) != 0


# ---------------------------------------------------------------- influence


def test_hat_values():
    X, y = diabetes()
    rows = some_rows(len(y), 80)
    L, _ = ols_state(X, y, rows)
    hat = np.empty(80)
    ols.hat_values(X, rows, L, hat)
    np.testing.assert_allclose(hat, naive.hat_values(X[rows]), rtol=1e-10)
    other = sm.OLS(y[rows], X[rows]).fit().get_influence().hat_matrix_diag
    np.testing.assert_allclose(hat, other, rtol=1e-10)


@pytest.mark.parametrize("j", [0, 2, 5])
def test_ols_influence(j):
    X, y = diabetes()
    rows, joining = np.arange(0, 60), np.arange(60, 150)
    L, b = ols_state(X, y, rows)
    a = solve(L, np.eye(7)[j])
    got = np.empty(90)
    ols.ols_influence(X, y, joining, b, a, L, got)
    expected = naive.ols_influence(X, y, rows, joining)[:, j]
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-14)
    refit = naive.refit_influence(lambda s: naive.ols(X[s], y[s]), rows, joining)[:, j]
    np.testing.assert_allclose(got, refit, rtol=1e-8, atol=1e-13)
    # The numerator is the same without 1 + h.
    numerators, hat = np.empty(150), np.empty(90)
    ols.ols_numerators(X, y, b, a, numerators)
    ols.hat_values(X, joining, L, hat)
    np.testing.assert_allclose(got, numerators[60:] / (1.0 + hat), rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("ridge", RIDGES)
def test_logistic_influence(ridge):
    X, y = cancer()
    rows, joining = some_rows(len(y), 110), np.arange(160)
    _, L, b = logistic_state(X, y, rows, ridge)
    expected = naive.logistic_influence(X, y, rows, joining, b, ridge)
    for j in range(5):
        a, got = solve(L, np.eye(5)[j]), np.empty(160)
        logistic.logistic_influence(X, y, joining, b, a, L, got)
        # The factor is that of the last Newton step but one, up to 1e-9 away.
        atol = 1e-9 * np.abs(expected[:, j]).max()
        np.testing.assert_allclose(got, expected[:, j], rtol=1e-8, atol=atol)
        numerators = np.empty(160)
        logistic.logistic_numerators(X, y, b, a, numerators)
        prob = 1 / (1 + np.exp(-X @ b))
        h = np.einsum("ij,ij->i", X @ np.linalg.inv(L @ L.T), X)
        np.testing.assert_allclose(
            got, numerators / (1 + prob * (1 - prob) * h), rtol=1e-8, atol=1e-14
        )


@pytest.mark.parametrize("ridge", RIDGES)
def test_multinomial_influence(ridge):
    X, y = wine()
    codes = y.astype(int)
    rows, joining = some_rows(len(y), 130), np.arange(0, 178, 3)
    _, L, b = multinomial_state(X, y, rows, 3, ridge)
    H_inverse = np.empty_like(L)
    linalg.inverse(L, H_inverse)
    expected = naive.sum_to_zero(naive.one_step_influence(X, codes, 3, rows, joining, b.T, ridge))
    for j, c in itertools.product(range(5), range(3)):
        # The functional that picks the sum-to-zero coefficient of class c.
        t = np.zeros((2, 5))
        t[:, j] = np.eye(2, 3)[:, c] - 1 / 3
        a, got = solve(L, t), np.empty(len(joining))
        multinomial_influence.multinomial_influence(X, y, joining, b, a, H_inverse, got)
        # As for two classes.
        atol = 1e-9 * np.abs(expected[:, j, c]).max()
        np.testing.assert_allclose(got, expected[:, j, c], rtol=1e-8, atol=atol)
        numerators = np.empty(178)
        multinomial_influence.multinomial_numerators(X, y, b, a, numerators)
        P = naive.probabilities(X, b.T)[:, :2]
        own = np.eye(3)[codes][:, :2]
        np.testing.assert_allclose(
            numerators, np.sum((X @ a.T) * (own - P), axis=1), rtol=1e-9, atol=1e-14
        )


def test_two_class_multinomial_is_logistic():
    X, y = cancer()
    rows = some_rows(len(y), 110)
    _, L, b = logistic_state(X, y, rows)
    _, L2, b2 = multinomial_state(X, 1 - y, rows, 2)
    np.testing.assert_allclose(b2[0], b, rtol=1e-10)
    a, got, got2 = solve(L, np.eye(5)[2]), np.empty(160), np.empty(160)
    H_inverse = np.empty_like(L2)
    linalg.inverse(L2, H_inverse)
    joining = np.arange(160)
    logistic.logistic_influence(X, y, joining, b, a, L, got)
    multinomial_influence.multinomial_influence(X, 1 - y, joining, b2, a[None], H_inverse, got2)
    np.testing.assert_allclose(got, got2, rtol=1e-8, atol=1e-14)


# ---------------------------------------------------------------- properties


@given(st.integers(0, 2**32 - 1), st.integers(12, 60))
@settings(max_examples=25, deadline=None)
def test_hat_values_sum_to_the_rank_and_row_order_does_not_matter(seed, k):
    X, y = diabetes()
    before = X.tobytes(), y.tobytes()
    rows = some_rows(len(y), k, seed)
    assume(np.linalg.matrix_rank(X[rows]) == X.shape[1])  # not all of one sex, say
    L, b = ols_state(X, y, rows)
    hat = np.empty(k)
    ols.hat_values(X, rows, L, hat)
    # The normal equations of a dozen rows lose some digits.
    assert hat.sum() == pytest.approx(np.linalg.matrix_rank(X[rows]), rel=1e-9)
    assert hat.min() > 0.0
    assert hat.max() <= 1.0 + 1e-9
    turned = np.ascontiguousarray(rows[::-1])
    _, b2 = ols_state(X, y, turned)
    np.testing.assert_allclose(b, b2, rtol=1e-9, atol=1e-11)
    assert (X.tobytes(), y.tobytes()) == before


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=10, deadline=None)
def test_row_order_does_not_matter_to_newton_fits(seed):
    for (X, y), k in ((cancer(), 2), (wine(), 3)):
        rows = some_rows(len(y), 120, seed)
        one = multinomial_state(X, y, rows, k, 0.01)[2]
        two = multinomial_state(X, y, np.sort(rows), k, 0.01)[2]
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-12)
