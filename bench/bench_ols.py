"""OLS kernels beside their naive versions and beside the library that a user would pick."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import naive
from inconvenient.kernels.ols import hat_values, ols_add, ols_influence, ols_solve

N, P = 2000, 20


@pytest.fixture(scope="module")
def fit() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    X = np.ascontiguousarray(np.column_stack([np.ones(N), rng.normal(size=(N, P - 1))]))
    y = X @ rng.normal(size=P) + rng.normal(size=N)
    rows = np.arange(N, dtype=np.int64)
    A, L, c, b = np.zeros((P, P)), np.zeros((P, P)), np.zeros(P), np.zeros(P)
    ols_add(X, y, rows, 1.0, A, c)
    assert ols_solve(A, c, 0.0, L, b) == 0
    a = np.linalg.solve(X.T @ X, np.eye(P)[1])
    return {"X": X, "y": y, "rows": rows, "L": L, "b": b, "a": a, "out": np.empty(N)}


@pytest.mark.benchmark(group="hat values")
def test_hat_kernel(benchmark: Any, fit: dict[str, Any]) -> None:
    benchmark(hat_values, fit["X"], fit["rows"], fit["L"], fit["out"])
    np.testing.assert_allclose(fit["out"].sum(), P)


@pytest.mark.benchmark(group="hat values")
def test_hat_naive(benchmark: Any, fit: dict[str, Any]) -> None:
    np.testing.assert_allclose(benchmark(naive.hat_values, fit["X"]).sum(), P)


@pytest.mark.benchmark(group="hat values")
def test_hat_statsmodels(benchmark: Any, fit: dict[str, Any]) -> None:
    import statsmodels.api as sm

    # The fit is inside, for it caches the decomposition; the kernel is given its factor.
    hat = benchmark(lambda: sm.OLS(fit["y"], fit["X"]).fit().get_influence().hat_matrix_diag)
    np.testing.assert_allclose(hat.sum(), P)


@pytest.mark.benchmark(group="influence on one coefficient")
def test_influence_kernel(benchmark: Any, fit: dict[str, Any]) -> None:
    arguments = (fit["X"], fit["y"], fit["rows"], fit["b"], fit["a"], fit["L"], fit["out"])
    benchmark(ols_influence, *arguments)


@pytest.mark.benchmark(group="influence on one coefficient")
def test_influence_naive(benchmark: Any, fit: dict[str, Any]) -> None:
    everything = fit["rows"]
    benchmark(naive.ols_influence, fit["X"], fit["y"], everything, everything)
