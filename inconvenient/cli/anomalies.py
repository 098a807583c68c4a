"""``inconvenient anomalies``: can a language model tell which coefficients were bent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inconvenient.cli import models
from inconvenient.cli.output import AsJson, counting, print_json, print_table, records

if TYPE_CHECKING:
    from inconvenient.llm.anomalies import Anomalies

__all__ = ["anomalies"]

_QUESTIONS, _RECALLS = "questions.parquet", "recalls.parquet"


def anomalies(
    model: models.Model = None,
    shifts: Annotated[
        int, typer.Option(min=3, help="How many; a third of each operation, as in the paper.")
    ] = 300,
    variant: Annotated[
        list[str] | None,
        typer.Option(
            help="What is told beside the coefficients: documented (names and documentation), "
            "masked (neither), names; repeatable. All by default."
        ),
    ] = None,
    profile: Annotated[str | None, typer.Option(help="full or quick.")] = None,
    url: models.Url = None,
    answers: models.Answers = None,
    replay: models.Replay = False,
    dry_run: models.DryRun = False,
    max_cost: models.MaxCost = None,
    price_in: models.PriceIn = None,
    price_out: models.PriceOut = None,
    timeout: models.Timeout = 120.0,
    at_once: models.AtOnce = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Of the draw, the order of features and the fillings.")
    ] = 1,
    workers: Annotated[
        int | None, typer.Option(help="Processes for the rankings without a model.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="A folder for questions.parquet and recalls.parquet.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Ask a model which coefficients of convenience samples were bent, and score its rankings.

    Prints Recall@K overall and per operation beside rankings without a language model and the
    paper's figures, and what became of the questions. Without --model the rankings that need none.
    An interrupted run goes on where it stopped. Exits with 1 if no question was answered.
    """
    from inconvenient.llm.anomalies import drawn_shifts, find_anomalies, pose_all
    from inconvenient.llm.prompts import VARIANTS
    from inconvenient.store import Store, check_writable, worker_count

    if out is not None:
        check_writable(out / _QUESTIONS)
    client = models.opened(
        model, url=url, answers=answers, replay=replay, dry_run=dry_run, max_cost=max_cost,
        price_in=price_in, price_out=price_out, timeout=timeout, at_once=at_once,
    )  # fmt: skip
    drawn = drawn_shifts(shifts, profile=profile, seed=seed)
    posed = []
    if client is not None:
        with counting("questions in words") as done:
            posed = pose_all(
                drawn, profile=profile, seed=seed, variants=variant or VARIANTS, done=done
            )
        if dry_run:
            requests = [one.request for one in posed]
            models.print_estimate(
                requests, client, price_in=price_in, price_out=price_out, as_json=as_json
            )
            return
    with counting(f"questions to {model}") as done:
        result = find_anomalies(
            posed, drawn, client, profile=profile, seed=seed, store=Store(),
            workers=worker_count(workers), done=done if posed else None,
        )  # fmt: skip
    try:
        if out is not None:
            facts = {"model": model, "shifts": len(drawn), "profile": profile, "seed": seed}
            _write(out, result, facts)
    finally:  # a disk that is full by now costs the file, and not what is to be seen
        _print(result, as_json)
    if posed and (result.questions["status"] == "failed").all():
        first = result.questions["failure"].iloc[0]
        typer.echo(f"no question was answered; the first: {first}", err=True)
        raise typer.Exit(1)


def _write(out: Path, result: Anomalies, facts: Mapping[str, Any]) -> None:
    from inconvenient import __version__
    from inconvenient.store import frame_bytes, write_atomic

    facts = {**facts, "package": __version__}
    write_atomic(out / _QUESTIONS, frame_bytes(result.questions, facts))
    write_atomic(out / _RECALLS, frame_bytes(result.recalls, facts))
    typer.echo(f"{_QUESTIONS} and {_RECALLS} written to {out}", err=True)


def _print(result: Anomalies, as_json: bool) -> None:
    from inconvenient.llm.summary import (
        answer_counts,
        paired_differences,
        recall_by_operation,
        recall_overall,
    )

    tables = {
        "overall": recall_overall(result),
        "operations": recall_by_operation(result),
        "differences": paired_differences(result),
        "questions": answer_counts(result),
    }
    if as_json:
        print_json({name: records(table) for name, table in tables.items()})
        return
    for name, table in tables.items():
        if len(table):
            typer.echo(f"{'' if name == 'overall' else chr(10)}{_HEADINGS[name]}")
            print_table(table, as_json=False)


_HEADINGS = {
    "overall": (
        "Recall@K: means over datasets with 95 % intervals (none below three survey families); "
        "corrected, 0 is chance, 1 all"
    ),
    "operations": "Recall@5 by operation; the paper states means over shifts",
    "differences": "Recall@5 of a variant less that of another ranking, paired by shift",
    "questions": "Questions: answers by how much of the ranking is the model's, shares of places",
}
