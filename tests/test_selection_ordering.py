"""Stable orders equal NumPy's, whatever the ties."""

from __future__ import annotations

import numpy as np
import pytest

from inconvenient.selection.ordering import stable_order


@pytest.mark.parametrize("n", [0, 1, 511, 512, 5000])
@pytest.mark.parametrize("digits", [0, 2, 17])
def test_the_order_is_that_of_the_stable_sort(n: int, digits: int) -> None:
    values = np.round(np.random.default_rng(n).normal(size=n), digits)
    np.testing.assert_array_equal(stable_order(values), np.argsort(values, kind="stable"))


@pytest.mark.parametrize("odd", [[0.0, -0.0], [np.inf, -np.inf], [np.nan, 0.0], [1.0]])
def test_zeros_infinities_gaps_and_constants(odd: list[float]) -> None:
    values = np.resize(np.array(odd), 2000)
    np.testing.assert_array_equal(stable_order(values), np.argsort(values, kind="stable"))
