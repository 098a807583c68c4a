"""Tables and facts on the terminal, or as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "AsJson",
    "counting",
    "print_facts",
    "print_json",
    "print_table",
    "records",
    "waiting",
]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame as plain values, None where one is missing."""
    text = frame.to_json(orient="records", double_precision=15)
    rows: list[dict[str, Any]] = json.loads(text)
    return rows


def print_json(value: Any) -> None:
    """Print a value as JSON on stdout."""
    typer.echo(json.dumps(value, indent=1, ensure_ascii=False))


def print_table(frame: pd.DataFrame, *, as_json: bool) -> None:
    """Print a frame as a table, as wide as it needs where the output is no terminal; or as JSON.

    On a terminal that is too narrow text is folded, and columns go below the others, so that a
    number is never cut.
    """
    if as_json:
        print_json(records(frame))
        return
    from rich.console import Console
    from rich.table import Table

    rows = [[_text(value) for value in row] for row in frame.itertuples(index=False)]
    console = Console(markup=False, highlight=False)
    if not console.is_terminal:
        width = sum(2 + longest for longest in _longest(frame, rows))
        console = Console(markup=False, highlight=False, width=max(width, 80))
    for k, block in enumerate(_blocks(frame, rows, console.width)):
        table = Table(box=None, header_style="bold", pad_edge=False)
        for j in block:
            name = str(frame.columns[j])
            table.add_column(name, no_wrap=_numeric(frame, j), overflow="fold")
        for row in rows:
            table.add_row(*(row[j] for j in block))
        if k:
            console.print()
        console.print(table)


#: Characters of a column of text below which it is not folded to make room.
_FOLDED = 16


def _numeric(frame: pd.DataFrame, j: int) -> bool:
    return frame.dtypes.iloc[j].kind in "biuf"


def _longest(frame: pd.DataFrame, rows: list[list[str]]) -> list[int]:
    """Return the width of each column."""
    names = map(str, frame.columns)
    return [max(map(len, [name, *(row[j] for row in rows)])) for j, name in enumerate(names)]


def _blocks(frame: pd.DataFrame, rows: list[list[str]], width: int) -> list[list[int]]:
    """Return the columns that stand side by side; those of text in front are in each block."""
    needs = [
        2 + (longest if _numeric(frame, j) else min(longest, _FOLDED))
        for j, longest in enumerate(_longest(frame, rows))
    ]
    front = next((j for j in range(len(needs)) if _numeric(frame, j)), len(needs))
    blocks = [list(range(front))]
    for j in range(front, len(needs)):
        if len(blocks[-1]) > front and sum(needs[i] for i in [*blocks[-1], j]) > width + 2:
            blocks.append(list(range(front)))
        blocks[-1].append(j)
    return blocks


def print_facts(facts: Mapping[str, Any], *, as_json: bool) -> None:
    """Print named values, one a line; or as JSON."""
    if as_json:
        print_json(dict(facts))
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        typer.echo(f"{name:<{width}}  {_text(value)}")


def _text(value: Any) -> str:
    if isinstance(value, float):
        if value != value:
            return ""
        # A count beside shares is a float, too; nobody reads 27266 in 2.727e+04.
        whole = abs(value) < 1e15 and (value.is_integer() or abs(value) >= 1e4)
        return f"{value:.0f}" if whole else f"{value:.4g}"
    if isinstance(value, list | tuple):
        return ", ".join(_text(item) for item in value)
    return "" if value is None else str(value)


def waiting(what: str) -> AbstractContextManager[Any]:
    """Show on a terminal that something is going on, on stderr."""
    from rich.console import Console

    status: AbstractContextManager[Any] = Console(stderr=True, markup=False).status(what)
    return status


@contextmanager
def counting(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show on a terminal how many are done, on stderr; to be told done and total."""
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import MofNCompleteColumn, Progress

    console = Console(stderr=True)
    columns = (*Progress.get_default_columns(), MofNCompleteColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(escape(what), total=None)  # a model's name may hold brackets
        yield lambda done, total: bar.update(task, completed=done, total=total)
