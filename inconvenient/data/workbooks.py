"""A sheet of a workbook as a DataFrame, or an error that names sheet, row and column."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from inconvenient.data.delimited import GAPS, Wishes, check_names
from inconvenient.data.numerals import distinct, read_numerals
from inconvenient.errors import InputError, MissingDependencyError

__all__ = ["read_workbook"]

_ERRORS = {"#DIV/0!", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!"}


def read_workbook(file: Path, raw: bytes, sheet: str | None, wishes: Wishes) -> pd.DataFrame:
    """Return a sheet as a table.

    Parameters
    ----------
    file : path
        For messages.
    raw : bytes
        An .xlsx file.
    sheet : str, optional
        By default the only one that holds anything.
    wishes : Wishes

    Returns
    -------
    DataFrame
        The first row that is not blank is the header; blank rows are left out.

    Raises
    ------
    MissingDependencyError
        If openpyxl is not installed.
    InputError
        If it is no workbook, the sheet is none or not plain, a cell holds an error or a formula
        without its value, or a value in a column of numbers is no number.
    """
    try:
        import openpyxl
    except ImportError as error:
        raise MissingDependencyError(
            f"openpyxl is needed to read {file} and is not installed; run "
            "`pip install 'inconvenient[excel]'`, or save the sheet as CSV"
        ) from error
    try:
        book = openpyxl.load_workbook(io.BytesIO(raw), read_only=True, data_only=True)
        sheets = {s.title: [list(row) for row in s.values] for s in book.worksheets}
    except (zipfile.BadZipFile, KeyError, ValueError, OSError, SyntaxError) as error:
        raise InputError(f"{file} is no .xlsx workbook: {error}; save it anew") from error
    title = _chosen(file, sheets, sheet)
    _check_formulas(file, raw, title, openpyxl)
    numbered = [
        (number, row)
        for number, row in enumerate(sheets[title], start=1)
        if any(value is not None for value in row)
    ]
    if len(numbered) < 2:
        raise InputError(f"{file}, sheet {title!r} holds no rows below its header")
    width = max(j + 1 for _, row in numbered for j, v in enumerate(row) if v is not None)
    header = [*numbered[0][1], *[None] * width][:width]
    names = ["" if name is None else str(name) for name in header]
    check_names(Path(f"{file}, sheet {title!r}"), names)
    absent = [name for name in wishes.text if name not in names]
    if absent:
        raise InputError(f"{file}: text names {absent[0]!r}, which is no column of the sheet")
    lines = [number for number, _ in numbered[1:]]
    columns = {
        name: [row[j] if j < len(row) else None for _, row in numbered[1:]]
        for j, name in enumerate(names)
    }

    def at(row: int, name: str) -> str:
        return f"{file}, sheet {title!r}, row {lines[row]}, column {name!r}"

    return _frame(columns, wishes, at)


def _chosen(file: Path, sheets: dict[str, list[Any]], sheet: str | None) -> str:
    filled = [t for t, rows in sheets.items() if any(v is not None for row in rows for v in row)]
    if sheet is not None:
        if sheet not in sheets:
            raise InputError(f"{file} has no sheet {sheet!r}; there are {', '.join(sheets)}")
        return sheet
    if not filled:
        raise InputError(f"{file} is empty; a table needs a header and rows")
    if len(filled) > 1:
        raise InputError(
            f"{file} has {len(filled)} sheets that hold something ({', '.join(filled)}); name one "
            "(sheet=..., --sheet)"
        )
    return filled[0]


def _check_formulas(file: Path, raw: bytes, title: str, openpyxl: Any) -> None:
    """Refuse formulas that no spreadsheet has computed, for they read as gaps."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        if not any(b"<f>" in archive.read(n) or b"<f " in archive.read(n)
                   for n in archive.namelist() if n.startswith("xl/worksheets/")):  # fmt: skip
            return
    values = openpyxl.load_workbook(io.BytesIO(raw), read_only=True, data_only=True)[title]
    formulas = openpyxl.load_workbook(io.BytesIO(raw), read_only=True)[title]
    for row, (shown, written) in enumerate(zip(values.values, formulas.values), start=1):
        for value, text in zip(shown, written):
            if value is None and isinstance(text, str) and text.startswith("="):
                raise InputError(
                    f"{file}, sheet {title!r}, row {row}: the formula {text[:40]} has no value "
                    "yet; open the workbook, let it compute, and save it"
                )


def _frame(columns: dict[str, list[Any]], wishes: Wishes, at: Any) -> pd.DataFrame:
    import pyarrow as pa

    marks = {*GAPS, *wishes.na}
    texts, found = {}, {}
    for name, cells in columns.items():
        for row, value in enumerate(cells):
            if isinstance(value, str):
                if value in _ERRORS:
                    raise InputError(f"{at(row, name)}: a value was needed, got {value}; mend it")
                if value.strip() in marks:
                    cells[row] = None
        types = {type(value) for value in cells if value is not None}
        if types <= {str, int, float} and str in types:
            # Numbers that are stored as text stand beside numbers; what they are is found below.
            strings = pa.array([None if v is None else str(v) for v in cells], pa.string())
            texts[name] = distinct(strings)
            found[name] = pd.Series(cells, dtype=object).map(str, na_action="ignore")
        elif types <= {int, float} and types:
            whole = float not in types and None not in cells
            found[name] = pd.Series(
                [np.nan if v is None else v for v in cells], dtype=None if whole else np.float64
            )
        else:
            found[name] = pd.Series([np.nan if v is None else v for v in cells], dtype=object)
    kept = {name: column for name, column in texts.items() if name not in wishes.text}
    numbers = read_numerals(kept, dict, decimal=wishes.decimal, doubtful=True, at=at)
    for name in wishes.text:
        if name not in texts:
            found[name] = pd.Series(columns[name], dtype=object).map(str, na_action="ignore")
    return pd.DataFrame({**found, **numbers}, columns=list(columns)).infer_objects()
