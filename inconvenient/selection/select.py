"""Selection from a table of one's own: rows whose refit bends a coefficient, verified."""

from __future__ import annotations

import dataclasses
import math
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from inconvenient.errors import InputError, UnmetError
from inconvenient.selection.chance import UniformFits
from inconvenient.selection.criterion import Criterion
from inconvenient.selection.finding import STRATEGIES, Finder, Found, achieved
from inconvenient.selection.problem import (
    MIN_CLASS,
    Feature,
    Problem,
    choose_aim,
    pose_problem,
    required_size,
)
from inconvenient.selection.reference import Aim
from inconvenient.selection.strategies import Trajectory, push, seed_sample, uniform_order

__all__ = ["Selection", "select", "trajectory"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_MOST_UNIFORM = 10_000


@dataclasses.dataclass(frozen=True, slots=True)
class Selection:
    """Selected rows and what they do to the bent coefficients.

    Parameters
    ----------
    indices : int64 (k,)
        Positions in the input, in selection order.
    table : DataFrame (L, 5)
        One row per bent coefficient: column, class_ ("" unless multiclass), reference (all rows),
        sample (selected rows), ratio; in pool-standardised units.
    verified : bool
        Whether an independent fit on the rows meets the criterion.
    outcome : str
        "verified", or the reason why not.
    strategy : str
        "push", "steer" or "exchange".
    size : int
        Number of selected rows.
    fraction : float
        Of the input, in (0, 1].
    p_uniform : float
        Share of uniform samples of this size that meet the criterion by chance; NaN if none were
        drawn.
    ridge : float
        Penalty of the reference model; 0 unless the classes are separable.
    message : str
        All of this in a sentence or two.
    """

    indices: IntArray
    table: pd.DataFrame
    verified: bool
    outcome: str
    strategy: str
    size: int
    fraction: float
    p_uniform: float
    ridge: float
    message: str


def _count(value: Any, name: str) -> int:
    """Return a whole number that is not negative, or raise InputError."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise InputError(f"{name} must be a whole number, 0 or more, got {value!r}")
    return int(value)


def _factor(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise InputError(f"factor must be a number, got {value!r}")
    return float(value)


def select(
    X: Any,
    y: Any,
    *,
    operation: str = "flip",
    feature: Feature | None = None,
    bin: str | None = None,
    factor: float | None = None,
    min_fraction: float = 0.2,
    mode: str = "at_least",
    class_: Any = None,
    task: str | None = None,
    strategy: str = "auto",
    uniform_samples: int = 100,
    seed: int = 0,
    missing_target: str = "raise",
    on_unmet: str = "raise",
) -> Selection:
    """Select rows on which a coefficient is amplified, attenuated or sign-flipped.

    Parameters
    ----------
    X : DataFrame or array (n, m)
        Features: numbers, booleans, strings, categories; gaps are fine. Never changed.
    y : Series or array (n,)
        Target: numbers for a regression, labels for classes.
    operation : {"flip", "amplify", "attenuate"}
    feature : str or (str, str), optional
        The feature to bend, or one level of a categorical one; the most important by default.
    bin : {"top", "middle", "bottom"}, optional
        Bend all features of an importance bin together instead.
    factor : float, optional
        In [1.15, 5] for amplify, in [0.2, 0.9] for attenuate.
    min_fraction : float
        Least share of the rows to select, in (0, 1].
    mode : {"at_least", "band"}
        Whether the factor is a bound, or a dose: |b' / b| in [f, 1.1 f] for amplify and in
        [0.9 f, f] for attenuate, on at most 5 % more rows than the least.
    class_ : label, optional
        Multiclass: the class whose coefficient is bent; the largest by default.
    task : {"regression", "binary", "multiclass"}, optional
        Inferred from y by default.
    strategy : {"auto", "push", "steer", "exchange"}
        "auto" takes the one that meets most, then the next.
    uniform_samples : int
        Samples behind ``p_uniform``, at most 10,000; 0 for none.
    seed : int
        Of the seed sample and the uniform samples, >= 0.
    missing_target : {"raise", "drop"}
        What to do with rows without a target.
    on_unmet : {"raise", "best"}
        Raise, or return the nearest selection with a warning (raise all the same where no sample
        had a fit).

    Returns
    -------
    Selection

    Raises
    ------
    InputError
        If the table or an argument cannot be used; the message names the column and the way out.
    UnmetError
        If no selection met the criterion and ``on_unmet`` is "raise"; ``best`` holds the nearest.

    Notes
    -----
    The reference model is OLS, logistic or multinomial regression on all rows with a target. Its
    columns: numbers with gaps filled by the median; strings, categories and booleans one-hot
    without the most frequent level, levels under 1 % of the rows merged into "(other)", a gap
    being a level "(missing)"; all standardised by mean and standard deviation (divisor n), as is
    a numeric target; exact linear dependencies removed. The positive one of two classes is the
    last in sorted order; multinomial coefficients sum to zero over the classes. Where the classes
    are separable the mean loss is penalised by (0.001 / 2) ||b||^2, on all fits alike
    (scikit-learn: C = 1000 / rows). A feature's coefficient is its largest in absolute value over
    its columns and classes.

    Influence of a row by one rank-one Newton step (exact for OLS), greedy batches, refits in
    between, and an independent fit of the result from scratch. About 50 passes of 2 n p
    multiply-adds over the table, plus refits of the sample.

    Examples
    --------
    >>> import inconvenient as ic
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> s = ic.select(X, y, operation="flip", feature="bmi", min_fraction=0.3)
    >>> s.verified
    True
    """
    criterion = Criterion(operation, _factor(factor), mode)
    seed, uniform_samples = _count(seed, "seed"), _count(uniform_samples, "uniform_samples")
    if strategy not in ("auto", *STRATEGIES):
        raise InputError(
            f"strategy must be auto or one of {', '.join(STRATEGIES)}, got {strategy!r}"
        )
    if not isinstance(on_unmet, str) or on_unmet not in ("raise", "best"):
        raise InputError(f"on_unmet must be raise or best, got {on_unmet!r}")
    if uniform_samples > _MOST_UNIFORM:
        raise InputError(
            f"uniform_samples must be at most {_MOST_UNIFORM}, got {uniform_samples}; "
            "100 give p_uniform to a few hundredths"
        )
    problem = pose_problem(X, y, task, missing_target)
    size = required_size(problem, min_fraction)
    name, aim = choose_aim(problem, feature, bin, class_)
    if len(aim.columns) > 1 and mode == "band":
        raise InputError("mode 'band' needs a single feature, got a bin; use mode 'at_least'")
    finder = Finder(
        problem.engine,
        problem.reference,
        sizes=(size,),
        criteria=(criterion,),
        seed=seed,
        min_class=MIN_CLASS,
    )
    found = finder.find(aim, criterion, size, strategy)
    p_uniform = math.nan
    if uniform_samples and found.rows is not None:
        fits = UniformFits(
            problem.engine, problem.reference, samples=uniform_samples, seed=seed, name="table"
        )
        p_uniform = fits.share_meeting(aim, criterion, len(found.rows))
    selection = _selection(problem, name, aim, criterion, size, found, p_uniform)
    if selection.verified:
        return selection
    if on_unmet == "raise" or found.rows is None:
        raise UnmetError(selection.message, selection if found.rows is not None else None)
    warnings.warn(selection.message, UserWarning, stacklevel=2)
    return selection


def _selection(
    problem: Problem,
    name: str,
    aim: Aim,
    criterion: Criterion,
    size: int,
    found: Found,
    p_uniform: float,
) -> Selection:
    multiclass = problem.dataset.task == "multiclass"
    sample = np.full(len(aim.columns), np.nan) if found.sample is None else found.sample
    table = pd.DataFrame(
        {
            "column": [problem.design.columns[j] for j in aim.columns],
            "class_": [problem.dataset.classes[c] if multiclass else "" for c in aim.classes],
            "reference": aim.reference,
            "sample": sample,
            "ratio": sample / aim.reference,
        }
    )
    rows = np.empty(0, dtype=np.int64) if found.rows is None else found.rows
    fraction = len(rows) / problem.engine.n
    return Selection(
        indices=problem.kept[rows],
        table=table,
        verified=found.outcome == "verified",
        outcome=found.outcome,
        strategy=found.strategy,
        size=len(rows),
        fraction=fraction,
        p_uniform=p_uniform,
        ridge=problem.reference.ridge,
        message=_message(name, aim, criterion, size, found, problem.engine.n),
    )


_WHY = {
    "unmet": "no selection reached it",
    "rank_loss": "the selected rows leave the coefficients undetermined (rank loss)",
    "constant_column": "a column no longer varies on the selected rows",
    "small_class": "a class keeps under five rows on the selected rows",
    "separation": "the classes are separable on the selected rows, or nearly: no sound fit exists",
    "close_call": "it is met only within 1e-6 of its threshold",
    "not_confirmed": "the independent fit does not confirm it",
}


def _message(name: str, aim: Aim, criterion: Criterion, size: int, found: Found, n: int) -> str:
    wish = criterion.operation + ("" if criterion.factor is None else f" by {criterion.factor:g}")
    if found.rows is not None and found.sample is not None:
        ratio = achieved(criterion.operation, aim.reference, found.sample)
        reached = f"{len(found.rows)} of {n} rows, coefficient times {ratio:.3g}"
    else:
        reached = "no sample with a fit"
    if found.outcome == "verified":
        return f"{wish} {name}: {reached} ({found.strategy})"
    return (
        f"{wish} {name} on at least {size} of {n} rows was not met: {_WHY[found.outcome]}; "
        f"nearest: {reached}. Try a smaller min_fraction, another factor or another feature"
    )


def trajectory(
    X: Any,
    y: Any,
    *,
    feature: Feature | None = None,
    direction: int = -1,
    class_: Any = None,
    task: str | None = None,
    seed: int = 0,
) -> Trajectory:
    """Return the greedy order of all rows that pushes a coefficient up or down.

    Parameters
    ----------
    X, y, feature, class_, task, seed
        As for :func:`select`.
    direction : {-1, 1}
        1 away from zero (amplify), -1 towards and through it (attenuate, flip).

    Returns
    -------
    Trajectory
        Rows in selection order with the refitted coefficient after each batch.

    Raises
    ------
    InputError
        As for :func:`select`.
    """
    if not isinstance(direction, int | float | np.integer) or direction not in (-1, 1):
        raise InputError(f"direction must be 1 or -1, got {direction!r}")
    seed = _count(seed, "seed")
    problem = pose_problem(X, y, task, "raise")
    _, aim = choose_aim(problem, feature, None, class_)
    n, free = problem.engine.n, problem.design.free_coefficients
    order = uniform_order(n, seed)
    start = seed_sample(problem.engine, order, min(n, max(20, 2 * free)))
    return push(
        problem.engine,
        aim,
        direction * np.sign(aim.reference),
        start=start,
        free_from=min(n, 5 * free),
        stops=(n,),
        ridge=problem.reference.ridge,
    )
