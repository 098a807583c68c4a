"""Composition of a sample against its pool."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.preprocessing import StandardScaler

from inconvenient.selection.composition import composition, label_bins


def design_of(X, y, n_classes):
    X = StandardScaler().fit_transform(X)
    n, p = X.shape
    return SimpleNamespace(
        X=np.column_stack([np.ones(n), X]),
        y=np.asarray(y, dtype=np.float64),
        n_classes=n_classes,
        feature_of=np.r_[-1, np.arange(p)],
    )


def test_the_pool_itself_does_not_differ():
    design = design_of(*load_diabetes(return_X_y=True), 0)
    assert composition(design, np.arange(442)) == (0.0, 0.0, 0.0)


def test_one_class_of_three():
    X, y = load_iris(return_X_y=True)
    design = design_of(X, y, 3)
    label_tv, smd_mean, smd_max = composition(design, np.arange(50))
    assert label_tv == pytest.approx(2 / 3)
    by_hand = np.abs(design.X[:50, 1:].mean(axis=0))
    assert smd_mean == pytest.approx(by_hand.mean())
    assert smd_max == pytest.approx(by_hand.max())


def test_lowest_decile_of_a_numeric_target():
    X, y = load_diabetes(return_X_y=True)
    lowest = np.argsort(y, kind="stable")[:44]
    label_tv, _, _ = composition(design_of(X, y, 0), lowest)
    assert label_tv == pytest.approx(0.9, abs=0.01)


def test_order_of_rows_does_not_matter():
    design = design_of(*load_diabetes(return_X_y=True), 0)
    rows = np.random.default_rng(0).choice(442, 60, replace=False)
    assert composition(design, rows) == composition(design, rows[::-1])


def test_tied_target_has_fewer_bins():
    y = np.r_[np.zeros(90), np.arange(1.0, 11.0)]
    assert len(np.unique(label_bins(y, n_classes=0))) == 2
