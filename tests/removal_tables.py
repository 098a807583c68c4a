"""Tables that cost digits, for audits and fits that follow rows out of a sample."""

from __future__ import annotations

import numpy as np
import pytest

from inconvenient.selection.removal import Table

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


def levers(rng, X, b):
    X[:4] *= 300.0
    return X, None


def hostile(make, n, seed=0, p=8):
    rng = np.random.default_rng(seed)
    return make(rng, rng.normal(size=(n, p)), rng.normal(size=p))


def long_table(task, n=6000, p=7):
    rng = np.random.default_rng(11)
    X = np.column_stack([np.ones(n), rng.normal(size=(n, p - 1)) @ rng.normal(size=(p - 1, p - 1))])
    eta = X @ rng.normal(size=p) / 3
    if task == "regression":
        y = eta + rng.normal(size=n) * np.exp(X[:, 2] / 4)
    else:
        y = (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(float)
    return Table(np.ascontiguousarray(X), y, 2, True, task)
