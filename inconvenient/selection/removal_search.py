"""Searches for few rows whose removal reaches a goal: greedy, exchange, exhaustive, two groups."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from inconvenient.selection.removal import COEFFICIENT, Removal, Table
from inconvenient.selection.removal_models import LeastSquares
from inconvenient.selection.removal_shortlist import listed, pays

__all__ = ["Goal", "best_subset", "exchange", "greedy", "greedy_numerator", "two_groups"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Work of one exchange pass: multiply-adds, and steps whatever the size of the table.
_WORK = 2e8
_STEPS = 20_000
# Selections up to this size are left through each of their rows in turn.
_STARTS = 12
# Steps over all rows before short lists are tried again; twice as many each time they fail.
_PLAIN = 64
# How many single rows, the best first, a start may begin with.
_FIRST = 64


@dataclasses.dataclass(frozen=True, slots=True)
class Goal:
    """What the removal of rows is to reach.

    Parameters
    ----------
    name : str
    kind : {"coefficient", "classical", "HC1"}
        The value that is followed.
    direction : {-1.0, 1.0}
        Whether the value has to fall or to rise.
    met : callable
        (value, number of rows left) -> bool.
    """

    name: str
    kind: str
    direction: float
    met: Callable[[float, int], bool]


def greedy(state: Removal, direction: float, most: int) -> Iterator[tuple[int, float]]:
    """Remove the row that moves the value furthest, again and again.

    Parameters
    ----------
    state : Removal
        Changed in place.
    direction : float
    most : int
        Rows to remove at most.

    Yields
    ------
    (int, float)
        The row, ties to the smaller one, and the value without it. Ends where no row moves the
        value in this direction and leaves a fit.

    Notes
    -----
    Two passes of n p and about 20 n operations a row; for an OLS coefficient of 2,000 rows or more
    about a tenth of that, by short lists outside which no row can be better.
    """
    done, pause = 0, _PLAIN
    while done < most:
        if pays(state, most - done):
            before = done
            for i in itertools.islice(listed(state, direction), most - done):
                done += 1
                yield i, state.value()
            pause = _PLAIN if done - before > _PLAIN else 2 * pause
        for _ in range(min(pause, most - done)):
            while True:
                i, gain = _best(state, direction)
                if not gain > direction * state.value():
                    return
                if state.remove(i):
                    break
            done += 1
            yield i, state.value()


def greedy_numerator(state: Removal, direction: float, most: int) -> Iterator[tuple[int, float]]:
    """Remove the row that moves the numerator of an OLS coefficient furthest, again and again.

    Parameters
    ----------
    state, direction, most
        As for :func:`greedy`. Nothing is removed for other models, nor where the steps would take
        more than 2e8 multiply-adds.

    Yields
    ------
    (int, float)
        The row and the value without it.

    Notes
    -----
    A coefficient flips with its numerator. Greedy on the coefficient also removes rows for their
    part in the denominator, and where few rows carry a column needs many more of them.
    """
    if not isinstance(state, LeastSquares) or most * state.table.X.size > _WORK:
        return
    for _ in range(most):
        after = direction * state.numerators_after()
        after[np.isnan(after)] = -math.inf
        i = int(np.argmax(after))
        if not after[i] > -math.inf or not state.remove(i):
            return
        yield i, state.value()


def _best(state: Removal, direction: float) -> tuple[int, float]:
    """Return the row whose removal takes the value furthest, and direction times that value."""
    values = direction * state.values_after()
    values[np.isnan(values)] = -math.inf
    i = int(np.argmax(values))
    return i, float(values[i])


def exchange(state: Removal, rows: IntArray, goal: Goal) -> IntArray | None:
    """Try to reach a goal with one row fewer, by swapping rows of a selection for others.

    Parameters
    ----------
    state : Removal
        Of the goal's kind, with any rows removed; not changed.
    rows : int64 (k,)
        A selection that reaches the goal.
    goal : Goal

    Returns
    -------
    int64 (k - 1,) or None
        Rows in order of their number.

    Notes
    -----
    Starts from the selection without one of its rows, each in turn up to k = 12, else the one that
    comes last (in greedy order the least useful); up to k = 12 also from greedy selections that
    begin with each of the 64 best single rows. A swap puts one removed row back and removes the
    best one instead; it is kept if it moves the value. Ends at local optima or after 2e8
    multiply-adds.
    """
    budget = [min(_STEPS, int(_WORK / state.table.X.size) + 8)]
    for current in _starts(state, rows, goal, budget):
        while True:
            if goal.met(current.value(), current.left):
                return np.flatnonzero(current.gone)
            improved = False
            for s in np.flatnonzero(current.gone).tolist():
                if budget[0] <= 0:
                    return None
                budget[0] -= 2
                if _swap(current, s, goal.direction):
                    improved = True
                    if goal.met(current.value(), current.left):
                        break
            if not improved:
                break
    return None


def _starts(state: Removal, rows: IntArray, goal: Goal, budget: list[int]) -> Iterator[Removal]:
    """Yield selections of one row fewer from which to swap, and count their steps."""
    k = len(rows)
    for drop in rows[::-1] if k <= _STARTS else rows[-1:]:
        current = state.without(rows[rows != drop])
        if current is not None:
            yield current
    if k > _STARTS:
        return
    everything = state.without([])
    if everything is None:
        return
    values = goal.direction * everything.values_after()
    values[np.isnan(values)] = -math.inf
    for first in np.argsort(-values, kind="stable")[:_FIRST].tolist():
        budget[0] -= k
        if budget[0] <= 0:
            return
        current = everything.copy()
        if current.remove(first):
            taken = sum(1 for _ in greedy(current, goal.direction, k - 2))
            if taken == k - 2:
                yield current


def _swap(state: Removal, s: int, direction: float) -> bool:
    """Put row s back and remove the best row instead; True if that is another, better one."""
    before = direction * state.value()
    twin = state.copy()
    if not twin.restore(s):
        return False
    i, gain = _best(twin, direction)
    if i == s or not gain > before + 1e-9 * abs(before) or not twin.remove(i):
        return False
    if not direction * twin.value() > before + 1e-9 * abs(before):
        return False
    state.__dict__.update(twin.__dict__)
    return True


def best_subset(state: Removal, size: int, goal: Goal) -> list[IntArray]:
    """Return the subsets of a size whose removal reaches a goal, by looking at every one.

    Parameters
    ----------
    state : Removal
        Of all rows and the goal's kind.
    size : int
        At least 1.
    goal : Goal

    Returns
    -------
    list of int64 (size,)
        The furthest first, at most 16. Subsets without which there is no fit are not among them.

    Notes
    -----
    A tree over subsets of size - 1; the last row of all subsets with the same others is judged in
    one pass: (n choose size - 1) passes of n p for OLS, (n choose size) refits for logistic
    regression.
    """
    found: list[tuple[float, tuple[int, ...]]] = []

    def walk(node: Removal, rows: tuple[int, ...]) -> None:
        start = rows[-1] + 1 if rows else 0
        if len(rows) == size - 1:
            values = node.refitted_values()
            for i in range(start, len(values)):
                value = float(values[i])
                if not math.isnan(value) and goal.met(value, node.left - 1):
                    found.append((-goal.direction * value, (*rows, i)))
            return
        for i in range(start, len(node.gone) - (size - 1 - len(rows))):
            child = node.copy()
            if child.remove(i):
                walk(child, (*rows, i))

    walk(state, ())
    return [np.array(rows, dtype=np.int64) for _, rows in sorted(found)[:16]]


def two_groups(table: Table, goal: Goal) -> IntArray | None:
    """Return the fewest rows for a single two-valued feature beside an intercept.

    Parameters
    ----------
    table : Table
    goal : Goal
        On the coefficient.

    Returns
    -------
    int64 (k,) or None
        None if the table or the goal is another, or if no removal that leaves every cell occupied
        reaches the goal.

    Notes
    -----
    The OLS coefficient is a difference of two means over the width w of the feature; a mean of k
    rows fewer is lowest without the k largest. The logistic one is log(a d / (b c)) / w of the
    2 x 2 table, which falls only by rows of the cells a and d. Either is a sum f(k_1) + g(k_2) of
    falling sequences, so that for every k_1 the least k_2 is found by bisection: O(n log n).
    """
    X = table.X
    if not table.intercept or X.shape[1] != 2 or goal.kind != COEFFICIENT:
        return None
    low, high = float(X[:, 1].min()), float(X[:, 1].max())
    if not np.all((X[:, 1] == low) | (X[:, 1] == high)):
        return None
    upper = X[:, 1] == high
    # A coefficient that has to rise falls with the target's sign turned.
    first = _falling(table, np.flatnonzero(upper), goal.direction)
    second = _falling(table, np.flatnonzero(~upper), -goal.direction)
    n = len(X)
    best: tuple[int, int] | None = None
    for k in range(len(first[1])):
        if best is not None and k >= sum(best):
            break
        a, b = 0, len(second[1])
        while a < b:
            middle = (a + b) // 2
            value = (first[1][k] + second[1][middle]) / (high - low)
            if goal.met(-goal.direction * value, n - k - middle):
                b = middle
            else:
                a = middle + 1
        if a < len(second[1]) and (best is None or k + a < sum(best)):
            best = (k, a)
    if best is None:
        return None
    return np.sort(np.concatenate([first[0][: best[0]], second[0][: best[1]]]))


def _falling(table: Table, rows: IntArray, direction: float) -> tuple[IntArray, FloatArray]:
    """Return rows in the order of removal, and -direction times the group's part after each k."""
    y = table.y[rows]
    if table.task == "regression":
        # Means fall fastest without their largest members; the sign turns the other group.
        signed = -direction * y
        order = np.lexsort((rows, -signed))
        ordered = signed[order][::-1]
        means = (np.cumsum(ordered) / np.arange(1, len(rows) + 1))[::-1]
        return rows[order], means
    ones = direction < 0.0
    cell = rows[y == float(ones)]
    other = len(rows) - len(cell)
    # Logarithms of kernels, which are the same on every machine.
    from inconvenient.kernels.removal import logarithms

    counts = np.append(np.arange(len(cell), 0, -1), other).astype(np.float64)
    logs = np.empty(len(counts))
    logarithms(counts, logs)
    return cell, logs[:-1] - logs[-1]
