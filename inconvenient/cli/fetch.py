"""``inconvenient fetch``: published data and shifts for who has no checkout."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from inconvenient.cli.output import AsJson, print_json

__all__ = ["fetch"]


def fetch(
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="URL_OR_PATH",
            help="The repository or its folder dvc-store/; by default $INCONVENIENT_SOURCE, else "
            "that of the last fetch.",
        ),
    ] = None,
    profile: Annotated[
        list[str] | None,
        typer.Option(help="Whose shifts to bring beside the data; full by default; repeatable."),
    ] = None,
    jobs: Annotated[int, typer.Option(help="Downloads at a time.")] = 4,
    as_json: AsJson = False,
) -> None:
    """Bring published data and shifts into $INCONVENIENT_HOME; run again, it goes on."""
    from inconvenient.fetch import fetch as bring

    try:
        with _bar() as progress:
            done = bring(source, profiles=tuple(profile or ()), jobs=jobs, progress=progress)
    except KeyboardInterrupt:
        typer.echo("stopped; what has arrived is kept, run it again and it goes on", err=True)
        raise
    if as_json:
        print_json({**dataclasses.asdict(done), "folder": str(done.folder)})
        return
    for path in done.paths:
        typer.echo(f"{done.folder / path}  {'new' if path in done.renewed else 'as published'}")
    typer.echo(f"{done.files} files, {done.size / 1e6:.1f} MB from {done.source}")


@contextmanager
def _bar() -> Iterator[Callable[[int, int], None]]:
    """Show the bytes that have arrived, on a terminal."""
    from rich.console import Console
    from rich.progress import DownloadColumn, Progress, TransferSpeedColumn

    console = Console(stderr=True)
    columns = (*Progress.get_default_columns(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("fetching", total=None)
        yield lambda there, total: bar.update(task, completed=there, total=total)
