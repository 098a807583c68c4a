"""How few rows have to be left out before a coefficient says something else, with the proof."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from inconvenient.data import Dataset
from inconvenient.errors import DesignError, InputError
from inconvenient.selection.audit_goals import GOALS, AuditEntry, Auditor
from inconvenient.selection.design import DesignColumn
from inconvenient.selection.problem import Feature, Problem, choose_aim, pose_problem
from inconvenient.selection.removal import CLASSICAL, HC1, Table
from inconvenient.selection.removal_fit import refit

__all__ = ["GOALS", "Audit", "AuditEntry", "audit"]

IntArray = npt.NDArray[np.int64]


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
        """One row per goal: k (missing if not reached), coefficients, t values, proof."""
        names = ("goal", "k", "coefficient_before", "coefficient_after", "t_before", "t_after")
        rows = [{name: getattr(e, name) for name in (*names, "proof")} for e in self.entries]
        return pd.DataFrame(rows).astype({"k": "Int64"})


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
    e_j'A^-1 x_i r_i / (1 - h_i), and by one Newton step for two classes; to flip an OLS coefficient
    of a small table also by the influence on its numerator; then swaps that try to do with a row
    fewer; then all subsets, where they are few. A single two-valued feature with an
    intercept is solved exactly for "flip", "halve" and "double". Every coefficient and error
    reported comes from an independent fit from scratch, which refuses rows without which the
    design loses rank, a column becomes constant, or the classes are separable; on
    hostile tables that are not refused as collinear, the worst rounding error measured is under
    1e-9 of the coefficient or, if that is larger, of its standard error (1e-7 of a t where
    residuals are 1e-9 of the target). Greedy takes about n p operations a row, a tenth of it for
    the coefficient of 2,000 rows or more. Memory is the table, about twice while the design is
    built, and a few copies of it during a fit.

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
    index = int(aim.columns[0])
    column, kept = problem.design.columns[index], problem.kept
    design, dataset = _audited(problem, fit_intercept), problem.dataset
    # The standardised design and its copies; the table takes their place.
    del problem, aim
    table = _table(design, dataset, index, fit_intercept)
    del dataset
    n, p = table.X.shape
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
    auditor = Auditor(table, column, before, alpha, min(most, n - p - 1), max_subsets)
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
        entries=tuple(_at_input(entry, kept) for entry in entries),
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


def _audited(problem: Problem, fit_intercept: bool) -> tuple[DesignColumn, ...]:
    """Return the columns of the design, or InputError where they determine no coefficient."""
    if problem.reference.ridge > 0.0:
        raise InputError(
            "the classes are separable, so that no coefficient is finite; drop the features that "
            "separate them or use more rows"
        )
    removed = problem.design.removed
    if not fit_intercept and removed:
        raise InputError(
            f"without an intercept, constant or collinear columns have no clear meaning, got "
            f"{', '.join(map(repr, removed))}; drop them or fit an intercept"
        )
    return problem.design.encoding


def _table(
    design: tuple[DesignColumn, ...], dataset: Dataset, column: int, fit_intercept: bool
) -> Table:
    """Return the design in the units of the data."""
    from inconvenient.selection.levels import raw_values

    frame, first = dataset.X, int(fit_intercept)
    X = np.ones((len(frame), first + len(design)))
    raw = {str(name): raw_values(frame[name]) for name in frame.columns}
    for j, record in enumerate(design):
        record.fill_raw(raw[record.feature], X[:, first + j])
    y = np.array(dataset.y, dtype=np.float64)
    X.setflags(write=False)
    y.setflags(write=False)
    return Table(X, y, column - 1 + first, fit_intercept, dataset.task)


def _at_input(entry: AuditEntry, kept: IntArray) -> AuditEntry:
    rows = kept[entry.rows]
    rows.setflags(write=False)
    return dataclasses.replace(entry, rows=rows)
