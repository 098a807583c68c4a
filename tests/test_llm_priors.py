"""Priors of linear models: what is minimised, how it is mapped, what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import check_grad
from sklearn.linear_model import LogisticRegression, Ridge

from inconvenient.baselines.encoding import OneHotEncoder
from inconvenient.errors import InputError
from inconvenient.llm import prior_fit
from inconvenient.llm.prior_fit import fit_gaussian, fit_logistic, objective
from inconvenient.llm.priors import (
    STRENGTHS,
    Prior,
    PriorModel,
    flat_prior,
    reversed_prior,
)

Table = tuple[pd.DataFrame, pd.Series]


@pytest.fixture
def regression(diabetes: pd.DataFrame) -> Table:
    X = diabetes.drop(columns="progression")
    return X.assign(sex=X["sex"].map({1.0: "f", 2.0: "m"})), diabetes["progression"]


@pytest.fixture
def binary(cancer: pd.DataFrame) -> Table:
    return cancer.drop(columns="diagnosis"), cancer["diagnosis"]


@pytest.fixture
def multiclass(wine: pd.DataFrame) -> Table:
    return wine.drop(columns="cultivar"), wine["cultivar"].map(lambda k: f"cultivar {k}")


def whole(K: int, q: int, C: int) -> tuple[np.random.Generator, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    return rng, rng.normal(size=(C, q)), rng.uniform(0.2, 5.0, size=(C, q))


# What is minimised


@pytest.mark.parametrize(("K", "C"), [(2, 1), (2, 2), (3, 3)])
def test_gradient_and_hessian_of_the_logistic_objective(multiclass: Table, K: int, C: int) -> None:
    X, y = multiclass
    kept = (y != "cultivar 2").to_numpy() if K == 2 else np.ones(len(y), dtype=bool)
    codes = y[kept].str[-1].astype(int).to_numpy()
    Z = OneHotEncoder.fit_transform(X[kept].iloc[:, :4])[1]
    rng, mean, precision = whole(K, 4, C)
    f = objective(Z, codes, K, mean, precision)
    theta = rng.normal(size=f.free.sum()) / 3

    def loss(t: np.ndarray) -> float:
        return f.loss(t)[0]

    def gradient(t: np.ndarray) -> np.ndarray:
        return f.gradient(t, f.loss(t)[1])

    size = np.linalg.norm(gradient(theta))
    assert check_grad(loss, gradient, theta) < 1e-6 * size  # forward differences
    H, h = f.hessian(f.loss(theta)[1]), 1e-5
    for j in range(theta.size):
        e = np.eye(theta.size)[j] * h
        slope = (gradient(theta + e) - gradient(theta - e)) / (2 * h)
        np.testing.assert_allclose(slope, H[j], atol=1e-7 * np.abs(H).max())


@pytest.mark.parametrize("C", [1, 2])
def test_logistic_objective_is_the_stated_one(binary: Table, C: int) -> None:
    X, y = binary
    codes = (y == "malignant").astype(int).to_numpy()
    Z = OneHotEncoder.fit_transform(X)[1]
    q = Z.shape[1]
    _, mean, precision = whole(2, q, C)
    a, b = fit_logistic(Z, codes, 2, mean, precision)

    def stated(a: np.ndarray, b: np.ndarray) -> float:
        eta = a + Z @ b.T
        logit = eta[:, 0] if C == 1 else eta[:, 1] - eta[:, 0]
        losses = np.logaddexp(0.0, np.where(codes == 1, -logit, logit))
        return losses.sum() + 0.5 * (precision * (b - mean) ** 2).sum()

    logit = (a + Z @ b.T) @ np.array([1.0] if C == 1 else [-1.0, 1.0])
    residual = np.outer([1.0] if C == 1 else [-1.0, 1.0], 1 / (1 + np.exp(-logit)) - codes)
    gradient = residual @ Z + precision * (b - mean)
    np.testing.assert_allclose(gradient / len(Z), 0.0, atol=1e-10)
    np.testing.assert_allclose(residual.sum(axis=1) / len(Z), 0.0, atol=1e-10)

    least = stated(a, b)
    for move in np.random.default_rng(0).normal(size=(20, C, q + 1)) * 1e-3:
        assert stated(a + move[:, -1], b + move[:, :-1]) > least


def test_large_systems_by_conjugate_gradients_give_the_same(
    multiclass: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = multiclass
    Z, codes = OneHotEncoder.fit_transform(X)[1], y.str[-1].astype(int).to_numpy()
    _, mean, precision = whole(3, Z.shape[1], 3)
    direct = fit_logistic(Z, codes, 3, mean, precision)
    monkeypatch.setattr(prior_fit, "DIRECT", 0)
    products = fit_logistic(Z, codes, 3, mean, precision)
    for one, other in zip(direct, products):
        np.testing.assert_allclose(one, other, atol=1e-8)


def test_gaussian_fit_solves_its_normal_equations(regression: Table) -> None:
    X, y = regression
    Z = OneHotEncoder.fit_transform(X)[1] + 1.0  # columns need not be centred
    _, mean, precision = whole(0, Z.shape[1], 1)
    a, b = fit_gaussian(Z, y.to_numpy(), mean[0], precision[0])
    residual = y.to_numpy() - a - Z @ b
    assert residual.sum() == pytest.approx(0.0, abs=1e-7)
    np.testing.assert_allclose(Z.T @ residual, precision[0] * (b - mean[0]), atol=1e-6)


# The flat prior, strong priors


def test_flat_prior_is_ridge(regression: Table) -> None:
    X, y = regression
    model = PriorModel(flat_prior()).fit(X, y)
    Z = OneHotEncoder.fit_transform(X)[1]
    ridge = Ridge(alpha=1.0).fit(Z, y)
    np.testing.assert_allclose(model.coef_ * y.std(ddof=0), ridge.coef_, atol=1e-8)
    np.testing.assert_allclose(model.predict(X), ridge.predict(Z), atol=1e-8)


@pytest.mark.parametrize("name", ["binary", "multiclass"])
@pytest.mark.parametrize("sd", [1.0, 0.1])
def test_flat_prior_is_logistic_regression(
    name: str, sd: float, request: pytest.FixtureRequest
) -> None:
    X, y = request.getfixturevalue(name)
    model = PriorModel(default_sd=sd).fit(X, y)
    Z = OneHotEncoder.fit_transform(X)[1]
    theirs = LogisticRegression(C=sd**2, solver="newton-cholesky", tol=1e-12).fit(Z, y)
    np.testing.assert_allclose(model.coef_, theirs.coef_, atol=1e-8)
    np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba(Z), atol=1e-8)
    assert (model.predict(X) == theirs.predict(Z)).all()
    assert list(model.classes_) == list(theirs.classes_)


def test_a_strong_prior_returns_its_means(
    regression: Table, binary: Table, multiclass: Table
) -> None:
    X, y = regression
    terms = {"bmi": (0.7, 1.0), "bp": (-2.0, 0.5), ("sex", "m"): (0.4, 1.0)}
    model = PriorModel(Prior(terms), strength=1e12, default_sd=1e-6).fit(X, y)
    wanted = {("bmi", None): 0.7, ("bp", None): -2.0, ("sex", "m"): 0.4}
    found = dict(zip(model.columns_, model.coef_))
    assert set(wanted) < set(found)
    for column, coefficient in found.items():
        assert coefficient == pytest.approx(wanted.get(column, 0.0), abs=1e-8)

    X, y = binary
    model = PriorModel(Prior({"mean radius": (-3.0, 1.0)}), strength=1e12, default_sd=1e-6).fit(
        X, y
    )
    found = dict(zip(model.columns_, model.coef_[0]))
    assert found["mean radius", None] == pytest.approx(-3.0, abs=1e-8)
    # a negative coefficient makes the last class less likely, whatever the sample says
    order = np.argsort(X["mean radius"].to_numpy())
    assert (np.diff(model.predict_proba(X)[order, 1]) <= 1e-9).all()

    X, y = multiclass
    own = {"cultivar 0": (2.0, 1.0), "cultivar 1": (-1.0, 1.0)}  # nothing of the third: 0
    model = PriorModel(Prior({"alcohol": own}), strength=1e12, default_sd=1e-6).fit(X, y)
    at = model.columns_.index(("alcohol", None))
    np.testing.assert_allclose(model.coef_[:, at], np.array([2.0, -1.0, 0.0]) - 1 / 3, atol=1e-8)


def test_only_differences_between_classes_count(multiclass: Table) -> None:
    X, y = multiclass
    names = sorted(set(y))
    priors = [
        Prior({"alcohol": {n: (m + c, 0.1) for n, m in zip(names, (1.0, 0.5, -2.0))}})
        for c in (0.0, 5.0)
    ]
    one, other = (PriorModel(prior).fit(X, y) for prior in priors)
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-10)
    np.testing.assert_allclose(one.coef_.sum(axis=0), 0.0, atol=1e-8)


# Units


@pytest.mark.parametrize("raw", [False, True])
def test_predictions_are_equal_under_shifted_and_scaled_columns(
    regression: Table, multiclass: Table, raw: bool
) -> None:
    X, y = regression
    moved, target = X.assign(bmi=X["bmi"] * 25.0 - 300.0), y * 4.0 + 11.0
    terms = {"bmi": (3.0, 0.2), "bp": (-1.0, 0.3)}
    there = {"bmi": (3.0 * 4 / 25, 0.2 * 4 / 25), "bp": (-4.0, 1.2)} if raw else terms
    one = PriorModel(Prior(terms, raw)).fit(X, y)
    other = PriorModel(Prior(there, raw)).fit(moved, target)
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-10)
    np.testing.assert_allclose(one.predict(X) * 4.0 + 11.0, other.predict(moved), rtol=1e-10)
    assert np.abs(one.coef_ - PriorModel().fit(X, y).coef_).max() > 0.01  # the prior counts

    X, y = multiclass
    moved = X.assign(alcohol=X["alcohol"] * 25.0 - 300.0)
    terms = {"alcohol": {"cultivar 0": (-3.0, 0.2), "cultivar 1": (1.0, 0.1)}}
    there = {"alcohol": {"cultivar 0": (-3 / 25, 0.2 / 25), "cultivar 1": (1 / 25, 0.1 / 25)}}
    # the class without a term has the default, which is in units of the sample
    one = PriorModel(Prior(terms, raw)).fit(X, y)
    other = PriorModel(Prior(there if raw else terms, raw)).fit(moved, y)
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(moved), atol=1e-9)


def test_raw_terms_are_mapped_by_the_spread_of_the_sample(regression: Table) -> None:
    X, y = regression
    terms = {"bmi": (5.0, 2.0), ("sex", "f"): (30.0, 10.0)}
    part = X["bmi"] > 25
    for rows in (part, ~part):
        model = PriorModel(Prior(terms, raw=True)).fit(X[rows], y[rows])
        spread = X["bmi"][rows].std(ddof=0) / y[rows].std(ddof=0)
        at = model.columns_.index(("bmi", None))
        assert model.mean_[0, at] == pytest.approx(5.0 * spread)
        assert model.sd_[0, at] == pytest.approx(2.0 * spread)
        spread = (X["sex"][rows] == "f").std(ddof=0) / y[rows].std(ddof=0)
        at = model.columns_.index(("sex", "f"))
        assert model.mean_[0, at] == pytest.approx(30.0 * spread)


def test_rare_levels_share_the_weighted_mean_of_their_terms() -> None:
    levels = ["a"] * 300 + ["b"] * 200 + ["c"] * 2 + ["d"]
    y = np.random.default_rng(0).normal(size=len(levels))
    terms = {("x", "c"): (3.0, 1.0), ("x", "d"): (-3.0, 2.0), ("x", "never seen"): (9.0, 1.0)}
    model = PriorModel(Prior(terms)).fit(pd.DataFrame({"x": levels}), y)
    at = model.columns_.index(("x", "(other)"))
    assert model.mean_[0, at] == pytest.approx((2 * 3.0 - 3.0) / 3)
    assert model.sd_[0, at] == pytest.approx(np.sqrt((2 * 1.0 + 4.0) / 3))


def test_gaps_have_terms_of_their_own(regression: Table) -> None:
    X, y = regression
    X = X.assign(bmi=X["bmi"].mask(np.arange(len(X)) % 5 == 0))
    X.loc[::7, "sex"] = None
    terms = {("bmi", "(missing)"): (0.5, 1.0), ("sex", "(missing)"): (-0.5, 1.0)}
    model = PriorModel(Prior(terms), strength=1e12).fit(X, y)
    found = dict(zip(model.columns_, model.coef_))
    assert found["bmi", "(missing)"] == pytest.approx(0.5)
    assert found["sex", "(missing)"] == pytest.approx(-0.5)
    assert np.isfinite(model.predict(X)).all()


# Strength


def test_strength_by_cross_validation_takes_a_prior_that_predicts_the_sample(
    regression: Table, binary: Table
) -> None:
    for X, y in (regression, binary):
        fitted = PriorModel(default_sd=3.0).fit(X, y)
        means = dict(zip(fitted.columns_, np.atleast_2d(fitted.coef_)[0]))
        terms = {
            feature if level is None else (feature, level): (mean, 0.1)
            for (feature, level), mean in means.items()
        }
        good = PriorModel(Prior(terms), strength="cv").fit(X, y)
        bad = PriorModel(reversed_prior(Prior(terms)), strength="cv").fit(X, y)
        assert good.strength_ >= 10.0
        assert bad.strength_ < 1.0
        assert {good.strength_, bad.strength_} <= set(STRENGTHS)
        again = PriorModel(Prior(terms), strength="cv").fit(X, y)
        assert (again.coef_ == good.coef_).all()


def test_strength_is_of_what_the_prior_names_alone(
    regression: Table, binary: Table, multiclass: Table
) -> None:
    for X, y in (regression, binary, multiclass):
        plain = PriorModel().fit(X, y)
        for strength in ("size", "cv", 1e6):
            silent = PriorModel(flat_prior(), strength=strength).fit(X, y)
            np.testing.assert_array_equal(silent.coef_, plain.coef_)
    X, y = regression
    model = PriorModel(Prior({"bmi": (0.0, 1.0)}), strength="size").fit(X, y)
    Z = OneHotEncoder.fit_transform(X)[1]
    at = model.columns_.index(("bmi", None))
    penalty = np.ones(Z.shape[1])
    penalty[at] = len(X)
    assert model.named_.sum() == 1
    assert model.named_[0, at]
    target = ((y - y.mean()) / y.std(ddof=0)).to_numpy()
    wanted = np.linalg.solve(Z.T @ Z + np.diag(penalty), Z.T @ target)
    np.testing.assert_allclose(model.coef_, wanted, atol=1e-10)


def test_strength_by_size_is_the_number_of_rows(binary: Table) -> None:
    X, y = binary
    assert PriorModel(strength="size").fit(X, y).strength_ == len(X)
    doubted = PriorModel(strength="size", sample_sd=0.5).fit(X, y)
    assert doubted.strength_ == len(X) / 4


# Refusals and small samples


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (PriorModel(Prior({"weight": (1.0, 1.0)})), "names 'weight', which is no column"),
        (PriorModel(Prior({"sex": (1.0, 1.0)})), "'sex' is categorical; name a level"),
        (PriorModel(Prior({("bmi", "high"): (1.0, 1.0)})), "'bmi' is numeric and has no level"),
        (PriorModel(Prior({"bmi": (1.0, 0.0)})), "finite with an sd above 0"),
        (PriorModel(Prior({"bmi": (np.nan, 1.0)})), "finite with an sd above 0"),
        (PriorModel(Prior({"bmi": {"a": (1.0, 1.0)}})), "must be (mean, sd) for this task"),
        (PriorModel({}), "pass fit a context"),
        (PriorModel(strength=0.0), 'strength must be a number above 0, "size" or "cv", got 0.0'),
        (PriorModel(strength="much"), "got 'much'"),
        (PriorModel(default_sd=-1.0), "default_sd must be above 0"),
        (PriorModel(sample_sd=0.0), "sample_sd must be above 0"),
    ],
)
def test_refusals(regression: Table, model: PriorModel, text: str) -> None:
    import re

    with pytest.raises(InputError, match=re.escape(text)):
        model.fit(*regression)


def test_samples_without_variation(regression: Table, binary: Table) -> None:
    X, y = regression
    model = PriorModel(Prior({"bmi": (1.0, 1.0)})).fit(X, y * 0 + 3.0)
    assert np.isfinite(model.predict(X)).all()
    assert PriorModel().fit(X.iloc[:1], y.iloc[:1]).predict(X)[0] == y.iloc[0]
    X, y = binary
    alone = PriorModel(strength="cv").fit(X[y == "benign"], y[y == "benign"])
    assert (alone.predict(X) == "benign").all()
    assert (alone.predict_proba(X) == 1.0).all()


def test_codes_follow_the_classes_of_the_dataset() -> None:
    """Whole numbers sort as text in a dataset: "10" before "9", which is the positive class."""
    from inconvenient.shifts import Context

    x = np.random.default_rng(0).normal(size=200)
    y = np.where(x > 0, 9, 10)
    context = Context("binary", ("10", "9"), "y", "", "", {"x": ""})
    model = PriorModel(Prior({"x": (5.0, 1.0)}), strength=1e12)
    model.fit(pd.DataFrame({"x": x}), y, context=context)
    assert list(model.classes_) == [10, 9]
    assert (model.predict(pd.DataFrame({"x": x})) == y).mean() > 0.95
