"""Rows of a user's table in a chosen order, with columns and values as they stand in the file."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from inconvenient.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FORMATS", "rows_as_bytes"]

_TEXT = {".csv": ",", ".tsv": "\t"}
_PARQUET = (".parquet", ".pq")
FORMATS = (*_TEXT, *_PARQUET)

_BOM = "\ufeff"


def rows_as_bytes(
    source: Path, frame: pd.DataFrame, positions: Sequence[int], suffix: str
) -> bytes:
    """Return a file of the given rows.

    Parameters
    ----------
    source : path
        The file that the table was read from, UTF-8 if it is text.
    frame : DataFrame
        What was read.
    positions : sequence of int
        Rows of it, in the order wanted.
    suffix : str
        One of FORMATS. In the format of the source, rows are copied as they are: no number is
        written with other digits, no missing value in another way.

    Returns
    -------
    bytes

    Raises
    ------
    InputError
        If the rows of a text file cannot be told apart.
    """
    if suffix in _PARQUET:
        return _parquet(source, frame, positions)
    if suffix == source.suffix.lower():
        return _copied(source, frame, positions)
    text: str = frame.iloc[list(positions)].to_csv(
        index=False, lineterminator="\n", sep=_TEXT[suffix]
    )
    return text.encode("utf-8")


def _parquet(source: Path, frame: pd.DataFrame, positions: Sequence[int]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if source.suffix.lower() in _PARQUET:
        whole = pq.read_table(source, use_threads=False)
    else:
        whole = pa.Table.from_pandas(frame, preserve_index=False)
    buffer = io.BytesIO()
    pq.write_table(whole.take(pa.array(positions, type=pa.int64())), buffer)
    return buffer.getvalue()


def _copied(source: Path, frame: pd.DataFrame, positions: Sequence[int]) -> bytes:
    """Copy header and rows of a text file byte for byte; a row may span lines within quotes."""
    text = source.read_bytes().decode("utf-8")
    names = [str(name) for name in frame.columns]
    for separator in ",;\t|":
        rows, header = _rows(text.removeprefix(_BOM), separator)
        # The separator only matters for quotes; with the right one, names and count agree.
        if header == names and len(rows) == len(frame) + 1:
            end = "\r\n" if rows[0].endswith("\r\n") else "\n"
            chosen = [rows[0], *(rows[1 + position] for position in positions)]
            body = "".join(row.rstrip("\r\n") + end for row in chosen)
            return (_BOM * text.startswith(_BOM) + body).encode("utf-8")
    raise InputError(
        f"{source}: the {len(frame)} rows that were read cannot be told apart in the text; "
        "save it again as plain CSV, or give --out a name that ends in .parquet"
    )


def _rows(text: str, separator: str) -> tuple[list[str], list[str]]:
    """Return the records of a text as they stand, blank ones left out, and the header's fields."""
    lines = io.StringIO(text, newline="").readlines()
    reader = csv.reader(lines, delimiter=separator)
    rows: list[str] = []
    header: list[str] = []
    start = 0
    try:
        for fields in reader:
            if fields:
                header = header or fields
                rows.append("".join(lines[start : reader.line_num]))
            start = reader.line_num
    except csv.Error:
        return [], []
    return rows, header
