"""A fit that follows rows out of the sample and back, and knows what each further removal does."""

from __future__ import annotations

import abc
import copy
import dataclasses

import numpy as np
import numpy.typing as npt

__all__ = ["CLASSICAL", "COEFFICIENT", "CRITICAL", "HC1", "Removal", "Table"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

# What is followed: the coefficient, or its t by a classical (inverse information) or an HC1 error.
COEFFICIENT, CLASSICAL, HC1 = "coefficient", "classical", "HC1"

# Steps after which a fit is made afresh from the rows, and the room 1 - w h below which it is made
# afresh at once, because a rank-one step would cost too many digits.
_AFRESH = 256
_ROOM = 1e-4
#: Room below which a row may carry the rank alone; the kernels leave it to a fit from scratch.
CRITICAL = 1e-6


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


class Removal(abc.ABC):
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

    @abc.abstractmethod
    def _fit(self, Z: FloatArray, mean: FloatArray, scale: FloatArray) -> FloatArray | None:
        """Fit the rows left; return the Cholesky factor of the Hessian, or None without a fit."""

    @abc.abstractmethod
    def _after_step(self) -> bool:
        """Complete a rank-one step; False if the rows left have no fit."""

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

    @abc.abstractmethod
    def _carry(self, i: int, scale: float) -> float:
        """Return what a step of row i carries over to the residuals."""

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

    @abc.abstractmethod
    def value(self) -> float:
        """Return the coefficient, or its t, on the rows that are left."""

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
        for i in np.flatnonzero(~self.gone & (self._weight * self._hat > 1.0 - CRITICAL)).tolist():
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

    @abc.abstractmethod
    def _values_after(self) -> FloatArray:
        """Return the value after the removal of each row, float64 (n,), by one step."""

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
