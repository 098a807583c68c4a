"""The gate of one raw column: plain NumPy, string or category values, or an error that names it."""

from __future__ import annotations

import datetime
import decimal
import difflib
import numbers
import shlex
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from inconvenient.errors import InputError

__all__ = ["LARGEST_INTEGER", "clean_column", "closest", "gaps", "is_numeric"]

#: Integers beyond it have no float64 of their own.
LARGEST_INTEGER = 2**53
#: Beyond it, sums of squares leave float64.
LARGEST = 1e100

_TIMES = (
    datetime.date,  # datetime.datetime and pandas.Timestamp, too
    datetime.time,
    datetime.timedelta,
    np.datetime64,
    np.timedelta64,
    pd.Period,
)
_NESTED = (list, tuple, dict, set, frozenset, np.ndarray, pd.Series, pd.DataFrame, pd.Index)
_BYTES = (bytes, bytearray, memoryview)
_BOOLEANS = (bool, np.bool_)
_REALS = (numbers.Real, np.integer, np.floating, decimal.Decimal)


def closest(name: str, names: Iterable[str]) -> str:
    """Return a hint with the names most like one that is absent.

    Parameters
    ----------
    name : str
        The absent name.
    names : iterable of str
        Those that exist.

    Returns
    -------
    str
        A part of a sentence; names that differ by blanks or case alone come first.
    """
    known = [str(other) for other in names]
    same = [other for other in known if other.strip().casefold() == name.strip().casefold()]
    if same:
        padded = any(other != other.strip() for other in same) or name != name.strip()
        why = "blanks belong to a name" if padded else "names are case-sensitive"
        return f"did you mean {', '.join(map(repr, same[:3]))} ({why})?"
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if near:
        return f"closest: {', '.join(map(repr, near))}"
    shown = ", ".join(map(repr, known[:10]))
    return f"the columns are {shown}{', ...' if len(known) > 10 else ''}"


def is_numeric(series: pd.Series) -> bool:
    """Tell whether a column holds numbers; booleans are categorical."""
    numeric = pd.api.types.is_numeric_dtype(series)
    return bool(numeric) and not pd.api.types.is_bool_dtype(series)


def gaps(series: pd.Series, *, name: str, role: str) -> npt.NDArray[np.bool_]:
    """Return where a column has no value, bool (n,); InputError on a signalling NaN."""
    try:
        missing: npt.NDArray[np.bool_] = series.isna().to_numpy()
        if series.dtype.kind == "f" and not isinstance(series.dtype, np.dtype):
            # Arrow's and pandas' own floats tell NaN from a gap; here it is one.
            missing = missing | np.isnan(series.to_numpy(dtype=np.float64, na_value=np.nan))
        return missing
    except decimal.InvalidOperation as error:
        raise InputError(
            f"{role} {name!r} holds signalling NaN, which nothing can be compared with; "
            "put None in their place"
        ) from error


def clean_column(
    series: pd.Series, *, name: str, role: str, rows: npt.NDArray[np.int64] | None = None
) -> pd.Series:
    """Return a column as bool, integers, floats, strings or categories, gaps as NaN.

    Parameters
    ----------
    series : Series (n,)
        Never changed.
    name : str
    role : {"feature", "target", "groups"}
        For messages.
    rows : int64 (n,), optional
        Positions in the caller's table, for messages; 0..n-1 by default.

    Returns
    -------
    Series (n,)
        Objects that are all numbers become numbers, all booleans booleans; a mixture becomes
        strings by ``str``, as do booleans with gaps.

    Raises
    ------
    InputError
        On dates and times, nested or binary values, complex or infinite numbers, magnitudes over
        1e100, and integers beyond 2^53.

    Notes
    -----
    Loops over cells only where the dtype is object.
    """
    return _Gate(name, role, rows).clean(series)


class _Gate:
    """Checks and converts one column."""

    def __init__(self, name: str, role: str, rows: npt.NDArray[np.int64] | None) -> None:
        self._name, self._role, self._rows = name, role, rows

    def clean(self, series: pd.Series) -> pd.Series:
        dtype: Any = series.dtype
        if isinstance(dtype, np.dtype) and not dtype.isnative:
            values = series.to_numpy().astype(dtype.newbyteorder("="))
            return self.clean(pd.Series(values, index=series.index))
        if isinstance(dtype, pd.SparseDtype):
            return self.clean(pd.Series(np.asarray(series), index=series.index))
        if isinstance(dtype, pd.CategoricalDtype):
            codes, first = np.unique(series.cat.codes.to_numpy(), return_index=True)
            rows = first[codes >= 0] if self._rows is None else self._rows[first[codes >= 0]]
            levels = pd.Series(dtype.categories[codes[codes >= 0]])
            _Gate(self._name, self._role, rows).clean(levels)
            return series
        if isinstance(dtype, pd.PeriodDtype) or dtype.kind in "mM":
            raise self._refuse(f"holds dates or times ({dtype})", "turn it into numbers")
        if isinstance(dtype, pd.StringDtype):
            missing = series.isna()
            if dtype.na_value is pd.NA:
                return series.astype(object).where(~missing, np.nan)
            return series
        if dtype.kind == "b":
            return self._boolean(series)
        if dtype.kind in "iu":
            return self._integer(series)
        if dtype.kind == "f":
            values = series.to_numpy(dtype=np.float64, na_value=np.nan)
            self._check_finite(values)
            plain = isinstance(dtype, np.dtype) and dtype.itemsize in (4, 8)
            return series if plain else pd.Series(values, index=series.index)
        if dtype.kind == "c":
            raise self._refuse("holds complex numbers", "keep the real part or the modulus")
        return self._object(series.astype(object))

    def _boolean(self, series: pd.Series) -> pd.Series:
        missing = series.isna()
        if not missing.any():
            return series.astype(bool)
        names = np.array(["False", "True"], dtype=object)
        values = names[series.where(~missing, False).to_numpy(dtype=bool).astype(np.intp)]
        return pd.Series(values, index=series.index, dtype=object).where(~missing, np.nan)

    def _integer(self, series: pd.Series) -> pd.Series:
        missing = series.isna().to_numpy()
        present = series[~missing].to_numpy(dtype=f"{series.dtype.kind}8")
        if present.size:
            self._check_integers(int(present.min()), int(present.max()))
        if missing.any():
            values = series.to_numpy(dtype=np.float64, na_value=np.nan)
            return pd.Series(values, index=series.index)
        return series if isinstance(series.dtype, np.dtype) else pd.Series(present, series.index)

    def _object(self, series: pd.Series) -> pd.Series:
        missing = gaps(series, name=self._name, role=self._role)
        present = series.to_numpy()[~missing]
        types = set(map(type, present))
        if not types:
            return pd.Series(np.full(len(series), np.nan), index=series.index)
        if all(issubclass(t, str) for t in types):
            self._check_text(present)
            return series.where(~missing, np.nan) if missing.any() else series
        if all(issubclass(t, _BOOLEANS) for t in types):
            return self._boolean(series)
        if all(issubclass(t, _REALS) and not issubclass(t, _BOOLEANS) for t in types):
            return self._numbers(series, missing, present, types)
        self._check_types(types)
        values = np.full(len(series), np.nan, dtype=object)
        values[~missing] = [str(value) for value in present]
        self._check_text(values[~missing])
        return pd.Series(values, index=series.index, dtype=object)

    def _numbers(
        self, series: pd.Series, missing: npt.NDArray[np.bool_], present: Any, types: set[type]
    ) -> pd.Series:
        whole = [t for t in types if issubclass(t, int | np.integer)]
        if whole:
            integers = [int(v) for v in present if isinstance(v, int | np.integer)]
            self._check_integers(min(integers), max(integers))
            if len(whole) == len(types) and not missing.any():
                return pd.Series(np.array(integers, dtype=np.int64), index=series.index)
        values = np.full(len(series), np.nan)
        try:
            values[~missing] = [float(v) for v in present]
        except (ValueError, TypeError, OverflowError) as error:
            raise self._refuse(
                f"holds numbers that are no float64 ({error})", "rescale them"
            ) from error
        self._check_finite(values)
        return pd.Series(values, index=series.index)

    def _check_types(self, types: set[type]) -> None:
        def some(kinds: tuple[type, ...]) -> str:
            return ", ".join(sorted(t.__name__ for t in types if issubclass(t, kinds)))

        if found := some(_TIMES):
            raise self._refuse(f"holds dates or times ({found})", "turn it into numbers")
        if found := some(_NESTED):
            raise self._refuse(f"holds nested values ({found})", "spread them over columns")
        if found := some(_BYTES):
            raise self._refuse(f"holds bytes ({found})", "decode them to strings")
        if found := some((complex, np.complexfloating)):
            raise self._refuse(
                f"holds complex numbers ({found})", "keep the real part or the modulus"
            )
        known = (str, *_BOOLEANS, *_REALS, pd.Interval)
        others = sorted(t.__name__ for t in types if not issubclass(t, known))
        if others:
            raise self._refuse(
                f"holds objects that are neither numbers nor strings ({', '.join(others)})",
                "turn them into strings with astype(str)",
            )

    def _check_text(self, present: Any) -> None:
        try:
            "".join(present).encode("utf-8")
        except UnicodeEncodeError as error:
            raise self._refuse(
                f"holds text that is no Unicode ({error.reason})", "decode it anew"
            ) from error

    def _check_integers(self, low: int, high: int) -> None:
        if max(-low, high) > LARGEST_INTEGER:
            worst = high if high >= -low else low
            raise self._refuse(
                f"holds integers beyond 2^53 (such as {str(worst)[:25]}), "
                "which lose digits as float64",
                "cast it to str if it is an identifier",
            )

    def _check_finite(self, values: npt.NDArray[np.float64]) -> None:
        # One reduction for the usual case; NaN is a gap and passes.
        size = np.abs(values)
        if not (size > LARGEST).any():
            return
        first = int(np.flatnonzero(size > LARGEST)[0])
        row = first if self._rows is None else int(self._rows[first])
        count = int((size > LARGEST).sum())
        if np.isinf(values).any():
            first = int(np.flatnonzero(np.isinf(values))[0])
            row = first if self._rows is None else int(self._rows[first])
            count = int(np.isinf(values).sum())
            what, way = "infinite", "mark such values as missing (NaN)"
        else:
            what, way = "larger than 1e100", "rescale the column"
        raise InputError(
            f"{self._role} {self._name!r} must hold finite numbers up to 1e100, but {count} "
            f"{'is' if count == 1 else 'are'} {what}, first {values[first]:g} in row {row} "
            f"(counted from 0); {way}{self._leave(' or ')}"
        )

    def _refuse(self, what: str, way: str) -> InputError:
        return InputError(
            f"{self._role} {self._name!r} must hold numbers, strings, booleans or categories, but "
            f"it {what}; {way}{self._leave(' or ')}"
        )

    def _leave(self, joint: str) -> str:
        if self._role == "target":
            return f"{joint}name another target"
        if self._role == "groups":
            return f"{joint}name other groups"
        return (
            f"{joint}drop it (--drop {shlex.quote(self._name)}; in Python "
            f"drop(columns=[{self._name!r}]))"
        )
