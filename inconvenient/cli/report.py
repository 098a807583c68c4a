"""``inconvenient report``: where the report of a profile is, or make it anew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inconvenient.cli.output import AsJson, print_json
from inconvenient.errors import MissingDependencyError, NotAvailableError

__all__ = ["report"]

_CHECKOUT = Path(__file__).resolve().parents[2]


def report(
    profile: Annotated[str, typer.Option(help="An entry of `profiles` in params.yaml.")] = "quick",
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Run `dvc repro` of the report first (a checkout).")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say where the report of a profile is."""
    if rebuild:
        _repro(profile)
    page = _CHECKOUT / "artefacts" / profile / "report" / "report.html"
    if not page.is_file():
        raise NotAvailableError(
            f"there is no report at {page}; run `make run` or `dvc repro report@{profile}` in a "
            "checkout, or `dvc pull`"
        )
    if as_json:
        print_json({"report": str(page), "tables": str(page.with_name("tables.json"))})
    else:
        typer.echo(str(page))


def _repro(profile: str) -> None:
    import importlib.util
    import os
    import subprocess
    import sys

    if not (_CHECKOUT / "dvc.yaml").is_file():
        raise NotAvailableError(
            f"a report is made in a checkout, and {_CHECKOUT} is none; clone the repository"
        )
    if importlib.util.find_spec("dvc") is None:
        raise MissingDependencyError("DVC is needed; pip install 'inconvenient[quick]'")
    # The stages call `python`; it must be this one.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    command = [sys.executable, "-m", "dvc", "repro", f"report@{profile}"]
    done = subprocess.run(command, cwd=_CHECKOUT, env={**os.environ, "PATH": path}, check=False)
    if done.returncode:
        raise typer.Exit(done.returncode)
