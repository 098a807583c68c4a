"""Raw columns as numbers and level codes: made once per table, rows are then taken with NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from inconvenient.errors import InputError

__all__ = ["CodedTable", "LevelCodes", "Table", "code_table"]


@dataclass(frozen=True, slots=True)
class LevelCodes:
    """A categorical column as codes.

    Parameters
    ----------
    codes : ndarray of int64, shape (n,)
        Positions in ``names``; -1 where the value is missing.
    names : tuple
        Levels, sorted as strings; the rows need not hold all of them.
    """

    codes: NDArray[np.int64]
    names: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class CodedTable:
    """Raw columns by name, numbers as float64 (NaN where missing), all others as codes.

    Parameters
    ----------
    columns : mapping of name to ndarray of float64 or LevelCodes
        In the table's order.
    n : int
        Number of rows.
    """

    columns: Mapping[Any, NDArray[np.float64] | LevelCodes]
    n: int

    def __len__(self) -> int:
        return self.n

    def take(self, positions: NDArray[np.int64]) -> CodedTable:
        """Return the rows at some positions; the levels keep their codes."""
        taken: dict[Any, NDArray[np.float64] | LevelCodes] = {}
        for name, column in self.columns.items():
            if isinstance(column, LevelCodes):
                taken[name] = LevelCodes(column.codes[positions], column.names)
            else:
                taken[name] = column[positions]
        return CodedTable(taken, len(positions))

    def numbers(self, name: Any) -> NDArray[np.float64]:
        """Return a column as numbers.

        Raises
        ------
        InputError
            If there is no such column or a value is infinite.
        """
        column = self._column(name)
        if isinstance(column, LevelCodes):  # objects that hold numbers, in rows to predict
            column = np.array([*column.names, np.nan], dtype=np.float64)[column.codes]
        if np.isinf(column).any():
            raise InputError(
                f"column {name!r} must be finite or missing, got an infinite value; "
                "replace it or declare it missing"
            )
        return column

    def levels(self, name: Any) -> LevelCodes:
        """Return a column as codes.

        Raises
        ------
        InputError
            If there is no such column.
        """
        column = self._column(name)
        return column if isinstance(column, LevelCodes) else _level_codes(pd.Series(column))

    def _column(self, name: Any) -> NDArray[np.float64] | LevelCodes:
        try:
            return self.columns[name]
        except KeyError:
            raise InputError(
                f"column {name!r} of the training sample is absent from the rows to predict; "
                "pass the same columns"
            ) from None


Table = pd.DataFrame | CodedTable


def code_table(X: Table) -> CodedTable:
    """Return a table as numbers and codes; one that is coded already as it is."""
    if isinstance(X, CodedTable):
        return X
    columns: dict[Any, NDArray[np.float64] | LevelCodes] = {}
    for name in X.columns:
        column = X[name]
        if pd.api.types.is_numeric_dtype(column.dtype):
            columns[name] = column.to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            columns[name] = _level_codes(column)
    return CodedTable(columns, len(X))


def _level_codes(column: pd.Series) -> LevelCodes:
    if isinstance(column.dtype, pd.CategoricalDtype):
        found, names = column.cat.codes.to_numpy(), list(column.cat.categories)
    else:
        found, categories = pd.factorize(column)
        names = list(categories)
    order = sorted(range(len(names)), key=lambda i: (str(names[i]), type(names[i]).__name__))
    rank = np.full(len(names) + 1, -1, dtype=np.int64)  # the last entry serves code -1
    rank[order] = np.arange(len(names))
    return LevelCodes(rank[found], tuple(names[i] for i in order))
