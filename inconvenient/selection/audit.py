"""How few rows have to be left out before a coefficient says something else, with the proof."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from inconvenient.errors import DesignError, InputError
from inconvenient.selection.problem import Feature, Problem, choose_aim, pose_problem
from inconvenient.selection.removal import CLASSICAL, COEFFICIENT, HC1, Removal, Table
from inconvenient.selection.removal_fit import Refit, critical_t, refit
from inconvenient.selection.removal_search import (
    Goal,
    best_subset,
    exchange,
    greedy,
    open_state,
    two_groups,
)

__all__ = ["GOALS", "Audit", "AuditEntry", "audit"]

IntArray = npt.NDArray[np.int64]

#: The questions; the last one is for OLS only.
GOALS = ("flip", "halve", "double", "insignificant", "insignificant_hc1")

# One refit a subset costs ten times a subset judged in a pass over all.
_REFIT_COST = 10
# Rounds of the exchange pass, and prefixes of the greedy order that a refit may refuse.
_ROUNDS = 10
_REFUSALS = 20
# A sign counts from this share of the original coefficient on; less is rounding.
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


@dataclasses.dataclass(frozen=True, slots=True)
class Audit:
    """What :func:`audit` found.

    Parameters
    ----------
    feature, column : str
        The raw feature, and its design column ("age", "region=north").
    task : {"regression", "binary"}
    n, p : int
        Rows, and coefficients with the intercept.
    fit_intercept : bool
    alpha : float
        Level of significance.
    coefficient, se, t : float
        On all rows, in the units of the data; classical or inverse-information errors.
    entries : tuple of AuditEntry
        One per goal, in the order asked.
    """

    feature: str
    column: str
    task: str
    n: int
    p: int
    fit_intercept: bool
    alpha: float
    coefficient: float
    se: float
    t: float
    entries: tuple[AuditEntry, ...]

    def __getitem__(self, goal: str) -> AuditEntry:
        """Return the answer to one goal."""
        for entry in self.entries:
            if entry.goal == goal:
                return entry
        raise KeyError(f"{goal!r} was not asked; asked: {', '.join(e.goal for e in self.entries)}")

    @property
    def table(self) -> pd.DataFrame:
        """One row per goal: k, coefficients, t values, proof."""
        names = ("goal", "k", "coefficient_before", "coefficient_after", "t_before", "t_after")
        return pd.DataFrame(
            [{name: getattr(e, name) for name in (*names, "proof")} for e in self.entries]
        )


def audit(
    X: Any,
    y: Any,
    *,
    feature: Feature,
    goals: Sequence[str] | str | None = None,
    fit_intercept: bool = True,
    alpha: float = 0.05,
    max_rows: int | None = None,
    max_subsets: int = 100_000,
    task: str | None = None,
    missing_target: str = "raise",
) -> Audit:
    """Find how few rows decide a coefficient.

    Parameters
    ----------
    X : DataFrame or array (n, m)
        Features. Numbers enter as they are (gaps as the median), categorical columns one-hot
        without the most frequent level, rare levels merged. Never changed.
    y : Series or array (n,)
        Numbers for a regression (OLS), two labels for a logistic regression of the last label.
    feature : str or (str, str)
        Whose coefficient is audited; (column, level) for a level, the level with the largest
        coefficient by default.
    goals : str or sequence of str, optional
        "flip" (its sign), "halve" (at most half of it is left, a flip included), "double" (at
        least twice), "insignificant" (|t| under the critical value, classical errors; inverse
        information for classes), "insignificant_hc1". All that apply by default.
    fit_intercept : bool
        Whether the model has an intercept.
    alpha : float
        Two-sided level of significance, in (0, 1); Student's t with n - p degrees of freedom for
        OLS, the normal distribution for classes.
    max_rows : int, optional
        Rows to leave out at most; by default all but p + 1 up to 2,000 rows, else a tenth.
    max_subsets : int
        Bound on the number of subsets that the exhaustive search looks at for one goal; a tenth
        of it where each needs a refit (classes; HC1 errors of more than 300 rows). 0 for none.
    task : {"regression", "binary"}, optional
        Inferred from y by default.
    missing_target : {"raise", "drop"}
        What to do with rows without a target.

    Returns
    -------
    Audit

    Raises
    ------
    InputError
        If the table or an argument cannot be used: a constant or collinear feature, more than two
        classes, separable classes, a coefficient of zero; the message says the way out.

    Notes
    -----
    Greedy removal with a refit after every row, by the exact influence of leaving it out for OLS,
    e_j'A^-1 x_i r_i / (1 - h_i), and by one Newton step for two classes; then swaps that try to do
    with a row fewer; then all subsets, where they are few. A single two-valued feature with an
    intercept is solved exactly for "flip", "halve" and "double". Every coefficient and error
    reported comes from an independent fit from scratch, which refuses rows without which the
    design loses rank, a column becomes constant, or the classes are separable. Greedy takes about
    n p operations a row.

    Examples
    --------
    >>> import inconvenient as ic
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> ic.audit(X, y, feature="age", goals="flip")["flip"].k
    1
    """
    _check(fit_intercept, alpha, max_rows, max_subsets)
    problem = _pose(X, y, feature, task, missing_target)
    if problem.dataset.task == "multiclass":
        raise InputError(
            f"audit needs a regression or two classes, got {len(problem.dataset.classes)} classes; "
            'pass task="regression" if the target is a number, or one class against the rest'
        )
    name, aim = choose_aim(problem, feature, None, None)
    table = _table(problem, int(aim.columns[0]), fit_intercept)
    n, p = table.X.shape
    column = problem.design.columns[int(aim.columns[0])]
    asked = _goals(goals, table.task)
    none = np.empty(0, dtype=np.int64)
    first = refit(table, none, CLASSICAL)
    if first.status != "ok":
        raise InputError(
            f"the coefficient of {name!r} is not determined on all rows ({first.status}); "
            "drop columns that repeat each other, or use more rows"
        )
    if first.coefficient == 0.0:
        raise InputError(f"the coefficient of {name!r} is exactly zero; name another feature")
    before = {CLASSICAL: first}
    if "insignificant_hc1" in asked:
        before[HC1] = refit(table, none, HC1)
    most = (n - p - 1 if n <= 2000 else n // 10) if max_rows is None else max_rows
    auditor = _Auditor(table, column, before, alpha, min(most, n - p - 1), max_subsets)
    entries = auditor.entries([auditor.goal(name) for name in asked])
    return Audit(
        feature=name,
        column=column,
        task=table.task,
        n=n,
        p=p,
        fit_intercept=fit_intercept,
        alpha=float(alpha),
        coefficient=first.coefficient,
        se=first.se,
        t=first.t,
        entries=tuple(_at_input(entry, problem.kept) for entry in entries),
    )


def _check(fit_intercept: Any, alpha: Any, max_rows: Any, max_subsets: Any) -> None:
    if not isinstance(fit_intercept, bool | np.bool_):
        raise InputError(f"fit_intercept must be True or False, got {fit_intercept!r}")
    number = isinstance(alpha, int | float | np.number) and not isinstance(alpha, bool)
    if not number or not 0.0 < alpha < 1.0:
        raise InputError(f"alpha must be a number in (0, 1), got {alpha!r}")
    for value, name, least in ((max_rows, "max_rows", 1), (max_subsets, "max_subsets", 0)):
        if value is None and name == "max_rows":
            continue
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not whole or value < least:
            raise InputError(f"{name} must be a whole number, {least} or more, got {value!r}")


def _goals(goals: Sequence[str] | str | None, task: str) -> tuple[str, ...]:
    usable = GOALS if task == "regression" else GOALS[:-1]
    if goals is None:
        return usable
    asked = (goals,) if isinstance(goals, str) else tuple(goals)
    for goal in asked:
        if goal not in usable:
            raise InputError(f"goals must be among {', '.join(usable)} for {task}, got {goal!r}")
    if not asked or len(set(asked)) < len(asked):
        raise InputError(f"goals must name at least one goal, each once, got {goals!r}")
    return asked


def _pose(X: Any, y: Any, feature: Any, task: str | None, missing_target: str) -> Problem:
    try:
        return pose_problem(X, y, task, missing_target)
    except DesignError as error:
        raise DesignError(f"feature {feature!r} cannot be audited: {error}") from error


def _table(problem: Problem, column: int, fit_intercept: bool) -> Table:
    """Return the design in the units of the data."""
    from inconvenient.selection.levels import raw_values

    design, frame = problem.design, problem.dataset.X
    if problem.reference.ridge > 0.0:
        raise InputError(
            "the classes are separable, so that no coefficient is finite; drop the features that "
            "separate them or use more rows"
        )
    if not fit_intercept and design.removed:
        raise InputError(
            f"without an intercept, constant or collinear columns have no clear meaning, got "
            f"{', '.join(map(repr, design.removed))}; drop them or fit an intercept"
        )
    X = np.ones(design.X.shape)
    raw = {str(name): raw_values(frame[name]) for name in frame.columns}
    for j, record in enumerate(design.encoding):
        X[:, 1 + j] = record.raw(raw[record.feature])
    if not fit_intercept:
        X, column = np.ascontiguousarray(X[:, 1:]), column - 1
    y = np.array(problem.dataset.y, dtype=np.float64)
    X.setflags(write=False)
    y.setflags(write=False)
    return Table(X, y, column, fit_intercept, design.task)


def _at_input(entry: AuditEntry, kept: IntArray) -> AuditEntry:
    rows = kept[entry.rows]
    rows.setflags(write=False)
    return dataclasses.replace(entry, rows=rows)


class _Auditor:
    """Answers the goals of one coefficient."""

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
        b = self._before[CLASSICAL].coefficient
        sign, size = math.copysign(1.0, b), abs(b)
        p, task, alpha = self._table.X.shape[1], self._table.task, self._alpha
        if name == "flip":
            return Goal(name, COEFFICIENT, -sign, lambda v, left: sign * v < -_ZERO * size)
        if name == "halve":
            return Goal(name, COEFFICIENT, -sign, lambda v, left: sign * v <= 0.5 * size)
        if name == "double":
            return Goal(name, COEFFICIENT, sign, lambda v, left: sign * v >= 2.0 * size)
        kind = HC1 if name == "insignificant_hc1" else CLASSICAL
        return Goal(
            name, kind, -sign, lambda v, left: abs(v) < critical_t(left - p, task=task, alpha=alpha)
        )

    def entries(self, goals: list[Goal]) -> list[AuditEntry]:
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
            self._states[kind] = open_state(self._table, kind)
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

    def _improved(self, goal: Goal, rows: IntArray | None) -> AuditEntry:
        exact = two_groups(self._table, goal)
        if exact is not None and 0 < len(exact) <= self._most and self._confirms(goal, exact):
            return self._entry(goal, exact, len(exact), "exact")
        state = self._state(goal.kind)
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
