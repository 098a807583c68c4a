"""``inconvenient report``: where the report of a profile is, or make it anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inconvenient.cli.output import AsJson, print_json, print_table
from inconvenient.config import PROFILES, checkouts, user_folder
from inconvenient.errors import InputError, MissingDependencyError, NotAvailableError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["report"]


def report(
    profile: Annotated[
        str | None,
        typer.Option(help="full or quick; by default full if it is here, and quick to make."),
    ] = None,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Run `dvc repro` of the report first (a checkout).")
    ] = False,
    table: Annotated[
        str | None,
        typer.Option(
            help="Print a table of it, such as headline or paper.comparison; ? lists them."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say where the report of a profile is, or print one of its tables."""
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
    if table is not None:
        _print_table(page.with_name("tables.json"), table, as_json)
    elif as_json:
        print_json({"report": str(page), "tables": str(page.with_name("tables.json"))})
    else:
        typer.echo(str(page))


def _print_table(path: Path, name: str, as_json: bool) -> None:
    import pandas as pd

    tables = _named(json.loads(path.read_text(encoding="utf-8")))
    if name == "?":
        listing = {"table": list(tables), "rows": [len(rows) for rows in tables.values()]}
        print_table(pd.DataFrame(listing), as_json=as_json)
    elif name not in tables:
        raise InputError(f"table must be one of {', '.join(tables)}, got {name!r}")
    elif as_json:
        print_json(tables[name])
    else:
        _print_nested(pd.json_normalize(tables[name]))


def _print_nested(frame: pd.DataFrame) -> None:
    """Print a table; columns of a nested part, "part.column", as a table of its own each."""
    parts: dict[str, list[str]] = {}
    for column in frame.columns:
        parts.setdefault(column.rpartition(".")[0], []).append(column)
    front = parts.pop("", [])
    if not parts:
        print_table(frame, as_json=False)
    for k, (part, columns) in enumerate(parts.items()):
        typer.echo(f"{'' if k == 0 else chr(10)}{part}")
        own = frame[front + columns].rename(columns=lambda name: name.rpartition(".")[2])
        print_table(own, as_json=False)


def _named(value: Any, prefix: str = "") -> dict[str, list[dict[str, Any]]]:
    """Return the tables in nested mappings by their path, dots between."""
    out: dict[str, list[dict[str, Any]]] = {}
    for key, item in value.items():
        if isinstance(item, dict):
            out |= _named(item, f"{prefix}{key}.")
        elif isinstance(item, list) and all(isinstance(row, dict) for row in item):
            out[f"{prefix}{key}"] = item
    return out


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
