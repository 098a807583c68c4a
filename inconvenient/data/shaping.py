"""From a package's table to the dataset that an entry of the catalogue describes, or why not."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from inconvenient.data.columns import clean_column, closest
from inconvenient.data.entries import BINARY_FORMS, NUMBER_FORMS, Categories, Entry
from inconvenient.errors import InputError

__all__ = ["Shaped", "shape"]

# Classes under this many rows cannot be split with ten rows a side; none is merged silently.
_LEAST_CLASS = 40
# Under it neither half has the rows for a model and a score that mean much.
_LEAST_ROWS = 300


@dataclasses.dataclass(frozen=True, slots=True)
class Shaped:
    """A dataset's content.

    Parameters
    ----------
    frame : DataFrame
        Features and target, index 0..n-1.
    features : list of str
    classes : list of str
        Sorted; empty for regression.
    groups : int64 array (n,), optional
        Cluster codes.
    dropped : int
        Rows left out because they have no target.
    """

    frame: pd.DataFrame
    features: list[str]
    classes: list[str]
    groups: npt.NDArray[np.int64] | None
    dropped: int


def shape(entry: Entry, table: pd.DataFrame) -> Shaped:
    """Apply an entry to the table that its source gives.

    The order is: mends, target, rows without a target, row filters, classes, categories, dropped
    columns.

    Parameters
    ----------
    entry : Entry
    table : DataFrame
        Left as it is.

    Returns
    -------
    Shaped

    Raises
    ------
    InputError
        If the entry does not fit the table: a column or value that is not there, a filter that
        keeps all rows or none, 0/1 columns that overlap, a class of fewer than 40 rows, fewer
        than 300 rows, a constant feature, a column of no known kind.
    """
    frame = _with_target(entry, _mended(entry, table))
    _check_columns(entry, frame)
    present = frame[entry.target].notna()
    frame, dropped = frame[present], int((~present).sum())
    for condition in entry.row_filter:
        frame = frame[_kept(entry, frame, condition)]
    if entry.task != "regression":
        frame = _with_classes(entry, frame)
    else:
        target = _numbers(entry, frame[entry.target])
        if entry.target_transform == "log1p":
            if target.min() <= -1:
                raise InputError(f"{entry.name}: log1p of a target down to {target.min()}")
            # To ten digits: the last one of log1p depends on the processor.
            frame = frame.assign(**{entry.target: [float(f"{v:.9e}") for v in np.log1p(target)]})
    frame = frame.reset_index(drop=True)
    for column, categories in entry.categories_from.items():
        frame = _with_category(entry, frame, column, categories)
    for column in entry.categorical:
        frame[column] = _codes(entry, frame[column])
    groups = _groups(entry, frame)
    gone = {entry.target, entry.group_column, *entry.drop}
    features = [str(name) for name in frame.columns if name not in gone]
    frame = frame[[*features, entry.target]].copy()
    _check_features(entry, frame[features])
    labels = [] if entry.task == "regression" else _labels(entry, frame[entry.target])
    if len(frame) < _LEAST_ROWS:
        raise InputError(f"{entry.name}: {len(frame)} rows are left, fewer than {_LEAST_ROWS}")
    return Shaped(frame, features, labels, groups, dropped)


def _absent(entry: Entry, frame: pd.DataFrame, names: Iterable[str], role: str) -> None:
    for name in names:
        if name not in frame.columns:
            close = closest(name, map(str, frame.columns))
            raise InputError(f"{entry.name}: {role}: the table has no column {name}; {close}")


def _check_columns(entry: Entry, frame: pd.DataFrame) -> None:
    _absent(entry, frame, [entry.target], "target")
    _absent(entry, frame, entry.drop, "drop")
    _absent(entry, frame, [entry.group_column] if entry.group_column else [], "group_column")
    made = set(entry.categories_from)
    _absent(entry, frame, [c for c in entry.categorical if c not in made], "categorical")
    for column, categories in entry.categories_from.items():
        _absent(entry, frame, categories.columns, f"categories_from: {column}")
        if column in frame.columns and column not in {*entry.drop, *categories.columns}:
            raise InputError(f"{entry.name}: categories_from: the table has a column {column}")
    texts = set(entry.documentation) - {"target", *map(str, frame.columns), *made}
    _absent(entry, frame, sorted(texts), "documentation")


def _mended(entry: Entry, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with the wrong values that the catalogue names put right."""
    _absent(entry, frame, entry.mend, "mend")
    mended = {}
    for column, changes in entry.mend.items():
        values = frame[column].astype(object)
        absent = [old for old in changes if not (values == old).any()]
        if absent:
            raise InputError(f"{entry.name}: column {column} has no value {absent[0]!r} to mend")
        right = [np.nan if (new := changes.get(v, v)) is None else new for v in values]
        mended[column] = pd.Series(right, index=frame.index)
    return frame.assign(**mended)


def _with_target(entry: Entry, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with a target that is made from other columns, if it is."""
    if entry.target_from is None:
        return frame
    made = dict(entry.target_from)
    form = next(name for name in (*BINARY_FORMS, *NUMBER_FORMS) if name in made)
    names = [str(name) for name in made[form]] if form in NUMBER_FORMS else [str(made["column"])]
    _absent(entry, frame, names, "target_from")
    if entry.target in frame.columns and entry.target not in {*names, *entry.drop}:
        raise InputError(f"{entry.name}: target_from: the table has a column {entry.target}")
    if form in NUMBER_FORMS:
        parts = np.column_stack([_numbers(entry, frame[name]) for name in names])
        # A sum of floats in the columns' order: the same on every machine.
        total = np.zeros(len(frame))
        for k in range(len(names)):
            total += parts[:, k]
        if form == "share_of":
            if (total == 0).any():
                raise InputError(f"{entry.name}: target_from: {int((total == 0).sum())} sums are 0")
            total = parts[:, 0] / total
        return frame.assign(**{entry.target: total / len(names) if form == "mean_of" else total})
    source = frame[names[0]]
    if form in ("equals", "among"):
        wanted = made[form] if form == "among" else [made[form]]
        positive = np.any([_equal(entry, source, value) for value in wanted], axis=0)
    else:
        numbers = _numbers(entry, source)
        positive = numbers > made[form] if form == "above" else numbers >= made[form]
    target = pd.Series(np.where(positive, "yes", "no"), index=frame.index, dtype=object)
    return frame.assign(**{entry.target: target.where(source.notna(), np.nan)})


def _numbers(entry: Entry, series: pd.Series) -> npt.NDArray[np.float64]:
    if not pd.api.types.is_numeric_dtype(series):
        raise InputError(f"{entry.name}: column {series.name} holds no numbers to compare or add")
    return series.to_numpy(dtype=np.float64, na_value=np.nan)


def _equal(entry: Entry, series: pd.Series, value: Any) -> npt.NDArray[np.bool_]:
    """Return which values are the one named, bool (n,); numbers are compared as numbers."""
    if pd.api.types.is_numeric_dtype(series) and not pd.api.types.is_bool_dtype(series):
        try:
            found = series.to_numpy(dtype=np.float64, na_value=np.nan) == float(value)
        except ValueError:
            found = np.zeros(len(series), dtype=bool)
    else:
        found = (series.astype(str) == str(value)).to_numpy(dtype=bool) & series.notna().to_numpy()
    if not found.any():
        raise InputError(f"{entry.name}: column {series.name} has no value {str(value)!r}")
    return np.asarray(found, dtype=bool)


def _kept(entry: Entry, frame: pd.DataFrame, condition: str) -> npt.NDArray[np.bool_]:
    """Return which rows meet a condition, or one of those that "or" joins, bool (n,)."""
    kept = np.any([_met(entry, frame, part) for part in condition.split(" or ")], axis=0)
    if kept.all() or not kept.any():
        kind = "all" if kept.all() else "no"
        raise InputError(f"{entry.name}: row_filter {condition!r} keeps {kind} rows")
    return np.asarray(kept, dtype=bool)


def _met(entry: Entry, frame: pd.DataFrame, condition: str) -> npt.NDArray[np.bool_]:
    """Return which rows meet a condition, bool (n,).

    A missing value meets none but "is not", which leaves out the rows of one value only.
    """
    names = [str(c) for c in frame.columns if condition.startswith(f"{c} ")]
    column = max(names, key=len, default="")
    if not column:
        raise InputError(f"{entry.name}: row_filter {condition!r} begins with no column")
    series, rest = frame[column], condition.removeprefix(f"{column} ")
    bounds: dict[str, Callable[[Any, float], Any]] = {
        "at most ": np.less_equal,
        "at least ": np.greater_equal,
        "above ": np.greater,
    }
    bound = next((words for words in bounds if rest.startswith(words)), "")
    if rest == "is present":
        kept = series.notna().to_numpy()
    elif rest.startswith("is not "):
        kept = ~_equal(entry, series, rest.removeprefix("is not "))
    elif rest.startswith("is "):
        kept = _equal(entry, series, rest.removeprefix("is "))
    elif bound:
        try:
            number = float(rest.removeprefix(bound))
        except ValueError:
            raise InputError(f"{entry.name}: row_filter {condition!r} needs a number") from None
        kept = bounds[bound](_numbers(entry, series), number)
    else:
        raise InputError(
            f"{entry.name}: row_filter must read '<column> is present', '<column> is [not] "
            f"<value>' or '<column> at most|at least|above <number>', got {condition!r}"
        )
    return np.asarray(kept, dtype=bool)


def _with_classes(entry: Entry, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the classes that stay, under the labels that the dataset has."""
    target = frame[entry.target]
    if pd.api.types.is_float_dtype(target) and (target == target.round()).all():
        target = target.astype(np.int64)
    labels = target.astype(str)
    for class_ in (*entry.merge_classes, *entry.drop_classes):
        if not (labels == class_).any():
            have = ", ".join(sorted(labels.unique())[:20])
            raise InputError(f"{entry.name}: no row is of class {class_!r}; there are {have}")
    labels = labels.replace(dict(entry.merge_classes)) if entry.merge_classes else labels
    frame = frame.assign(**{entry.target: labels})
    return frame[~labels.isin(list(entry.drop_classes))]


def _with_category(
    entry: Entry, frame: pd.DataFrame, column: str, categories: Categories
) -> pd.DataFrame:
    """Return the table with a category in place of its 0/1 columns."""
    role = f"{entry.name}: categories_from: {column}"
    names = list(categories.columns)
    parts = np.column_stack([_zero_one(entry, frame[name]) for name in names])
    missing: npt.NDArray[np.bool_] = np.any(np.isnan(parts), axis=1)
    count = np.where(missing, 1, np.nansum(parts, axis=1))
    if (count > 1).any():
        row = int(np.argmax(count > 1))
        both = ", ".join(name for name, value in zip(names, parts[row]) if value)
        raise InputError(f"{role}: {int((count > 1).sum())} rows are of several levels ({both})")
    if (count == 0).any() != bool(categories.base):
        raise InputError(
            f"{role}: base must name the level of the {int((count == 0).sum())} rows that are 0 "
            f"everywhere, and be left out if there is none; got {categories.base!r}"
        )
    levels = np.array([*categories.columns.values(), categories.base], dtype=object)
    position = np.where(count == 0, len(names), np.argmax(np.nan_to_num(parts), axis=1))
    values = pd.Series(levels[position], index=frame.index, dtype=object).where(~missing, np.nan)
    place = min(map(list(frame.columns).index, names))
    parted = frame.drop(columns=[name for name in (*names, column) if name in frame.columns])
    parted.insert(min(place, parted.shape[1]), column, values)
    return parted


def _zero_one(entry: Entry, series: pd.Series) -> npt.NDArray[np.float64]:
    known = {"0": 0.0, "1": 1.0, "0.0": 0.0, "1.0": 1.0, "no": 0.0, "yes": 1.0}
    known |= {"False": 0.0, "True": 1.0}
    values = series.astype(str).where(series.notna()).map(known)
    if (values.isna() & series.notna()).any():
        raise InputError(f"{entry.name}: column {series.name} is not 0/1, no/yes or false/true")
    return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan), dtype=np.float64)


def _codes(entry: Entry, series: pd.Series) -> pd.Series:
    """Return codes as text, so that nothing takes them for amounts."""
    if not pd.api.types.is_numeric_dtype(series):
        raise InputError(f"{entry.name}: categorical: column {series.name} holds no numbers")
    text = [_code(value) if present else np.nan for value, present in zip(series, series.notna())]
    return pd.Series(text, index=series.index, dtype=object)


def _code(value: Any) -> str:
    return str(int(value)) if float(value).is_integer() else str(value)


def _groups(entry: Entry, frame: pd.DataFrame) -> npt.NDArray[np.int64] | None:
    if not entry.group_column:
        return None
    codes, _ = pd.factorize(frame[entry.group_column], sort=True)
    if (codes < 0).any():
        raise InputError(f"{entry.name}: the cluster column {entry.group_column} has gaps")
    return np.asarray(codes, dtype=np.int64)


def _labels(entry: Entry, target: pd.Series) -> list[str]:
    counts = target.value_counts()
    if counts.min() < _LEAST_CLASS:
        raise InputError(
            f"{entry.name}: class {counts.idxmin()!r} has {counts.min()} rows, fewer than "
            f"{_LEAST_CLASS}; merge or drop it in the catalogue, with the reason"
        )
    labels = sorted(map(str, counts.index))
    if (entry.task == "binary") != (len(labels) == 2) or len(labels) < 2:
        raise InputError(f"{entry.name}: task {entry.task} does not go with {len(labels)} classes")
    return labels


def _check_features(entry: Entry, features: pd.DataFrame) -> None:
    if features.empty:
        raise InputError(f"{entry.name}: no feature is left")
    for name in features.columns:
        if features[name].nunique(dropna=False) < 2:
            raise InputError(f"{entry.name}: column {name} is constant; drop it")
        try:
            clean_column(features[name], name=str(name), role="feature")
        except InputError as error:
            raise InputError(f"{entry.name}: {error}") from error
