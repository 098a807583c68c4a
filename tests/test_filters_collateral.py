"""Collateral effect: the penalised fits against scikit-learn and by their own optimality."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hostile import diabetes_table, shifts_of, split_of, wine_table
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler

from inconvenient.benchmark.collateral import (
    collateral_frame,
    penalised_coefficients,
    relative_change,
)
from inconvenient.config import load_params
from inconvenient.selection.chance import shared_size, uniform_rows
from inconvenient.shifts.rows import unpack_rows


def standardised(table):
    return StandardScaler().fit_transform(table.X)


def test_regression_is_ridge_with_a_penalty_per_row():
    table = diabetes_table()
    X, y = standardised(table), (table.y - table.y.mean()) / table.y.std()
    b = penalised_coefficients(X, y, n_classes=0, ridge=0.01)
    expected = Ridge(alpha=0.01 * len(y)).fit(X, y).coef_
    np.testing.assert_allclose(b[:, 0], expected, rtol=1e-9)
    # all rows twice: the penalty grows with them
    twice = penalised_coefficients(np.vstack([X, X]), np.r_[y, y], n_classes=0, ridge=0.01)
    np.testing.assert_allclose(twice, b, rtol=1e-9)


def test_two_classes_are_logistic_regression():
    table = wine_table()
    X, y = standardised(table), (table.y == 1).astype(np.float64)
    b = penalised_coefficients(X, y, n_classes=2, ridge=0.01)
    model = LogisticRegression(C=1 / (0.01 * len(y)), tol=1e-12, max_iter=10_000).fit(X, y)
    assert b.shape == (6, 1)
    np.testing.assert_allclose(b[:, 0], model.coef_[0], rtol=1e-5)  # L-BFGS stops earlier


def test_multinomial_fit_is_stationary_and_sums_to_zero():
    table = wine_table()
    X, y = standardised(table), table.y.astype(np.float64)
    ridge = 0.01
    b = penalised_coefficients(X, y, n_classes=3, ridge=ridge)
    np.testing.assert_allclose(b.sum(axis=1), 0, atol=1e-8)
    model = LogisticRegression(C=1 / (ridge * len(y)), tol=1e-12, max_iter=10_000).fit(X, y)
    p = softmax(X @ b + model.intercept_, axis=1)
    gradient = X.T @ (p - np.eye(3)[table.y]) / len(y) + ridge * b
    assert np.abs(gradient).max() < 1e-5  # the intercept is L-BFGS's


def test_absent_classes_and_constant_columns():
    table = wine_table()
    X, y = standardised(table), table.y.astype(np.float64)
    X[:, 2] = 0.5
    two = y != 1
    b = penalised_coefficients(X[two], y[two], n_classes=3, ridge=0.001)
    assert (b[:, 1] == 0).all()
    np.testing.assert_allclose(b[:, 0], -b[:, 2])
    np.testing.assert_allclose(b[2], 0, atol=1e-8)
    one = penalised_coefficients(X[y == 0], y[y == 0], n_classes=3, ridge=0.001)
    assert (one == 0).all()


def test_relative_change_by_hand():
    pool, sample = np.array([[3.0], [4.0], [9.0]]), np.array([[3.0], [1.0], [-9.0]])
    assert relative_change(sample, pool, np.array([True, True, False])) == pytest.approx(3 / 5)
    assert np.isnan(relative_change(sample, pool, np.zeros(3, dtype=bool)))
    assert np.isnan(relative_change(sample, pool * 0, np.ones(3, dtype=bool)))


@pytest.mark.parametrize("make", [diabetes_table, wine_table])
def test_collateral_of_shifts(root, make):
    params = load_params(root / "params.yaml")
    params = dataclasses.replace(params, evaluate=dataclasses.replace(params.evaluate, controls=2))
    table = make()
    other = wine_table() if table.name == "diabetes" else diabetes_table()
    splits = {t.name: split_of(len(t.y)) for t in (table, other)}
    split = splits[table.name]
    shifts = shifts_of([table, other], splits)
    every = shifts["shift_id"].iloc[0] if shifts["dataset"].iloc[0] == table.name else None
    shifts["features"] = [
        list(table.X.columns) if shift_id == every else features
        for shift_id, features in zip(shifts["shift_id"], shifts["features"], strict=True)
    ]
    out = collateral_frame(table, split, shifts, params)
    own = shifts[shifts["dataset"] == table.name].sort_values("shift_id")
    assert out["shift_id"].tolist() == own["shift_id"].tolist()
    assert np.isnan(out["collateral"].iloc[0])
    assert np.isnan(out["collateral_control"].iloc[0])

    pool = split.pool
    scaler = StandardScaler().fit(table.X.iloc[pool])
    mean, sd = table.y[pool].mean(), table.y[pool].std()
    n_classes = len(table.classes)

    def fit(rows):
        X = scaler.transform(table.X.iloc[np.sort(rows)])
        y = table.y[np.sort(rows)].astype(np.float64)
        y = y if n_classes else (y - mean) / sd
        return penalised_coefficients(X, y, n_classes=n_classes, ridge=params.collateral.ridge)

    shift = own.iloc[1]
    reference = fit(pool)[1:]
    sample = fit(unpack_rows(shift["rows"]))[1:]
    size = shared_size(int(shift["size"]))
    controls = [
        fit(uniform_rows(pool, size, i, seed=params.shifts.seed, name=table.name))[1:]
        for i in range(2)
    ]
    # the design rounds its scaling to 10 digits
    assert out["collateral"].iloc[1] == pytest.approx(
        np.linalg.norm(sample - reference) / np.linalg.norm(reference), rel=1e-6
    )
    changes = [np.linalg.norm(b - reference) / np.linalg.norm(reference) for b in controls]
    assert out["collateral_control"].iloc[1] == pytest.approx(np.mean(changes), rel=1e-6)
