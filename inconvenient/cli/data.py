"""``inconvenient data``: list, show, add, build and verify the datasets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inconvenient.cli.output import AsJson, print_json, records
from inconvenient.cli.remote import add
from inconvenient.config import checkouts
from inconvenient.errors import InputError

__all__ = ["app"]

app = typer.Typer(help="List, show, add, build and verify the datasets.", no_args_is_help=True)
app.command("add")(add)

Folder = Annotated[
    Path | None, typer.Option(help="Folder of the datasets; data/ of the checkout by default.")
]


@app.command("list")
def list_(
    task: Annotated[str | None, typer.Option(help="Only those of this task.")] = None,
    domain: Annotated[str | None, typer.Option(help="Only those of this domain.")] = None,
    suite: Annotated[
        str | None, typer.Option(help="paper: the 200 slots of the paper's suite, here or not.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the datasets on this machine, or the slots of a suite."""
    from inconvenient.cli.card import print_overview
    from inconvenient.cli.remote import print_suite
    from inconvenient.data import list_datasets

    frame = list_datasets(suite=suite)
    if suite is not None and domain is not None:
        raise InputError("the slots of a suite have no domain; leave out --domain or --suite")
    for column, wanted in (("task", task), ("domain", domain)):
        if wanted is None:
            continue
        known = sorted(set(frame[column]))
        if wanted not in known:
            raise InputError(f"no dataset has {column} {wanted!r}; there are {', '.join(known)}")
        frame = frame[frame[column] == wanted]
    if as_json:
        print_json(records(frame))
    elif suite is not None:
        print_suite(frame)
    else:
        print_overview(frame)


@app.command("show")
def show(
    name: Annotated[str, typer.Argument(help="As `data list` names it.")], as_json: AsJson = False
) -> None:
    """Show one dataset: its facts, target and features."""
    from inconvenient.cli.card import dataset_facts, print_card

    facts = dataset_facts(name)
    if as_json:
        print_json(facts)
    else:
        print_card(facts)


@app.command("build")
def build(
    names: Annotated[list[str] | None, typer.Argument(help="Datasets; all by default.")] = None,
    folder: Folder = None,
    allow_leaks: Annotated[
        bool,
        typer.Option("--allow-leaks", help="Export in spite of findings that have no answer."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Export datasets from the packages that ship them (extra `build`)."""
    from inconvenient.data.build import build as export
    from inconvenient.data.build import undocumented

    place = _folder(folder)
    built = export(place, names or None, allow_leaks=allow_leaks)
    if as_json:
        print_json(built)
        return
    typer.echo("\n".join(str(name) for name in built))
    for name, columns in undocumented(place, built).items():
        typer.echo(f"{name}: no text for {', '.join(columns)}", err=True)


@app.command("verify")
def verify(
    folder: Folder = None,
    leaks: Annotated[
        bool,
        typer.Option("--leaks", help="Look for what gives a target away, too; takes minutes."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check every dataset against its hash and schema."""
    from inconvenient.data.checking import verify as check
    from inconvenient.data.checking import verify_leaks

    place = _folder(folder)
    problems = check(place)
    if leaks and not problems:
        problems = verify_leaks(place)
    if as_json:
        print_json({"folder": str(place), "problems": problems})
    else:
        typer.echo("\n".join(problems) if problems else f"{place}: every dataset is as catalogued")
    if problems:
        raise typer.Exit(1)


@app.command("croissant")
def croissant(folder: Folder = None) -> None:
    """Write croissant.json, the metadata of the datasets for other tools; `build` does, too."""
    from inconvenient.data.croissant import write_croissant

    typer.echo(str(write_croissant(_folder(folder))))


@app.command("index")
def index() -> None:
    """Write dvc-store/index.json, by which `inconvenient fetch` finds what is published."""
    from inconvenient.fetch import INDEX, STORE, published_index
    from inconvenient.store import write_atomic

    root = _folder(None).parent
    write_atomic(root / STORE / INDEX, published_index(root).encode("utf-8"))
    typer.echo(str(root / STORE / INDEX))


def _folder(folder: Path | None) -> Path:
    if folder is not None:
        return folder
    found = checkouts()
    if not found:
        raise InputError("there is no checkout around this folder; name a folder with --folder")
    return found[0] / "data"
