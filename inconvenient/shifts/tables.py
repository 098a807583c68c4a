"""Tables as CSV or Parquet from which every language reads the same values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from inconvenient.store import frame_bytes

__all__ = ["column_kinds", "table_bytes"]


def table_bytes(frame: pd.DataFrame, file_format: str) -> bytes:
    """Return a table as a file; its index is left out.

    Parameters
    ----------
    frame : DataFrame
        Numbers, bool, text and categories.
    file_format : {"csv", "parquet"}

    Returns
    -------
    bytes
        CSV is UTF-8 with lines that end in a newline: text and names stand in quotes, which are
        doubled inside; numbers have the digits that give the same float64 back; bool is true or
        false; a gap is nothing between two commas, while an empty text is two quotes.
    """
    if file_format == "parquet":
        return frame_bytes(frame)
    head = [_quoted(str(name)) for name in frame.columns]
    columns = [_cells(frame.iloc[:, j]) for j in range(frame.shape[1])]
    lines = [",".join(head), *map(",".join, zip(*columns))]
    return ("\n".join(lines) + "\n").encode("utf-8")


def column_kinds(frame: pd.DataFrame) -> dict[str, str]:
    """Return what each column holds: "integer", "number", "boolean" or "text"."""
    return {str(name): _kind(frame[name]) for name in frame.columns}


def _kind(series: pd.Series) -> str:
    if pd.api.types.is_bool_dtype(series):
        return "boolean"
    if isinstance(series.dtype, pd.CategoricalDtype) or not pd.api.types.is_numeric_dtype(series):
        return "text"
    return "integer" if pd.api.types.is_integer_dtype(series) else "number"


def _cells(series: pd.Series) -> list[str]:
    write: dict[str, Callable[[Any], str]] = {
        "integer": lambda value: str(int(value)),
        "number": lambda value: repr(float(value)),
        "boolean": lambda value: "true" if value else "false",
        "text": lambda value: _quoted(str(value)),
    }
    cell = write[_kind(series)]
    return ["" if gap else cell(value) for value, gap in zip(series.tolist(), series.isna())]


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
