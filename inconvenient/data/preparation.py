"""A user's table as a dataset, or an error that names the column and the way out."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from inconvenient.data.columns import clean_column, closest, gaps, is_numeric
from inconvenient.data.dataset import TASKS, Dataset
from inconvenient.data.frames import as_frame, of_array
from inconvenient.errors import InputError

__all__ = ["check_feature", "prepare_table"]

IntArray = npt.NDArray[np.int64]

_MIN_CLASS = 5
_MAX_NUMBER_CLASSES = 10


def prepare_table(
    frame: Any,
    *,
    target: str,
    task: str | None = None,
    drop: Sequence[str] = (),
    groups: str | npt.ArrayLike | None = None,
    missing_target: str = "raise",
    name: str = "table",
) -> Dataset:
    """Check a table and return it as a dataset.

    Parameters
    ----------
    frame : DataFrame (n, m + 1)
        Features and target; never changed. Anything that :func:`as_frame` takes.
    target : str
        The column to predict.
    task : {"regression", "binary", "multiclass"}, optional
        Inferred by default: strings, booleans and categories are classes, as are whole numbers
        with 2 to 10 distinct values; other numbers are a regression.
    drop : sequence of str
        Columns to leave out before anything is checked.
    groups : str or array (n,), optional
        Clusters of rows, by column (which then is no feature) or one label per row.
    missing_target : {"raise", "drop"}
        What to do with rows without a target; ``dropped_rows`` counts those that went.
    name : str
        Of the dataset.

    Returns
    -------
    Dataset
        ``frame`` has a fresh index. Numbers keep their values, gaps are NaN; objects become
        numbers, booleans or strings (a mixture becomes strings). Classes are strings. ``hash`` is
        SHA-256 over target, task, groups and the columns by name: equal content, equal hash,
        whatever the order of columns, the index, or the file format.

    Raises
    ------
    InputError
        If something cannot be used; the message names the column and the way out.

    Notes
    -----
    Constant and all-missing features stay: the design removes them. About 2 ms per 100,000
    numbers or strings; columns of dtype object cost some five times that.
    """
    if task is not None and task not in TASKS:
        raise InputError(f"task must be one of {', '.join(TASKS)} or None, got {task!r}")
    if missing_target not in ("raise", "drop"):
        raise InputError(f"missing_target must be raise or drop, got {missing_target!r}")
    table = as_frame(frame)
    target = str(target)
    if target not in table.columns:
        raise InputError(f"target {target!r} is no column; {closest(target, table.columns)}")
    left_out = _left_out(table, target, drop)
    codes, group_column = _groups(table, target, groups)
    table = table.reset_index(drop=True)
    rows, dropped = _rows_with_target(table[target], target, missing_target)
    if dropped:
        table = table.iloc[rows]
        codes = None if codes is None else np.unique(codes[rows], return_inverse=True)[1]
    features = [c for c in table.columns if c not in {target, group_column, *left_out}]
    if not features:
        raise InputError(
            f"at least one feature is needed beside target {target!r}, got none; drop fewer columns"
        )
    cleaned = {c: clean_column(table[c], name=c, role="feature", rows=rows) for c in features}
    y = clean_column(table[target], name=target, role="target", rows=rows)
    task, y, classes = _target(y, target, task)
    columns = {
        c: y if c == target else cleaned[c] for c in table.columns if c in {*features, target}
    }
    # Columns stay where they are; put together, they would take a second copy of the table.
    result = pd.DataFrame(columns, copy=False).reset_index(drop=True)
    if codes is not None:
        codes = codes.astype(np.int64)
        codes.setflags(write=False)
    return Dataset(
        name=name,
        frame=result,
        target=target,
        task=task,
        classes=classes,
        groups=codes,
        description="",
        target_description="",
        feature_descriptions={},
        family="",
        domain="",
        source="",
        licence="",
        hash=_content_hash(result, target, task, codes),
        dropped_rows=dropped,
    )


def check_feature(dataset: Dataset, feature: str) -> None:
    """Check that a feature can have a coefficient.

    Parameters
    ----------
    dataset : Dataset
    feature : str

    Raises
    ------
    InputError
        If the feature is absent, the target, all missing or constant.
    """
    if feature == dataset.target:
        raise InputError(f"{feature!r} is the target, not a feature; name a feature to bend")
    if feature not in dataset.features:
        raise InputError(
            f"feature {feature!r} is no column; {closest(str(feature), dataset.features)}"
        )
    series = dataset.frame[feature]
    missing = series.isna().to_numpy()
    if missing.all():
        raise InputError(
            f"feature {feature!r} is all missing, and a column without values has no coefficient; "
            "name another feature"
        )
    present = series[~missing]
    # Gaps of numbers are filled by the median; those of categories are a level of their own.
    if present.nunique() == 1 and (is_numeric(series) or not missing.any()):
        raise InputError(
            f"feature {feature!r} is constant ({present.iloc[0]!s:.40}), and a constant column has "
            "no coefficient; name another feature"
        )


def _left_out(table: pd.DataFrame, target: str, drop: Sequence[str]) -> set[str]:
    names = [drop] if isinstance(drop, str) else [str(name) for name in drop]
    for name in names:
        if name not in table.columns:
            raise InputError(
                f"drop names {name!r}, which is no column; {closest(name, table.columns)}"
            )
        if name == target:
            raise InputError(f"drop names the target {name!r}; name another target or keep it")
    return set(names)


def _groups(
    table: pd.DataFrame, target: str, groups: str | npt.ArrayLike | None
) -> tuple[IntArray | None, str | None]:
    """Return the cluster codes and the column that they come from."""
    if groups is None:
        return None, None
    if isinstance(groups, str):
        if groups not in table.columns:
            raise InputError(f"groups {groups!r} is no column; {closest(groups, table.columns)}")
        if groups == target:
            raise InputError(f"groups {groups!r} is the target; name another column")
        column, name = table[groups], groups
    else:
        try:
            labels = np.asarray(groups)
        except ValueError as error:
            raise InputError(f"groups need one label per row, got rows: {error}") from error
        if labels.shape != (len(table),):
            got = f"{labels.size}" if labels.ndim == 1 else f"shape {labels.shape}"
            raise InputError(f"groups need one label per row, {len(table)}, got {got}")
        column, name = of_array(pd.Series, labels), "groups"
    missing = gaps(column, name=name, role="groups")
    if missing.any():
        raise InputError(
            f"groups {name!r} must name a cluster for every row, but {int(missing.sum())} are "
            f"missing, first in row {int(np.flatnonzero(missing)[0])} (counted from 0); fill them"
        )
    cleaned = clean_column(column, name=name, role="groups")
    return pd.factorize(cleaned.to_numpy())[0].astype(np.int64), name if isinstance(
        groups, str
    ) else None


def _rows_with_target(series: pd.Series, target: str, missing_target: str) -> tuple[IntArray, int]:
    missing = gaps(series, name=target, role="target")
    count = int(missing.sum())
    if count == len(series):
        raise InputError(f"target {target!r} is all missing ({count} rows); name another target")
    if count and missing_target == "raise":
        raise InputError(
            f"target {target!r} must be known in every row, but {count} of {len(series)} are "
            f"missing, first in row {int(np.flatnonzero(missing)[0])} (counted from 0); "
            'missing_target="drop" (--missing-target drop) leaves these rows out'
        )
    return np.flatnonzero(~missing).astype(np.int64), count


def _target(
    series: pd.Series, target: str, task: str | None
) -> tuple[str, pd.Series, tuple[str, ...]]:
    """Return the task, the target as floats or class names, and the classes."""
    distinct = series.nunique()
    if len(series) < 2 or distinct == 1:
        raise InputError(
            f"target {target!r} must vary, but it is constant "
            f"({series.iloc[0]!s:.40}, {len(series)} row{'s' * (len(series) != 1)}); "
            "name another target or use more rows"
        )
    numeric = is_numeric(series)
    whole = numeric and bool((series == np.floor(series)).all())
    if task is None:
        if numeric and not (whole and distinct <= _MAX_NUMBER_CLASSES):
            task = "regression"
        else:
            task = "binary" if distinct == 2 else "multiclass"
    if task == "regression":
        if not numeric and not pd.api.types.is_bool_dtype(series):
            raise InputError(
                f'target {target!r} must be numeric for task="regression", got '
                f"{series.iloc[0]!s:.40} and others; turn it into numbers, or leave task out to "
                "predict classes"
            )
        return task, series.astype(np.float64), ()
    return task, *_classes(series, target, task, numeric=numeric, whole=whole)


def _classes(
    series: pd.Series, target: str, task: str, *, numeric: bool, whole: bool
) -> tuple[pd.Series, tuple[str, ...]]:
    codes, uniques = pd.factorize(series)
    names = [str(int(v)) if whole else str(v) for v in uniques]
    classes = tuple(sorted(set(names)))
    position = {label: i for i, label in enumerate(classes)}
    codes = np.array([position[label] for label in names])[codes]
    counts = np.bincount(codes, minlength=len(classes))
    if len(classes) == 1:
        raise InputError(
            f"target {target!r} must vary, but it is constant ({classes[0]:.40}, as a string); "
            "name another target"
        )
    if task == "binary" and len(classes) != 2:
        way = "regression" if numeric else "multiclass"
        raise InputError(
            f'target {target!r} must have two classes for task="binary", got {len(classes)}; '
            f'pass task="{way}"'
        )
    if task == "multiclass" and len(classes) < 3:
        raise InputError(
            f'target {target!r} must have three or more classes for task="multiclass", got '
            f'{len(classes)}; pass task="binary"'
        )
    if counts.min() < _MIN_CLASS:
        rare = [f"{classes[c]!r:.40} has {counts[c]}" for c in np.flatnonzero(counts < _MIN_CLASS)]
        shown = ", ".join(rare[:3]) + (f" and {len(rare) - 3} more" if len(rare) > 3 else "")
        if numeric:
            way = (
                'too many classes for a numeric target? pass task="regression" (--task regression)'
            )
        elif len(classes) > len(series) / _MIN_CLASS:
            way = "is it an identifier or a number kept as text? name another target"
        else:
            way = "merge rare classes or leave their rows out"
        raise InputError(
            f"target {target!r} must have at least {_MIN_CLASS} rows in each of its "
            f"{len(classes)} classes, but {shown}; {way}"
        )
    labels = np.array(classes, dtype=object)[codes]
    return pd.Series(labels, index=series.index, dtype=object), classes


def _content_hash(frame: pd.DataFrame, target: str, task: str, groups: IntArray | None) -> str:
    """Return SHA-256 over what the frame holds, by column name."""
    digest = hashlib.sha256()

    def add(texts: Sequence[str]) -> None:
        lengths = np.fromiter(map(len, texts), dtype="<i8", count=len(texts))
        digest.update(len(texts).to_bytes(8, "little") + lengths.tobytes())
        digest.update("".join(texts).encode("utf-8", "surrogatepass"))

    add(["table 1", target, task, str(len(frame)), "groups" * (groups is not None)])
    if groups is not None:
        digest.update(groups.astype("<i8").tobytes())
    for name in sorted(frame.columns):
        series = frame[name]
        if is_numeric(series):
            add([name, "numbers"])
            values = np.array(series, dtype="<f8")
            values += 0.0  # no negative zeros
            values[np.isnan(values)] = np.nan
            digest.update(values.tobytes())
            continue
        codes, levels = pd.factorize(series)
        add([name, "levels"])
        add([str(level) for level in np.asarray(levels, dtype=object)])
        digest.update(codes.astype("<i8").tobytes())
    return digest.hexdigest()
