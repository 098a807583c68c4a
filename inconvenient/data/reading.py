"""A file as a DataFrame with the column names it holds, or an error that names file and line."""

from __future__ import annotations

import csv
import io
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from inconvenient.data.columns import LARGEST_INTEGER
from inconvenient.errors import InputError

__all__ = ["read_table"]

_SEPARATORS = {".csv": "", ".tsv": "\t"}
_PARQUET = (".parquet", ".pq")
_BOM = b"\xef\xbb\xbf"

# What pandas takes for a gap.
_GAPS = [
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
]


def read_table(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a table.

    Parameters
    ----------
    path : str or path
        .csv (UTF-8, a header; separated by commas, or, if the header holds none, by semicolons,
        tabs or bars), .tsv, .parquet or .pq.

    Returns
    -------
    DataFrame
        Column names as they are in the file; a named pandas index that a Parquet file holds is a
        column, as it is in a CSV. In text, gaps are what pandas takes for one, and dates written
        2026-11-30 are recognised, so that a CSV is no different from a Parquet file.

    Raises
    ------
    InputError
        If there is no such file, or it is no table; the message names file, line and column.
    """
    file = Path(path)
    suffix = file.suffix.lower()
    if file.is_dir():
        raise InputError(f"{file} is a directory; name one CSV or Parquet file in it")
    if not file.exists():
        raise InputError(f"{file} does not exist{_beside(file)}; give the path of a table")
    if suffix not in (*_SEPARATORS, *_PARQUET):
        raise InputError(
            f"{file} must end in .csv, .tsv, .parquet or .pq, got {suffix or 'no suffix'!r}; "
            "export it to one of these"
        )
    try:
        raw = file.read_bytes()
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}; check its rights") from error
    if raw.isspace() or not raw:
        raise InputError(f"{file} is empty; a table needs a header and rows")
    table = _parquet(file, raw) if suffix in _PARQUET else _text(file, raw, _SEPARATORS[suffix])
    _check_names(file, [str(name) for name in table.column_names])
    if table.num_rows == 0:
        raise InputError(f"{file} holds a header and no rows; a table needs rows")
    try:
        return _frame(table)
    # The last is Arrow's word for a type that pandas has no column for.
    except (ValueError, TypeError, NotImplementedError) as error:
        raise InputError(f"{file} cannot become a DataFrame: {error}; export it anew") from error


def _beside(file: Path) -> str:
    """Return a hint at a file of nearly that name."""
    import difflib

    try:
        names = [p.name for p in file.parent.iterdir() if p.is_file()][:1000]
    except OSError:
        return f" (nor does the folder {file.parent})"
    near = difflib.get_close_matches(file.name, names, n=1, cutoff=0.7)
    return f" (there is {file.with_name(near[0])})" if near else ""


def _parquet(file: Path, raw: bytes) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(pa.BufferReader(raw)).read()
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{file} is no Parquet file: {reason}; export it anew") from error


def _text(file: Path, raw: bytes, separator: str) -> Any:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    raw = raw.removeprefix(_BOM)
    if raw.isspace() or not raw:
        raise InputError(f"{file} is empty; a table needs a header and rows")
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _undecodable(file, raw, separator, error.start) from error
    if b"\0" in raw:
        line = _line(raw, raw.index(b"\0"))
        raise InputError(f"{file}, line {line}: a zero byte is no text; save the file as UTF-8")
    header, separator = _header(file, raw, separator)
    _check_names(file, header)
    if b"\n" not in raw and b"\r" not in raw:
        raise InputError(f"{file} holds a header and no rows; a table needs rows")
    options = {
        "read_options": arrow_csv.ReadOptions(use_threads=True),
        # Line breaks within quotes cost the parser its threads.
        "parse_options": arrow_csv.ParseOptions(
            delimiter=separator, newlines_in_values=b'"' in raw
        ),
        "convert_options": arrow_csv.ConvertOptions(
            null_values=_GAPS, strings_can_be_null=True, quoted_strings_can_be_null=True
        ),
    }
    try:
        table = arrow_csv.read_csv(pa.BufferReader(raw), **options)
    except (pa.ArrowException, ValueError) as error:
        ragged = _ragged(raw, separator, len(header))
        if ragged is None:
            reason = str(error).splitlines()[0]
            raise InputError(f"{file} is no CSV table: {reason}; export it anew") from error
        line, width = ragged
        missing = f", so that column {header[width]!r} has none" if width < len(header) else ""
        raise InputError(
            f"{file}, line {line}: {len(header)} fields were needed, as in the header, got {width}"
            f"{missing}; mend the line, or quote fields that hold {separator!r} or line breaks"
        ) from error
    _check_long_integers(file, table, raw, options)
    return table


def _header(file: Path, raw: bytes, separator: str) -> tuple[list[str], str]:
    """Return the names in the first row that is not blank, and the separator."""
    text = raw[: 1 << 20].decode("utf-8", "replace").lstrip("\r\n")
    if not separator:
        first = text.splitlines()[0]
        separator = next((s for s in ",;\t|" if s in first), ",")
    try:
        return next(csv.reader(io.StringIO(text, newline=""), delimiter=separator)), separator
    except csv.Error as error:
        raise InputError(
            f"{file}, line 1 is no header of a CSV table: {error}; export it anew"
        ) from error


def _line(raw: bytes, position: int) -> int:
    """Return the number of a byte's line, counted from 1; old line ends count, too."""
    before = raw[:position]
    return before.count(b"\n") + before.count(b"\r") - before.count(b"\r\n") + 1


def _undecodable(file: Path, raw: bytes, separator: str, position: int) -> InputError:
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return InputError(f"{file} must be UTF-8, got UTF-16; save it as UTF-8")
    start = max(raw.rfind(b"\n", 0, position), raw.rfind(b"\r", 0, position)) + 1
    header, separator = _header(file, raw, separator)
    before = raw[start:position].decode("utf-8", "replace")
    try:
        column = len(next(csv.reader([before], delimiter=separator), [""])) - 1
    except csv.Error:  # a field of more than 131,072 characters
        column = -1
    named = f", column {header[column]!r}" if start and 0 <= column < len(header) else ""
    return InputError(
        f"{file}, line {_line(raw, position)}{named}: byte 0x{raw[position]:02x} is "
        "no UTF-8 text; save the file as UTF-8"
    )


def _ragged(raw: bytes, separator: str, width: int) -> tuple[int, int] | None:
    """Return line and number of fields of the first row that differs from the header's."""
    reader = csv.reader(io.StringIO(raw.decode("utf-8"), newline=""), delimiter=separator)
    line = 1
    try:
        for fields in reader:
            if fields and len(fields) != width:
                return line, len(fields)
            line = reader.line_num + 1
    except csv.Error:
        return None
    return None


def _check_names(file: Path, names: list[str]) -> None:
    blank = [j for j, name in enumerate(names, start=1) if not name.strip()]
    if blank:
        raise InputError(
            f"{file}: column {blank[0]} of {len(names)} has no name; name it in the header, or "
            "write the file without its index (to_csv(..., index=False))"
        )
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        places = [j for j, name in enumerate(names, start=1) if name == repeated[0]]
        raise InputError(
            f"{file}: column names must differ, but {', '.join(map(repr, repeated[:10]))} "
            f"{'occurs' if len(repeated) == 1 else 'occur'} more than once ({repeated[0]!r} in "
            f"columns {', '.join(map(str, places))}); rename or drop the repeated columns"
        )


def _check_long_integers(file: Path, table: Any, raw: bytes, options: dict[str, Any]) -> None:
    """Refuse whole numbers of so many digits that reading them has lost some."""
    import pyarrow as pa
    from pyarrow import compute
    from pyarrow import csv as arrow_csv

    for name in table.column_names:
        column = table.column(name)
        if column.type != pa.float64():
            continue
        largest = compute.max(compute.abs(column)).as_py()
        if largest is None or not largest > LARGEST_INTEGER:
            continue
        convert = arrow_csv.ConvertOptions(include_columns=[name], column_types={name: pa.string()})
        text = arrow_csv.read_csv(pa.BufferReader(raw), **{**options, "convert_options": convert})
        for value in text.column(name).to_pylist():
            if re.fullmatch(r"\s*[-+]?\d{16,}\s*", value) and abs(int(value)) > LARGEST_INTEGER:
                raise InputError(
                    f"{file}: column {name!r} holds integers beyond 2^53 (such as {value.strip()}),"
                    " which lose digits as float64; put a letter before them if they are "
                    "identifiers, or leave the column out of the file"
                )


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
        types_mapper=nullable.get, ignore_metadata=True
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
