"""Separated text as an Arrow table, or an error that names file, line and column."""

from __future__ import annotations

import csv
import dataclasses
import io
import re
from pathlib import Path
from typing import Any

from inconvenient.data.columns import LARGEST_INTEGER
from inconvenient.data.numerals import distinct, read_numerals
from inconvenient.errors import InputError

__all__ = ["GAPS", "Wishes", "check_names", "read_delimited"]

_BOM = b"\xef\xbb\xbf"

#: What pandas takes for a gap, and the mark that older collections of tables have for one.
GAPS = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null", "?"),
)

#: Lines by which the separator is chosen.
_SAMPLE = 21
# Bytes from which Arrow's threads are worth their start.
_THREADS_FROM = 2_000_000


@dataclasses.dataclass(frozen=True, slots=True)
class Wishes:
    """How a file of text is to be read.

    Parameters
    ----------
    na : tuple of str
        What stands for a gap beside :data:`GAPS`.
    text : tuple of str
        Columns that stay text.
    decimal : {".", ","}, optional
        The decimal sign; by default what the numbers show.
    """

    na: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    decimal: str | None = None


def read_delimited(file: Path, raw: bytes, separator: str, wishes: Wishes) -> Any:
    """Return separated text as an Arrow table.

    Parameters
    ----------
    file : path
        For messages.
    raw : bytes
    separator : str
        "" to find it.
    wishes : Wishes

    Returns
    -------
    pyarrow.Table

    Raises
    ------
    InputError
        If it is none, or a value in a column of numbers is no number.
    """
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    raw = raw.removeprefix(_BOM)
    if raw.isspace() or not raw:
        raise InputError(f"{file} is empty; a table needs a header and rows")
    try:
        if not raw.isascii():  # some ten times faster than decoding
            raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _undecodable(file, raw, separator, error.start) from error
    if b"\0" in raw:
        line = _line(raw, raw.index(b"\0"))
        raise InputError(f"{file}, line {line}: a zero byte is no text; save the file as UTF-8")
    header, separator = _header(file, raw, separator)
    check_names(file, header)
    absent = [name for name in wishes.text if name not in header]
    if absent:
        raise InputError(f"{file}: text names {absent[0]!r}, which is no column of the file")
    if b"\n" not in raw and b"\r" not in raw:
        raise InputError(f"{file} holds a header and no rows; a table needs rows")
    options = {
        # A process that ends while Arrow's threads still start may be aborted after its work.
        "read_options": arrow_csv.ReadOptions(use_threads=len(raw) > _THREADS_FROM),
        # Line breaks within quotes cost the parser its threads.
        "parse_options": arrow_csv.ParseOptions(
            delimiter=separator, newlines_in_values=b'"' in raw
        ),
        "convert_options": arrow_csv.ConvertOptions(
            null_values=[*GAPS, *wishes.na],
            strings_can_be_null=True,
            quoted_strings_can_be_null=True,
            column_types=dict.fromkeys(wishes.text, pa.string()),
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
    return _with_numerals(file, table, raw, separator, wishes, options)


def _with_numerals(
    file: Path, table: Any, raw: bytes, separator: str, wishes: Wishes, options: dict[str, Any]
) -> Any:
    """Return the table with gaps that have blanks around them, and numbers written otherwise."""
    import pyarrow as pa
    from pyarrow import compute
    from pyarrow import csv as arrow_csv

    marks = pa.array([*GAPS, *wishes.na])
    texts = {}
    for j, (name, kind) in enumerate(zip(table.column_names, table.schema.types, strict=True)):
        if kind != pa.string() or name in wishes.text:
            continue
        coded = distinct(table.column(name))
        padded = compute.is_in(compute.utf8_trim_whitespace(coded.dictionary), value_set=marks)
        if compute.any(padded).as_py():
            levels = compute.if_else(padded, None, coded.dictionary)
            column = levels.take(coded.indices)
            table = table.set_column(j, name, column)
            coded = distinct(column)
        texts[name] = coded

    def fractions() -> dict[str, Any]:
        names = [f.name for f in table.schema if f.type == pa.float64()]
        if not names:
            return {}
        convert = arrow_csv.ConvertOptions(
            include_columns=names,
            column_types=dict.fromkeys(names, pa.string()),
            null_values=[*GAPS, *wishes.na],
            strings_can_be_null=True,
        )
        again = arrow_csv.read_csv(pa.BufferReader(raw), **{**options, "convert_options": convert})
        return {name: distinct(again.column(name)) for name in names}

    numbers = read_numerals(
        texts,
        fractions,
        decimal=wishes.decimal,
        doubtful=separator == ";",
        at=lambda row, name: f"{file}, line {_line_of_row(raw, separator, row)}, column {name!r}",
    )
    for name, values in numbers.items():
        place = table.column_names.index(name)
        table = table.set_column(place, name, pa.array(values, from_pandas=True))
    return table


def _line_of_row(raw: bytes, separator: str, row: int) -> int:
    """Return the line, counted from 1, where a row starts; blank lines are no rows."""
    reader = csv.reader(io.StringIO(raw.decode("utf-8"), newline=""), delimiter=separator)
    line, seen = 1, -1
    for fields in reader:
        if fields and seen == row:
            return line
        seen += bool(fields)
        line = reader.line_num + 1
    return line


def _header(file: Path, raw: bytes, separator: str) -> tuple[list[str], str]:
    """Return the names in the first row that is not blank, and the separator."""
    text = raw[: 1 << 20].decode("utf-8", "replace").lstrip("\r\n")
    separator = separator or _separator(text)
    try:
        return next(csv.reader(io.StringIO(text, newline=""), delimiter=separator)), separator
    except csv.Error as error:
        raise InputError(
            f"{file}, line 1 is no header of a CSV table: {error}; export it anew"
        ) from error


def _separator(text: str) -> str:
    """Return what stands in the header and gives the next rows as many fields."""
    head = io.StringIO(text, newline="").readlines()[:_SAMPLE]
    first = head[0] if head else ""
    held = [s for s in ";\t|," if s in first]
    widths = {}
    for separator in held:
        try:
            rows = [fields for fields in csv.reader(head, delimiter=separator) if fields]
        except csv.Error:
            continue
        # The last row may be cut off.
        if len({len(fields) for fields in rows[: max(1, len(rows) - 1)]}) == 1:
            widths[separator] = len(rows[0])
    if widths:
        return max(widths, key=lambda s: widths[s])
    return next((s for s in ",;\t|" if s in held), ",")


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


def check_names(file: Path, names: list[str]) -> None:
    """Refuse names that are blank or repeated."""
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
                    f" which lose digits as float64; keep it as text (text=[{name!r}], --text) if "
                    "they are identifiers, or leave the column out of the file"
                )
