"""``select`` on real tables: operations, modes, tasks, and the refit of an outside library."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine

from inconvenient.errors import UnmetError
from inconvenient.selection.select import Selection, select, trajectory


def with_strings_and_gaps() -> tuple[pd.DataFrame, pd.Series]:
    """Return the diabetes data with a categorical column, gaps and an odd index."""
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    X["sex"] = np.where(X["sex"] > 1, "male", "female")
    X["band"] = pd.cut(X["age"], [0, 35, 50, 65, 90], labels=["a", "b", "c", "d"])
    X.loc[::9, ["band", "bp"]] = None
    X.index = pd.Index([f"row {i % 300}" for i in range(len(X))])
    return X, y.set_axis(X.index)


def cancer_frame() -> tuple[pd.DataFrame, pd.Series]:
    bunch = load_breast_cancer(as_frame=True)
    X = bunch.data[["mean texture", "mean smoothness", "mean symmetry", "mean fractal dimension"]]
    return X, pd.Series(bunch.target_names[bunch.target], name="diagnosis")


TABLES: dict[str, tuple[Any, Any, str]] = {
    "diabetes array": (*load_diabetes(return_X_y=True), "x2"),
    "diabetes strings": (*with_strings_and_gaps(), "bmi"),
    "cancer": (*cancer_frame(), "mean texture"),
    "wine": (load_wine().data[:, [1, 2, 4, 7]], load_wine().target, "x0"),
    "iris": (load_iris().data[:, 1:3], load_iris().target_names[load_iris().target], "x0"),
}
WISHES = [
    ("flip", None, "at_least"),
    ("amplify", 1.5, "at_least"),
    ("attenuate", 0.5, "at_least"),
    ("amplify", 1.5, "band"),
    ("attenuate", 0.5, "band"),
]


def ratio_meets(ratio: float, operation: str, factor: float | None, mode: str) -> bool:
    if operation == "flip":
        return ratio < 0.0
    assert factor is not None
    if mode == "band":
        low, high = sorted((factor, factor * (1.1 if operation == "amplify" else 0.9)))
        return low <= ratio <= high
    return ratio >= factor if operation == "amplify" else 0.0 <= ratio <= factor


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(("operation", "factor", "mode"), WISHES)
def test_every_operation_and_mode(
    table: str, operation: str, factor: float | None, mode: str
) -> None:
    X, y, feature = TABLES[table]
    before = X.copy(), y.copy()
    options = {
        "operation": operation,
        "factor": factor,
        "mode": mode,
        "feature": feature,
        "min_fraction": 0.3,
    }
    found = select(X, y, **options, uniform_samples=20)
    pd.testing.assert_frame_equal(pd.DataFrame(X), pd.DataFrame(before[0]))
    pd.testing.assert_series_equal(pd.Series(y), pd.Series(before[1]))
    assert found.verified
    assert found.outcome == "verified"
    n = len(y)
    assert found.size == len(found.indices) == len(set(found.indices.tolist()))
    assert found.indices.dtype == np.int64
    assert found.indices.min() >= 0
    assert found.indices.max() < n
    least = int(np.ceil(0.3 * n - 1e-9))
    assert least <= found.size <= (1.05 * least if mode == "band" else n)
    assert found.fraction == found.size / n
    assert 0.0 <= found.p_uniform <= 1.0
    row = found.table.iloc[0]
    assert ratio_meets(row["ratio"], operation, factor, mode)
    assert row["ratio"] == row["sample"] / row["reference"]
    again = select(X, y, **options, uniform_samples=0)
    np.testing.assert_array_equal(again.indices, found.indices)
    assert np.isnan(again.p_uniform)


def standardised(X: pd.DataFrame) -> pd.DataFrame:
    """Return the design an outsider would build: medians, dummies, pool mean and sd."""
    numbers = X.select_dtypes("number")
    numbers = numbers.fillna(numbers.median())
    columns = dict(numbers.items())
    for name in X.columns.difference(numbers.columns):
        levels = X[name].astype(object).where(X[name].notna(), "(missing)")
        counts = levels.value_counts()
        for level in sorted(counts.index[counts < counts.max()]):
            columns[f"{name}={level}"] = (levels == level).astype(float)
    design = pd.DataFrame(columns).reset_index(drop=True)
    design = (design - design.mean()) / design.std(ddof=0)
    return sm.add_constant(design)


@pytest.mark.parametrize("table", ["diabetes strings", "diabetes array"])
def test_table_holds_the_coefficients_of_least_squares(table: str) -> None:
    X, y, feature = TABLES[table]
    frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(X).add_prefix("x")
    design = standardised(frame)
    target = np.asarray(y)
    target = (target - target.mean()) / target.std()
    found = select(X, y, feature=feature, min_fraction=0.25, uniform_samples=0)
    reference = sm.OLS(target, design).fit().params[feature]
    sample = sm.OLS(target[found.indices], design.iloc[found.indices]).fit().params[feature]
    row = found.table.iloc[0]
    assert row["column"] == feature
    # pool moments carry 10 significant digits
    assert row["reference"] == pytest.approx(reference, rel=1e-8)
    assert row["sample"] == pytest.approx(sample, rel=1e-8)
    assert np.sign(sample) == -np.sign(reference)


def test_table_holds_the_coefficients_of_a_logistic_regression() -> None:
    X, y, feature = TABLES["cancer"]
    design = standardised(X)
    positive = (y == "malignant").astype(float).to_numpy()
    found = select(
        X,
        y,
        feature=feature,
        operation="attenuate",
        factor=0.5,
        min_fraction=0.3,
        uniform_samples=0,
    )
    row = found.table.iloc[0]
    reference = sm.Logit(positive, design).fit(disp=0, tol=1e-10).params[feature]
    rows = found.indices
    sample = sm.Logit(positive[rows], design.iloc[rows]).fit(disp=0, tol=1e-10).params[feature]
    # two iterative fits, each to a gradient of about 1e-9
    assert row["reference"] == pytest.approx(reference, rel=1e-6)
    assert row["sample"] == pytest.approx(sample, rel=1e-6)


def test_table_holds_the_coefficients_of_a_multinomial_regression() -> None:
    X, y, feature = TABLES["wine"]
    design = standardised(pd.DataFrame(X).add_prefix("x"))
    found = select(
        X,
        y,
        feature=feature,
        class_=1,
        operation="amplify",
        factor=1.5,
        min_fraction=0.4,
        uniform_samples=0,
    )
    row = found.table.iloc[0]
    assert row["class_"] == "1"
    for rows, value in ((np.arange(len(y)), row["reference"]), (found.indices, row["sample"])):
        fit = sm.MNLogit(y[rows], design.iloc[rows]).fit(disp=0, maxiter=200, tol=1e-12)
        contrasts = np.concatenate([[0.0], fit.params.loc[feature].to_numpy()])
        # two iterative fits, each to a gradient of about 1e-9
        assert value == pytest.approx((contrasts - contrasts.mean())[1], rel=1e-6)


def test_separable_classes_say_so() -> None:
    found = select(*TABLES["iris"][:2], feature="x0", class_="virginica", uniform_samples=0)
    assert found.ridge > 0.0
    assert found.table["class_"].tolist() == ["virginica"]


def test_indices_are_positions_in_the_input_with_dropped_rows() -> None:
    X, y, feature = TABLES["diabetes strings"]
    gaps = np.zeros(len(y), dtype=bool)
    gaps[::3] = True
    holes = y.mask(gaps)
    found = select(X, holes, feature=feature, missing_target="drop", uniform_samples=0)
    assert not gaps[found.indices].any()
    assert found.indices.max() > (~gaps).sum()
    kept = np.flatnonzero(~gaps)
    direct = select(X.iloc[kept], y.iloc[kept], feature=feature, uniform_samples=0)
    np.testing.assert_array_equal(kept[direct.indices], found.indices)
    assert found.fraction == found.size / len(kept)


def test_order_of_columns_and_kind_of_table_do_not_matter() -> None:
    X, y, feature = TABLES["diabetes strings"]
    base = select(X, y, feature=feature, uniform_samples=0)
    backwards = select(X[X.columns[::-1]], y, feature=feature, uniform_samples=0)
    np.testing.assert_array_equal(base.indices, backwards.indices)
    pd.testing.assert_frame_equal(base.table, backwards.table)
    retyped = X.assign(
        sex=X["sex"].astype("category"), band=X["band"].astype(object), bmi=X["bmi"].astype(object)
    )
    np.testing.assert_array_equal(
        select(retyped, y.to_numpy().tolist(), feature=feature, uniform_samples=0).indices,
        base.indices,
    )
    numbers, target, column = TABLES["diabetes array"]
    dense = select(numbers, target, feature=column, uniform_samples=0).indices
    for other in (sparse.csr_matrix(numbers), numbers.tolist(), np.asfortranarray(numbers)):
        np.testing.assert_array_equal(
            select(other, target, feature=column, uniform_samples=0).indices, dense
        )


def test_seed_decides() -> None:
    X, y, feature = TABLES["diabetes array"]
    options = {"operation": "attenuate", "factor": 0.5, "feature": feature, "uniform_samples": 0}
    first, second = select(X, y, **options, seed=1), select(X, y, **options, seed=2)
    assert set(first.indices.tolist()) != set(second.indices.tolist())
    again = select(X, y, **options, seed=1)
    np.testing.assert_array_equal(first.indices, again.indices)
    pd.testing.assert_frame_equal(first.table, again.table)


def test_most_important_feature_by_default() -> None:
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    assert select(X, y, uniform_samples=0).table["column"].tolist() == ["bmi"]


def test_level_and_bin() -> None:
    X, y, _ = TABLES["diabetes strings"]
    level = select(X, y, feature=("band", "d"), uniform_samples=0, min_fraction=0.3)
    assert level.table["column"].tolist() == ["band=d"]
    group = select(
        X,
        y,
        bin="bottom",
        operation="attenuate",
        factor=0.9,
        min_fraction=0.1,
        uniform_samples=0,
        on_unmet="raise",
    )
    assert len(group.table) >= 2
    assert group.table["ratio"].between(0.0, 0.9).all()


def test_unmet_is_raised_or_warned_of() -> None:
    X, y, _ = TABLES["diabetes array"]
    options = {
        "operation": "amplify",
        "factor": 5.0,
        "feature": "x2",
        "min_fraction": 0.9,
        "uniform_samples": 10,
    }
    with pytest.raises(
        UnmetError, match="amplify by 5 x2 on at least 398 of 442 rows was not met"
    ) as info:
        select(X, y, **options)
    best = info.value.best
    assert isinstance(best, Selection)
    assert not best.verified
    with pytest.warns(UserWarning, match="was not met.*nearest: .*Try a smaller min_fraction"):
        nearest = select(X, y, **options, on_unmet="best")
    np.testing.assert_array_equal(nearest.indices, best.indices)
    assert nearest.outcome == "unmet"
    assert 1.0 < nearest.table["ratio"].iloc[0] < 5.0
    assert nearest.size >= 398


def test_trajectory_pushes() -> None:
    X, y, feature = TABLES["diabetes array"]
    path = trajectory(X, y, feature=feature, direction=-1)
    assert sorted(path.rows.tolist()) == list(range(len(y)))
