"""Steering to a dose: growing a sample towards it, and exchanging rows at an exact size."""

from __future__ import annotations

import functools
import math

import numpy as np
import numpy.typing as npt

from inconvenient.selection.criterion import Criterion
from inconvenient.selection.engine import Engine, State
from inconvenient.selection.ordering import stable_order
from inconvenient.selection.reference import Aim
from inconvenient.selection.strategies import GROWTH, refit

__all__ = ["exchange", "steer", "uniform_state"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

# How many places on either side are searched for a row of opposite influence.
_NEAR = 8


def _dot(a: FloatArray, b: FloatArray) -> float:
    """Return a'b, its sum exactly rounded; BLAS would sum as the processor likes."""
    return math.fsum((a * b).tolist())


def _pull(aim: Aim, criterion: Criterion, current: FloatArray) -> tuple[FloatArray, float]:
    """Return steering weights (L,) and how far the weighted sum has to move.

    The negative gradient of half the squared relative distance to the goals, over the coefficients
    that do not meet the criterion (over all where all do).
    """
    gap = criterion.goals(aim.reference) - current
    unmet = ~criterion.each_met(aim.reference, current)
    if not unmet.any():
        unmet[:] = True
    weights = np.where(unmet, gap / aim.reference**2, 0.0)
    return weights, _dot(weights, gap)


def steer(
    engine: Engine,
    aim: Aim,
    criterion: Criterion,
    *,
    start: IntArray,
    order: IntArray,
    size: int,
    max_size: int,
    ridge: float,
) -> tuple[IntArray | None, bool]:
    """Grow a sample towards the goals of a criterion and hold it there.

    Parameters
    ----------
    engine : Engine
    aim : Aim
    criterion : Criterion
    start : int64 (k,)
        Seed sample, smaller than ``size``.
    order : int64 (n,)
        A random permutation of the pool, for rows that only add size.
    size, max_size : int
        Least and greatest size of the result.
    ridge : float
        Of the reference model.

    Returns
    -------
    rows : int64 (k',) or None
        Positions in selection order: the first batch end of allowed size that meets the
        criterion, else the last one; None if there is none.
    met : bool

    Notes
    -----
    A batch takes the rows of highest influence towards the goals until their summed predicted
    change reaches them; the rest of it is pairs whose influences cancel: the next rows of
    ``order``, each with the row of nearest opposite influence.
    """
    rows = start
    state = refit(functools.partial(engine.fit, rows), ridge, False)
    while state is not None:
        current = aim.of(state.coefficients)
        if len(rows) >= size and state.ridge == ridge and criterion.holds(aim.reference, current):
            return rows, True
        batch = max(1, len(rows) // GROWTH)
        limit = size if len(rows) < size else max_size
        batch = min(batch, limit - len(rows))
        if batch <= 0:
            return rows, False
        weights, need = _pull(aim, criterion, current)
        shape = state.coefficients.shape
        functional = aim.functional(weights, shape)
        taken = np.zeros(engine.n, dtype=np.bool_)
        taken[rows] = True
        best, influence = engine.best_rows(state, functional, taken, batch)
        if not len(best):
            break
        enough = int(np.searchsorted(np.cumsum(np.maximum(influence, 0.0)), need)) + 1
        new = best[: min(enough, batch)]
        taken[new] = True
        if len(new) < batch:
            a = engine.solve_functional(state, functional)
            filler = _cancelling(engine.numerators(state, a), taken, order, batch - len(new))
            new = np.concatenate([new, filler])
        rows = np.concatenate([rows, new])
        free = len(rows) >= size
        state = refit(functools.partial(engine.grow, state, new), ridge, free)
    return None, False


def _cancelling(influence: FloatArray, taken: BoolArray, order: IntArray, count: int) -> IntArray:
    """Return rows outside the sample, in pairs of opposite influence, int64 (count,)."""
    waiting = order[~taken[order]]
    by_value = waiting[stable_order(influence[waiting])]
    values = influence[by_value]
    place = np.empty(len(influence), dtype=np.int64)
    place[by_value] = np.arange(len(by_value))
    # Each row that is looked at is chosen then or was before, so no more than `count` are.
    first = waiting[:count]
    own, places = influence[first].tolist(), place[first].tolist()
    opposite = np.searchsorted(values, -influence[first]).tolist()
    listed = values.data
    free = bytearray(b"\x01") * len(by_value)
    chosen: list[int] = []
    for value, at, middle in zip(own, places, opposite, strict=True):
        if len(chosen) >= count:
            break
        if not free[at]:
            continue
        free[at] = 0
        chosen.append(at)
        if len(chosen) == count:
            break
        best, least = -1, math.inf
        sides = range(middle - 1, max(middle - _NEAR, 0) - 1, -1), range(middle, middle + _NEAR)
        for side in sides:
            for k in side:
                if k == len(free):
                    break
                if not free[k]:
                    continue
                gap = abs(listed[k] + value)
                if gap > least:  # and so are those further away
                    break
                if gap < least or by_value[k] < by_value[best]:
                    best, least = k, gap
        if best >= 0:
            free[best] = 0
            chosen.append(best)
    return by_value[chosen]


def uniform_state(engine: Engine, *, order: IntArray, size: int, ridge: float) -> State | None:
    """Fit the first ``size`` rows of a random order; other rows of it where these have no fit.

    Parameters
    ----------
    engine : Engine
    order : int64 (n,)
        A random permutation of the pool.
    size : int
    ridge : float
        Of the reference model.

    Returns
    -------
    State or None
        None if none of six uniform samples has a fit.
    """
    for salt in range(6):
        state = engine.fit(np.roll(order, -salt * size)[:size], ridge=ridge)
        if state is not None:
            return state
    return None


def exchange(
    engine: Engine,
    aim: Aim,
    criterion: Criterion,
    *,
    start: State | None,
    ridge: float,
    rounds: int = 25,
) -> tuple[IntArray | None, bool]:
    """Turn a uniform sample into one that meets a criterion, by exchanging rows at a fixed size.

    Parameters
    ----------
    engine : Engine
    aim : Aim
    criterion : Criterion
    start : State or None
        The uniform sample as :func:`uniform_state` fitted it; the result has its size.
    ridge : float
        Of the reference model.
    rounds : int
        How often influences are computed anew.

    Returns
    -------
    rows : int64 (size,) or None
        Positions, what is left of the uniform sample first: a sample that meets the criterion,
        else the last and nearest one; None if there is no ``start``.
    met : bool

    Notes
    -----
    A round ranks rows outside by their influence towards the goals and rows inside against it, and
    exchanges the first m pairs; m starts where the predicted changes add up to what is needed and
    is bisected on refits. Where one pair would already move too far, the pair that moves by about
    what is needed is taken.
    """
    if start is None:
        return None, False
    state, stalled = start, 0
    for _ in range(rounds):
        current = aim.of(state.coefficients)
        if criterion.holds(aim.reference, current):
            return state.rows, True
        distance = _distance(aim, criterion, current)
        best = _exchange_round(engine, aim, criterion, state, ridge)
        if best is None:
            break
        values = aim.of(best.coefficients)
        if criterion.holds(aim.reference, values):
            return best.rows, True
        stalled = stalled + 1 if _distance(aim, criterion, values) > 0.99 * distance else 0
        state = best
        if stalled == 3:
            break
    return state.rows, False


def _distance(aim: Aim, criterion: Criterion, current: FloatArray) -> float:
    gap = (criterion.goals(aim.reference) - current) / aim.reference
    gap = np.where(criterion.each_met(aim.reference, current), 0.0, gap)
    return _dot(gap, gap)


def _exchange_round(
    engine: Engine, aim: Aim, criterion: Criterion, state: State, ridge: float
) -> State | None:
    """Exchange pairs once; return the refit that is nearest to the goals, or None."""
    current = aim.of(state.coefficients)
    weights, need = _pull(aim, criterion, current)
    a = engine.solve_functional(state, aim.functional(weights, state.coefficients.shape))
    influence = engine.numerators(state, a)
    inside = np.zeros(engine.n, dtype=np.bool_)
    inside[state.rows] = True
    outside = np.flatnonzero(~inside)
    outside = outside[stable_order(-influence[outside])]
    leaving = stable_order(influence[state.rows])
    pairs = min(len(outside), len(leaving))
    gain = influence[outside[:pairs]] - influence[state.rows[leaving[:pairs]]]
    pairs = int(np.count_nonzero(gain > 0.0))
    if pairs == 0:
        return None
    first = 0
    if gain[0] > need:
        # One pair moves too far: start where a pair moves by about what is needed.
        first = min(int(np.searchsorted(-gain[:pairs], -need)), pairs - 1)
    total = np.cumsum(gain[first:pairs])
    cap = min(len(total), max(1, len(state.rows) // 4))
    low, high = 0, cap + 1
    m = min(int(np.searchsorted(total, need)) + 1, cap)
    best: State | None = None
    for _ in range(10):
        keep = np.ones(len(state.rows), dtype=np.bool_)
        keep[leaving[first : first + m]] = False
        rows = np.concatenate([state.rows[keep], outside[first : first + m]])
        trial = engine.fit(rows, ridge=ridge, start=state)
        if trial is None:
            high = m
        else:
            values = aim.of(trial.coefficients)
            if criterion.holds(aim.reference, values):
                return trial
            if best is None or _distance(aim, criterion, values) < _distance(
                aim, criterion, aim.of(best.coefficients)
            ):
                best = trial
            moved = _dot(weights, values - current)
            if moved < need:
                low = m
            else:
                high = m
        m = min(2 * m, cap) if high == cap + 1 else (low + high) // 2
        if m <= low or m >= high:
            break
    return best
