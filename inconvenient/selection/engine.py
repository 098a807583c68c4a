"""Fits and influences of one design, whatever its task: the door to the kernels.

A kernel is imported in the branch that runs it, for loading the compiled code of a family takes
some 20 ms, and its first compilation seconds.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from inconvenient.selection.design import Design
from inconvenient.selection.screen import Screen
from inconvenient.selection.threads import in_parts

__all__ = ["Engine", "State"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Where the part of a column outside the ones before it has at most this share of its sum of
# squares, the normal equations lose digits that a refinement step brings back.
_REFINED = 1e-2

# Newton steps from a warm start; a fit that needs more is one without a finite solution.
_MAX_STEPS = 40


@dataclasses.dataclass(frozen=True, slots=True)
class State:
    """A fitted sample.

    Parameters
    ----------
    contrasts : float64 (c, p)
        c = 1, or K - 1 contrasts against the last class.
    coefficients : float64 (p, C)
        As reported: C = 1, or sum-to-zero over the K classes.
    factor : float64 (c p, c p)
        Lower Cholesky factor of the Hessian.
    rows : int64 (k,)
    ridge : float
    gram : float64 (c p, c p)
        X'X, or the Hessian of the rows' loss without the penalty; lower triangle.
    product : float64 (p,), optional
        OLS only: X'y.
    """

    contrasts: FloatArray
    coefficients: FloatArray
    factor: FloatArray
    rows: IntArray
    ridge: float
    gram: FloatArray
    product: FloatArray | None


class Engine:
    """Fits the reference model's family to rows of a design and scores joining rows.

    Parameters
    ----------
    design : Design

    Notes
    -----
    Penalised objective: mean loss + (ridge / 2) ||b||^2 over the contrasts, intercept free. OLS
    adds rows to X'X and refactorises once per call, with one refinement step on fresh residuals
    where the columns are far from orthogonal. The others run Newton's method from the previous
    coefficients: a Hessian serves several steps where these converge, that of a grown sample takes
    the new rows alone at first, and the last step always has one of its own coefficients.
    """

    def __init__(self, design: Design) -> None:
        self.design = design
        self.n, self.p = design.X.shape
        self.contrasts = max(1, design.n_classes - 1)
        self._screen: Screen | None = None

    def fit(
        self, rows: IntArray, *, ridge: float = 0.0, start: State | None = None
    ) -> State | None:
        """Fit rows from scratch, warm-started for the iterative families.

        Parameters
        ----------
        rows : int64 (k,)
        ridge : float
            Lambda of the penalty, 0 for none.
        start : State, optional
            Where Newton's method begins; zero otherwise.

        Returns
        -------
        State or None
            None where no finite unique fit was found (rank loss, separation).
        """
        rows = np.ascontiguousarray(rows, dtype=np.int64)
        gram = np.zeros((self.contrasts * self.p, self.contrasts * self.p))
        if self.design.task == "regression":
            return self._fit_ols(rows, rows, gram, np.zeros(self.p), ridge)
        return self._fit_newton(rows, 0, gram, ridge, start)

    def grow(self, state: State, new_rows: IntArray, *, ridge: float = 0.0) -> State | None:
        """Fit the state's rows and ``new_rows`` together, incrementally; None as for ``fit``."""
        rows = np.concatenate([state.rows, new_rows])
        gram = state.gram.copy()
        if state.product is not None:
            return self._fit_ols(rows, new_rows, gram, state.product.copy(), ridge)
        return self._fit_newton(rows, len(state.rows), gram, ridge, state)

    def _fit_ols(
        self, rows: IntArray, new: IntArray, gram: FloatArray, product: FloatArray, ridge: float
    ) -> State | None:
        from inconvenient.kernels.ols import ols_add, ols_refine, ols_solve

        X, y = self.design.X, self.design.y
        ols_add(X, y, new, 1.0, gram, product)
        factor, b = np.empty((self.p, self.p)), np.empty(self.p)
        penalty = ridge * len(rows)
        if ols_solve(gram, product, penalty, factor, b) != 0:
            return None
        if (factor.diagonal() ** 2 < _REFINED * gram.diagonal()).any():
            ols_refine(X, y, rows, penalty, factor, b)
        return State(b[None, :], b[:, None], factor, rows, ridge, gram, product)

    def _fit_newton(
        self, rows: IntArray, known: int, gram: FloatArray, ridge: float, start: State | None
    ) -> State | None:
        """Fit rows; ``gram`` holds the first ``known`` of them at the coefficients of ``start``."""
        from inconvenient.kernels.linalg import CONVERGED

        X, y = self.design.X, self.design.y
        b = np.zeros((self.contrasts, self.p)) if start is None else start.contrasts.copy()
        factor = np.empty_like(gram)
        penalty = ridge * len(rows)
        if self.contrasts == 1:
            from inconvenient.kernels.logistic import logistic_fit

            status = logistic_fit(X, y, rows, known, penalty, _MAX_STEPS, gram, factor, b[0])
        else:
            from inconvenient.kernels.multinomial import multinomial_fit

            status = multinomial_fit(X, y, rows, known, penalty, _MAX_STEPS, gram, factor, b)
        if status != CONVERGED:
            return None
        return State(b, self.reported(b), factor, rows, ridge, gram, None)

    def reported(self, contrasts: FloatArray) -> FloatArray:
        """Map contrasts (c, p) to reported coefficients (p, C)."""
        if self.contrasts == 1:
            return np.ascontiguousarray(contrasts.T)
        full = np.vstack([contrasts, np.zeros((1, self.p))])
        total = np.zeros(self.p)
        for row in full:  # a fixed order of the sum
            total += row
        return np.ascontiguousarray((full - total / len(full)).T)

    def solve_functional(self, state: State, functional: FloatArray) -> FloatArray:
        """Return H^-1 t as contrasts (c, p), for a functional t of the reported coefficients.

        Parameters
        ----------
        state : State
        functional : float64 (p, C)
            Weight of each reported coefficient.
        """
        from inconvenient.kernels.linalg import solve

        if self.contrasts == 1:
            t = np.ascontiguousarray(functional.T)
        else:
            total = np.zeros(self.p)
            for column in functional.T:
                total += column
            t = np.ascontiguousarray(
                (functional[:, :-1] - (total / functional.shape[1])[:, None]).T
            )
        a = np.empty(t.size)
        solve(state.factor, t.ravel(), a)
        return a.reshape(t.shape)

    def numerators(self, state: State, a: FloatArray) -> FloatArray:
        """Return influence without its leverage term for all n rows, float64 (n,)."""
        if self.design.task == "regression":
            from inconvenient.kernels.ols import ols_numerators as kernel
        elif self.contrasts == 1:
            from inconvenient.kernels.logistic import logistic_numerators as kernel
        else:
            from inconvenient.kernels.multinomial_influence import multinomial_numerators as kernel
        out = np.empty(self.n)
        X, y = self.design.X, self.design.y
        b, a = (state.contrasts[0], a[0]) if self.contrasts == 1 else (state.contrasts, a)

        def task(start: int, stop: int) -> None:
            part = slice(start, stop)
            kernel(X[part], y[part], b, a, out[part])

        in_parts(task, self.n, 2.0 * self.contrasts * self.p)
        return out

    def influence(self, state: State, a: FloatArray, rows: IntArray) -> FloatArray:
        """Return the influence of each of ``rows`` on the functional, float64 (k,)."""
        factor = state.factor
        if self.design.task == "regression":
            from inconvenient.kernels.ols import ols_influence as kernel
        elif self.contrasts == 1:
            from inconvenient.kernels.logistic import logistic_influence as kernel
        else:
            from inconvenient.kernels.linalg import inverse
            from inconvenient.kernels.multinomial_influence import multinomial_influence as kernel

            factor = np.empty_like(state.factor)
            inverse(state.factor, factor)
        out = np.empty(len(rows))
        X, y = self.design.X, self.design.y
        b, a = (state.contrasts[0], a[0]) if self.contrasts == 1 else (state.contrasts, a)

        def task(start: int, stop: int) -> None:
            kernel(X, y, rows[start:stop], b, a, factor, out[start:stop])

        in_parts(task, len(rows), 0.5 * (self.contrasts * self.p) ** 2)
        return out

    def best_rows(
        self, state: State, functional: FloatArray, taken: npt.NDArray[np.bool_], k: int
    ) -> tuple[IntArray, FloatArray]:
        """Return the k rows outside the sample of highest influence, best first.

        Parameters
        ----------
        state : State
        functional : float64 (p, C)
            Weight of each reported coefficient.
        taken : bool (n,)
            Rows that are not to be returned.
        k : int

        Returns
        -------
        rows : int64 (at most k,)
        influence : float64 (at most k,)

        Notes
        -----
        Leverage costs p^2 / 2 a row, so it is computed for a shortlist. For OLS and two classes
        the shortlist is certified to hold the k best (:class:`Screen`). For more classes no bound
        is known: it holds the 4 k + 64 rows of highest numerator.
        """
        a = self.solve_functional(state, functional)
        k = min(k, int(self.n - np.count_nonzero(taken)))
        if self.contrasts == 1:
            if self._screen is None:
                self._screen = Screen(self)
            spread = float(functional[:, 0] @ a[0])
            return self._screen.best_rows(state, a, spread, taken, k)
        from inconvenient.kernels.ranking import top_rows

        shortlist = np.empty(min(4 * k + 64, self.n), dtype=np.int64)
        count = top_rows(self.numerators(state, a), taken, len(shortlist), shortlist)
        shortlist = shortlist[:count]
        exact = self.influence(state, a, shortlist)
        order = np.lexsort((shortlist, -exact))[:k]
        return shortlist[order], exact[order]
