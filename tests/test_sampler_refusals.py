"""``ConvenienceSampler`` says what it cannot do, and what the nearest sample reached."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_iris

import inconvenient as ic
from inconvenient.errors import InputError, UnmetError

pytestmark = pytest.mark.jit

Sampler = ic.ConvenienceSampler


def test_multilabel_targets_are_refused() -> None:
    X = np.random.default_rng(0).random((20, 2))
    y = np.random.RandomState(42).randint(2, size=(20, 3))
    with pytest.raises(InputError, match="Multilabel and multioutput targets are not supported"):
        Sampler().fit_resample(X, y)
    with pytest.raises(InputError, match="one-hot"):
        Sampler().fit(X, X)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"operation": "bend"}, "The 'operation' parameter of ConvenienceSampler must be"),
        ({"min_fraction": 20}, "The 'min_fraction' parameter .* in the range"),
        ({"factor": 2.0}, "flip takes no factor"),
        ({"feature": "bmj"}, "closest: 'bmi'"),
        ({"feature": "bmi", "bin": "top"}, "cannot both be given"),
        ({"class_": 1}, "class_ needs a multiclass target"),
        ({"mode": "band"}, "'band' needs amplify or attenuate"),
    ],
)
def test_parameters_are_checked_when_used(change: dict[str, Any], message: str) -> None:
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    sampler = Sampler(**change)
    with pytest.raises(ValueError, match=message):
        sampler.fit_resample(X, y)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.ones((5, 2)), None, "requires y to be passed"),
        (np.ones((5, 2)), np.ones(4), "equally many rows, got 5 and 4"),
        (np.ones((5, 2)), np.ones((5, 2, 1)), "got 3 dimensions"),
        (np.ones((5, 2)), np.ones(5), "at least two values or classes"),
        (np.ones((5, 0)), np.arange(5), "0 feature"),
        (np.ones((5, 2)) * 1j, np.arange(5), "Complex data not supported in X"),
        (np.ones((5, 2)), np.arange(5) * 1j, "Complex data not supported in y"),
        (np.ones(5), np.arange(5), "reshape"),
        (np.ones((9, 2)), [None, *range(8)], "known in every row, but 1 of 9 .* first in row 0"),
        (np.ones((3, 2)), np.ma.masked_array([1.0, 2, 3], [0, 0, 1]), "missing, first in row 2"),
        (np.ones((2, 2)), [[1], [2, 3]], "one column or one-hot columns, got rows"),
        (np.ones((3, 2)), [1.0, np.inf, 2.0], "must hold finite numbers .* first inf in row 1"),
        (np.ones((2, 2)), pd.to_datetime(["2026-11-30", "2026-12-01"]), "holds dates or times"),
    ],
)
def test_tables_that_cannot_be_used(X: Any, y: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Sampler().fit_resample(X, y)


WISH = {"operation": "amplify", "factor": 5.0, "feature": "bmi", "min_fraction": 0.9}


def test_the_nearest_sample_comes_with_the_coefficient_that_it_reached() -> None:
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    sampler = Sampler(**WISH)
    with pytest.warns(UserWarning, match="was not met") as caught:
        X_bent, _ = sampler.fit_resample(X, y)
    assert caught[0].filename == __file__
    table = sampler.selection_.table
    text = str(caught[0].message)
    assert f"bmi is {table['sample'][0]:.4g}, on all rows {table['reference'][0]:.4g}" in text
    assert not sampler.selection_.verified
    assert len(X_bent) >= 0.9 * len(X)


def test_or_an_error_that_holds_it() -> None:
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    with pytest.raises(UnmetError, match="was not met") as caught:
        Sampler(**WISH, on_unmet="raise").fit_resample(X, y)
    assert len(caught.value.best.indices) >= 0.9 * len(X)


def test_where_a_sample_is_too_small_for_a_fit_a_larger_one_is_found() -> None:
    X, y = load_iris(return_X_y=True)
    X, y = X[50:, 1:2], y[50:]  # six of a hundred rows cannot have five of both classes
    sampler = Sampler(min_fraction=0.06)
    sampler.fit_resample(X, y)
    assert sampler.selection_.verified
    assert min(sampler.sampling_strategy_.values()) >= 5


def test_a_band_does_not_grow_in_silence() -> None:
    X, y = load_iris(return_X_y=True)
    wish = {"operation": "amplify", "factor": 1.5, "mode": "band", "min_fraction": 0.06}
    with pytest.warns(UserWarning, match="no sample of min_fraction 0.06 has a fit; larger:"):
        Sampler(**wish).fit_resample(X[50:, 1:2], y[50:])
