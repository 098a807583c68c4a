"""Columns of candidates, shifts and published shifts; frames are checked against them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pandas as pd

from inconvenient.errors import InputError

__all__ = [
    "CANDIDATE_COLUMNS",
    "OUTCOMES",
    "PUBLISHED_COLUMNS",
    "SHIFT_COLUMNS",
    "baselines_of",
    "empty_frame",
    "validate",
]

#: What became of a candidate, in the order in which reports count them.
OUTCOMES = (
    "infeasible_size",
    "unmet",
    "rank_loss",
    "constant_column",
    "small_class",
    "separation",
    "close_call",
    "not_confirmed",
    "verified",
)

#: Column and kind of one grid cell.
CANDIDATE_COLUMNS: dict[str, str] = {
    "shift_id": "str",
    "dataset": "str",
    "task": "str",
    "kind": "str",
    "feature": "str",
    "importance_bin": "str",
    "operation": "str",
    "factor": "float64",
    "mode": "str",
    "min_fraction": "float64",
    "outcome": "str",
}

#: Column and kind of one verified shift.
SHIFT_COLUMNS: dict[str, str] = {
    **CANDIDATE_COLUMNS,
    "features": "list of str",
    "columns": "list of str",
    "classes": "list of str",
    "b_reference": "list of float",
    "b_sample": "list of float",
    "achieved": "float64",
    "t_pool": "list of float",
    "pool_rows": "int64",
    "size": "int64",
    "fraction": "float64",
    "strategy": "str",
    "p_uniform": "float64",
    "rows": "bytes",
    "rows_hash": "str",
    "label_tv": "float64",
    "smd_mean": "float64",
    "smd_max": "float64",
    "ridge": "float64",
    "separable": "bool",
}

#: Column and kind of one published shift, beside which stand the columns of scores:
#: ``<baseline>_id``, ``_control``, ``_control_sd`` and ``_ood`` on the report half, and
#: ``filter_<model>_id``, ``_control``, ``_ood`` and ``filter_control_sd`` on the filter half.
PUBLISHED_COLUMNS: dict[str, str] = {
    **SHIFT_COLUMNS,
    "data_hash": "str",
    "retained": "bool",
    "retained_paper": "bool",
    "gap": "float64",
    "gap_paper": "float64",
    "collateral": "float64",
    "collateral_control": "float64",
}

_SCORE = re.compile(r"(?P<model>.+?)_(?P<part>id|control|control_sd|ood)")
_PARTS = ("id", "control", "control_sd", "ood")
_FILTER = "filter_"
_FILTER_SD = "filter_control_sd"

_TABLES = {
    "candidates": CANDIDATE_COLUMNS,
    "shifts": SHIFT_COLUMNS,
    "published": PUBLISHED_COLUMNS,
}
_WORDS = {
    "task": ("regression", "binary", "multiclass"),
    "kind": ("single", "group"),
    "importance_bin": ("top", "middle", "bottom"),
    "operation": ("amplify", "attenuate", "flip"),
    "mode": ("at_least", "band"),
    "outcome": OUTCOMES,
    "strategy": ("push", "steer", "exchange"),
}
#: Lists of one shift that run over the same coefficients.
_PARALLEL = ("columns", "classes", "b_reference", "b_sample", "t_pool")


def _columns(table: str) -> dict[str, str]:
    if table not in _TABLES:
        raise InputError(f"table must be one of {', '.join(_TABLES)}, got {table!r}")
    return _TABLES[table]


def baselines_of(columns: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the columns of the scores of published shifts, by baseline.

    Parameters
    ----------
    columns : iterable of str
        Of the table of published shifts; others are ignored.

    Returns
    -------
    dict of str to tuple of str
        In order of name; ID, control, its standard deviation, OOD. Models of the filter half
        stand under "filter_<model>", without standard deviation.
    """
    found: dict[str, dict[str, str]] = {}
    for name in columns:
        match = _SCORE.fullmatch(name)
        if match is not None and name not in PUBLISHED_COLUMNS and name != _FILTER_SD:
            found.setdefault(match["model"], {})[match["part"]] = name
    return {
        model: tuple(own[part] for part in _PARTS if part in own)
        for model, own in sorted(found.items())
    }


def empty_frame(table: str) -> pd.DataFrame:
    """Return a frame without rows, with the columns and dtypes of a table.

    Parameters
    ----------
    table : str
        "candidates", "shifts" or "published".
    """
    return pd.DataFrame(
        {
            name: pd.Series([], dtype=kind if kind in _PLAIN else "object")
            for name, kind in _columns(table).items()
        }
    )


def _is_list_of(kind: type[Any] | tuple[type[Any], ...]) -> Callable[[Any], bool]:
    def check(value: Any) -> bool:
        return isinstance(value, list | tuple | np.ndarray) and all(
            isinstance(item, kind) for item in value
        )

    return check


_PLAIN = ("str", "float64", "int64", "bool")
_CHECKS: dict[str, Callable[[Any], bool]] = {
    "str": lambda value: isinstance(value, str),
    "float64": lambda value: (
        isinstance(value, int | float | np.number) and not isinstance(value, bool)
    ),
    "int64": lambda value: isinstance(value, int | np.integer) and not isinstance(value, bool),
    "bool": lambda value: isinstance(value, bool | np.bool_),
    "bytes": lambda value: isinstance(value, bytes),
    "list of str": _is_list_of(str),
    "list of float": _is_list_of((float, np.floating)),
}
_READY = {"str": "str", "float64": "float64", "int64": "int64", "bool": "bool"}


def validate(frame: pd.DataFrame, table: str) -> pd.DataFrame:
    """Check a frame against its table.

    Parameters
    ----------
    frame : DataFrame
        One without any column and row passes as empty.
    table : str
        "candidates", "shifts" or "published".

    Returns
    -------
    DataFrame
        The same rows, columns in the order of the table, of its dtypes; the input is not changed.

    Raises
    ------
    InputError
        Naming the first column and row at fault: a column missing or unknown, a value of the wrong
        kind or none of the allowed words, an id twice or out of order, lists that do not match;
        of published shifts, scores of a model that are not complete, one without a flag, and a row
        set that a dataset has twice.
    """
    columns = _columns(table)
    if not len(frame) and not len(frame.columns):
        return empty_frame(table)
    if table == "published":
        columns = {**columns, **dict.fromkeys(_score_columns(frame), "float64")}
    missing = [name for name in columns if name not in frame]
    unknown = [str(name) for name in frame.columns if name not in columns]
    if missing or unknown:
        faults = [f"lacks {', '.join(missing)}"] if missing else []
        faults += [f"has unknown columns {', '.join(unknown)}"] if unknown else []
        raise InputError(f"{table} {' and '.join(faults)}; make them again with this version")
    out = frame[list(columns)].reset_index(drop=True)
    for name, kind in columns.items():
        _check_column(out, table, name, kind)
    ids = out["shift_id"]
    if ids.duplicated().any():
        raise InputError(f"{table} hold shift_id {ids[ids.duplicated()].iloc[0]!r} more than once")
    if not ids.is_monotonic_increasing:
        raise InputError(f"{table} must be sorted by shift_id")
    if table != "candidates":
        _check_shifts(out, table)
    if table == "published":
        _check_published(out)
    return out.astype({name: kind for name, kind in columns.items() if kind in _PLAIN})


def _check_column(frame: pd.DataFrame, table: str, name: str, kind: str) -> None:
    values = frame[name]
    if str(values.dtype) != _READY.get(kind, "") or (kind == "str" and values.hasnans):
        fits = _CHECKS[kind]
        for shift_id, value in zip(frame["shift_id"], values):
            if not fits(value):
                raise InputError(
                    f"{table}: column {name!r} must hold {kind}, got {value!r} at {shift_id!r}"
                )
    words = _WORDS.get(name)
    if words is not None:
        strange = ~values.isin(words)
        if strange.any():
            at = int(np.flatnonzero(strange)[0])
            raise InputError(
                f"{table}: column {name!r} must be one of {', '.join(words)}, "
                f"got {values.iloc[at]!r} at {frame['shift_id'].iloc[at]!r}"
            )


def _score_columns(frame: pd.DataFrame) -> list[str]:
    """Return the names that complete scores would have."""
    names: list[str] = []
    for model in baselines_of(map(str, frame.columns)):
        parts = _PARTS if not model.startswith(_FILTER) else ("id", "control", "ood")
        names += [f"{model}_{part}" for part in parts]
    return [*names, _FILTER_SD]


def _check_published(frame: pd.DataFrame) -> None:
    flagged = frame["retained"].astype(bool) | frame["retained_paper"].astype(bool)
    if not flagged.all():
        raise InputError(
            "published shifts must be retained by one of the two flags, got "
            f"{frame.loc[~flagged, 'shift_id'].iloc[0]!r}"
        )
    twice = frame.duplicated(["dataset", "rows_hash"])
    if twice.any():
        raise InputError(
            "published shifts of a dataset must have distinct row sets, got "
            f"{frame.loc[twice, 'shift_id'].iloc[0]!r}"
        )


def _check_shifts(frame: pd.DataFrame, table: str) -> None:
    lengths = frame[list(_PARALLEL)].map(len)
    uneven = lengths.nunique(axis=1).gt(1) | lengths["columns"].eq(0)
    if len(frame) and uneven.any():
        at = int(np.flatnonzero(uneven)[0])
        raise InputError(
            f"{table}: {', '.join(_PARALLEL)} must have one entry per bent coefficient, "
            f"got {lengths.iloc[at].tolist()} at {frame['shift_id'].iloc[at]!r}"
        )
    wrong = frame["outcome"].ne("verified")
    if wrong.any():
        raise InputError(
            f"{table} must be verified, got {frame.loc[wrong, 'outcome'].iloc[0]!r} "
            f"at {frame.loc[wrong, 'shift_id'].iloc[0]!r}"
        )
