"""The screen: its bounds hold for every row, and what it finds is what computing all would find."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from designs import design_from
from inconvenient.kernels.linalg import BLOCK, inverse_trace
from inconvenient.kernels.ranking import reaching, upper_tails
from inconvenient.kernels.screen import CODE_STEPS, column_ranges, encode, row_squares
from inconvenient.selection.engine import Engine
from inconvenient.selection.screen import Screen, _Query
from inconvenient.selection.threads import in_parts
from naive import top_rows

SHAPES = ("normal", "lognormal", "outlier", "codes", "rare", "ties")


def columns_of(shape: str, rng: np.random.Generator, n: int) -> np.ndarray:
    X = rng.normal(size=(n, 4))
    if shape == "lognormal":
        X = np.exp(2.0 * X)
    elif shape == "outlier":
        X[rng.integers(n), 0] = 1e6
    elif shape == "codes":
        X = np.round(X)
    elif shape == "rare":
        X = (rng.random((n, 4)) < [0.5, 0.1, 0.02, 0.01]).astype(float)
        X[:4] = np.eye(4)
    elif shape == "ties":
        X = X[rng.integers(n // 4, size=n)]
    return (X - X.mean(axis=0)) / X.std(axis=0)


def engine_of(shape: str, task: str, rng: np.random.Generator, n: int) -> Engine:
    X = np.column_stack([np.ones(n), columns_of(shape, rng, n)])
    signal = X @ rng.normal(size=5)
    if task == "binary":
        y = (signal + rng.logistic(size=n) > np.median(signal)).astype(float)
        y[:2] = [0.0, 1.0]
    else:
        y = signal + rng.standard_t(3, size=n)
        y = (y - y.mean()) / y.std()
    return Engine(design_from(np.ascontiguousarray(X), y, task))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("task", ["regression", "binary"])
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.sampled_from([100, 127, 128, 129, 300, 700]),
    share=st.floats(0.0, 1.0),
    sign=st.sampled_from([1.0, -1.0]),
)
@settings(max_examples=20, deadline=None)
def test_best_rows_are_those_of_computing_all(task, shape, seed, n, share, sign):
    rng = np.random.default_rng(seed)
    engine = engine_of(shape, task, rng, n)
    rows = rng.permutation(n)[: n // 3]
    state = engine.fit(rows, ridge=0.001)
    functional = np.zeros((5, 1))
    functional[rng.integers(1, 5), 0] = sign
    functional[rng.integers(1, 5), 0] += rng.normal()
    taken = np.zeros(n, dtype=bool)
    taken[rows] = True
    outside = np.flatnonzero(~taken)
    k = round(share * len(outside))
    got, influence = engine.best_rows(state, functional, taken, k)
    score = np.full(n, np.nan)
    score[outside] = engine.influence(state, engine.solve_functional(state, functional), outside)
    assert got.tolist() == top_rows(score, taken, k)
    np.testing.assert_array_equal(influence, score[got])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("task", ["regression", "binary"])
@given(seed=st.integers(0, 2**32 - 1), scale=st.sampled_from([1e-6, 1.0, 1e6]))
@settings(max_examples=10, deadline=None)
def test_bounds_are_not_below_the_influence(task, shape, seed, scale):
    rng = np.random.default_rng(seed)
    engine = engine_of(shape, task, rng, 300)
    state = engine.fit(rng.permutation(300)[:60], ridge=0.001)
    functional = scale * rng.normal(size=(5, 1))
    a = engine.solve_functional(state, functional)
    spread = float(functional[:, 0] @ a[0])
    everything = np.arange(300)
    exact = engine.influence(state, a, everything)
    screen = Screen(engine)
    taken = np.zeros(300, dtype=bool)
    taken[:7] = True
    for trace in (np.inf, inverse_trace(state.factor)):
        query = _Query(state, a, spread, trace)
        screen._fill_bounds(query, taken)
        assert (screen._bound[:7] == -np.inf).all()
        assert (screen._bound[7:] >= exact[7:]).all()
        assert (screen._sharpened(query, everything) >= exact).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_codes_are_within_the_error_that_encode_measures(shape):
    X = np.ascontiguousarray(columns_of(shape, np.random.default_rng(0), 1000))
    low, high, error = np.empty(4), np.empty(4), np.empty(4)
    column_ranges(X, low, high)
    np.testing.assert_array_equal([low, high], [X.min(axis=0), X.max(axis=0)])
    codes = np.empty((8, 4, BLOCK), dtype=np.int8)
    square = np.empty(1000, dtype=np.float32)
    center, step = 0.5 * (low + high), (high - low) / CODE_STEPS
    encode(X, center, step, error, codes)
    row_squares(X, square)
    decoded = center + step * codes.transpose(0, 2, 1).reshape(-1, 4)[:1000]
    np.testing.assert_allclose(error, np.abs(X - decoded).max(axis=0), rtol=1e-12, atol=1e-15)
    assert (error <= 0.5000001 * step).all()
    if shape == "rare":
        # Columns of two values are coded without an error worth the name.
        assert error.max() < 1e-14
    assert (square >= (X**2).sum(axis=1)).all()
    np.testing.assert_allclose(square, (X**2).sum(axis=1), rtol=1e-5)


@given(
    values=st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1),
    counts=st.lists(st.integers(1, 50), min_size=1, max_size=5),
)
@example(values=[0.0, -0.0, -1e-45, 1e-45], counts=[2, 4])
def test_upper_tails_are_reached_by_enough_rows(values, counts):
    bound = np.array([*values, -np.inf], dtype=np.float32)
    tiers = np.empty(len(counts))
    upper_tails(bound, np.sort(counts), tiers)
    for count, least in zip(sorted(counts), tiers, strict=True):
        rows = np.empty(len(bound), dtype=np.int64)
        found = rows[: reaching(bound, least, np.inf, rows)]
        assert len(found) >= min(count, len(values))
        assert len(values) not in found
        assert found.tolist() == [i for i, v in enumerate(bound) if v >= least]


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("total", [0, 1, 7, 1000])
def test_in_parts_covers_each_item_once(monkeypatch, threads, total):
    monkeypatch.setattr("inconvenient.selection.threads._threads", lambda: threads)
    seen = np.zeros(total, dtype=int)

    def task(start: int, stop: int) -> None:
        seen[start:stop] += 1

    in_parts(task, total, 1e7)
    assert (seen == 1).all()


def test_in_parts_passes_errors_on(monkeypatch):
    monkeypatch.setattr("inconvenient.selection.threads._threads", lambda: 2)

    def task(start: int, stop: int) -> None:
        if start:
            raise ValueError("in the second part")

    with pytest.raises(ValueError, match="in the second part"):
        in_parts(task, 10, 1e7)


@pytest.mark.parametrize("scale", [1e-11, 1e-7, 1e7, 1e11])
def test_columns_of_any_scale_are_screened(scale):
    # H^-1 is huge or tiny then, beyond single precision.
    rng = np.random.default_rng(0)
    x = scale * rng.normal(size=1000)
    y = 0.5 * x / scale + rng.normal(size=1000)
    x[:2], y[:2] = [1e3 * scale, -1e3 * scale], [300.0, 150.0]
    engine = Engine(design_from(np.column_stack([np.ones(1000), x]), y, "regression"))
    rows = np.arange(2, 40)
    state = engine.fit(rows)
    taken = np.zeros(1000, dtype=bool)
    taken[rows] = True
    functional = np.array([[0.0], [1.0]])
    for k in (1, 5, 500, 962):
        got, _ = engine.best_rows(state, functional, taken, k)
        outside = np.flatnonzero(~taken)
        score = np.full(1000, np.nan)
        score[outside] = engine.influence(
            state, engine.solve_functional(state, functional), outside
        )
        assert got.tolist() == top_rows(score, taken, k)
