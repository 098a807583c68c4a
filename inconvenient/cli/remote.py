"""``inconvenient data add``: own tables, and datasets from OpenML, Kaggle and TALENT."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inconvenient.cli.output import AsJson, print_json, print_table, waiting
from inconvenient.cli.tables import Decimal, Na, Sheet, Text, entry_of, is_table, reading
from inconvenient.errors import InconvenientError, InputError, MissingDependencyError

if TYPE_CHECKING:
    import pandas as pd

    from inconvenient.data import Dataset

__all__ = ["add", "print_suite"]

# So many datasets in a row without an answer mean that there is no network.
_ENOUGH = 3


def add(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="A table (CSV, Excel, ARFF, Parquet or Feather file), or openml:NUMBER, "
            "kaggle:OWNER/NAME/FILE.csv or talent:NAME."
        ),
    ] = None,
    suite: Annotated[
        str | None, typer.Option(help="All of a suite: paper, or openml:NUMBER of a suite there.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="The column to predict; what the source names by default.")
    ] = None,
    task: Annotated[
        str | None, typer.Option(help="regression, binary or multiclass; inferred by default.")
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="A column to leave out; repeatable.")
    ] = None,
    missing_target: Annotated[
        str, typer.Option(help="Rows without a target: raise, or drop.")
    ] = "raise",
    drop_rare: Annotated[
        bool, typer.Option("--drop-rare", help="Leave out classes of fewer than five rows.")
    ] = False,
    again: Annotated[bool, typer.Option("--again", help="Replace what is here already.")] = False,
    archive: Annotated[
        str | None, typer.Option(help="The TALENT archive, a path or address.")
    ] = None,
    called: Annotated[
        str | None,
        typer.Option("--name", help="Of a table as a dataset; that of its file by default."),
    ] = None,
    groups: Annotated[
        str | None, typer.Option(help="Column of a table that holds clusters of rows.")
    ] = None,
    entry: Annotated[
        Path | None,
        typer.Option(help="YAML file that says this of a table; that beside it by default."),
    ] = None,
    na: Na = None,
    text: Text = None,
    decimal: Decimal = None,
    sheet: Sheet = None,
    as_json: AsJson = False,
) -> None:
    """Keep a table as a dataset, or fetch one from OpenML, Kaggle or TALENT (extra `sources`)."""
    from inconvenient.data.remote import add_dataset, is_remote
    from inconvenient.data.sources_web import UnreachableError

    if names and len(names) == 1 and not is_remote(names[0]) and is_table(names[0]):
        said = {**entry_of(names[0], entry), **reading(na, text, decimal, sheet)}
        mine = add_dataset(
            names[0],
            target=target,
            name=called,
            task=task,
            drop=tuple(drop or ()),
            groups=groups,
            missing_target=missing_target,
            again=again,
            entry=said,
        )
        if as_json:
            print_json({"added": [_facts(mine)], "failed": {}})
        else:
            _say(mine)
        return
    wanted: list[tuple[str, dict[str, Any]]] = [(given, {}) for given in names or []]
    if suite is not None:
        if target is not None or task is not None or drop:
            raise InputError("--target, --task and --drop are for one dataset, not for a --suite")
        wanted += _members(suite)
    if not wanted:
        raise InputError("nothing to add; name a dataset, as in openml:40945, or a --suite")
    if len(wanted) > 1 and (target is not None or task is not None or drop):
        raise InputError(f"--target, --task and --drop are for one dataset, got {len(wanted)}")
    for name, _ in wanted:
        if not is_remote(name):
            raise InputError(
                f"{name!r} is of no known source; write openml:{name if name.isdigit() else 40945},"
                " kaggle:OWNER/NAME/FILE.csv or talent:NAME"
            )
    options: dict[str, Any] = {"missing_target": missing_target, "drop_rare": drop_rare}
    options |= {"again": again, "archive": archive, "drop": tuple(drop or ())}
    failed: dict[str, str] = {}
    silent = 0
    done: list[dict[str, Any]] = []
    for place, (name, own) in enumerate(wanted, start=1):
        goal = {"target": target, "task": task, **own}
        try:
            with waiting(f"fetching {name} ({place} of {len(wanted)})"):
                dataset = add_dataset(name, **goal, **options)
        except MissingDependencyError:
            raise
        except InconvenientError as error:
            if len(wanted) == 1:
                raise
            failed[name] = str(error)
            typer.echo(f"{name}: not added: {error}", err=True)
            silent = silent + 1 if isinstance(error, UnreachableError) else 0
            if silent == _ENOUGH:
                typer.echo(f"{silent} in a row got no answer; the rest was not tried", err=True)
                break
            continue
        silent = 0
        done.append(_facts(dataset))
        if not as_json:
            _say(dataset)
    if as_json:
        print_json({"added": done, "failed": failed})
    if failed:
        typer.echo(f"{len(done)} of {len(wanted)} datasets were added", err=True)
        raise typer.Exit(1)


def _facts(dataset: Dataset) -> dict[str, Any]:
    facts: dict[str, Any] = {"name": dataset.name, "task": dataset.task, "target": dataset.target}
    return facts | {
        "rows": len(dataset),
        "features": len(dataset.features),
        "hash": dataset.hash,
    }


def _say(dataset: Dataset) -> None:
    gone = dataset.dropped_rows
    left = f", {gone} without a target left out" if gone else ""
    typer.echo(
        f"{dataset.name}: {len(dataset)} rows{left}, {len(dataset.features)} features, target "
        f"{dataset.target} ({dataset.task}); load it with ic.load_dataset({dataset.name!r})"
    )


def _members(suite: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the datasets of a suite, each with its own options."""
    if suite == "paper":
        from inconvenient.data.paper import read_paper

        return [(str(name), {}) for name in read_paper()["id"]]
    kind, _, item = suite.partition(":")
    if kind != "openml" or not item:
        raise InputError(f"--suite must be paper, or openml:NUMBER as openml:353, got {suite!r}")
    from inconvenient.data.remote import suite_datasets

    with waiting(f"asking for suite {item}"):
        return suite_datasets(item)


def print_suite(frame: pd.DataFrame) -> None:
    """Print the slots of a suite, one a line, and what there is by task and source."""
    shown = ["slot", "id", "name", "target", "rows", "features", "classes", "confidence", "status"]
    text = frame[[*shown, "evidence"]].astype(object)
    print_table(text.where(text.notna(), ""), as_json=False)
    counts = Counter(
        f"{task} from {name.partition(':')[0]}" for task, name in zip(frame["task"], frame["id"])
    )
    parts = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    typer.echo(f"{len(frame)} slots: {parts}")
