"""The exact k best rows of a pool from one byte per entry and a few exact influences."""

from __future__ import annotations

import dataclasses
import importlib
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inconvenient.selection.threads import in_parts

if TYPE_CHECKING:
    from inconvenient.selection.engine import Engine, State

__all__ = ["Screen"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

# Rows are looked at in tiers of so many times the first one.
_TIERS = 4 ** np.arange(12)

# Fewer exact influences than that at a time are not worth a call.
_AT_ONCE = 32

# Below every influence, and above what stands for rows that are taken.
_LEAST = -3.4e38


@dataclasses.dataclass(frozen=True, slots=True)
class _Query:
    """What a search is for: a functional's a = H^-1 t and spread t'H^-1 t at a fitted state.

    ``trace`` is that of H^-1, or infinite where rows of negative influence need no bounds.
    """

    state: State
    a: FloatArray
    spread: float
    trace: float

    @property
    def blind(self) -> bool:
        """Whether bounds of rows of negative influence say nothing."""
        return self.trace == np.inf

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What the kernels take of it."""
        return self.state.contrasts[0], self.a[0], self.spread, self.trace


class _Best:
    """The k rows of highest influence among those seen, and the least of their influences."""

    def __init__(self, k: int) -> None:
        self._k = k
        self.rows = np.empty(0, dtype=np.int64)
        self._influence = np.empty(0)
        self.least = -np.inf

    def add(self, rows: IntArray, influence: FloatArray) -> None:
        """Take more rows into account."""
        self.rows = np.concatenate([self.rows, rows])
        self._influence = np.concatenate([self._influence, influence])
        if len(self.rows) >= self._k:
            self.least = float(np.partition(self._influence, -self._k)[-self._k])
            # Rows that tie with the last one stay, for the smaller row is to win.
            stays = self._influence >= self.least
            self.rows, self._influence = self.rows[stays], self._influence[stays]

    def sorted(self) -> tuple[IntArray, FloatArray]:
        """Return rows and influences, best first, ties by row."""
        order = np.lexsort((self.rows, -self._influence))[: self._k]
        return self.rows[order], self._influence[order]


class Screen:
    """Coded columns of a pool, for the search of rows of highest influence.

    Parameters
    ----------
    engine : Engine
        For a regression or two classes.

    Notes
    -----
    Takes an eighth of the design's memory. A pass over the codes gives an upper bound on the
    influence of every row; rows whose bound could matter get a sharper one from their entries,
    and those which still could, their exact influence.
    """

    def __init__(self, engine: Engine) -> None:
        from inconvenient.kernels.linalg import BLOCK
        from inconvenient.kernels.screen import CODE_STEPS, column_ranges, encode

        n, p = engine.n, engine.p
        X = engine.design.X
        self._engine = engine
        low, high = np.empty(p), np.empty(p)
        column_ranges(X, low, high)
        center, step = 0.5 * (low + high), (high - low) / CODE_STEPS
        codes = np.empty((-(-n // BLOCK), p, BLOCK), dtype=np.int8)

        def task(first: int, last: int) -> None:
            rows = slice(first * BLOCK, min(last * BLOCK, n))
            of_part = np.empty(p)
            encode(X[rows], center, step, of_part, codes[first:last])
            errors.append(of_part)

        errors: list[FloatArray] = []
        in_parts(task, len(codes), 4.0 * BLOCK * p)
        self._coded = (codes, center, step, np.max(errors, axis=0))
        family = "ols" if engine.design.task == "regression" else "logistic"
        kernels = importlib.import_module(f"inconvenient.kernels.screen_{family}")
        self._bounds = getattr(kernels, f"{family}_bounds")
        self._sharper_bounds = getattr(kernels, f"{family}_sharpened")
        self._bound = np.empty(n, dtype=np.float32)
        # x'x of each row, made when rows of negative influence first matter.
        self._square = np.zeros(n, dtype=np.float32)
        self._squared = False
        self._rows = np.empty(n, dtype=np.int64)
        # What the k-th best row of the next search is likely to exceed.
        self._floor, self._last = -np.inf, np.inf
        # Whether the last search had to look among rows of negative influence.
        self._exhausted = False

    def best_rows(
        self, state: State, a: FloatArray, spread: float, taken: BoolArray, k: int
    ) -> tuple[IntArray, FloatArray]:
        """Return the k rows outside the sample of highest influence, best first.

        Parameters
        ----------
        state : State
        a : float64 (1, p)
            H^-1 t.
        spread : float
            t'H^-1 t.
        taken : bool (n,)
            Rows that are not to be returned.
        k : int
            At most as many as there are rows not taken.

        Returns
        -------
        rows : int64 (k,)
        influence : float64 (k,)

        Notes
        -----
        Rows are taken by falling bound. With v the k-th highest exact influence so far, no row
        whose bound is below v can be among the k best: once none is left that reaches v, the
        answer is that of computing all. Ties go to the smaller row.
        """
        if k == 0:
            return np.empty(0, dtype=np.int64), np.empty(0)
        # Units in which t'H^-1 t is about 1, for bounds are in single precision; a power of two
        # changes no digit.
        unit = 2.0 ** -math.frexp(math.sqrt(spread))[1] if 0.0 < spread < np.inf else 1.0
        a, spread = a * unit, spread * unit * unit
        self._floor, self._last = self._floor * unit, self._last * unit
        query = _Query(state, a, spread, np.inf)
        found = None if self._exhausted else self._search(query, taken, k)
        if found is None:
            from inconvenient.kernels.linalg import inverse_trace

            trace = inverse_trace(state.factor)
            found = self._search(dataclasses.replace(query, trace=trace), taken, k)
            assert found is not None
        self._floor, self._last = self._floor / unit, self._last / unit
        self._exhausted = not self._floor > 0.0
        return found[0], found[1] / unit

    def _search(
        self, query: _Query, taken: BoolArray, k: int
    ) -> tuple[IntArray, FloatArray] | None:
        """Search; None where the bounds that an infinite trace gives negative rows say nothing."""
        self._fill_bounds(query, taken)
        # Influences change little from one search to the next: rows far below the last k-th one
        # are not even looked at, unless too few are left.
        waiting = self._reaching(self._floor)
        if len(waiting) >= k:
            best = self._best_of(waiting, query, k)
            if best is not None and best.least >= self._floor:
                return self._concluded(best)
        if query.blind and not self._floor > 0.0:
            return None
        waiting = self._reaching(0.0 if query.blind else -np.inf)
        best = self._best_of(waiting, query, k) if len(waiting) >= k else None
        return None if best is None else self._concluded(best)

    def _concluded(self, best: _Best) -> tuple[IntArray, FloatArray]:
        change = abs(self._last - best.least)
        self._last = best.least
        self._floor = best.least - max(0.8 * abs(best.least), 2.0 * change)
        return best.sorted()

    def _best_of(self, waiting: IntArray, query: _Query, k: int) -> _Best | None:
        """Return the best of some rows; None where infinite traces leave it open."""
        from inconvenient.kernels.ranking import upper_tails

        values = self._bound[waiting]
        counts = (k + k // 4 + 32) * _TIERS
        tiers = np.empty(len(counts))
        upper_tails(values, counts, tiers)
        best = _Best(k)
        step = max(k, _AT_ONCE)
        below = np.inf
        for tier in tiers.tolist():
            least = max(tier, best.least)
            rows = waiting[(values >= least) & (values < below)]
            if below < np.inf and len(rows):
                bound = self._sharpened(query, rows)
                rows, bound = rows[bound >= best.least], bound[bound >= best.least]
                while len(rows) > 2 * step:
                    first = np.argpartition(-bound, step)[:step]
                    best.add(rows[first], self._influence(query, rows[first]))
                    bound[first] = -np.inf
                    rows, bound = rows[bound >= best.least], bound[bound >= best.least]
            if len(rows):
                best.add(rows, self._influence(query, rows))
            if best.least >= tier:
                break
            below = least
        return None if query.blind and not best.least > 0.0 else best

    def _influence(self, query: _Query, rows: IntArray) -> FloatArray:
        return self._engine.influence(query.state, query.a, rows)

    def _reaching(self, least: float) -> IntArray:
        from inconvenient.kernels.ranking import reaching

        return self._rows[: reaching(self._bound, max(least, _LEAST), np.inf, self._rows)].copy()

    def _sharpened(self, query: _Query, rows: IntArray) -> FloatArray:
        """Return bounds of rows from their entries in full."""
        bound = np.empty(len(rows))
        X, y, square = self._engine.design.X, self._engine.design.y, self._squares(query)

        def task(start: int, stop: int) -> None:
            part = slice(start, stop)
            self._sharper_bounds(X, square, y, rows[part], *query.arguments, bound[part])

        in_parts(task, len(rows), 4.0 * self._engine.p)
        return bound

    def _squares(self, query: _Query) -> npt.NDArray[np.float32]:
        """Return x'x of each row; of no account without a finite trace."""
        if not query.blind and not self._squared:
            from inconvenient.kernels.screen import row_squares

            row_squares(self._engine.design.X, self._square)
            self._squared = True
        return self._square

    def _fill_bounds(self, query: _Query, taken: BoolArray) -> None:
        codes, *rest = self._coded
        block = codes.shape[2]
        y, n, square = self._engine.design.y, self._engine.n, self._squares(query)

        def task(first: int, last: int) -> None:
            rows = slice(first * block, min(last * block, n))
            self._bounds(
                codes[first:last], *rest, square[rows], y[rows], taken[rows], *query.arguments,
                self._bound[rows],
            )  # fmt: skip

        in_parts(task, len(codes), float(block * self._engine.p))
