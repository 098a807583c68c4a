"""Independent fits, from scratch, of what is left once rows have gone, with standard errors."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.special

from inconvenient.selection.removal import COEFFICIENT, HC1, Table
from inconvenient.selection.verification import fit_independent

__all__ = ["Refit", "critical_t", "refit"]

FloatArray = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True, slots=True)
class Refit:
    """One coefficient in the units of the data.

    Parameters
    ----------
    coefficient, se, t : float
        NaN unless ``status`` is "ok"; ``se`` and ``t`` also where no error exists.
    status : str
        Of :func:`inconvenient.selection.verification.fit_independent`, or "few_rows" where not
        more rows than coefficients are left.
    """

    coefficient: float
    se: float
    t: float
    status: str


def critical_t(free: int, *, task: str, alpha: float) -> float:
    """Return the two-sided critical value of Student's t, or of the normal for classes."""
    if task != "regression":
        return -float(scipy.special.ndtri(alpha / 2.0))
    return -float(scipy.special.stdtrit(free, alpha / 2.0)) if free > 0 else 0.0


def refit(table: Table, rows: npt.NDArray[np.int64], kind: str) -> Refit:
    """Fit the table without some rows.

    Parameters
    ----------
    table : Table
    rows : int64 (k,)
        Left out.
    kind : {"coefficient", "classical", "HC1"}
        Of the standard error; without one for the first.

    Returns
    -------
    Refit

    Notes
    -----
    QR or Newton from scratch, n p^2 operations a step. Worst relative error of coefficient and t on
    the hostile tables that :class:`~inconvenient.selection.removal.Removal` names: 1e-10; where
    residuals are 1e-9 of the target, 1e-7 of t.
    """
    X, y = table.X, table.y
    if len(rows):
        left = np.ones(len(y), dtype=bool)
        left[rows] = False
        X, y = X[left], y[left]
    else:
        X, y = X.copy(), y.copy()
    if len(y) <= X.shape[1]:
        return Refit(math.nan, math.nan, math.nan, "few_rows")
    if table.intercept:
        # No slope changes; far from zero, columns and target would cost digits.
        X[:, 1:] -= X[:, 1:].mean(axis=0)
        if table.task == "regression":
            y -= y.mean()
    fit = fit_independent(X, y, task=table.task, n_classes=2, ridge=0.0, min_class=1)
    if fit.status != "ok":
        return Refit(math.nan, math.nan, math.nan, fit.status)
    b = fit.coefficients[:, 0]
    coefficient = float(b[table.column])
    if kind == COEFFICIENT:
        return Refit(coefficient, math.nan, math.nan, "ok")
    if table.task == "regression":
        se = _standard_error(X, y, b, table, kind)
    else:
        se = _inverse_information(X, b, table.column)
    t = coefficient / se if se > 0.0 else math.nan
    return Refit(coefficient, se, t, "ok")


def _standard_error(X: FloatArray, y: FloatArray, b: FloatArray, table: Table, kind: str) -> float:
    """Return the classical or HC1 error, from the part of the column outside the others.

    Columns and target are centred where there is an intercept.

    With that part z, the column's row of (X'X)^-1 X' is z / z'z (Frisch, Waugh and Lovell).
    """
    n, p = X.shape
    kept = [j for j in range(int(table.intercept), p) if j != table.column]
    others = X[:, kept]
    scale = np.sqrt(np.einsum("ij,ij->j", others, others))
    others /= scale
    z = X[:, table.column]
    residual = y - others @ (b[kept] * scale) - z * b[table.column]
    if table.intercept:
        residual -= residual.mean()
    z = _outside(others, z)
    length = float(z @ z)
    if kind == HC1:
        return math.sqrt(n / (n - p) * float((z * residual) @ (z * residual))) / length
    return math.sqrt(float(residual @ residual) / (n - p) / length)


def _inverse_information(X: FloatArray, b: FloatArray, column: int) -> float:
    """Return the error of a logistic coefficient, in the same way from weighted columns."""
    share = scipy.special.expit(X @ b)
    V = X * np.sqrt(share * (1.0 - share))[:, None]
    z = V[:, column].copy()
    others = np.delete(V, column, axis=1)
    others /= np.sqrt(np.einsum("ij,ij->j", others, others))
    z = _outside(others, z)
    length = float(z @ z)
    return 1.0 / math.sqrt(length) if length > 0.0 else math.nan


def _outside(others: FloatArray, z: FloatArray) -> FloatArray:
    """Return the part of z outside the span of columns of length one."""
    if others.shape[1]:
        # Normal equations, refined: a QR of all rows would cost more than all the rest.
        factor = scipy.linalg.cho_factor(others.T @ others, check_finite=False)
        for _ in range(3):
            z = z - others @ scipy.linalg.cho_solve(factor, others.T @ z, check_finite=False)
    return z
