"""All commands under one name."""

from __future__ import annotations

from typing import Annotated

import typer

from inconvenient import __version__
from inconvenient.cli import (
    anomalies,
    data,
    doctor,
    evaluate,
    fetch,
    priors,
    report,
    shifts,
    verify,
)

__all__ = ["app"]

app = typer.Typer(
    name="inconvenient",
    help="How prediction on tables suffers from convenience samples.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(data.app, name="data")
app.add_typer(shifts.app, name="shifts")
shifts.app.command("verify")(verify.verify)
app.command("evaluate")(evaluate.evaluate)
app.command("anomalies")(anomalies.anomalies)
app.command("priors")(priors.priors)
app.command("fetch")(fetch.fetch)
app.command("report")(report.report)
app.command("doctor")(doctor.doctor)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """How prediction on tables suffers from convenience samples."""
