"""Selection from a table of one's own: rows whose refit bends a coefficient, verified."""

from __future__ import annotations

import dataclasses
import math
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from inconvenient.data import Dataset, as_frame, check_feature, prepare_table
from inconvenient.errors import InputError, UnmetError
from inconvenient.selection.chance import UniformFits
from inconvenient.selection.criterion import Criterion
from inconvenient.selection.design import Design, build_design
from inconvenient.selection.engine import Engine
from inconvenient.selection.finding import STRATEGIES, Finder, Found, achieved
from inconvenient.selection.importance import importance, importance_bins
from inconvenient.selection.reference import Aim, ReferenceModel, aim_at, fit_reference
from inconvenient.selection.strategies import Trajectory, push, seed_sample, uniform_order

__all__ = ["BINS", "Selection", "select", "trajectory"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Feature = str | tuple[str, str]

BINS = ("top", "middle", "bottom")

# The settings of a user's selection; the benchmark's own stand in params.yaml.
_RARE_LEVEL_SHARE = 0.01
_RIDGE = 1e-3
_MIN_CLASS = 5


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


@dataclasses.dataclass(frozen=True, slots=True)
class _Problem:
    """A user's table ready for selection."""

    dataset: Dataset
    design: Design
    engine: Engine
    reference: ReferenceModel
    kept: IntArray  # positions in the input of the rows with a target


def _problem(X: Any, y: Any, task: str | None, missing_target: str) -> _Problem:
    frame = as_frame(X)
    target = _target_series(y, len(frame))
    name = "target"
    while name in frame.columns:
        name += "_"
    table = frame.reset_index(drop=True).assign(**{name: target})
    dataset = prepare_table(table, target=name, task=task, missing_target=missing_target)
    kept = np.flatnonzero(target.notna().to_numpy()).astype(np.int64)
    design = build_design(
        dataset.X,
        dataset.y,
        task=dataset.task,
        n_classes=len(dataset.classes),
        rare_level_share=_RARE_LEVEL_SHARE,
    )
    engine = Engine(design)
    return _Problem(dataset, design, engine, fit_reference(engine, ridge=_RIDGE), kept)


def _target_series(y: Any, rows: int) -> pd.Series:
    series = y.reset_index(drop=True) if isinstance(y, pd.Series) else None
    if series is None:
        array = np.asarray(y)
        if array.ndim == 2 and array.shape[1] == 1:
            array = array[:, 0]
        if array.ndim != 1:
            raise InputError(
                f"y must be one-dimensional, got {array.ndim} dimensions; pass one target column"
            )
        series = pd.Series(array)
    if len(series) != rows:
        raise InputError(f"X and y must have equally many rows, got {rows} and {len(series)}")
    return series


def _feature_columns(problem: _Problem, feature: Feature) -> tuple[str, IntArray]:
    """Return the raw feature and its design columns, or raise InputError naming the column."""
    level = None
    if isinstance(feature, tuple):
        if len(feature) != 2:
            raise InputError(f"a feature with a level is a pair (column, level), got {feature!r}")
        feature, level = str(feature[0]), str(feature[1])
    check_feature(problem.dataset, feature)
    design = problem.design
    columns = design.columns_of(feature)
    if level is not None:
        wanted = f"{feature}={level}"
        columns = np.array([j for j in columns if design.columns[j] == wanted], dtype=np.int64)
        if not columns.size:
            known = [design.columns[j].partition("=")[2] for j in design.columns_of(feature)]
            raise InputError(
                f"level {level!r} of column {feature!r} has no coefficient of its own; "
                f"levels with one: {', '.join(known) or 'none'} (the most frequent level is the "
                "base, rare ones are merged)"
            )
    if not columns.size:
        raise InputError(
            f"column {feature!r} has no coefficient: it repeats other columns (collinear) or "
            "hardly varies; name another feature or drop the columns it repeats"
        )
    return feature, columns


def _aim(
    problem: _Problem, feature: Feature | None, bin: str | None, class_: Any
) -> tuple[str, Aim]:
    """Return a name for what is bent, and its entries."""
    classes = problem.dataset.classes
    code = None
    if class_ is not None:
        if problem.dataset.task != "multiclass":
            raise InputError(f"class_ needs a multiclass target, got a {problem.dataset.task} one")
        if str(class_) not in classes:
            raise InputError(f"class_ must be one of {', '.join(classes)}, got {class_!r}")
        code = int(classes.index(str(class_)))
    if feature is not None and bin is not None:
        raise InputError("feature and bin cannot both be given; choose one of them")
    if feature is not None:
        name, columns = _feature_columns(problem, feature)
        return name, aim_at(problem.reference, [columns], code)
    weights = importance(problem.dataset.X, problem.dataset.y, task=problem.dataset.task)
    present = [f for f in problem.design.features if problem.design.columns_of(f).size]
    if bin is None:
        best = min(present, key=lambda f: (-weights[f], f))
        return best, aim_at(problem.reference, [problem.design.columns_of(best)], code)
    if bin not in BINS:
        raise InputError(f"bin must be one of {', '.join(BINS)}, got {bin!r}")
    bins = importance_bins(weights)
    members = [f for f in present if bins[f] == bin]
    if len(members) < 2:
        raise InputError(
            f"bin {bin!r} needs at least two features with a coefficient to bend as a group, "
            f"got {len(members)} of {len(present)}; name a feature instead"
        )
    return f"bin:{bin}", aim_at(
        problem.reference, [problem.design.columns_of(f) for f in members], code
    )


def _required_size(problem: _Problem, min_fraction: float) -> int:
    if isinstance(min_fraction, bool) or not isinstance(min_fraction, int | float | np.number):
        raise InputError(f"min_fraction must be a number in (0, 1], got {min_fraction!r}")
    if not (math.isfinite(min_fraction) and 0.0 < min_fraction <= 1.0):
        raise InputError(
            f"min_fraction must be in (0, 1], got {min_fraction}; "
            "give a share of the rows, not a row count"
        )
    n, free = problem.engine.n, problem.design.free_coefficients
    size = math.ceil(min_fraction * n - 1e-9)
    if size <= free:
        raise InputError(
            f"min_fraction {min_fraction} of {n} rows is {size} rows, but {free} coefficients need "
            f"more than that; raise min_fraction above {free / n:.3f} or drop columns"
        )
    return size


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
        Whether the factor is a bound, or a dose met within a tenth, the size within 5 %.
    class_ : label, optional
        Multiclass: the class whose coefficient is bent; the largest by default.
    task : {"regression", "binary", "multiclass"}, optional
        Inferred from y by default.
    strategy : {"auto", "push", "steer", "exchange"}
        "auto" takes the one that meets most, then the next.
    uniform_samples : int
        Samples behind ``p_uniform``; 0 for none.
    seed : int
        Of the seed sample and the uniform samples, >= 0.
    missing_target : {"raise", "drop"}
        What to do with rows without a target.
    on_unmet : {"raise", "best"}
        Raise, or return the nearest selection with a warning.

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
    criterion = Criterion(operation, None if factor is None else float(factor), mode)
    if strategy not in ("auto", *STRATEGIES):
        raise InputError(
            f"strategy must be auto or one of {', '.join(STRATEGIES)}, got {strategy!r}"
        )
    if on_unmet not in ("raise", "best"):
        raise InputError(f"on_unmet must be raise or best, got {on_unmet!r}")
    problem = _problem(X, y, task, missing_target)
    size = _required_size(problem, min_fraction)
    name, aim = _aim(problem, feature, bin, class_)
    if len(aim.columns) > 1 and mode == "band":
        raise InputError("mode 'band' needs a single feature, got a bin; use mode 'at_least'")
    if (aim.reference == 0.0).any():
        raise InputError(f"the coefficient of {name!r} is exactly zero and cannot be bent")
    finder = Finder(
        problem.engine,
        problem.reference,
        sizes=(size,),
        criteria=(criterion,),
        seed=seed,
        min_class=_MIN_CLASS,
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
    problem: _Problem,
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
    "separation": "the classes are separable on the selected rows, so no finite fit exists",
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
    if direction not in (-1, 1):
        raise InputError(f"direction must be 1 or -1, got {direction!r}")
    problem = _problem(X, y, task, "raise")
    _, aim = _aim(problem, feature, None, class_)
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
