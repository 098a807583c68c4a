"""A user's table as a selection problem: design, reference model, aim and size."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from inconvenient.data import Dataset, as_frame, check_feature, prepare_table
from inconvenient.data.columns import gaps
from inconvenient.data.frames import of_array
from inconvenient.errors import InputError, UnmetError
from inconvenient.selection.design import Design, build_design
from inconvenient.selection.engine import Engine
from inconvenient.selection.importance import importance, importance_bins
from inconvenient.selection.reference import ZERO, Aim, ReferenceModel, aim_at, fit_reference

__all__ = ["BINS", "Feature", "Problem", "choose_aim", "pose_problem", "required_size"]

IntArray = npt.NDArray[np.int64]
Feature = str | tuple[str, str]

BINS = ("top", "middle", "bottom")

# The settings of a user's selection; the benchmark's own stand in params.yaml.
RARE_LEVEL_SHARE = 0.01
RIDGE = 1e-3
MIN_CLASS = 5


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """A user's table ready for selection."""

    dataset: Dataset
    design: Design
    engine: Engine
    reference: ReferenceModel
    kept: IntArray  # positions in the input of the rows with a target


def pose_problem(X: Any, y: Any, task: str | None, missing_target: str) -> Problem:
    """Prepare a table and fit its reference model; InputError where that is not possible."""
    _check_labels(X, y)
    frame = as_frame(X)
    target = _target_series(y, len(frame))
    name = "target" if target.name is None else str(target.name)
    while name in frame.columns:
        name += "_"
    table = frame.reset_index(drop=True).assign(**{name: target})
    dataset = prepare_table(table, target=name, task=task, missing_target=missing_target)
    kept = np.flatnonzero(~gaps(target, name=name, role="target")).astype(np.int64)
    design = build_design(
        dataset.X,
        dataset.y,
        task=dataset.task,
        n_classes=len(dataset.classes),
        rare_level_share=RARE_LEVEL_SHARE,
    )
    engine = Engine(design)
    return Problem(dataset, design, engine, fit_reference(engine, ridge=RIDGE), kept)


def _target_series(y: Any, rows: int) -> pd.Series:
    if isinstance(y, np.ma.MaskedArray):
        y = y.tolist()  # None where masked
    if isinstance(y, list | tuple) and not any(isinstance(v, list | tuple | np.ndarray) for v in y):
        # Not through an array, which would turn gaps among strings into strings.
        y = pd.Series(list(y), dtype=object)
    series = y.reset_index(drop=True) if isinstance(y, pd.Series) else None
    if series is None:
        try:
            array = np.asarray(y)
        except ValueError as error:
            raise InputError(f"y must be one target column, got a ragged one ({error})") from error
        if array.ndim == 2 and array.shape[1] == 1:
            array = array[:, 0]
        if array.ndim != 1:
            raise InputError(
                f"y must be one-dimensional, got {array.ndim} dimensions; pass one target column"
            )
        series = of_array(pd.Series, array)
    if len(series) != rows:
        raise InputError(f"X and y must have equally many rows, got {rows} and {len(series)}")
    return series


def _check_labels(X: Any, y: Any) -> None:
    """Refuse a frame and a series whose row labels differ: pairing by position would be a guess."""
    labelled = isinstance(X, pd.DataFrame) and isinstance(y, pd.Series) and len(X) == len(y)
    if labelled and not X.index.equals(y.index):
        raise InputError(
            "X and y have different row labels (index); align them (y.loc[X.index]), or pass "
            "y.to_numpy() to pair rows by position"
        )


def _feature_columns(problem: Problem, feature: Any) -> tuple[str, IntArray]:
    """Return the raw feature and its design columns, or raise InputError naming the column."""
    level = None
    if isinstance(feature, tuple):
        if len(feature) != 2:
            raise InputError(f"a feature with a level is a pair (column, level), got {feature!r}")
        feature, level = str(feature[0]), str(feature[1])
    if isinstance(feature, int | np.integer):
        feature = str(feature)  # as the names of columns are
    if not isinstance(feature, str):
        raise InputError(
            f"feature must be a column name or a pair (column, level), got {feature!r}; "
            "use bin to bend several"
        )
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
    twin = _collinear_with(design, feature)
    if twin:
        raise InputError(
            f"column {feature!r} is perfectly collinear with {', '.join(map(repr, twin))}, so its "
            f"coefficient is not determined; drop {'it' if len(twin) == 1 else 'them'} "
            f"({' '.join(f'--drop {name}' for name in twin)}) or name another feature"
        )
    if not columns.size:
        raise InputError(
            f"column {feature!r} has no coefficient: it hardly varies; name another feature"
        )
    return feature, columns


def _collinear_with(design: Design, feature: str) -> list[str]:
    """Return the other features in exact linear dependencies with a feature, by name."""
    twins: set[str] = set()
    for members in design.dependencies:
        if feature in members:
            twins |= {*members} - {feature}
    return sorted(twins)


def choose_aim(
    problem: Problem, feature: Feature | None, bin: str | None, class_: Any
) -> tuple[str, Aim]:
    """Return a name for what is bent, and its entries."""
    classes = problem.dataset.classes
    code = None
    if class_ is not None:
        if problem.dataset.task != "multiclass":
            raise InputError(f"class_ needs a multiclass target, got a {problem.dataset.task} one")
        whole = isinstance(class_, float | np.floating) and float(class_).is_integer()
        label = str(int(class_)) if whole and str(class_) not in classes else str(class_)
        if label not in classes:
            raise InputError(f"class_ must be one of {', '.join(classes)}, got {class_!r}")
        code = classes.index(label)
    if feature is not None and bin is not None:
        raise InputError("feature and bin cannot both be given; choose one of them")
    if feature is not None:
        name, columns = _feature_columns(problem, feature)
        return name, _bendable(name, aim_at(problem.reference, [columns], code))
    weights = importance(problem.dataset.X, problem.dataset.y, task=problem.dataset.task)
    present = [f for f in problem.design.features if problem.design.columns_of(f).size]
    determined = [f for f in present if not _collinear_with(problem.design, f)]
    if not determined:
        _feature_columns(problem, present[0])  # names what it is collinear with
    present = determined
    if bin is None:
        best = min(present, key=lambda f: (-weights[f], f))
        return best, _bendable(
            best, aim_at(problem.reference, [problem.design.columns_of(best)], code)
        )
    if bin not in BINS:
        raise InputError(f"bin must be one of {', '.join(BINS)}, got {bin!r}")
    bins = importance_bins(weights)
    members = [f for f in present if bins[f] == bin]
    if len(members) < 2:
        raise InputError(
            f"bin {bin!r} needs at least two features with a coefficient to bend as a group, "
            f"got {len(members)} of {len(present)}; name a feature instead"
        )
    aim = aim_at(problem.reference, [problem.design.columns_of(f) for f in members], code)
    return f"bin:{bin}", _bendable(f"bin:{bin}", aim)


def _bendable(name: str, aim: Aim) -> Aim:
    """Return the aim, or raise InputError where a coefficient is zero but for rounding."""
    if (np.abs(aim.reference) <= ZERO).any():
        raise InputError(
            f"the coefficient of {name!r} is zero up to rounding and cannot be bent: the other "
            "features determine the target without it; drop what repeats the target, or name "
            "another feature"
        )
    return aim


def required_size(problem: Problem, min_fraction: float) -> int:
    """Return the least number of rows; InputError or UnmetError for a share that cannot do."""
    if isinstance(min_fraction, bool) or not isinstance(
        min_fraction, int | float | np.integer | np.floating
    ):
        raise InputError(f"min_fraction must be a number in (0, 1], got {min_fraction!r}")
    if not (math.isfinite(min_fraction) and 0.0 < min_fraction <= 1.0):
        raise InputError(
            f"min_fraction must be in (0, 1], got {min_fraction}; "
            "give a share of the rows, not a row count"
        )
    n, free = problem.engine.n, problem.design.free_coefficients
    size: int = math.ceil(float(min_fraction) * n - 1e-9)
    if size <= free:
        raise InputError(
            f"min_fraction {min_fraction} of {n} rows is {size} rows, but {free} coefficients need "
            f"more than that; raise min_fraction above {free / n:.3f} or drop columns"
        )
    if size >= n:
        raise UnmetError(
            f"min_fraction {min_fraction} leaves nothing to select: all {n} rows are the reference "
            "itself; give a smaller share"
        )
    least = MIN_CLASS * problem.design.n_classes
    if size < least:
        raise UnmetError(
            f"min_fraction {min_fraction} of {n} rows is {size} rows, too few for {MIN_CLASS} of "
            f"each of the {problem.design.n_classes} classes; raise min_fraction to at least "
            f"{least / n:.3f}"
        )
    return size
