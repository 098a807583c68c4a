"""What a removal does to OLS and to logistic regression."""

from __future__ import annotations

import math

import numpy as np

from inconvenient.selection.removal import (
    CLASSICAL,
    COEFFICIENT,
    HC1,
    ROOM,
    FloatArray,
    Removal,
    Table,
    dot,
)

__all__ = ["LeastSquares", "Logistic", "open_state"]

# Up to so many rows the influence on an HC1 error is exact, at n^2 p; above, of first order.
_DENSE = 300
# A residual sum of squares that has fallen to this share since the last fit has lost digits.
_FALLEN = 1e-4


def open_state(table: Table, kind: str) -> Removal:
    """Return the state of all rows."""
    return (LeastSquares if table.task == "regression" else Logistic)(table, kind)


class LeastSquares(Removal):
    """OLS: every update is exact."""

    scaled_target: FloatArray

    @property
    def exact(self) -> bool:
        """Whether ``values_after`` equals refits."""
        return self.kind != HC1 or len(self.gone) <= _DENSE

    def _fit(self, gram: FloatArray, factor: FloatArray) -> FloatArray | None:
        from inconvenient.kernels.linalg import solve
        from inconvenient.kernels.removal import row_products, square_sum, weighted_sum
        from inconvenient.kernels.removal_rows import left_moments

        table, n = self.table, len(self.gone)
        self._weight = np.ones(n)
        center, spread, size = np.zeros(1), np.ones(1), np.ones(1)
        left_moments(table.y[:, None], self.gone, center, spread, size)
        middle = float(center[0]) if table.intercept else 0.0
        y_scale = float(spread[0]) if table.intercept else float(size[0])
        y_scale = y_scale if y_scale > 0.0 else 1.0
        self.scaled_target = y = (table.y - middle) / y_scale
        self._unit = y_scale / self._scale
        # Twice: the second pass, on residuals, refines the first.
        self._residual, fitted = y, np.empty(n)
        self._b, moments, step = np.zeros(self.p), np.empty(self.p), np.empty(self.p)
        for _ in range(2):
            weighted_sum(self._blocks, np.where(self.gone, 0.0, self._residual), moments)
            solve(factor, moments, step)
            self._b += step
            row_products(self._blocks, self._b, fitted)
            self._residual = y - fitted
        self._rss = self._rss_fresh = square_sum(self._residual, self.gone)
        return factor

    def followed(self, i: int, b: FloatArray) -> None:
        """Note that row i has left, and the coefficients on whitened rows; nothing else."""
        self.gone[i] = True
        self.left -= 1
        self._b = b.copy()
        self._behind = True

    def _carry(self, i: int, scale: float) -> float:
        r = float(self._residual[i])
        self._rss = max(self._rss - scale * r * r, 0.0)
        return scale * r

    def _after_step(self) -> bool:
        return self._rss >= _FALLEN * self._rss_fresh or self.afresh()

    def value(self) -> float:
        """Return the coefficient or its t."""
        b = dot(self._target, self._b)
        if self.kind == COEFFICIENT:
            return self._unit * b
        from inconvenient.kernels.removal import square_sum

        free = self.left - self.p
        if self.kind == CLASSICAL:
            squared = self._variance * self._rss / free
        else:
            squared = self.left / free * square_sum(self._pull * self._residual, self.gone)
        return b / math.sqrt(squared) if squared > 0.0 else math.nan

    def _values_after(self, critical: float) -> FloatArray:
        from inconvenient.kernels.removal import COEFFICIENT as B
        from inconvenient.kernels.removal import STUDENT_T, removal_values

        values = np.empty(len(self.gone))
        removal_values(
            STUDENT_T if self.kind == CLASSICAL else B,
            self.gone,
            self._hat,
            self._pull,
            self._residual,
            self._weight,
            dot(self._target, self._b),
            self._variance,
            self._rss,
            float(self.left - self.p),
            critical,
            values,
        )
        if self.kind == COEFFICIENT:
            values *= self._unit
        elif self.kind == HC1:
            left = self.left - 1
            with np.errstate(divide="ignore", invalid="ignore"):
                squared = left / (left - self.p) * self._meat_after(critical)
                robust = values / np.sqrt(np.where(squared > 0.0, squared, np.nan))
            values = np.where(values == np.inf, np.inf, robust)
        return values

    def numerators_after(self) -> FloatArray:
        """Return t'b / t'H^-1 t once each row has left, too, float64 (n,).

        That is the sum of z r over the column's part z outside the others and the residuals r of
        a fit without it: the coefficient's numerator, whose denominator is the sum of z^2. NaN
        for rows that are gone or may carry the rank alone.
        """
        self.refresh()
        room = 1.0 - self._hat
        room[self.gone | (room < ROOM)] = np.nan
        b = dot(self._target, self._b)
        after = b - self._pull * self._residual / room
        return np.asarray(after / (self._variance + self._pull * self._pull / room))

    def _meat_after(self, critical: float) -> FloatArray:
        """Return the sum of pull^2 residual^2 over the rows left once each row has gone."""
        from inconvenient.kernels.removal import (
            robust_sums,
            row_products,
            square_sum,
            symmetric_product,
            weighted_sum,
        )

        n, hat, pull, residual = len(self.gone), self._hat, self._pull, self._residual
        if n <= _DENSE:
            sums = np.empty(n)
            robust_sums(self._blocks, self._inverse, self.gone, hat, pull, residual, critical, sums)
            return sums
        room = 1.0 - hat
        room[room < critical] = np.nan
        product = np.where(self.gone, 0.0, pull * residual)
        total = square_sum(product, self.gone)
        slopes = []
        for weight in (product * pull, product * residual):
            moments, direction = np.empty(self.p), np.empty(self.p)
            slope = np.empty(n)
            weighted_sum(self._blocks, weight, moments)
            symmetric_product(self._inverse, moments, direction)
            row_products(self._blocks, direction, slope)
            slopes.append(slope)
        change = 2.0 * (residual / room * slopes[0] + pull / room * slopes[1])
        own = product**2 + 4.0 * product**2 * hat / room
        return np.asarray(total + change - own)


class Logistic(Removal):
    """Two classes: scores by one Newton step, refits after every step to a converged gradient."""

    _held: FloatArray

    @property
    def afresh_after(self) -> int:
        """Steps after which the fit is made afresh: its Hessian drifts with the coefficients."""
        return 64 if self.kind == COEFFICIENT else 16

    @property
    def exact(self) -> bool:
        """Whether ``values_after`` equals refits."""
        return False

    def _fit(self, gram: FloatArray, factor: FloatArray) -> FloatArray | None:
        from inconvenient.kernels.logistic import CONVERGED
        from inconvenient.kernels.removal_logistic import logistic_newton

        labels = self.table.y[~self.gone]
        if labels.min() == labels.max():
            return None
        n = len(self.gone)
        self._residual, self._weight = np.empty(n), np.empty(n)
        for b in (self._b.copy(), np.zeros(self.p)):
            # From the coefficients at hand; should that fail, from zero.
            status = logistic_newton(
                self._blocks, self.table.y, self.gone, 40, self._residual, self._weight, factor, b
            )
            if status == CONVERGED:
                self._b = b
                self._gradient()
                self._held = self._weight.copy()
                return factor
        return None

    def _gradient(self) -> FloatArray:
        from inconvenient.kernels.removal_logistic import logistic_gradient

        gradient = np.empty(self.p)
        logistic_gradient(
            self._blocks, self.table.y, self.gone, self._b, self._residual, self._weight, gradient
        )
        return gradient

    def _weight_of(self, i: int) -> float:
        return float(self._held[i])

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
            decrement = dot(gradient, step)
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
        """Return the coefficient, or its t by the Hessian of the last fit from scratch.

        The latter is brought up to date to first order.
        """
        b = dot(self._target, self._b)
        if self.kind == COEFFICIENT:
            return b / self._scale
        variance = self._variance_now()
        return b / math.sqrt(variance) if variance > 0.0 else math.nan

    def _variance_now(self) -> float:
        """Return t'H^-1 t by the weights at hand, to first order in what they have moved."""
        from inconvenient.kernels.removal import square_sum

        if self._steps == 0:
            return self._variance
        moved = self._weight - self._held
        up = square_sum(self._pull * np.sqrt(np.maximum(moved, 0.0)), self.gone)
        down = square_sum(self._pull * np.sqrt(np.maximum(-moved, 0.0)), self.gone)
        now: float = self._variance - (up - down)
        return now

    def _values_after(self, critical: float) -> FloatArray:
        from inconvenient.kernels.removal import COEFFICIENT as B
        from inconvenient.kernels.removal import NORMAL_T, removal_values

        values = np.empty(len(self.gone))
        removal_values(
            B if self.kind == COEFFICIENT else NORMAL_T,
            self.gone,
            self._hat,
            self._pull,
            self._residual,
            self._weight,
            dot(self._target, self._b),
            self._variance if self.kind == COEFFICIENT else self._variance_now(),
            0.0,
            2.0,
            critical,
            values,
        )
        if self.kind == COEFFICIENT:
            values /= self._scale
        return values
