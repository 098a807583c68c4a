"""``inconvenient shifts``: make a convenience sample of one's own table; published shifts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inconvenient.cli.output import (
    AsJson,
    counting,
    print_facts,
    print_json,
    print_table,
    records,
    waiting,
)
from inconvenient.cli.tables import Decimal, Na, Sheet, Text, reading
from inconvenient.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from inconvenient.selection.select import Selection

__all__ = ["app"]

app = typer.Typer(help="Make, list, show and export shifts.", no_args_is_help=True)


@app.command("make")
def make(
    table: Annotated[Path, typer.Argument(help="A CSV, Parquet, Feather, Excel or ARFF file.")],
    target: Annotated[str, typer.Option(help="The column to predict.")],
    operation: Annotated[str, typer.Option(help="flip, amplify or attenuate.")] = "flip",
    feature: Annotated[
        str | None, typer.Option(help="The column to bend; the most important one by default.")
    ] = None,
    level: Annotated[
        str | None,
        typer.Option(help="Of a categorical feature; the one of largest coefficient by default."),
    ] = None,
    factor: Annotated[
        float | None, typer.Option(help="1.15 to 5 for amplify, 0.2 to 0.9 for attenuate.")
    ] = None,
    min_fraction: Annotated[
        float, typer.Option(help="Least share of the rows to select, in (0, 1].")
    ] = 0.2,
    mode: Annotated[
        str, typer.Option(help="at_least, or band: met, and by at most a tenth.")
    ] = "at_least",
    bin_: Annotated[
        str | None,
        typer.Option("--bin", help="Bend the features of a bin: top, middle or bottom."),
    ] = None,
    class_: Annotated[
        str | None, typer.Option("--class", help="Multiclass: the class to bend.")
    ] = None,
    task: Annotated[
        str | None, typer.Option(help="regression, binary or multiclass; inferred by default.")
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="A column to leave out of the model; repeatable.")
    ] = None,
    missing_target: Annotated[
        str, typer.Option(help="Rows without a target: raise, or drop.")
    ] = "raise",
    na: Na = None,
    text: Text = None,
    decimal: Decimal = None,
    sheet: Sheet = None,
    seed: Annotated[int, typer.Option(help="Of the first rows and of the uniform samples.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Where to write the rows, .csv or .parquet.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Select rows of a table on which a coefficient is flipped, amplified or attenuated.

    Writes the rows as they stand in the table, in the order of their selection.
    """
    from inconvenient.cli.rows import rows_as_bytes
    from inconvenient.data import prepare_table, read_table
    from inconvenient.selection.select import select
    from inconvenient.store import write_atomic

    if level is not None and feature is None:
        raise InputError("--level needs --feature, got none; name the column of the level")
    bent = (feature, level) if feature is not None and level is not None else feature
    where = _destination(table, operation, feature or bin_, out, force)
    frame = read_table(table, **reading(na, text, decimal, sheet))
    left_out = tuple(drop or ())
    # Checked under its own names first, so that a message speaks of the column the user knows.
    dataset = prepare_table(
        frame, target=target, task=task, drop=left_out, missing_target=missing_target
    )
    with waiting(f"selecting from {len(frame)} rows"):
        selection = select(
            frame[list(dataset.features)],
            frame[target],
            operation=operation,
            feature=bent,
            bin=bin_,
            factor=factor,
            min_fraction=min_fraction,
            mode=mode,
            class_=class_,
            task=dataset.task,
            seed=seed,
            missing_target=missing_target,
        )
    positions = selection.indices.tolist()
    write_atomic(where, rows_as_bytes(table, frame, positions, where.suffix.lower()))
    _say(selection, where, len(frame), dataset.dropped_rows, as_json)


def _destination(
    table: Path, operation: str, bent: str | None, out: Path | None, force: bool
) -> Path:
    from inconvenient.cli.rows import FORMATS
    from inconvenient.data import read_table

    if not table.is_file():
        read_table(table)  # says what is wrong
    if out is None and table.suffix.lower() not in FORMATS:
        raise InputError(
            f"the table must be a file in {' or '.join(FORMATS)}, got {table}; export it as one"
        )
    if out is None:
        # A file name holds 255 bytes, and a letter takes up to four.
        name = "".join(
            c if c.isalnum() or c in "-_." else "_" for c in f"{operation}-{bent or 'top_feature'}"
        )[:40]
        out = table.with_name(f"{table.stem}-{name}{table.suffix}")
    if out.suffix.lower() not in FORMATS:
        raise InputError(
            f"the output must end in {' or '.join(FORMATS)}, got {out}; name one with --out"
        )
    if out.exists() and out.samefile(table):
        raise InputError(f"{out} is the table itself and is never replaced; name another --out")
    if out.exists() and (out.is_dir() or not force):
        way = "name another with --out" if out.is_dir() else "use --force or another --out"
        raise InputError(f"{out} exists and is not overwritten; {way}")
    return out


def _say(selection: Selection, where: Path, rows: int, dropped: int, as_json: bool) -> None:
    facts: dict[str, Any] = {
        "rows": rows,
        "rows_without_target": dropped,
        "selected": selection.size,
        "fraction": selection.fraction,
        "strategy": selection.strategy,
        "verified": selection.verified,
        "p_uniform": None if selection.p_uniform != selection.p_uniform else selection.p_uniform,
        "ridge": selection.ridge,
        "out": str(where),
    }
    if as_json:
        print_json({**facts, "coefficients": records(selection.table)})
        return
    typer.echo(selection.message)
    typer.echo("")
    print_table(_before_after(selection.table), as_json=False)
    typer.echo("")
    print_facts(facts, as_json=False)


def _before_after(table: pd.DataFrame) -> pd.DataFrame:
    renamed = table.rename(columns={"reference": "before", "sample": "after", "class_": "class"})
    return renamed if (table["class_"] != "").any() else renamed.drop(columns="class")


Dataset = Annotated[str | None, typer.Option(help="Only those of one dataset.")]
Profile = Annotated[str | None, typer.Option(help="full or quick; full by default if it is here.")]


@app.command("list")
def list_(
    dataset: Dataset = None,
    profile: Profile = None,
    task: Annotated[str | None, typer.Option(help="regression, binary or multiclass.")] = None,
    operation: Annotated[str | None, typer.Option(help="amplify, attenuate or flip.")] = None,
    min_fraction: Annotated[float | None, typer.Option(help="0.1, 0.2, 0.3 or 0.5.")] = None,
    retained: Annotated[bool, typer.Option("--retained", help="Only the retained ones.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the published shifts, one a line; all their facts with --json."""
    from inconvenient.shifts import list_shifts

    frame = list_shifts(dataset, profile, task=task, operation=operation, min_fraction=min_fraction)
    if retained:
        frame = frame[frame["retained"]]
    if as_json:
        print_json(records(frame))
        return
    # The id comes last: it is never cut, and a long one disturbs no column.
    lines = [
        f"{size:>5} {'*' if kept else '-'} {shift_id}"
        for size, kept, shift_id in zip(frame["size"], frame["retained"], frame["shift_id"])
    ]
    typer.echo("\n".join([f"{'rows':>5}   shift_id", *lines]))
    typer.echo(
        f"{len(frame)} shifts of {frame['dataset'].nunique()} datasets; {frame['retained'].sum()} "
        "retained (*), the others by the paper's conditions alone",
        err=True,
    )


@app.command("show")
def show(
    shift_id: Annotated[str, typer.Argument(help="As `shifts list` names it.")],
    profile: Profile = None,
    as_json: AsJson = False,
) -> None:
    """Show one published shift, all facts but its rows."""
    from inconvenient.shifts import list_shifts, load_shift

    frame = list_shifts(profile=profile)
    found = records(frame[frame["shift_id"] == shift_id])
    if not found:
        load_shift(shift_id, profile)  # says which are near
    print_facts(found[0], as_json=as_json)


@app.command("export")
def export(
    out: Annotated[Path, typer.Option(help="Folder to write to.")],
    shift_ids: Annotated[
        list[str] | None, typer.Argument(metavar="ID...", help="As `shifts list` names them.")
    ] = None,
    dataset: Dataset = None,
    every: Annotated[bool, typer.Option("--all", help="All published shifts.")] = False,
    format_: Annotated[str, typer.Option("--format", help="csv or parquet.")] = "csv",
    profile: Profile = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what is there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write shifts as files for other languages: training sample, report half, and facts."""
    from inconvenient.shifts import export_shifts, list_shifts

    if bool(shift_ids) + (dataset is not None) + every != 1:
        raise InputError("shifts to export were needed: give ids, or --dataset, or --all")
    ids = shift_ids or list_shifts(dataset, profile)["shift_id"].tolist()
    with counting("writing") as progress:
        done = export_shifts(
            ids, out, file_format=format_, profile=profile, force=force, progress=progress
        )
    if as_json:
        folders = {shift_id: str(folder) for shift_id, folder in done.folders.items()}
        print_json({"out": str(done.out), "written": done.written, "folders": folders})
        return
    for folder in done.folders.values():
        typer.echo(str(folder))
    rest = "" if done.written == len(done.folders) else ", the others were there"
    typer.echo(f"{done.written} of {len(done.folders)} shifts written{rest}", err=True)
