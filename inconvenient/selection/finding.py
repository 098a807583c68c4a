"""Finds rows that meet a criterion: tries strategies in order of merit, verifies each result."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from inconvenient.selection.criterion import BAND_SIZE, Criterion
from inconvenient.selection.engine import Engine, State
from inconvenient.selection.reference import Aim, ReferenceModel
from inconvenient.selection.steering import exchange, steer, uniform_state
from inconvenient.selection.strategies import Trajectory, push, seed_sample, uniform_order
from inconvenient.selection.verification import Fit, fit_design

__all__ = ["STRATEGIES", "Finder", "Found", "achieved"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

STRATEGIES = ("push", "steer", "exchange")

# Rows of the seed sample per free coefficient.
_SEED_ROWS = 2


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """What became of the search for one criterion.

    Parameters
    ----------
    outcome : str
        "verified", or why not: "unmet", "rank_loss", "constant_column", "small_class",
        "separation", "close_call", "not_confirmed".
    rows : int64 (k,) or None
        Positions in selection order: of the verified sample, else of the nearest one known.
    sample : float64 (L,) or None
        Bent coefficients of the independent fit on ``rows``.
    strategy : str
        Which made ``rows``; "" where there are none.
    """

    outcome: str
    rows: IntArray | None
    sample: FloatArray | None
    strategy: str


def achieved(operation: str, reference: FloatArray, sample: FloatArray) -> float:
    """Return b' / b of the coefficient that meets the operation least (the only one, if single)."""
    ratio = sample / reference
    return float(ratio.min() if operation == "amplify" else ratio.max())


class Finder:
    """Searches one pool; trajectories, starts and independent fits are shared by all criteria.

    Parameters
    ----------
    engine : Engine
    reference : ReferenceModel
    sizes : tuple of int
        Every size that will be asked for: batches of a push end there.
    criteria : tuple of Criterion
        A push ends early once those that share its direction are met at all sizes.
    seed : int
    min_class : int
        Least rows of a class in a verified sample.
    """

    def __init__(
        self,
        engine: Engine,
        reference: ReferenceModel,
        *,
        sizes: tuple[int, ...],
        criteria: tuple[Criterion, ...],
        seed: int,
        min_class: int,
    ) -> None:
        self._engine, self._reference = engine, reference
        self._sizes, self._criteria = tuple(sorted(sizes)), criteria
        self._seed, self._min_class = seed, min_class
        self._trajectories: dict[tuple[object, ...], Trajectory] = {}
        self._fits: dict[bytes, Fit] = {}
        # What every search for an aim begins with, by its columns.
        self._orders: dict[bytes, IntArray] = {}
        self._starts: dict[bytes, IntArray] = {}
        self._uniform_states: dict[tuple[bytes, int], State | None] = {}

    def find(self, aim: Aim, criterion: Criterion, size: int, strategy: str = "auto") -> Found:
        """Find at least ``size`` rows that meet a criterion by an independent fit.

        Parameters
        ----------
        aim : Aim
        criterion : Criterion
        size : int
            One of the announced sizes. In mode "band" the sample has at most 5 % more rows.
        strategy : str
            "auto", or one of STRATEGIES.

        Returns
        -------
        Found
            The first verified sample, else the reason that stopped the last strategy which came
            up with one.
        """
        outcome, nearest, nearest_gap = "unmet", Found("unmet", None, None, ""), np.inf
        for name, rows, met in self._attempts(aim, criterion, size, strategy):
            fit = self._fit(rows)
            if fit.status != "ok":
                outcome = fit.status if met else outcome
                continue
            sample = aim.of(np.asarray(fit.coefficients))
            confirmed = criterion.met(aim.reference, sample)
            if confirmed and not criterion.close_call(aim.reference, sample):
                return Found("verified", rows, sample, name)
            if met:
                outcome = "close_call" if confirmed else "not_confirmed"
            gap = float(np.abs((sample - criterion.goals(aim.reference)) / aim.reference).max())
            if gap < nearest_gap:
                nearest_gap, nearest = gap, Found(outcome, rows, sample, name)
        return dataclasses.replace(nearest, outcome=outcome)

    def _attempts(
        self, aim: Aim, criterion: Criterion, size: int, strategy: str
    ) -> Iterator[tuple[str, IntArray, bool]]:
        """Yield (strategy, rows, whether the search holds the criterion met)."""
        pushes = criterion.operation == "flip" or (
            criterion.operation == "amplify" and criterion.mode == "at_least"
        )
        names = ("push", "exchange") if pushes else ("exchange", "steer")
        max_size = self._engine.n
        if criterion.mode == "band":
            max_size = max(size, int((1.0 + BAND_SIZE) * size))
        for name in names if strategy == "auto" else (strategy,):
            if name == "push":
                trajectory = self.trajectory(aim, criterion)
                end = trajectory.first_meeting(criterion, aim.reference, size)
                if end is not None and end <= max_size:
                    yield name, trajectory.rows[:end], True
                elif (trajectory.sizes >= size).any():
                    first = int(trajectory.sizes[trajectory.sizes >= size][0])
                    yield name, trajectory.rows[:first], False
                continue
            ridge = self._reference.ridge
            if name == "exchange":
                start = self._uniform_state(aim, size)
                rows, met = exchange(self._engine, aim, criterion, start=start, ridge=ridge)
            else:
                rows, met = steer(
                    self._engine,
                    aim,
                    criterion,
                    start=self._start(aim),
                    order=self._order(aim),
                    size=size,
                    max_size=max_size,
                    ridge=ridge,
                )
            if rows is not None:
                yield name, rows, met

    def trajectory(self, aim: Aim, criterion: Criterion) -> Trajectory:
        """Return the push for a criterion: one per aim and direction, per criterion for a group."""
        signs = criterion.push_signs(aim.reference)
        single = len(aim.columns) == 1
        key = (
            aim.columns.tobytes(),
            aim.classes.tobytes(),
            signs.tobytes(),
            None if single else criterion,
        )
        if key not in self._trajectories:
            self._trajectories[key] = self._push(aim, criterion, signs, single)
        return self._trajectories[key]

    def _push(self, aim: Aim, criterion: Criterion, signs: FloatArray, single: bool) -> Trajectory:
        mine = [criterion]
        if single:
            mine = [
                other
                for other in {*self._criteria, criterion}
                if other.mode == "at_least"
                and (other.push_signs(aim.reference) == signs).all()
                and other.operation != "attenuate"
            ]

        def done(sizes: list[int], values: list[FloatArray], usable: list[bool]) -> bool:
            if sizes[-1] < self._sizes[-1]:
                return False
            now = values[-1]
            return usable[-1] and all(c.holds(aim.reference, now) for c in mine)

        each_met: Callable[[FloatArray], BoolArray] | None = None
        if not single:
            each_met = functools.partial(criterion.each_met, aim.reference)
        return push(
            self._engine,
            aim,
            signs,
            start=self._start(aim),
            free_from=self._sizes[0],
            stops=self._sizes,
            ridge=self._reference.ridge,
            each_met=each_met,
            done=done,
        )

    def _start(self, aim: Aim) -> IntArray:
        key = aim.columns.tobytes()
        if key not in self._starts:
            size = max(20, _SEED_ROWS * self._engine.design.free_coefficients)
            size = min(size, self._sizes[0])
            self._starts[key] = seed_sample(self._engine, self._order(aim), size)
        return self._starts[key]

    def _uniform_state(self, aim: Aim, size: int) -> State | None:
        key = aim.columns.tobytes(), size
        if key not in self._uniform_states:
            self._uniform_states[key] = uniform_state(
                self._engine, order=self._order(aim), size=size, ridge=self._reference.ridge
            )
        return self._uniform_states[key]

    def _order(self, aim: Aim) -> IntArray:
        key = aim.columns.tobytes()
        if key not in self._orders:
            # By names, not indices: another column in the table must not change this one's draws.
            names = [self._engine.design.columns[j] for j in aim.columns]
            digest = hashlib.sha256("\n".join(names).encode()).digest()
            salt = int.from_bytes(digest[:8], "little")
            self._orders[key] = uniform_order(self._engine.n, self._seed, salt)
        return self._orders[key]

    def _fit(self, rows: IntArray) -> Fit:
        # In a fixed order: how the rows were found must not matter, not even by rounding.
        rows = np.sort(rows)
        key = hashlib.sha256(rows.tobytes()).digest()
        if key not in self._fits:
            self._fits[key] = fit_design(
                self._engine.design,
                rows,
                ridge=self._reference.ridge,
                min_class=self._min_class,
            )
        return self._fits[key]
