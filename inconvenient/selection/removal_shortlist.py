"""Greedy removal from OLS over a short list of rows, the same rows as over all."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TypeGuard

import numpy as np
import numpy.typing as npt

from inconvenient.selection.removal import COEFFICIENT, ROOM, Removal, dot
from inconvenient.selection.removal_models import LeastSquares

__all__ = ["Shortlist", "listed", "pays"]

# Tables from this many rows on; steps that a first list is made for, at least and at most, and the
# rows of a list.
_ROWS = 2_000
_STEPS, _LEAST, _MOST = 48, 16, 64
_LENGTH = 1_024
# Leverages are computed afresh once they may have grown by this factor.
_GROWTH = 8.0
# What a list allows for them to grow while it serves.
_GROWING = 1.5
# How many steps a list must have served, if the next one is to be worth its making.
_WORTH = 12


def pays(state: Removal, most: int) -> TypeGuard[LeastSquares]:
    """Tell whether removing up to ``most`` rows from a state is quicker over a short list."""
    return (
        isinstance(state, LeastSquares)
        and state.kind == COEFFICIENT
        and len(state.gone) >= _ROWS
        and most >= _STEPS
    )


class Shortlist:
    """Rows one of which is the next best removal, with what the fit needs to follow them.

    Parameters
    ----------
    state : LeastSquares
        Follows the removals; what it would need a pass over all rows for, it makes afresh when
        asked.
    sign : {-1.0, 1.0}
        Whether the coefficient has to fall or to rise.

    Notes
    -----
    A list is made for some steps: for every row the largest gain that it can have while u = H^-1 t
    and the coefficients b stay within some distance of where they are (Cauchy and Schwarz); the
    1,024 rows of the largest bounds are listed. As long as that distance is kept and the best
    listed row gains more than every bound outside, no row outside can be better. A list that
    serves for less than half its steps has the next one made for fewer. Making a list takes about
    6 n p multiply-adds, a step 1,024 p.
    """

    def __init__(self, state: LeastSquares, sign: float) -> None:
        from inconvenient.kernels.removal import symmetric_product
        from inconvenient.kernels.removal_rows import row_norms

        self._state, self._sign = state, sign
        state.refresh()
        self._blocks, self._inverse = state._blocks, state._inverse.copy()
        self._b, self._u = state._b.copy(), np.empty(state.p)
        symmetric_product(self._inverse, state._target, self._u)
        self._hat, self._length = state._hat, np.empty(len(state.gone))
        row_norms(self._blocks, self._length)
        self._growth = 1.0
        self._steps, self._served = _STEPS, _STEPS - 1
        self._rows = np.empty(0, dtype=np.int64)

    def fill(self) -> bool:
        """Make the list; False where it would serve too few steps, or leverages are too old."""
        from inconvenient.kernels.linalg import BLOCK
        from inconvenient.kernels.ranking import top_rows
        from inconvenient.kernels.removal import row_products, symmetric_product, weighted_sum
        from inconvenient.kernels.removal_shortlist import gather_rows, removal_bounds

        gone, p = self._state.gone, self._state.p
        n = len(gone)
        if self._served < _WORTH or self._growth > _GROWTH:
            return False
        if self._served < self._steps // 2:
            self._steps = max(_LEAST, self._steps // 2)
        elif self._served >= self._steps:
            self._steps = min(_MOST, self._steps + self._steps // 4)
        self._served = 0
        pull, residual, fitted = np.empty(n), np.empty(n), np.empty(n)
        row_products(self._blocks, self._u, pull)
        row_products(self._blocks, self._b, fitted)
        residual = self._state.scaled_target - fitted
        # The coefficients that are reported: one step of refinement on the residuals.
        moments, step = np.empty(p), np.empty(p)
        weighted_sum(self._blocks, np.where(gone, 0.0, residual), moments)
        symmetric_product(self._inverse, moments, step)
        self._b += step
        gain = -self._sign * pull * residual
        gain[gone] = -math.inf
        best = int(np.argmax(gain))
        x = self._blocks[best // BLOCK, :, best % BLOCK].copy()
        v = np.empty(p)
        symmetric_product(self._inverse, x, v)
        reach = self._steps * math.sqrt(dot(v, v)) / max(1.0 - self._growth * self._hat[best], 0.5)
        self._by = reach * abs(float(pull[best])), reach * abs(float(residual[best]))
        bounds = np.empty(n)
        removal_bounds(
            gone, self._hat, self._length, pull, residual, self._sign, _GROWING * self._growth,
            *self._by, bounds,
        )  # fmt: skip
        order = np.empty(_LENGTH + 1, dtype=np.int64)
        count = top_rows(bounds, gone, _LENGTH + 1, order)
        self._bar = float(bounds[order[count - 1]]) if count > _LENGTH else 0.0
        rows: npt.NDArray[np.int64] = np.sort(order[: min(count, _LENGTH)])
        self._rows, self._few = rows, np.empty((-(-len(rows) // BLOCK), p, BLOCK))
        self._few_hat = np.empty(len(rows))
        gather_rows(self._blocks, rows, self._inverse, self._few, self._few_hat)
        self._few_pull, self._few_residual = pull[rows], residual[rows]
        self._start = self._u.copy(), self._b.copy()
        self._grown = 1.0
        return math.isfinite(self._bar)

    def step(self) -> int | None:
        """Remove the best row; None where the list does not tell which it is."""
        from inconvenient.kernels.removal_shortlist import shortlist_step

        if self._grown > _GROWING or self._state.left <= self._state.p + 1:
            return None
        moved = np.empty(2)
        at = shortlist_step(
            self._few, *self._start, self._sign, self._bar, *self._by, ROOM,
            self._few_hat, self._few_pull, self._few_residual,
            self._inverse, self._u, self._b, moved,
        )  # fmt: skip
        if at < 0:
            return None
        self._served += 1
        self._grown /= 1.0 - float(moved[1])
        self._growth /= 1.0 - float(moved[1])
        row = int(self._rows[at])
        self._state.followed(row, self._b)
        return row

    @property
    def worth(self) -> bool:
        """Whether the last list served for enough steps."""
        return self._served >= _WORTH


def listed(state: LeastSquares, sign: float) -> Iterator[int]:
    """Remove the best row, again and again, for as long as short lists are worth their making."""
    while True:
        shortlist = Shortlist(state, sign)
        while shortlist.fill():
            while (i := shortlist.step()) is not None:
                yield i
        if not shortlist.worth:
            return
