"""Anything that is a table, as a DataFrame with distinct string names."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import pandas as pd

from inconvenient.errors import InputError

__all__ = ["as_frame", "of_array"]

T = TypeVar("T", pd.DataFrame, pd.Series)


def as_frame(X: Any) -> pd.DataFrame:
    """Return features as a DataFrame with distinct string names.

    Parameters
    ----------
    X : DataFrame, Series, array (n, m), structured array, list of rows or SciPy sparse matrix
        Sparse input becomes dense. Columns without names are called by position, zero-padded
        ("x00", "x01", ...), so that their order by name is their order by position.

    Returns
    -------
    DataFrame (n, m)
        The caller's own object where nothing had to change, else one that shares its values.

    Raises
    ------
    InputError
        If X is not two-dimensional, has no rows or columns, or has equal column names.
    """
    frame: pd.DataFrame = X if isinstance(X, pd.DataFrame) else _frame_of(X)
    if frame.shape[1] == 0:
        raise InputError("a table needs at least one column, got none; pass the features")
    if len(frame) == 0:
        raise InputError(
            f"a table needs rows, got none for the columns {_listed(frame.columns)}; "
            "pass at least some rows"
        )
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        repeated = sorted({name for name in names if names.count(name) > 1})
        reason = " once they are strings" if frame.columns.is_unique else ""
        raise InputError(
            f"column names must differ, but {_listed(repeated)} "
            f"{'occurs' if len(repeated) == 1 else 'occur'} more than once{reason}; "
            "rename or drop the repeated columns"
        )
    for name in names:
        try:
            name.encode("utf-8")
        except UnicodeEncodeError as error:
            raise InputError(
                f"column name {name!a} is no Unicode ({error.reason}); rename the column"
            ) from error
    if any(type(name) is not str for name in frame.columns):
        frame = frame.copy(deep=False)
        frame.columns = pd.Index(names)
    return _native(frame)


def _native(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with numbers in this machine's byte order, the only one pandas can take."""
    foreign: dict[str, Any] = {
        str(name): dtype.newbyteorder("=")
        for name, dtype in frame.dtypes.items()
        if isinstance(dtype, np.dtype) and not dtype.isnative
    }
    return frame.astype(foreign) if foreign else frame


def _frame_of(X: Any) -> pd.DataFrame:
    from scipy.sparse import issparse

    given = X  # which the stubs of issparse do not narrow to a class without toarray
    if isinstance(X, pd.Series):
        return X.to_frame("x0" if X.name is None else X.name)
    if issparse(X):
        X = given.toarray()
    elif hasattr(X, "to_pandas"):  # tables of other libraries
        return pd.DataFrame(X.to_pandas())
    listed = not hasattr(X, "__array__")
    if isinstance(X, np.ma.MaskedArray) and X.dtype.names is None:
        array: Any = X
    else:
        try:
            # Objects, for NumPy would turn a list of numbers and strings into strings.
            array = np.asarray(X, dtype=object) if listed else np.asarray(X)
        except (ValueError, TypeError) as error:
            raise InputError(
                f"X must be a table with rows of equal length, got {type(X).__name__} ({error}); "
                "pass a DataFrame or a two-dimensional array"
            ) from error
    if array.ndim == 1 and array.dtype.names is not None:
        nested = [name for name in array.dtype.names if array[name].ndim > 1]
        if nested:
            raise InputError(
                f"field {nested[0]!r} of X must hold one value a row, got {array[nested[0]].ndim} "
                "dimensions; spread it over columns"
            )
        return pd.DataFrame({name: of_array(pd.Series, array[name]) for name in array.dtype.names})
    if array.ndim != 2:
        way = "pass a DataFrame or a two-dimensional array"
        if array.ndim == 1 and array.dtype != object:
            way = "reshape one feature with X.reshape(-1, 1)"
        elif listed and array.ndim == 1:
            way = "pass rows of equal length"
        raise InputError(f"X must be two-dimensional, got {array.ndim} dimensions; {way}")
    width = len(str(max(array.shape[1] - 1, 0)))
    names = [f"x{j:0{width}d}" for j in range(array.shape[1])]
    # Nobody writes to it, so that it may share the caller's memory.
    return of_array(pd.DataFrame, array, columns=names, copy=False)


def of_array(container: type[T], array: Any, **options: Any) -> T:
    """Return an array as a Series or DataFrame.

    Pandas before 3 looks for times among objects and fails on integers too long for a float.

    Parameters
    ----------
    container : type
        Series or DataFrame.
    array : array
    options : Any
        For the container.

    Returns
    -------
    Series or DataFrame
    """
    try:
        made: T = container(array, **options)
    except OverflowError:
        made = container(array, dtype=object, **options)
    return made


def _listed(names: Any) -> str:
    shown = [repr(str(name)) for name in names]
    return ", ".join(shown[:10]) + (", ..." if len(shown) > 10 else "")
