"""Pushing: the greedy order of rows that moves coefficients furthest, and where it starts."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from inconvenient.selection.criterion import Criterion
from inconvenient.selection.engine import Engine, State
from inconvenient.selection.reference import Aim

__all__ = ["GROWTH", "Trajectory", "push", "refit", "seed_sample", "uniform_order"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

# A batch is at most this share of the sample; a fixed batch size makes small seeds fail.
GROWTH = 10
# Ridge while the sample is smaller than any shift may be, or has no finite fit: it only guides
# the order, and no prefix fitted with it is ever offered as a result.
_GROWTH_RIDGE = 1e-3


@dataclasses.dataclass(frozen=True, slots=True)
class Trajectory:
    """The order in which a push adds rows, with the refitted coefficients after each batch.

    Parameters
    ----------
    rows : int64 (k,)
        Positions in the pool, in selection order; the seed sample first.
    sizes : int64 (s,)
        Sample size after each batch, ascending.
    coefficients : float64 (s, L)
        The bent coefficients refitted on the first ``sizes[i]`` rows.
    usable : bool (s,)
        Whether that refit is the reference model's (not the working ridge of the growth).
    """

    rows: IntArray
    sizes: IntArray
    coefficients: FloatArray
    usable: BoolArray

    def first_meeting(self, criterion: Criterion, reference: FloatArray, size: int) -> int | None:
        """Return the smallest batch end of at least ``size`` rows that meets the criterion.

        Parameters
        ----------
        criterion : Criterion
        reference : float64 (L,)
            The bent coefficients on the pool.
        size : int

        Returns
        -------
        int or None
            A value of ``sizes``, so that ``rows[:value]`` is the sample; None if there is none.
        """
        for end, values, usable in zip(self.sizes, self.coefficients, self.usable, strict=True):
            if usable and end >= size and criterion.holds(reference, values):
                return int(end)
        return None


def uniform_order(n: int, seed: int, salt: int = 0) -> IntArray:
    """Return a random permutation of n positions, int64 (n,)."""
    generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, n, salt])))
    return generator.permutation(n).astype(np.int64)


def seed_sample(engine: Engine, order: IntArray, size: int) -> IntArray:
    """Take the first rows of a random order, spread over the labels, every column varying.

    Parameters
    ----------
    engine : Engine
    order : int64 (n,)
        A random permutation of the pool.
    size : int
        How many rows to take before columns that do not vary get two more rows each.

    Returns
    -------
    int64 (k,), k >= size
    """
    y = engine.design.y
    if engine.design.n_classes:
        label = y.astype(np.int64)
    else:
        # Deciles by rank: ties are spread by the random order.
        rank = np.empty(len(y), dtype=np.int64)
        rank[order[np.argsort(y[order], kind="stable")]] = np.arange(len(y))
        label = rank * 10 // len(y)
    # Round robin over the labels, each in random order.
    place = np.empty(len(order), dtype=np.int64)
    for value in np.unique(label):
        of_label = np.flatnonzero(label[order] == value)
        place[of_label] = np.arange(len(of_label))
    spread = order[np.argsort(place, kind="stable")]
    rows = spread[:size]
    X = engine.design.X
    sample = X[rows]
    for j in np.flatnonzero(sample.min(axis=0) == sample.max(axis=0)):
        # Rows that an earlier column brought may have made this one vary.
        values = X[rows, j]
        if j and values.min() == values.max():
            # All of another value are outside the sample.
            rows = np.concatenate([rows, order[X[order, j] != values[0]][:2]])
    return rows.astype(np.int64)


def refit(fit: Callable[..., State | None], ridge: float, free: bool) -> State | None:
    """Fit as the reference model is if ``free``, with the working ridge where that fails."""
    state = fit(ridge=ridge) if free else None
    return state if state is not None else fit(ridge=max(ridge, _GROWTH_RIDGE))


def push(
    engine: Engine,
    aim: Aim,
    signs: FloatArray,
    *,
    start: IntArray,
    free_from: int,
    stops: tuple[int, ...],
    ridge: float,
    each_met: Callable[[FloatArray], BoolArray] | None = None,
    done: Callable[[list[int], list[FloatArray], list[bool]], bool] | None = None,
) -> Trajectory:
    """Add the rows that push the bent coefficients furthest, batch by batch.

    Parameters
    ----------
    engine : Engine
    aim : Aim
    signs : float64 (L,)
        Direction of each bent coefficient, +1 or -1.
    start : int64 (k,)
        Seed sample.
    free_from : int
        Size from which the refits are the reference model's.
    stops : tuple of int
        Sizes at which a batch ends, so that a required size is met exactly.
    ridge : float
        Of the reference model.
    each_met : callable, optional
        Tells from the current values which coefficients need no more pushing; none by default.
    done : callable, optional
        Ends the growth early; asked after every batch with sizes, coefficients and usability so
        far.

    Returns
    -------
    Trajectory
        Up to the whole pool.

    Notes
    -----
    Score of a row: sum over coefficients not yet met of sign_j influence_j / |b_j|. Each batch
    (a tenth of the sample, at least one row) costs a pass over the pool, 2 n p multiply-adds, and a
    refit.
    """
    rows = [start]
    taken = np.zeros(engine.n, dtype=np.bool_)
    taken[start] = True
    size = len(start)
    state = refit(functools.partial(engine.fit, start), ridge, size >= free_from)
    sizes, values, usable = [], [], []
    retry_at = 0
    shape = (engine.p, max(1, engine.design.n_classes if engine.contrasts > 1 else 1))
    while state is not None:
        current = aim.of(state.coefficients)
        sizes.append(size)
        values.append(current)
        usable.append(size >= free_from and state.ridge == ridge)
        if size == engine.n or (done is not None and done(sizes, values, usable)):
            break
        weights = signs / np.abs(aim.reference)
        if each_met is not None and not (met := each_met(current)).all():
            weights = np.where(met, 0.0, weights)
        batch = max(1, size // GROWTH)
        batch = min([batch, *(stop - size for stop in stops if stop > size)])
        new, _ = engine.best_rows(state, aim.functional(weights, shape), taken, batch)
        taken[new] = True
        rows.append(new)
        size += len(new)
        free = size >= free_from and size >= retry_at
        state = refit(functools.partial(engine.grow, state, new), ridge, free)
        if free and state is not None and state.ridge != ridge:
            # No finite fit: forty Newton steps were spent; ask again when the sample has grown.
            retry_at = size + size // 5
    return _trajectory(rows, sizes, values, usable)


def _trajectory(
    rows: list[IntArray], sizes: list[int], values: list[FloatArray], usable: list[bool]
) -> Trajectory:
    return Trajectory(
        np.concatenate(rows),
        np.array(sizes, dtype=np.int64),
        np.array(values, dtype=np.float64),
        np.array(usable, dtype=np.bool_),
    )
