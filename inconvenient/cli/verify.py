"""``inconvenient shifts verify``: recompute published shifts from raw tables and row ids."""

from __future__ import annotations

import contextlib
import difflib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inconvenient.cli.output import AsJson, print_json, print_table, records
from inconvenient.errors import InputError, NotAvailableError

if TYPE_CHECKING:
    import pandas as pd

    from inconvenient.verify import Report, Settings

__all__ = ["verify"]

_SHOWN = 50


def verify(
    shift_ids: Annotated[
        list[str] | None, typer.Argument(help="Published shifts, as `shifts list` names them.")
    ] = None,
    dataset: Annotated[
        list[str] | None, typer.Option(help="All shifts of a dataset; repeatable.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All published shifts.")] = False,
    profile: Annotated[str | None, typer.Option(help="full or quick.")] = None,
    skip: Annotated[
        str, typer.Option(help="Parts to leave out: chance, collateral, scores, filter.")
    ] = "",
    workers: Annotated[
        int | None, typer.Option(help="Processes; the cores, or $INCONVENIENT_WORKERS, by default.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Recompute published shifts from the raw tables and their row ids, and compare every number.

    Uses none of the code that made them but for the baselines; exits with 1 if a number differs.
    """
    from inconvenient.shifts.loading import profile_folder
    from inconvenient.store import worker_count

    if not (shift_ids or dataset or every):
        raise InputError("name shifts, or give --dataset or --all, to say what to verify")
    folder = profile_folder(profile)
    published, settings = _published(folder)
    chosen = published if every else _chosen(published, shift_ids or [], dataset or [])
    parts = [part.strip() for part in skip.split(",") if part.strip()]
    report = _run(chosen, _split(folder), settings, parts, worker_count(workers))
    _print(report, str(folder), as_json)
    if len(report.wrong):
        raise typer.Exit(1)


def _published(folder: Path) -> tuple[pd.DataFrame, Settings]:
    """Return the published shifts of a profile, and the parameters that they were made with."""
    import pyarrow.parquet as pq

    from inconvenient.store import read_frame
    from inconvenient.verify import Settings

    path = folder / "publish" / "shifts.parquet"
    with _readable(path):
        facts = json.loads((pq.read_schema(path).metadata or {}).get(b"inconvenient", b"{}"))
        return read_frame(path), Settings.of(facts.get("parameters", {}))


def _split(folder: Path) -> pd.DataFrame:
    from inconvenient.store import read_frame

    path = folder / "split" / "split.parquet"
    with _readable(path):
        return read_frame(path)


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn what an absent or damaged file raises into NotAvailableError."""
    import pyarrow as pa

    try:
        yield
    except (OSError, ValueError, pa.ArrowException) as error:
        raise NotAvailableError(
            f"{path} was needed and cannot be read ({error}); bring it again with "
            "`inconvenient fetch`, in a checkout with `dvc pull`"
        ) from error


def _chosen(published: pd.DataFrame, shift_ids: list[str], datasets: list[str]) -> pd.DataFrame:
    for column, names in (("shift_id", shift_ids), ("dataset", datasets)):
        known = set(published[column])
        for name in names:
            if name not in known:
                near = difflib.get_close_matches(name, sorted(known), n=3, cutoff=0.3)
                raise InputError(
                    f"no published shift has the {column} {name!r}; closest: "
                    f"{', '.join(near) or 'none'}"
                )
    return published[published["shift_id"].isin(shift_ids) | published["dataset"].isin(datasets)]


def _run(
    published: pd.DataFrame, split: pd.DataFrame, settings: Settings, skip: list[str], workers: int
) -> Report:
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn

    from inconvenient.verify import verify_shifts

    console = Console(stderr=True)
    columns = (*Progress.get_default_columns(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("verify", total=len(published))

        def advance(name: str, shifts: int) -> None:
            progress.advance(task, shifts)

        return verify_shifts(
            published, split, settings, skip=skip, workers=workers, advance=advance
        )


def _print(report: Report, folder: str, as_json: bool) -> None:
    if as_json:
        facts: dict[str, Any] = {"shifts": report.shifts, "datasets": report.datasets}
        facts |= {"folder": folder, "unchecked": list(report.unchecked)}
        facts["wrong"] = records(report.wrong)
        print_json({**facts, "deviations": json.loads(report.deviations.to_json(orient="records"))})
        return
    print_table(report.deviations, as_json=False)
    typer.echo("")
    if len(report.wrong):
        print_table(report.wrong.head(_SHOWN), as_json=False)
        typer.echo("")
    if report.unchecked:
        typer.echo(f"not compared: {', '.join(report.unchecked)}")
    shown = f", the first {_SHOWN} above" if len(report.wrong) > _SHOWN else ""
    bad = report.wrong["shift_id"].nunique()
    typer.echo(
        f"{report.shifts} shifts of {report.datasets} datasets in {folder}: "
        + (f"{len(report.wrong)} values of {bad} differ{shown}" if bad else "every number agrees")
    )
