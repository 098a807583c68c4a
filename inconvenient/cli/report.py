"""``inconvenient report``: where the report of a profile is, or make it anew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inconvenient.cli.output import AsJson, print_json
from inconvenient.config import PROFILES, checkouts, user_folder
from inconvenient.errors import MissingDependencyError, NotAvailableError

__all__ = ["report"]


def report(
    profile: Annotated[
        str | None,
        typer.Option(help="full or quick; by default full if it is here, and quick to make."),
    ] = None,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Run `dvc repro` of the report first (a checkout).")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say where the report of a profile is."""
    found = checkouts()
    if rebuild:
        profile = profile or "quick"
        _repro(profile, found)
    names = PROFILES if profile is None else (profile,)
    roots = [root / "artefacts" for root in (*found, user_folder())]
    places = [root / name / "report" for root in roots for name in names]
    page = next((p / "report.html" for p in places if (p / "report.html").is_file()), None)
    if page is None:
        raise NotAvailableError(
            f"there is no report in {' or '.join(map(str, places))}; run `make run` or "
            f"`dvc repro report@{names[-1]}` in a checkout, or `inconvenient fetch` (`dvc pull`)"
        )
    if as_json:
        print_json({"report": str(page), "tables": str(page.with_name("tables.json"))})
    else:
        typer.echo(str(page))


def _repro(profile: str, found: list[Path]) -> None:
    import importlib.util
    import os
    import subprocess
    import sys

    if not found:
        raise NotAvailableError("a report is made in a checkout; clone the repository first")
    if importlib.util.find_spec("dvc") is None:
        raise MissingDependencyError("DVC is needed; pip install 'inconvenient[quick]'")
    # The stages call `python`; it must be this one.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    command = [sys.executable, "-m", "dvc", "repro", f"report@{profile}"]
    done = subprocess.run(command, cwd=found[0], env={**os.environ, "PATH": path}, check=False)
    if done.returncode:
        raise typer.Exit(done.returncode)
