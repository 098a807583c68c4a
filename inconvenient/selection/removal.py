"""A fit that follows rows out of the sample and back, and knows what each further removal does."""

from __future__ import annotations

import copy
import dataclasses
import math

import numpy as np
import numpy.typing as npt

__all__ = ["CLASSICAL", "COEFFICIENT", "HC1", "LeastSquares", "Logistic", "Removal", "Table"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

# What is followed: the coefficient, or its t by a classical (inverse information) or an HC1 error.
COEFFICIENT, CLASSICAL, HC1 = "coefficient", "classical", "HC1"

# Steps after which a fit is made afresh from the rows, and the room 1 - w h below which it is made
# afresh at once, because a rank-one step would cost too many digits.
_AFRESH = 256
_ROOM = 1e-4
# Rows without which the sample may lose its rank; the kernels leave them to a fit from scratch.
_CRITICAL = 1e-6
# Up to so many rows the influence on an HC1 error is exact, at n^2 p; above, of first order.
_DENSE = 300


@dataclasses.dataclass(frozen=True, slots=True)
class Table:
    """Rows in the units of the data.

    Parameters
    ----------
    X : float64 (n, p)
        C-order; column 0 is the intercept of ones if there is one.
    y : float64 (n,)
        Target, or 0 and 1.
    column : int
        Whose coefficient is audited.
    intercept : bool
    task : {"regression", "binary"}
    """

    X: FloatArray
    y: FloatArray
    column: int
    intercept: bool
    task: str


class Removal:
    """State of a sample from which rows are removed.

    Parameters
    ----------
    table : Table
    kind : {"coefficient", "classical", "HC1"}
        What :meth:`value` and :meth:`values_after` report, in the units of the data.

    Notes
    -----
    A step costs n p multiply-adds, a fit from scratch n p^2; the latter is made every 256 steps and
    wherever a rank-one step would lose digits. Columns are centred and scaled afresh each time,
    on the rows that are left.
    """

    #: Whether ``values_after`` equals refits.
    exact = True
    #: Steps after which the fit is made afresh.
    afresh_after = _AFRESH

    _inverse: FloatArray
    _hat: FloatArray
    _pull: FloatArray
    _residual: FloatArray
    _weight: FloatArray
    _b: FloatArray
    _blocks: npt.NDArray[np.float64]

    def __init__(self, table: Table, kind: str) -> None:
        self.table, self.kind = table, kind
        n, p = table.X.shape
        self.gone: BoolArray = np.zeros(n, dtype=bool)
        self.left = n
        self.p = p
        self._pinned: set[int] = set()
        self._scratch: dict[int, float] = {}
        self.ok = self.afresh()

    def copy(self) -> Removal:
        """Return an independent state; rows in blocked layout are shared until made afresh."""
        twin = copy.copy(self)
        for name in ("gone", "_inverse", "_hat", "_pull", "_residual", "_weight", "_b"):
            setattr(twin, name, getattr(self, name).copy())
        twin._pinned, twin._scratch = set(self._pinned), dict(self._scratch)
        return twin

    def without(self, rows: npt.ArrayLike) -> Removal | None:
        """Return the state without exactly these rows, from scratch; None if it has no fit."""
        twin = copy.copy(self)
        twin.gone = np.zeros(len(self.gone), dtype=bool)
        twin.gone[np.asarray(rows, dtype=np.int64)] = True
        twin.left = int(np.count_nonzero(~twin.gone))
        twin._pinned, twin._scratch = set(), {}
        return twin if twin.afresh() else None

    def afresh(self) -> bool:
        """Fit the rows that are left from scratch; False if that has no unique solution."""
        from inconvenient.kernels.linalg import BLOCK, column_moments, inverse, to_blocks
        from inconvenient.kernels.ols import hat_values
        from inconvenient.kernels.removal import row_products

        self._scratch = {}
        self._steps = 0
        X, p, n = self.table.X, self.p, len(self.gone)
        if self.left <= p:
            return False
        mean, scale = np.zeros(p), np.ones(p)
        rows = X[~self.gone]
        column_moments(rows, mean, scale)
        if self.table.intercept:
            mean[0], scale[0] = 0.0, 1.0
        else:
            scale = np.sqrt(scale * scale + mean * mean)
            mean[:] = 0.0
        if not np.all(scale > 1e-10 * np.abs(rows).max(axis=0)):
            return False
        Z = np.ascontiguousarray((X - mean) / scale)
        self._blocks = np.empty((-(-n // BLOCK), p, BLOCK))
        to_blocks(Z, self._blocks)
        self._weight = np.ones(n)
        self._b = getattr(self, "_b", np.zeros(p))
        factor = self._fit(Z, mean, scale)
        if factor is None:
            return False
        self._inverse = np.empty((p, p))
        inverse(factor, self._inverse)
        self._hat, self._pull = np.empty(n), np.empty(n)
        hat_values(Z, np.arange(n), factor, self._hat)
        row_products(self._blocks, self._inverse[self.table.column].copy(), self._pull)
        return True

    def _fit(self, Z: FloatArray, mean: FloatArray, scale: FloatArray) -> FloatArray | None:
        raise NotImplementedError

    def _after_step(self) -> bool:
        """Complete a rank-one step; False if the rows left have no fit."""
        raise NotImplementedError

    def _step(self, i: int, sign: float) -> bool:
        from inconvenient.kernels.removal import rank_one_step

        weight = float(self._weight[i])
        room = 1.0 - sign * weight * float(self._hat[i])
        self.gone[i] = sign > 0.0
        self.left -= int(sign)
        if self._steps >= self.afresh_after or not _ROOM < room < 1.0 / _ROOM:
            return self.afresh()
        self._steps += 1
        scale = sign * weight / room
        carry = self._carry(i, scale)
        rank_one_step(
            self._blocks, i, scale, carry, self._inverse, self._hat, self._pull, self._residual
        )
        return self._after_step()

    def _carry(self, i: int, scale: float) -> float:
        raise NotImplementedError

    def remove(self, i: int) -> bool:
        """Take row i out; False, and the state unchanged, if the others have no unique fit."""
        if i in self._pinned or self.left <= self.p + 1:
            return False
        if self._step(i, 1.0):
            return True
        self.gone[i] = False
        self.left += 1
        self.afresh()
        self._pinned.add(i)
        return False

    def restore(self, i: int) -> bool:
        """Put row i back."""
        self._pinned, self._scratch = set(), {}
        return self._step(i, -1.0)

    def value(self) -> float:
        """Return the coefficient, or its t, on the rows that are left."""
        raise NotImplementedError

    def values_after(self) -> FloatArray:
        """Return the value once each row has left, too, float64 (n,); NaN where none does.

        Notes
        -----
        Exact for OLS, HC1 errors of more than 300 rows excepted; one Newton step for logistic
        regression.
        """
        values = self._values_after()
        values[list(self._pinned)] = np.nan
        if self.left <= self.p + 1:
            values[:] = np.nan
            return values
        for i in np.flatnonzero(~self.gone & (self._weight * self._hat > 1.0 - _CRITICAL)).tolist():
            if i in self._pinned:
                continue
            if i not in self._scratch:
                twin = self.without(np.append(np.flatnonzero(self.gone), i))
                if twin is None:
                    # Without this row there is no fit, nor will there be without more rows.
                    self._pinned.add(i)
                    continue
                self._scratch[i] = twin.value()
            values[i] = self._scratch[i]
        return values

    def _values_after(self) -> FloatArray:
        raise NotImplementedError

    def refitted_values(self) -> FloatArray:
        """Return :meth:`values_after` by one refit a row where it is not exact."""
        self._scratch = {}
        if self.exact:
            return self.values_after()
        values = np.full(len(self.gone), np.nan)
        if self.left > self.p + 1:
            for i in np.flatnonzero(~self.gone).tolist():
                twin = self.copy()
                if twin.remove(i) and twin.polish():
                    values[i] = twin.value()
        return values

    def polish(self) -> bool:
        """Bring everything that rank-one steps approximate to convergence."""
        return True


class LeastSquares(Removal):
    """OLS: every update is exact."""

    def __init__(self, table: Table, kind: str) -> None:
        self._unit = self._y_scale = 1.0
        super().__init__(table, kind)
        self.exact = kind != HC1 or len(self.gone) <= _DENSE

    def _fit(self, Z: FloatArray, mean: FloatArray, scale: FloatArray) -> FloatArray | None:
        from inconvenient.kernels.linalg import column_moments
        from inconvenient.kernels.ols import ols_add, ols_refine, ols_solve
        from inconvenient.kernels.removal import row_products, square_sum

        rows = np.flatnonzero(~self.gone)
        center, spread = np.zeros(1), np.ones(1)
        column_moments(self.table.y[rows][:, None], center, spread)
        y_scale = math.hypot(float(spread[0]), 0.0 if self.table.intercept else float(center[0]))
        y_scale = y_scale if y_scale > 0.0 else 1.0
        y = (self.table.y - (float(center[0]) if self.table.intercept else 0.0)) / y_scale
        A, c = np.zeros((self.p, self.p)), np.zeros(self.p)
        factor, b = np.empty((self.p, self.p)), np.empty(self.p)
        ols_add(Z, y, rows, 1.0, A, c)
        if ols_solve(A, c, 0.0, factor, b) != 0:
            return None
        ols_refine(Z, y, rows, 0.0, factor, b)
        fitted = np.empty(len(y))
        row_products(self._blocks, b, fitted)
        self._residual = y - fitted
        self._b = b
        j = self.table.column
        self._unit = y_scale / float(scale[j])
        self._coefficient = float(b[j])
        self._rss = square_sum(self._residual, self.gone)
        return factor

    def _carry(self, i: int, scale: float) -> float:
        r, pull = float(self._residual[i]), float(self._pull[i])
        self._coefficient -= scale * pull * r
        self._rss = max(self._rss - scale * r * r, 0.0)
        return scale * r

    def _after_step(self) -> bool:
        return True

    def value(self) -> float:
        """Return the coefficient or its t."""
        if self.kind == COEFFICIENT:
            return self._unit * self._coefficient
        from inconvenient.kernels.removal import square_sum

        free = self.left - self.p
        if self.kind == CLASSICAL:
            j = self.table.column
            squared = float(self._inverse[j, j]) * self._rss / free
        else:
            squared = self.left / free * square_sum(self._pull * self._residual, self.gone)
        return self._coefficient / math.sqrt(squared) if squared > 0.0 else math.nan

    def _values_after(self) -> FloatArray:
        from inconvenient.kernels.removal import COEFFICIENT as B
        from inconvenient.kernels.removal import STUDENT_T, removal_values

        j = self.table.column
        values = np.empty(len(self.gone))
        removal_values(
            STUDENT_T if self.kind == CLASSICAL else B,
            self.gone,
            self._hat,
            self._pull,
            self._residual,
            self._weight,
            self._coefficient,
            float(self._inverse[j, j]),
            self._rss,
            float(self.left - self.p),
            values,
        )
        if self.kind == COEFFICIENT:
            values *= self._unit
        elif self.kind == HC1:
            left = self.left - 1
            with np.errstate(divide="ignore", invalid="ignore"):
                squared = left / (left - self.p) * self._meat_after()
                values /= np.sqrt(np.where(squared > 0.0, squared, np.nan))
        return values

    def _meat_after(self) -> FloatArray:
        """Return the sum of pull^2 residual^2 over the rows left once each row has gone."""
        from inconvenient.kernels.removal import (
            row_products,
            square_sum,
            symmetric_product,
            weighted_sum,
        )

        inside = ~self.gone
        room = 1.0 - self._hat
        room[room < _CRITICAL] = np.nan
        by_pull, by_residual = self._pull / room, self._residual / room
        if len(inside) <= _DENSE:
            Z = self._blocks.transpose(0, 2, 1).reshape(-1, self.p)[: len(inside)]
            H = Z @ self._inverse @ Z.T
            terms: FloatArray = (self._pull + by_pull[:, None] * H) ** 2
            terms *= (self._residual + by_residual[:, None] * H) ** 2
            terms[:, self.gone] = 0.0
            np.fill_diagonal(terms, 0.0)
            dense: FloatArray = terms.sum(axis=1)
            return dense
        product = np.where(inside, self._pull * self._residual, 0.0)
        total = square_sum(product, self.gone)
        slopes = []
        for weight in (product * self._pull, product * self._residual):
            moments, direction = np.empty(self.p), np.empty(self.p)
            slope = np.empty(len(inside))
            weighted_sum(self._blocks, weight, moments)
            symmetric_product(self._inverse, moments, direction)
            row_products(self._blocks, direction, slope)
            slopes.append(slope)
        change = 2.0 * (by_residual * slopes[0] + by_pull * slopes[1])
        own = product**2 + 4.0 * product**2 * self._hat / room
        sparse: FloatArray = total + change - own
        return sparse


class Logistic(Removal):
    """Two classes: scores by one Newton step, refits after every step to a converged gradient."""

    exact = False
    # The Hessian of the fit drifts with the coefficients.
    afresh_after = 64

    def _fit(self, Z: FloatArray, mean: FloatArray, scale: FloatArray) -> FloatArray | None:
        from inconvenient.kernels.logistic import CONVERGED, logistic_fit

        rows = np.flatnonzero(~self.gone)
        labels = self.table.y[rows]
        if labels.min() == labels.max():
            return None
        factor, b = np.empty((self.p, self.p)), np.zeros(self.p)
        if logistic_fit(Z, self.table.y, rows, 0.0, 40, factor, b) != CONVERGED:
            return None
        self._b = b
        self._scale = float(scale[self.table.column])
        self._residual, self._weight = np.empty(len(self.gone)), np.empty(len(self.gone))
        self._gradient()
        return factor

    def _gradient(self) -> FloatArray:
        from inconvenient.kernels.removal import logistic_gradient

        gradient = np.empty(self.p)
        logistic_gradient(
            self._blocks, self.table.y, self.gone, self._b, self._residual, self._weight, gradient
        )
        return gradient

    def _carry(self, i: int, scale: float) -> float:
        return 0.0

    def _after_step(self) -> bool:
        """Take steps with the Hessian at hand until they move no coefficient by 1e-9 of its error.

        The Hessian drifts with the coefficients; where it no longer contracts, all is made afresh.
        """
        from inconvenient.kernels.removal import symmetric_product

        last, step = math.inf, np.empty(self.p)
        for _ in range(12):
            gradient = self._gradient()
            symmetric_product(self._inverse, gradient, step)
            decrement = sum(g * s for g, s in zip(gradient.tolist(), step.tolist(), strict=True))
            if decrement <= 1e-18:
                return True
            if not decrement < 0.25 * last:
                break
            self._b += step
            last = decrement
        return self.afresh()

    def polish(self) -> bool:
        """Take the Hessian at the coefficients at hand."""
        return self._steps == 0 or self.afresh()

    def value(self) -> float:
        """Return the coefficient, or its t by the Hessian of the last fit from scratch."""
        j = self.table.column
        b = float(self._b[j])
        if self.kind == COEFFICIENT:
            return b / self._scale
        return b / math.sqrt(float(self._inverse[j, j]))

    def _values_after(self) -> FloatArray:
        from inconvenient.kernels.removal import COEFFICIENT as B
        from inconvenient.kernels.removal import NORMAL_T, removal_values

        j = self.table.column
        values = np.empty(len(self.gone))
        removal_values(
            B if self.kind == COEFFICIENT else NORMAL_T,
            self.gone,
            self._hat,
            self._pull,
            self._residual,
            self._weight,
            float(self._b[j]),
            float(self._inverse[j, j]),
            0.0,
            2.0,
            values,
        )
        if self.kind == COEFFICIENT:
            values /= self._scale
        return values
