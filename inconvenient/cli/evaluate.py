"""``inconvenient evaluate``: models and baselines scored on published shifts."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inconvenient.cli.output import AsJson, print_json, print_table, records
from inconvenient.errors import InconvenientError, InputError, UnitError

if TYPE_CHECKING:
    import pandas as pd

    from inconvenient.evaluation.compare import Comparison

__all__ = ["evaluate"]

_FORMATS = {".csv": "csv", ".parquet": "parquet"}


def evaluate(
    model: Annotated[
        list[str] | None,
        typer.Option(help="package.module:Class, an object or a function there; repeatable."),
    ] = None,
    baseline: Annotated[
        list[str] | None, typer.Option(help="The name of a baseline, such as catboost; repeatable.")
    ] = None,
    shifts: Annotated[
        list[str] | None,
        typer.Option(
            help="An id, or a pattern such as 'email_spam/*'; repeatable. All by default."
        ),
    ] = None,
    dataset: Annotated[str | None, typer.Option(help="Only shifts of one dataset.")] = None,
    task: Annotated[str | None, typer.Option(help="regression, binary or multiclass.")] = None,
    operation: Annotated[str | None, typer.Option(help="amplify, attenuate or flip.")] = None,
    min_fraction: Annotated[float | None, typer.Option(help="0.1, 0.2, 0.3 or 0.5.")] = None,
    limit: Annotated[int | None, typer.Option(help="Draw so many of them at random.")] = None,
    profile: Annotated[str | None, typer.Option(help="full or quick.")] = None,
    trials: Annotated[
        int,
        typer.Option(
            min=0, help="Of baselines: settings to try per training sample; 20 in the paper."
        ),
    ] = 0,
    controls: Annotated[int, typer.Option(help="Uniform samples per size.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Of the models, and of --limit's draw.")] = 0,
    workers: Annotated[
        int | None, typer.Option(help="Processes; the cores, or $INCONVENIENT_WORKERS, by default.")
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(help="A Dask scheduler, tcp://host:port, to work there.")
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds for a training sample; more is a failure.")
    ] = None,
    memory_limit: Annotated[
        int | None, typer.Option(help="Megabytes for a training sample; more is a failure.")
    ] = None,
    tabpfn_weights: Annotated[
        Path | None, typer.Option(help="Where the weights of TabPFN lie on this machine.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write a row per model and shift, .csv or .parquet.")
    ] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Set the results beside the published baselines.")
    ] = False,
    study: Annotated[
        bool,
        typer.Option(
            "--study", help="Only the tuned study's shifts; --compare adds its baselines."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Score models on published shifts: trained on the pool, on uniform and convenience samples.

    A model is anything with fit and predict, from the current folder or installed. Prints a row per
    model and task; exits with 1 if nothing could be scored.
    """
    from inconvenient.store import check_writable

    if tabpfn_weights is not None:
        os.environ["INCONVENIENT_TABPFN_WEIGHTS"] = str(tabpfn_weights.absolute())
    if out is not None and out.suffix.lower() not in _FORMATS:
        raise InputError(f"the output must end in .csv or .parquet, got {out}; name one with --out")
    if trials and not baseline:
        raise InputError("--trials is for baselines; name one with --baseline, or leave it away")
    models = _models(model or [], baseline or [])
    chosen = _chosen(
        [found for _, found in models], shifts, profile, limit, seed, study=study,
        dataset=dataset, task=task, operation=operation, min_fraction=min_fraction,
    )  # fmt: skip
    options: dict[str, Any] = {
        "seed": seed,
        "workers": workers,
        "controls": controls,
        "time_limit": time_limit,
    }
    options |= {"memory_limit": memory_limit, "cluster": cluster, "profile": profile}
    if out is not None:
        check_writable(out)
    with _stdout_kept():
        result = _scores(models, chosen, trials, options)
    try:
        if out is not None:
            _write(out, result)
    finally:  # a disk that is full by now costs the file, and not what is to be seen
        _print(result, _compared(result, profile, study) if compare else None, as_json)
    if not (result["status"] == "ok").any():
        typer.echo(f"no shift could be scored; the first: {result['status'].iloc[0]}", err=True)
        raise typer.Exit(1)


def _models(names: list[str], baselines: list[str]) -> list[tuple[str, Any]]:
    """Return models by name; of baselines those that are available, and say why others are not."""
    from inconvenient.baselines import get_baseline, require

    if not names and not baselines:
        raise InputError("something to score was needed: give --model or --baseline")
    found: list[tuple[str, Any]] = [(name, _imported(name)) for name in dict.fromkeys(names)]
    unavailable = []
    for name in dict.fromkeys(baselines):
        own = get_baseline(name)
        try:
            require(own)
        except InconvenientError as error:
            unavailable.append(f"{name}: {error}")
            continue
        found.append((name, name))
    if not found:
        raise InputError("\n".join(unavailable))
    for text in unavailable:
        typer.echo(text, err=True)
    return found


def _imported(name: str) -> Any:
    """Return what ``package.module:Name`` names; the current folder can be imported from."""
    module, colon, path = name.partition(":")
    if not (module and colon and path):
        raise InputError(f"--model takes package.module:Class, got {name!r}")
    if module.endswith(".py") or "/" in module:
        raise InputError(
            f"--model takes package.module:Class, got the file {module}; "
            f"give {Path(module).stem}:{path} in the folder of the file"
        )
    if not {"", os.getcwd()} & set(sys.path):
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module)
    except Exception as error:  # whatever the user's module raises
        raise InputError(
            f"--model {name}: {module} cannot be imported from {os.getcwd()} or what is "
            f"installed: {type(error).__name__}: {error}"
        ) from error
    for part in path.split("."):
        if not hasattr(found, part):
            raise InputError(f"--model {name}: there is no {part!r} in {module}; correct the name")
        found = getattr(found, part)
    return found


def _chosen(
    models: list[Any],
    patterns: list[str] | None,
    profile: str | None,
    limit: int | None,
    seed: int,
    **filters: Any,
) -> pd.DataFrame:
    from inconvenient.evaluation.choice import choose
    from inconvenient.evaluation.evaluate import tasks_of
    from inconvenient.shifts import list_shifts

    dataset = filters.pop("dataset")
    study = filters.pop("study")
    frame = list_shifts(dataset, profile, **filters)
    if study:
        from inconvenient.shifts.study import read_study

        frame = frame[frame["shift_id"].isin(read_study()["shift_id"])]
    tasks = set.intersection(*(set(tasks_of(found)) for found in models))
    return choose(frame, patterns, tasks=tasks, limit=limit, seed=seed)


@contextmanager
def _stdout_kept() -> Iterator[None]:
    """Send to stderr what models print, here and in worker processes: stdout has results alone."""
    sys.stdout.flush()
    stdout = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)


def _scores(
    models: list[tuple[str, Any]], chosen: pd.DataFrame, trials: int, options: dict[str, Any]
) -> pd.DataFrame:
    import pandas as pd

    from inconvenient.evaluation.evaluate import evaluate

    parts = []
    for name, found in models:
        try:
            own = evaluate(found, chosen, trials=trials if isinstance(found, str) else 0, **options)
        except UnitError as error:  # a model that takes its process down costs no other
            typer.echo(f"{name}: {error}", err=True)
            continue
        parts.append(own.assign(model=name))
    if not parts:
        raise typer.Exit(1)
    return pd.concat(parts, ignore_index=True)


def _write(out: Path, result: pd.DataFrame) -> None:
    from inconvenient.shifts.tables import table_bytes
    from inconvenient.store import write_atomic

    write_atomic(out, table_bytes(result, _FORMATS[out.suffix.lower()]))
    typer.echo(f"{len(result)} rows written to {out}", err=True)


def _compared(result: pd.DataFrame, profile: str | None, study: bool) -> Comparison:
    from inconvenient.evaluation.compare import compare

    return compare(result, profile=profile, study=study)


def _print(result: pd.DataFrame, compared: Comparison | None, as_json: bool) -> None:
    from inconvenient.evaluation.evaluate import summarise

    summary = summarise(result)
    tables = {}
    if compared is not None:
        tables = {name: getattr(compared, name) for name in ("differences", "ranks", "tests")}
    if as_json:
        said: dict[str, Any] = {"summary": records(summary), "shifts": records(result)}
        if compared is not None:
            said["compare"] = {name: records(table) for name, table in tables.items()}
        print_json(said)
        return
    print_table(summary, as_json=False)
    for name, table in tables.items():
        typer.echo(f"\n{_HEADINGS[name]}")
        print_table(table, as_json=False)
    failed = result[result["status"] != "ok"]
    counts = failed.groupby(["model", "status"], sort=False).size().reset_index(name="shifts")
    for row in counts.itertuples(index=False):
        word = "shift" if row.shifts == 1 else "shifts"
        typer.echo(f"{row.model}: {row.shifts} {word} failed: {row.status}", err=True)


_HEADINGS = {
    "differences": (
        "Model minus published baseline (default settings): mean over datasets, 95 % interval"
    ),
    "ranks": "Average rank by OOD score over datasets, 1 is best",
    "tests": "Wilcoxon's signed-rank test over datasets, p corrected by Holm",
}
