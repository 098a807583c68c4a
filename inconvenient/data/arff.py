"""An ARFF file as a DataFrame, or an error that names file, line and attribute."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from inconvenient.data.delimited import check_names
from inconvenient.errors import InputError

__all__ = ["read_arff"]

_BOM = b"\xef\xbb\xbf"
_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_VALUE = re.compile(rf"\s*({_QUOTED}|[^,'\"]*?)\s*(,|$)")
_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|\S+?)\s*(\{{.*\}}|\s\S.*)$", re.IGNORECASE)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


class _Attribute(NamedTuple):
    name: str
    kind: str  # "numeric", "string", "date" or "nominal"
    levels: tuple[str, ...]


def read_arff(file: Path, raw: bytes) -> pd.DataFrame:
    """Return the table of an ARFF file.

    Parameters
    ----------
    file : path
        For messages.
    raw : bytes
        UTF-8; dense or sparse rows.

    Returns
    -------
    DataFrame
        float64 for numeric attributes, strings for nominal ones and strings, timestamps for
        dates; NaN for "?".

    Raises
    ------
    InputError
        If it is no ARFF file; the message names the line, and the attribute whose value is not
        what its declaration says.
    """
    try:
        lines = raw.removeprefix(_BOM).decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        place = raw.count(b"\n", 0, error.start) + 1
        raise InputError(f"{file}, line {place}: no UTF-8 text; save the file as UTF-8") from error
    attributes, start = _header(file, lines)
    check_names(file, [attribute.name for attribute in attributes])
    rows, numbers = [], []
    for number, line in enumerate(lines[start:], start=start + 1):
        body = line.strip()
        if not body or body.startswith("%"):
            continue
        sparse = body.startswith("{")
        values = _sparse(file, number, body, attributes) if sparse else _values(file, number, body)
        if len(values) != len(attributes):
            raise InputError(
                f"{file}, line {number}: {len(attributes)} values were needed, one per attribute, "
                f"got {len(values)}; mend the line"
            )
        rows.append(values)
        numbers.append(number)
    if not rows:
        raise InputError(f"{file} holds no rows behind @data; a table needs rows")
    columns = {}
    for attribute, column in zip(attributes, zip(*rows, strict=True), strict=True):
        columns[attribute.name] = _column(file, attribute, column, numbers)
    return pd.DataFrame(columns)


def _header(file: Path, lines: list[str]) -> tuple[list[_Attribute], int]:
    attributes: list[_Attribute] = []
    for number, line in enumerate(lines, start=1):
        body = line.strip()
        word = body.split(maxsplit=1)[0].lower() if body else ""
        if word == "@data":
            if not attributes:
                raise InputError(f"{file} declares no @attribute; export it anew")
            return attributes, number
        if word == "@attribute":
            attributes.append(_attribute(file, number, body))
        elif body and not body.startswith("%") and word != "@relation":
            raise InputError(
                f"{file}, line {number}: @relation, @attribute or @data was needed, got "
                f"{body[:40]!r}; is it an ARFF file?"
            )
    raise InputError(f"{file} has no @data; is it an ARFF file, and whole?")


def _attribute(file: Path, number: int, body: str) -> _Attribute:
    found = _ATTRIBUTE.match(body)
    if found is None:
        raise InputError(
            f"{file}, line {number}: an attribute reads @attribute NAME TYPE, got {body[:60]!r}"
        )
    name, kind = _plain(found.group(1)), found.group(2).strip()
    if kind.startswith("{"):
        levels = tuple(value or "" for value in _values(file, number, kind[1:-1]))
        return _Attribute(name, "nominal", levels)
    word = kind.split()[0].lower()
    if word in ("numeric", "real", "integer"):
        return _Attribute(name, "numeric", ())
    if word in ("string", "date"):
        return _Attribute(name, word, ())
    raise InputError(
        f"{file}, line {number}: attribute {name!r} must be numeric, integer, real, string, date "
        f"or {{a, b}}, got {kind[:40]!r}"
    )


def _plain(text: str) -> str:
    """Return a value without its quotes."""
    if len(text) < 2 or text[0] not in "'\"":
        return text
    return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m.group(1), m.group(1)), text[1:-1])


def _values(file: Path, number: int, body: str) -> list[str | None]:
    """Return the values of a row, None for a gap."""
    if "'" not in body and '"' not in body:
        return [None if (v := value.strip()) == "?" else v for value in body.split(",")]
    values: list[str | None] = []
    place, more = 0, True
    while more:
        found = _VALUE.match(body, place)
        if found is None:
            raise InputError(
                f"{file}, line {number}: a quote is not closed or has text beside it, near "
                f"{body[place : place + 30]!r}; mend the line"
            )
        values.append(None if found.group(1) == "?" else _plain(found.group(1)))
        place, more = found.end(), found.group(2) == ","
    return values


def _sparse(file: Path, number: int, body: str, attributes: list[_Attribute]) -> list[str | None]:
    """Return the values of a row that names those that are not the first level or zero."""
    values: list[str | None] = [a.levels[0] if a.levels else "0" for a in attributes]
    inside = body.removeprefix("{").removesuffix("}").strip()
    parts = re.findall(rf"(?:{_QUOTED}|[^,'\"])+", inside)
    for part in parts:
        place, _, text = part.strip().partition(" ")
        if not place.isdigit() or int(place) >= len(attributes) or not body.endswith("}"):
            raise InputError(
                f"{file}, line {number}: a sparse row reads {{INDEX VALUE, ...}} with indices "
                f"below {len(attributes)}, got {part.strip()[:30]!r}; mend the line"
            )
        text = text.strip()
        values[int(place)] = None if text == "?" else _plain(text)
    return values


def _column(
    file: Path, attribute: _Attribute, values: tuple[str | None, ...], numbers: list[int]
) -> Any:
    if attribute.kind == "numeric":
        return np.array(_converted(file, attribute, values, numbers, float, "a number"))
    if attribute.kind == "date":
        return pd.Series(_converted(file, attribute, values, numbers, pd.Timestamp, "a date"))
    if attribute.kind == "nominal":
        unknown = set(values) - set(attribute.levels) - {None}
        if unknown:
            row = next(i for i, value in enumerate(values) if value in unknown)
            shown = ", ".join(attribute.levels[:5]) + ", ..." * (len(attribute.levels) > 5)
            raise InputError(
                f"{file}, line {numbers[row]}, column {attribute.name!r}: one of the declared "
                f"levels {shown} was needed, got {values[row]!r}; declare it or mend the line"
            )
    return pd.Series([np.nan if v is None else v for v in values], dtype=object)


def _converted(
    file: Path,
    attribute: _Attribute,
    values: tuple[str | None, ...],
    numbers: list[int],
    convert: Callable[[str], Any],
    what: str,
) -> list[Any]:
    found = []
    for value, number in zip(values, numbers, strict=True):
        try:
            found.append(None if value is None else convert(value))
        except ValueError as error:
            raise InputError(
                f"{file}, line {number}, column {attribute.name!r}: {what} was needed, as "
                f"declared, got {str(value)[:40]!r}; mend the line or the declaration"
            ) from error
    gap = np.nan if attribute.kind == "numeric" else pd.NaT
    return [gap if value is None else value for value in found]
