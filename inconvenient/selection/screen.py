"""The exact k best rows of a pool from one byte per entry and a few exact influences."""

from __future__ import annotations

import importlib
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
        low, high, error = np.empty(p), np.empty(p), np.zeros(p)
        column_ranges(X, low, high)
        center, step = 0.5 * (low + high), (high - low) / CODE_STEPS
        codes = np.empty((-(-n // BLOCK), p, BLOCK), dtype=np.int8)
        self._square = np.empty(n, dtype=np.float32)

        def task(first: int, last: int) -> None:
            rows = slice(first * BLOCK, min(last * BLOCK, n))
            of_part = np.empty(p)
            encode(X[rows], center, step, of_part, self._square[rows], codes[first:last])
            errors.append(of_part)

        errors: list[FloatArray] = []
        in_parts(task, len(codes), 4.0 * BLOCK * p)
        error = np.max(errors, axis=0)
        self._coded = (codes, center, step, error)
        self._bound = np.empty(n, dtype=np.float32)
        self._rows = np.empty(n, dtype=np.int64)
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
        With v the least exact influence of any k rows, every row that is among the k best has a
        bound of at least v: once all of those are computed exactly, the answer is that of
        computing all. Ties go to the smaller row.
        """
        if k == 0:
            return np.empty(0, dtype=np.int64), np.empty(0)
        found = None if self._exhausted else self._search(state, a, spread, taken, k, np.inf)
        if found is None:
            from inconvenient.kernels.linalg import inverse_trace

            found = self._search(state, a, spread, taken, k, inverse_trace(state.factor))
            assert found is not None
        rows, influence = found
        self._exhausted = not influence[-1] > 0.0
        return rows, influence

    def _search(
        self, state: State, a: FloatArray, spread: float, taken: BoolArray, k: int, trace: float
    ) -> tuple[IntArray, FloatArray] | None:
        """Search; None where the bounds that an infinite trace gives negative rows say nothing."""
        from inconvenient.kernels.ranking import upper_tail

        self._fill_bounds(state, a, spread, taken, trace)
        least = upper_tail(self._bound, k + k // 8 + 16)
        blind = trace == np.inf
        if blind and not least > 0.0:
            return None
        rows, bound = self._sharpened(state, a, spread, trace, least, np.inf)
        first = np.argpartition(-bound, k - 1)[:k] if k < len(rows) else np.arange(len(rows))
        first_rows = rows[first]
        first_influence = self._engine.influence(state, a, first_rows)
        v = float(first_influence.min())
        if blind and not v > 0.0:
            return None
        bound[first] = -np.inf
        others = rows[bound >= v]
        if v < least:
            more, bound = self._sharpened(state, a, spread, trace, v, least)
            others = np.concatenate([others, more[bound >= v]])
        rows = np.concatenate([first_rows, others])
        exact = np.concatenate([first_influence, self._engine.influence(state, a, others)])
        best = np.lexsort((rows, -exact))[:k]
        return rows[best], exact[best]

    def _sharpened(
        self, state: State, a: FloatArray, spread: float, trace: float, least: float, below: float
    ) -> tuple[IntArray, FloatArray]:
        """Return the rows whose coded bound is in [least, below), and their sharper bounds."""
        from inconvenient.kernels.ranking import reaching

        count = reaching(self._bound, least, below, self._rows)
        rows, bound = self._rows[:count].copy(), np.empty(count)
        X, y = self._engine.design.X, self._engine.design.y
        kernel = self._kernel("sharpened")

        def task(start: int, stop: int) -> None:
            part = slice(start, stop)
            kernel(
                X, self._square, y, rows[part], state.contrasts[0], a[0], spread, trace, bound[part]
            )

        in_parts(task, count, 4.0 * self._engine.p)
        return rows, bound

    def _fill_bounds(
        self, state: State, a: FloatArray, spread: float, taken: BoolArray, trace: float
    ) -> None:
        codes, *rest = self._coded
        block = codes.shape[2]
        y, n = self._engine.design.y, self._engine.n
        kernel = self._kernel("bounds")

        def task(first: int, last: int) -> None:
            rows = slice(first * block, min(last * block, n))
            kernel(
                codes[first:last], *rest, self._square[rows], y[rows], taken[rows],
                state.contrasts[0], a[0], spread, trace, self._bound[rows],
            )  # fmt: skip

        in_parts(task, len(codes), float(block * self._engine.p))

    def _kernel(self, name: str) -> Any:
        family = "ols" if self._engine.design.task == "regression" else "logistic"
        module = importlib.import_module(f"inconvenient.kernels.screen_{family}")
        return getattr(module, f"{family}_{name}")
