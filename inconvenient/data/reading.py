"""A file as a DataFrame with the column names it holds, or an error that names file and line."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from inconvenient.data.columns import LARGEST_INTEGER
from inconvenient.data.delimited import Wishes, check_names, read_delimited
from inconvenient.errors import InputError

__all__ = ["read_table"]

_SEPARATORS = {".csv": "", ".tsv": "\t"}
_EXCEL = (".xlsx", ".xlsm")
_TYPED = (".arff", ".parquet", ".pq", ".feather", ".arrow")
_SUFFIXES = (*_SEPARATORS, *_EXCEL, *_TYPED)


def read_table(
    path: str | os.PathLike[str],
    *,
    na: Sequence[str] = (),
    text: Sequence[str] = (),
    decimal: str | None = None,
    sheet: str | None = None,
) -> pd.DataFrame:
    """Read a table.

    Parameters
    ----------
    path : str or path
        .csv (UTF-8, a header; separated by commas, semicolons, tabs or bars), .tsv, .xlsx
        (openpyxl), .arff, .parquet, .pq, .feather or .arrow.
    na : sequence of str
        What else stands for a gap, in a file of text or a workbook.
    text : sequence of str
        Columns of such a file to keep as they are written.
    decimal : {".", ","}, optional
        The decimal sign of such a file; by default what its numbers show.
    sheet : str, optional
        Of a workbook; by default the only one that holds anything.

    Returns
    -------
    DataFrame
        Column names as they are in the file; a named pandas index that a Parquet file holds is a
        column, as it is in a CSV. In text, gaps are what pandas takes for one and "?", dates
        written 2026-11-30 are recognised, and a column of numbers is one however they are
        written (1.5, 1,5, 1,234.5, 1 234, 12 %, $12), so that a CSV is no different from a
        Parquet file.

    Raises
    ------
    InputError
        If there is no such file, it is no table, or a value in a column of numbers is none; the
        message names file, line and column.
    MissingDependencyError
        If a workbook is to be read and openpyxl is not installed.
    """
    file = Path(path)
    suffix = file.suffix.lower()
    if file.is_dir():
        raise InputError(f"{file} is a directory; name one CSV or Parquet file in it")
    if not file.exists():
        raise InputError(f"{file} does not exist{_beside(file)}; give the path of a table")
    if suffix not in _SUFFIXES:
        raise InputError(
            f"{file} must end in {', '.join(_SUFFIXES[:-1])} or {_SUFFIXES[-1]}, got "
            f"{suffix or 'no suffix'!r}; export it to one of these"
        )
    wishes = Wishes(_names(na), _names(text), decimal)
    _check_wishes(file, suffix, wishes, sheet)
    try:
        raw = file.read_bytes()
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}; check its rights") from error
    if raw.isspace() or not raw:
        raise InputError(f"{file} is empty; a table needs a header and rows")
    if suffix in _EXCEL:
        from inconvenient.data.workbooks import read_workbook

        return read_workbook(file, raw, sheet, wishes)
    if suffix == ".arff":
        from inconvenient.data.arff import read_arff

        return read_arff(file, raw)
    if suffix in _SEPARATORS:
        table = read_delimited(file, raw, _SEPARATORS[suffix], wishes)
    else:
        table = _typed(file, raw, suffix)
    check_names(file, [str(name) for name in table.column_names])
    if table.num_rows == 0:
        raise InputError(f"{file} holds a header and no rows; a table needs rows")
    import pyarrow as pa

    try:
        return _frame(table)
    except (ValueError, TypeError, pa.ArrowException) as error:
        raise InputError(f"{file} cannot become a DataFrame: {error}; export it anew") from error


def _names(names: Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _check_wishes(file: Path, suffix: str, wishes: Wishes, sheet: str | None) -> None:
    if wishes.decimal not in (None, ".", ","):
        raise InputError(f'decimal must be "." or ",", got {wishes.decimal!r}')
    if suffix in _TYPED and wishes != Wishes():
        raise InputError(
            f"na, text and decimal are for files of text and workbooks, but {file} has types of "
            "its own; leave them out"
        )
    if sheet is not None and suffix not in _EXCEL:
        raise InputError(f"a sheet is a part of a workbook, and {file} is none; leave it out")


def _beside(file: Path) -> str:
    """Return a hint at a file of nearly that name."""
    import difflib

    try:
        names = [p.name for p in file.parent.iterdir() if p.is_file()][:1000]
    except OSError:
        return f" (nor does the folder {file.parent})"
    near = difflib.get_close_matches(file.name, names, n=1, cutoff=0.7)
    return f" (there is {file.with_name(near[0])})" if near else ""


def _typed(file: Path, raw: bytes, suffix: str) -> Any:
    """Read a Parquet, Feather or Arrow file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    parquet = suffix in (".parquet", ".pq")
    try:
        if parquet:
            return pq.ParquetFile(pa.BufferReader(raw)).read()
        return pa.ipc.open_file(pa.BufferReader(raw)).read_all()
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        kind = "Parquet" if parquet else "Feather (version 2) or Arrow"
        raise InputError(f"{file} is no {kind} file: {reason}; export it anew") from error


def _frame(table: Any) -> pd.DataFrame:
    """Return an Arrow table as a frame; integers with gaps must not pass through float64."""
    import pyarrow as pa

    nullable = {
        pa.int64(): pd.Int64Dtype(),
        pa.uint64(): pd.UInt64Dtype(),
    }
    unnamed = [c for c in table.column_names if re.fullmatch(r"__index_level_\d+__", c)]
    # What pandas wrote beside the columns could turn some into an index, or be damaged.
    frame: pd.DataFrame = table.drop_columns(unnamed).to_pandas(
        types_mapper=nullable.get, ignore_metadata=True, use_threads=table.nbytes > 2_000_000
    )
    for name in frame.columns:
        series = frame[name]
        if not isinstance(series.dtype, pd.Int64Dtype | pd.UInt64Dtype):
            continue
        if not series.isna().any():
            frame[name] = series.to_numpy(dtype=f"{series.dtype.kind}8")
        elif not (series.abs() > LARGEST_INTEGER).any():
            frame[name] = series.to_numpy(dtype=np.float64, na_value=np.nan)
    return frame
