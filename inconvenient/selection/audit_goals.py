"""The goals of an audit and the search for the fewest rows that reach each of them."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import numpy.typing as npt

from inconvenient.errors import InputError
from inconvenient.selection.removal import CLASSICAL, COEFFICIENT, HC1, Removal, Table
from inconvenient.selection.removal_fit import Refit, critical_t, refit
from inconvenient.selection.removal_models import open_state
from inconvenient.selection.removal_search import (
    Goal,
    best_subset,
    exchange,
    greedy,
    greedy_numerator,
    two_groups,
)

__all__ = ["GOALS", "AuditEntry", "Auditor"]

IntArray = npt.NDArray[np.int64]

#: The questions; the last one is for OLS only.
GOALS = ("flip", "halve", "double", "insignificant", "insignificant_hc1")

# One refit a subset costs ten times a subset judged in a pass over all.
_REFIT_COST = 10
# Rounds of the exchange pass, and prefixes of the greedy order that a refit may refuse.
_ROUNDS = 10
_REFUSALS = 20
# A sign counts from this share of the original coefficient on; less is rounding. So is what a half
# or a double misses by.
_ZERO = 1e-9


@dataclasses.dataclass(frozen=True, slots=True)
class AuditEntry:
    """The answer to one question.

    Parameters
    ----------
    goal : str
        "flip", "halve", "double", "insignificant" or "insignificant_hc1".
    reached : bool
        Whether rows were found and an independent fit without them confirms it.
    k : int or None
        How many rows were left out; None if not reached.
    rows : int64 (k,)
        Their positions in the input, ascending.
    coefficient_before, coefficient_after : float
        On all rows and without ``rows``, in the units of the data, by an independent fit each;
        NaN after if not reached.
    se_before, se_after : float
        Standard errors: classical for OLS, HC1 for "insignificant_hc1", inverse information for
        logistic regression.
    t_before, t_after : float
    at_least : int
        No fewer rows can reach the goal; proved by looking at all smaller sets, or trivial (1).
    proof : str
        "exhaustive" or "exact" if k is the least number; "greedy+exchange: at most k, at least
        m"; "none needed" where the goal holds on all rows; "" if not reached.
    message : str
        All of this in a sentence.
    """

    goal: str
    reached: bool
    k: int | None
    rows: IntArray
    coefficient_before: float
    coefficient_after: float
    se_before: float
    se_after: float
    t_before: float
    t_after: float
    at_least: int
    proof: str
    message: str


class Auditor:
    """Answers the goals of one coefficient.

    Parameters
    ----------
    table : Table
    column : str
        Its name, for messages.
    before : dict of Refit
        Fits of all rows by kind of standard error.
    alpha : float
    most, max_subsets : int
        Bounds on the rows left out, and on the subsets looked at for one goal.
    """

    def __init__(
        self,
        table: Table,
        column: str,
        before: dict[str, Refit],
        alpha: float,
        most: int,
        max_subsets: int,
    ) -> None:
        self._table, self._column, self._before = table, column, before
        self._alpha, self._most, self._max_subsets = alpha, most, max_subsets
        self._states: dict[str, Removal] = {}

    def goal(self, name: str) -> Goal:
        """Return a goal by its name."""
        b = self._before[CLASSICAL].coefficient
        sign, size = math.copysign(1.0, b), abs(b)
        p, task, alpha = self._table.X.shape[1], self._table.task, self._alpha
        if name == "flip":
            return Goal(name, COEFFICIENT, -sign, lambda v, left: sign * v < -_ZERO * size)
        if name == "halve":
            half = (0.5 + _ZERO) * size
            return Goal(name, COEFFICIENT, -sign, lambda v, left: sign * v <= half)
        if name == "double":
            double = (2.0 - _ZERO) * size
            return Goal(name, COEFFICIENT, sign, lambda v, left: sign * v >= double)
        kind = HC1 if name == "insignificant_hc1" else CLASSICAL
        return Goal(
            name, kind, -sign, lambda v, left: abs(v) < critical_t(left - p, task=task, alpha=alpha)
        )

    def entries(self, goals: list[Goal]) -> list[AuditEntry]:
        """Return the answers in the order of the goals, rows as positions in the table."""
        found: dict[str, IntArray] = {}
        trivial = {goal.name for goal in goals if self._confirms(goal, np.empty(0, dtype=np.int64))}
        open_goals = [goal for goal in goals if goal.name not in trivial]
        for kind, direction in dict.fromkeys((g.kind, g.direction) for g in open_goals):
            path = [g for g in open_goals if (g.kind, g.direction) == (kind, direction)]
            found |= self._first_prefixes(path)
        return [
            self._entry(goal, np.empty(0, dtype=np.int64), 0, "none needed")
            if goal.name in trivial
            else self._improved(goal, found.get(goal.name))
            for goal in goals
        ]

    def _state(self, kind: str) -> Removal:
        if kind not in self._states:
            other = next(iter(self._states.values()), None)
            self._states[kind] = (
                open_state(self._table, kind)
                if other is None or not other.ok
                else other.follow(kind)
            )
        state = self._states[kind]
        if not state.ok:
            raise InputError(
                f"the coefficient of {self._column!r} is not determined: some columns nearly "
                "repeat each other on these rows; drop one of them"
            )
        return state

    def _confirms(self, goal: Goal, rows: IntArray) -> bool:
        """Tell whether an independent fit without the rows reaches the goal."""
        left = len(self._table.y) - len(rows)
        if len(rows):
            fit = refit(self._table, rows, goal.kind)
        else:
            fit = self._before[HC1 if goal.kind == HC1 else CLASSICAL]
        value = fit.coefficient if goal.kind == COEFFICIENT else fit.t
        return fit.status == "ok" and math.isfinite(value) and goal.met(value, left)

    def _first_prefixes(self, goals: list[Goal]) -> dict[str, IntArray]:
        """Remove greedily; return for each goal the first confirmed prefix that reaches it."""
        found: dict[str, IntArray] = {}
        refused = dict.fromkeys((goal.name for goal in goals), 0)
        state, order = self._state(goals[0].kind).copy(), []
        for i, value in greedy(state, goals[0].direction, self._most):
            order.append(i)
            for goal in goals:
                if goal.name in found or refused[goal.name] >= _REFUSALS:
                    continue
                if goal.met(value, state.left):
                    rows = np.array(order, dtype=np.int64)
                    if self._confirms(goal, rows):
                        found[goal.name] = rows
                    else:
                        refused[goal.name] += 1
            if all(g.name in found or refused[g.name] >= _REFUSALS for g in goals):
                break
        return found

    def _by_numerator(self, goal: Goal, rows: IntArray | None) -> IntArray | None:
        """Return the first confirmed prefix of the other greedy order that is shorter, or None."""
        order: list[int] = []
        state = self._state(goal.kind).copy()
        most, refused = self._most if rows is None else len(rows) - 1, 0
        for i, value in greedy_numerator(state, goal.direction, most):
            order.append(i)
            if goal.met(value, state.left):
                found = np.array(order, dtype=np.int64)
                if self._confirms(goal, found):
                    return found
                refused += 1
                if refused >= _REFUSALS:
                    break
        return None

    def _improved(self, goal: Goal, rows: IntArray | None) -> AuditEntry:
        exact = two_groups(self._table, goal)
        if exact is not None and 0 < len(exact) <= self._most and self._confirms(goal, exact):
            return self._entry(goal, exact, len(exact), "exact")
        state = self._state(goal.kind)
        if goal.name == "flip":
            shorter = self._by_numerator(goal, rows)
            rows = rows if shorter is None else shorter
        for _ in range(_ROUNDS if rows is not None else 0):
            better = exchange(state, rows, goal) if rows is not None and len(rows) > 1 else None
            if better is None or not self._confirms(goal, better):
                break
            rows = better
        most = self._most if rows is None else len(rows) - 1
        smaller, proved = self._exhaustive(goal, most)
        if smaller is not None:
            rows = smaller
        if rows is None:
            return self._entry(goal, None, proved + 1, "")
        k = len(rows)
        if proved == k - 1:
            return self._entry(goal, rows, k, "exhaustive")
        return self._entry(
            goal, rows, proved + 1, f"greedy+exchange: at most {k}, at least {proved + 1}"
        )

    def _exhaustive(self, goal: Goal, most: int) -> tuple[IntArray | None, int]:
        """Return the smallest set of up to ``most`` rows, or None, and the size ruled out."""
        state = self._state(goal.kind)
        bound = self._max_subsets if state.exact else self._max_subsets // _REFIT_COST
        looked = 0
        for size in range(1, most + 1):
            looked += math.comb(len(self._table.y), size)
            if looked > bound:
                return None, size - 1
            for rows in best_subset(state, size, goal):
                if self._confirms(goal, rows):
                    return rows, size - 1
        return None, most

    def _entry(self, goal: Goal, rows: IntArray | None, at_least: int, proof: str) -> AuditEntry:
        kind = HC1 if goal.kind == HC1 else CLASSICAL
        before = self._before[kind]
        reached = rows is not None
        rows = np.sort(rows) if rows is not None else np.empty(0, dtype=np.int64)
        after = refit(self._table, rows, kind) if len(rows) else before
        k, n = len(rows), len(self._table.y)
        if not reached:
            message = (
                f"{goal.name} {self._column}: no set of up to {self._most} of {n} rows was found; "
                f"at least {at_least} would have to go"
            )
            after = Refit(math.nan, math.nan, math.nan, "unmet")
        else:
            message = (
                f"{goal.name} {self._column}: without {k} of {n} rows, {before.coefficient:.4g} "
                f"(t {before.t:.3g}) becomes {after.coefficient:.4g} (t {after.t:.3g}); {proof}"
            )
        return AuditEntry(
            goal=goal.name,
            reached=reached,
            k=k if reached else None,
            rows=rows,
            coefficient_before=before.coefficient,
            coefficient_after=after.coefficient,
            se_before=before.se,
            se_after=after.se,
            t_before=before.t,
            t_after=after.t,
            at_least=at_least,
            proof=proof,
            message=message,
        )
