"""What a removal does to OLS and to logistic regression."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from inconvenient.selection.removal import CLASSICAL, COEFFICIENT, CRITICAL, HC1, Removal, Table

__all__ = ["LeastSquares", "Logistic", "open_state"]

FloatArray = npt.NDArray[np.float64]

# Up to so many rows the influence on an HC1 error is exact, at n^2 p; above, of first order.
_DENSE = 300


def open_state(table: Table, kind: str) -> Removal:
    """Return the state of all rows."""
    return (LeastSquares if table.task == "regression" else Logistic)(table, kind)


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
        room[room < CRITICAL] = np.nan
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
            decrement = math.fsum((gradient * step).tolist())
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
