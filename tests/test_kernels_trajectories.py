"""Strategies on the kernels: naive greedy, exhaustive search, equal bytes on every machine."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

import naive
from designs import design_from
from inconvenient.selection.criterion import Criterion
from inconvenient.selection.engine import Engine
from inconvenient.selection.reference import aim_at, fit_reference
from inconvenient.selection.steering import exchange, steer, uniform_state
from inconvenient.selection.strategies import push, seed_sample, uniform_order
from inconvenient.selection.verification import fit_independent

CLASSES = {"regression": 0, "binary": 2, "multiclass": 3}


def engine_of(task, n=None, columns=None):
    raw, y = {
        "regression": lambda: load_diabetes(return_X_y=True, scaled=False),
        "binary": lambda: load_breast_cancer(return_X_y=True),
        "multiclass": lambda: load_wine(return_X_y=True),
    }[task]()
    chosen = {"regression": range(6), "binary": [1, 4, 8, 11], "multiclass": [1, 2, 3, 7]}[task]
    raw = raw[:, list(columns or chosen)]
    rows = np.sort(np.random.default_rng(7).permutation(len(y))[: n or len(y)])
    raw, y = raw[rows], y[rows].astype(float)
    if task == "regression":
        y = (y - y.mean()) / y.std()
    X = np.column_stack([np.ones(len(y)), (raw - raw.mean(axis=0)) / raw.std(axis=0)])
    return Engine(design_from(X, y, task, CLASSES[task]))


def aim_of(reference, j=2):
    return aim_at(reference, [np.array([j])])


def naive_coefficients(engine, rows, ridge=0.0):
    X, y = engine.design.X[rows], engine.design.y[rows]
    if engine.design.task == "regression":
        return naive.ols(X, y, ridge)[:, None]
    if engine.design.task == "binary":
        return naive.logistic(X, y, ridge)[:, None]
    return naive.sum_to_zero(naive.multinomial(X, y.astype(int), 3, ridge))


def naive_influence(engine, sample, rows):
    """Influence on every reported coefficient: (rows, p, C)."""
    X, y = engine.design.X, engine.design.y
    if engine.design.task == "regression":
        return naive.ols_influence(X, y, sample, rows)[:, :, None]
    if engine.design.task == "binary":
        b = naive.logistic(X[sample], y[sample])
        return naive.logistic_influence(X, y, sample, rows, b)[:, :, None]
    codes = y.astype(int)
    B = naive.multinomial(X[sample], codes[sample], 3)
    return naive.sum_to_zero(naive.one_step_influence(X, codes, 3, sample, rows, B))


@pytest.mark.jit
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("task", ["regression", "binary", "multiclass"])
def test_push_adds_the_rows_that_the_naive_greedy_adds(task, sign):
    engine = engine_of(task, n=170)
    reference = fit_reference(engine, ridge=0.001)
    aim = aim_of(reference)
    start = seed_sample(engine, uniform_order(engine.n, 1), 90)
    j, c = int(aim.columns[0]), int(aim.classes[0])
    scale = sign / abs(float(aim.reference[0]))
    expected = naive.greedy(
        lambda sample, rows: scale * naive_influence(engine, sample, rows)[:, j, c],
        start,
        engine.n,
        125,
        lambda size: max(1, size // 10),
    )
    got = push(
        engine,
        aim,
        np.array([sign]),
        start=start,
        free_from=1,
        stops=(125,),
        ridge=0.0,
        done=lambda sizes, values, usable: sizes[-1] >= 125,
    )
    assert got.usable.all()
    assert got.sizes[-1] == 125
    assert got.rows.tolist() == expected.tolist()


@pytest.mark.parametrize("task", ["regression", "binary", "multiclass"])
def test_refits_equal_fits_from_scratch_up_to_the_last_step(task):
    engine = engine_of(task)
    reference = fit_reference(engine, ridge=0.001)
    aim = aim_of(reference)
    start = seed_sample(engine, uniform_order(engine.n, 2), 60)
    got = push(engine, aim, np.array([1.0]), start=start, free_from=60, stops=(100,), ridge=0.0)
    assert sorted(got.rows) == list(range(engine.n))
    checked = 0
    for at in (0, len(got.sizes) // 2, len(got.sizes) - 2, len(got.sizes) - 1):
        if not got.usable[at]:
            continue
        rows = got.rows[: got.sizes[at]]
        fit = fit_independent(
            engine.design.X[rows],
            engine.design.y[rows],
            task=task,
            n_classes=CLASSES[task],
            ridge=0.0,
        )
        assert fit.status == "ok"
        np.testing.assert_allclose(got.coefficients[at], aim.of(fit.coefficients), rtol=1e-9)
        checked += 1
    assert checked >= 2
    # The whole pool: the reference model, rounded there to 10 digits.
    np.testing.assert_allclose(got.coefficients[-1], aim.reference, rtol=1e-9)
    X, y = engine.design.X, engine.design.y
    if task == "regression":
        other = sm.OLS(y, X).fit().params[2]
    elif task == "binary":
        other = sm.Logit(y, X).fit(disp=0, tol=1e-13).params[2]
    else:
        params = sm.MNLogit(2 - y, X).fit(disp=0, method="newton", tol=1e-13).params
        other = naive.sum_to_zero(params[:, ::-1])[2, aim.classes[0]]
    np.testing.assert_allclose(got.coefficients[-1], other, rtol=1e-8)


@pytest.mark.parametrize("task", ["regression", "binary", "multiclass"])
def test_growing_equals_fitting(task):
    engine = engine_of(task, n=150)
    rows = uniform_order(engine.n, 4)[:120]
    grown = engine.grow(engine.fit(rows[:80]), rows[80:])
    whole = engine.fit(rows)
    np.testing.assert_allclose(grown.coefficients, whole.coefficients, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(
        whole.coefficients, naive_coefficients(engine, rows), rtol=1e-8, atol=1e-12
    )


@pytest.mark.parametrize("task", ["regression", "binary", "multiclass"])
@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 20))
@settings(max_examples=15, deadline=None)
def test_best_rows_are_those_of_highest_influence(task, seed, k):
    engine = engine_of(task, n=150)
    order = np.random.default_rng(seed).permutation(150)
    rows = order[:100]
    state = engine.fit(rows, ridge=0.001)
    functional = np.zeros(state.coefficients.shape)
    functional[2, 0] = 1.0
    a = engine.solve_functional(state, functional)
    taken = np.zeros(150, dtype=bool)
    taken[rows] = True
    got, influence = engine.best_rows(state, functional, taken, k)
    outside = np.flatnonzero(~taken)
    score = np.full(150, np.nan)
    score[outside] = engine.influence(state, a, outside)
    assert got.tolist() == naive.top_rows(score, taken, k)
    np.testing.assert_array_equal(influence, score[got])


@given(seed=st.integers(0, 2**32 - 1), sign=st.sampled_from([1.0, -1.0]))
@settings(max_examples=12, deadline=None)
def test_greedy_never_beats_exhaustive_search(seed, sign):
    engine = engine_of("regression", n=12, columns=(2, 3))
    X, y = engine.design.X, engine.design.y
    reference = fit_reference(engine, ridge=0.001)
    aim = aim_of(reference, 1)
    start = np.random.default_rng(seed).permutation(12)[:5]
    got = push(engine, aim, np.array([sign]), start=start, free_from=1, stops=(8,), ridge=0.0)

    def value(rows):
        return sign * float(naive.ols(X[rows], y[rows])[1])

    best = value(np.array(naive.best_subset(value, 12, 8)))
    at = got.sizes.tolist().index(8)
    assert sign * got.coefficients[at, 0] <= best + 1e-9
    rows, _ = exchange(
        engine,
        aim,
        Criterion("amplify", 5.0) if sign == np.sign(aim.reference[0]) else Criterion("flip"),
        start=uniform_state(
            engine, order=np.random.default_rng(seed).permutation(12), size=8, ridge=0.0
        ),
        ridge=0.0,
    )
    if rows is not None:
        assert value(rows) <= best + 1e-9


@pytest.mark.parametrize("task", ["regression", "binary", "multiclass"])
def test_what_a_strategy_calls_met_an_independent_fit_confirms(task):
    engine = engine_of(task)
    reference = fit_reference(engine, ridge=0.001)
    aim = aim_of(reference)
    order = uniform_order(engine.n, 5)
    uniform = uniform_state(engine, order=order, size=100, ridge=0.0)
    before = engine.design.X.tobytes(), engine.design.y.tobytes()
    confirmed = 0
    for criterion in (
        Criterion("attenuate", 0.5),
        Criterion("attenuate", 0.5, "band"),
        Criterion("amplify", 1.5, "band"),
    ):
        for made in (
            exchange(engine, aim, criterion, start=uniform, ridge=0.0),
            steer(
                engine,
                aim,
                criterion,
                start=seed_sample(engine, order, 40),
                order=order,
                size=100,
                max_size=105,
                ridge=0.0,
            ),
        ):
            rows, met = made
            if rows is None:
                continue
            assert 100 <= len(rows) <= 105
            assert len(set(rows.tolist())) == len(rows)
            if met:
                values = aim.of(naive_coefficients(engine, rows))
                assert criterion.met(aim.reference, values)
                confirmed += 1
    assert confirmed >= 3
    assert (engine.design.X.tobytes(), engine.design.y.tobytes()) == before
