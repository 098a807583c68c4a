"""Options by which commands read a user's table, and the entry beside its file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from inconvenient.errors import InputError

__all__ = ["Decimal", "Na", "Sheet", "Text", "entry_of", "is_table", "reading"]

Na = Annotated[
    list[str] | None, typer.Option("--na", help="What stands for a gap, beside NA, ? and the like.")
]
Text = Annotated[
    list[str] | None, typer.Option("--text", help="A column to keep as it is written; repeatable.")
]
Decimal = Annotated[
    str | None, typer.Option(help="The decimal sign, . or , ; by default what the numbers show.")
]
Sheet = Annotated[
    str | None, typer.Option(help="Of a workbook; by default the only one that holds anything.")
]


def reading(
    na: list[str] | None, text: list[str] | None, decimal: str | None, sheet: str | None
) -> dict[str, Any]:
    """Return those arguments of `read_table` that were given."""
    given: dict[str, Any] = {"na": na, "text": text, "decimal": decimal, "sheet": sheet}
    return {key: value for key, value in given.items() if value}


def is_table(name: str) -> bool:
    """Tell whether a name is meant as a file rather than as a dataset of some source."""
    path = Path(name)
    return path.exists() or (bool(path.suffix) and ":" not in name)


def entry_of(table: str, entry: Path | None) -> dict[str, Any]:
    """Return what the entry of a table says; the one beside it is taken if there is one."""
    from inconvenient.data.own import read_entry

    if Path(table).is_dir():
        raise InputError(f"a file with a table was needed, got the folder {table!r}; name its file")
    beside = Path(table).with_suffix(".yaml")
    if entry is None and not beside.is_file():
        return {}
    return read_entry(entry or beside)
