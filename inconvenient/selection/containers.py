"""Tables and targets in the containers that samplers meet: the same type out that came in."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing

from inconvenient.data import as_frame
from inconvenient.data.frames import of_array
from inconvenient.errors import InputError

__all__ = ["labels_of", "table_of", "take_rows"]


def table_of(X: Any) -> tuple[pd.DataFrame, list[Any]]:
    """Return features as a frame, and the names that the caller gave them.

    Parameters
    ----------
    X : DataFrame, array, SciPy sparse matrix or list (n, m)

    Returns
    -------
    frame : DataFrame (n, m)
        Columns of an array are called by position, as pandas would; names have a say in which
        sample is found, so the same values give the same one.
    names : list
        Empty if the caller gave none.

    Raises
    ------
    InputError
        If X is no table of at least one row and column.
    """
    shape: tuple[int, ...] = getattr(X, "shape", ())
    # In the words of scikit-learn, whose checks match them.
    if len(shape) == 2 and shape[1] == 0:
        raise InputError(
            f"X has 0 feature(s) (shape={shape}) while a minimum of 1 is required.; "
            "pass at least one column"
        )
    if getattr(getattr(X, "dtype", None), "kind", "") == "c":
        raise InputError("Complex data not supported in X; keep the real part or the modulus")
    frame = as_frame(X)
    named = isinstance(X, pd.DataFrame | pd.Series) or hasattr(X, "to_pandas")
    if named or getattr(getattr(X, "dtype", None), "names", None):
        return frame, list(X.columns if isinstance(X, pd.DataFrame) else frame.columns)
    return frame.set_axis([str(j) for j in range(frame.shape[1])], axis=1), []


def labels_of(y: Any) -> pd.Series:
    """Return one label or number per row.

    Parameters
    ----------
    y : Series, DataFrame, array, SciPy sparse matrix or list (n,), (n, 1) or one-hot (n, K)

    Returns
    -------
    Series (n,)
        With a fresh index. One-hot columns become their names or positions, as strings.

    Raises
    ------
    InputError
        If there is no y, or several columns are not one-hot.
    """
    if y is None:
        raise InputError("ConvenienceSampler requires y to be passed, but the target y is None")
    names: list[str] | None = None
    if isinstance(y, pd.Series):
        return y.reset_index(drop=True)
    if isinstance(y, pd.DataFrame):
        if y.shape[1] == 1:
            return y.iloc[:, 0].reset_index(drop=True)
        names = [str(name) for name in y.columns]
    if isinstance(y, np.ma.MaskedArray) and np.ma.is_masked(y):
        values = np.array(y.data, dtype=object)
        values[np.ma.getmaskarray(y)] = None
        y = values
    try:
        array = y.toarray() if _sparse(y) else np.asarray(y)
    except ValueError as error:
        raise InputError(f"y must be one column or one-hot columns, got rows ({error})") from error
    if array.dtype.kind == "c":
        raise InputError("Complex data not supported in y; keep the real part or the modulus")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim == 1:
        return of_array(pd.Series, array)
    if array.ndim != 2:
        raise InputError(f"y must be one column or one-hot columns, got {array.ndim} dimensions")
    ones = array == 1
    if not ((ones | (array == 0)).all() and (ones.sum(axis=1) == 1).all()):
        raise InputError(
            "Multilabel and multioutput targets are not supported: y with "
            f"{array.shape[1]} columns must be one-hot, a single 1 in each row and 0 elsewhere"
        )
    # Names, for numbers of more than ten classes would be taken for a regression.
    names = [str(k) for k in range(array.shape[1])] if names is None else names
    return pd.Series(np.array(names, dtype=object)[ones.argmax(axis=1)])


def take_rows(table: Any, indices: npt.NDArray[np.int64]) -> Any:
    """Return some rows of a table in the container that it came in.

    Parameters
    ----------
    table : anything that :func:`table_of` and :func:`labels_of` take
    indices : int64 (k,)
        Positions.

    Returns
    -------
    as table (k rows)
        With its dtypes, names and row labels; a copy. Diagonals (DIA) become CSR.
    """
    if _sparse(table):
        # Not every format can be indexed, and scattered rows have no diagonals.
        taken = table.tocsr()[indices]
        return taken if table.format == "dia" else taken.asformat(table.format)
    if hasattr(table, "iloc"):
        return table.iloc[indices]
    if hasattr(table, "to_pandas") and hasattr(table, "take"):
        return table.take(indices)  # Arrow's; not every scikit-learn from 1.5 on can index it
    return _safe_indexing(table, indices)


def _sparse(table: Any) -> bool:
    return bool(issparse(table))
