"""The parts of verification give what the parts of construction give, by other code."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from inconvenient.errors import InputError
from inconvenient.selection.chance import shared_size, uniform_rows
from inconvenient.selection.criterion import Criterion
from inconvenient.selection.importance import importance, importance_bins
from inconvenient.selection.penalised import penalised_coefficients
from inconvenient.selection.verification import fit_independent, t_values
from inconvenient.verify.chance import draw_rows, meets, shared
from inconvenient.verify.collateral import penalised
from inconvenient.verify.fits import Family, fit, usable
from inconvenient.verify.fits import t_values as own_t_values
from inconvenient.verify.importance import allowed_bins, strength
from inconvenient.verify.pool import pool_matrix


def made_up(task: str, rows: int = 400) -> Any:
    """Return a table with gaps, rare levels, twins, a constant and what is nearly a combination."""
    rng = np.random.default_rng(3)
    a, b, c = rng.normal(size=(3, rows))
    frame = pd.DataFrame({"b": b, "a": a, "c": 1e6 + c, "a twin": -2.0 * a + 5.0, "same": 1.0})
    frame["sum"] = frame["a"] + frame["b"] - 3.0
    frame["gaps"] = np.where(rng.random(rows) < 0.1, np.nan, rng.exponential(size=rows))
    levels = rng.choice(
        ["x", "y", "z", "r1", "r2", "r3"], p=[0.4, 0.4, 0.17, 0.01, 0.01, 0.01], size=rows
    )
    frame["level"] = pd.Series(levels, dtype=object).where(rng.random(rows) > 0.05)
    frame["mirror"] = (frame["level"] == "y").to_numpy()
    frame["truth"] = rng.random(rows) < 0.3
    score = a - 0.5 * b + 0.3 * frame["truth"] + rng.normal(size=rows)
    y: Any = score.to_numpy()
    if task == "binary":
        y = (y > 0.2).astype(np.int64)
    elif task == "multiclass":
        y = np.digitize(y, [-0.5, 0.2, 0.9]).astype(np.int64)
    classes = tuple(str(k) for k in range(int(y.max()) + 1)) if task != "regression" else ()
    return SimpleNamespace(name="made_up", X=frame, y=y, task=task, classes=classes)


@pytest.mark.jit
@pytest.mark.parametrize("task", ["regression", "binary", "multiclass"])
def test_the_design_is_that_of_the_selection(task: str) -> None:
    from inconvenient.selection.design import build_design

    dataset = made_up(task)
    rows = np.arange(0, 400, 2)
    pool = pool_matrix(dataset, rows, rare_share=0.02)
    k = len(dataset.classes)
    design = build_design(
        dataset.X.iloc[rows], dataset.y[rows], task=task, n_classes=k, rare_level_share=0.02
    )
    assert {"a twin", "same"} & set(design.removed)
    assert pool.columns == design.columns
    np.testing.assert_array_equal(
        [design.features.index(f) for f in pool.feature_of[1:]], design.feature_of[1:]
    )
    # The means of columns of a million are rounded to 10 digits.
    np.testing.assert_allclose(pool.X, design.X, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(pool.y, design.y, rtol=1e-9, atol=1e-12)
    with pytest.raises(InputError, match="must lie in the pool, but 1 do not"):
        pool.positions(np.array([0, 1]))


@pytest.mark.parametrize("ridge", [0.0, 1e-3])
@pytest.mark.parametrize("task", ["regression", "binary", "multiclass"])
def test_fits_and_t_values_are_those_of_the_verification(task: str, ridge: float) -> None:
    dataset = made_up(task)
    pool = pool_matrix(dataset, np.arange(400), rare_share=0.02)
    family = Family(len(dataset.classes), ridge)
    assert usable(pool.X, pool.y, n_classes=family.n_classes, min_class=5) == ""
    contrasts = fit(pool.X, pool.y, family)
    assert contrasts is not None
    facts: dict[str, Any] = {"task": task, "n_classes": family.n_classes, "ridge": ridge}
    other = fit_independent(pool.X, pool.y, **facts)
    # Newton's last step of 1e-8 leaves an error of about its square, times the condition.
    np.testing.assert_allclose(
        family.reported(contrasts), other.coefficients, rtol=1e-9, atol=1e-11
    )
    t = t_values(pool.X, pool.y, coefficients=other.coefficients, **facts)
    if task == "regression" and ridge:
        return  # the pool of a regression is never penalised
    np.testing.assert_allclose(own_t_values(pool.X, pool.y, contrasts, family), t, rtol=1e-8)


@pytest.mark.parametrize("k", [2, 3])
def test_separated_classes_have_no_fit(k: int) -> None:
    x = np.linspace(-1.0, 1.0, 90)
    X = np.column_stack([np.ones(90), x, np.sin(40.0 * x)])
    y = np.digitize(x, np.linspace(-1.0, 1.0, k + 1)[1:-1]).astype(np.float64)
    assert fit(X, y, Family(k)) is None
    assert fit(X, y, Family(k, 1e-3)) is not None
    # Quasi-complete: a column that only one class has.
    only = (y == 0) & (np.arange(90) % 3 == 0)
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(90), rng.normal(size=90), only])
    assert fit(X, y, Family(k)) is None


@pytest.mark.parametrize("task", ["regression", "binary", "multiclass"])
def test_penalised_fits_are_those_of_the_collateral_effect(task: str) -> None:
    dataset = made_up(task)
    pool = pool_matrix(dataset, np.arange(400), rare_share=0.02)
    at = np.arange(0, 400, 3)
    if task == "multiclass":
        at = at[pool.y[at] != 2]  # a class without rows
    theirs = penalised_coefficients(
        pool.X[at, 1:], pool.y[at], n_classes=len(dataset.classes), ridge=1e-3
    )
    # Scikit-learn stops at a gradient of 1e-8, which the penalty turns into 1e-5 at worst.
    np.testing.assert_allclose(penalised(pool, at, 1e-3), theirs, atol=2e-6)


@pytest.mark.parametrize("task", ["regression", "binary", "multiclass"])
def test_importance_bins_are_allowed(task: str) -> None:
    dataset = made_up(task)
    theirs = importance(dataset.X, dataset.y, task=task)
    own = strength(dataset.X, dataset.y, task=task)
    np.testing.assert_allclose(own[theirs.index], theirs, rtol=1e-9, atol=1e-9)
    bins = allowed_bins(own)
    assert all(bin_ in bins[name] for name, bin_ in importance_bins(theirs).items())
    assert sum(len(b) == 1 for b in bins.values()) >= len(bins) - 2


def test_draws_are_those_of_the_construction() -> None:
    sizes = range(1, 40_000)
    assert [shared(size) for size in sizes] == [shared_size(size) for size in sizes]
    pool = np.arange(5, 500, 3)
    for size, draw in ((20, 0), (99, 7), (1000, 3)):
        own = draw_rows(pool, size, draw, seed=11, name="a table")
        theirs = uniform_rows(pool, size, draw, seed=11, name="a table")
        np.testing.assert_array_equal(own, theirs)


@pytest.mark.parametrize(
    "criterion",
    [
        Criterion("amplify", 1.5),
        Criterion("amplify", 3.0, "band"),
        Criterion("attenuate", 0.5),
        Criterion("attenuate", 0.9, "band"),
        Criterion("flip"),
    ],
    ids=str,
)
def test_criteria_are_those_of_the_selection(criterion: Criterion) -> None:
    ratios = np.array(
        [-2.0, -1e-300, 0.0, 0.2, 0.45, 0.5, 0.82, 0.9, 1.0, 1.5, 3.0, 3.2, 3.4, np.nan]
    )
    factor = np.nan if criterion.factor is None else criterion.factor
    reference = np.array([2.0])
    for ratio in ratios:
        own = bool(meets(np.array([ratio]), criterion.operation, factor, criterion.mode))
        assert own == criterion.met(reference, ratio * reference), ratio
