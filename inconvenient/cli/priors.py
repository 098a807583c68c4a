"""``inconvenient priors``: what a language model's knowledge of coefficients is worth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inconvenient.cli import models
from inconvenient.cli.output import AsJson, counting, print_json, print_table, records, waiting
from inconvenient.errors import InputError

if TYPE_CHECKING:
    from inconvenient.benchmark.prior_study import PriorStudy

__all__ = ["priors"]


def priors(
    model: models.Model = None,
    shifts: Annotated[int, typer.Option(min=1, help="How many, spread over the datasets.")] = 100,
    operation: Annotated[str, typer.Option(help="amplify, attenuate or flip.")] = "flip",
    variant: Annotated[
        list[str] | None,
        typer.Option(
            help="What the model is told: documented (names and documentation) or masked "
            "(neither); repeatable. Both by default."
        ),
    ] = None,
    likelihood: Annotated[
        bool,
        typer.Option(
            "--likelihood",
            help="Ask by the log-probabilities of opposite statements: 8 short questions for each "
            "coefficient.",
        ),
    ] = False,
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
        int, typer.Option(min=0, help="Of the draw, the order of features and the bootstrap.")
    ] = 1,
    workers: Annotated[
        int | None, typer.Option(help="Processes for the scores; the cores by default.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write a row per prior and shift, .csv or .parquet.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Ask a model for signs and sizes of coefficients, and score them as a linear model's prior.

    Prints the share of the gap between OOD and ID that the prior closes, beside the same with names
    masked, with its signs reversed, and a prior that knows the pool; and what became of the
    answers. An interrupted run goes on where it stopped. Exits with 1 if no question was answered.
    """
    from inconvenient.benchmark.prior_study import (
        distinct_requests,
        drawn_shifts,
        pose_priors,
        study_priors,
    )
    from inconvenient.llm.elicitation_prompt import VARIANTS
    from inconvenient.shifts.tables import table_bytes
    from inconvenient.store import check_writable, write_atomic

    kind = models.output_format(out)
    if out is not None:
        check_writable(out)
    client = models.opened(
        model, url=url, answers=answers, replay=replay, dry_run=dry_run, max_cost=max_cost,
        price_in=price_in, price_out=price_out, timeout=timeout, at_once=at_once,
    )  # fmt: skip
    if client is None:
        raise InputError("a model was needed, to be asked for a prior; give --model")
    drawn = drawn_shifts(shifts, operation=operation, profile=profile, seed=seed)
    with waiting("questions in words"):
        posed = pose_priors(drawn, variants=variant or VARIANTS, likelihood=likelihood, seed=seed)
    if dry_run:
        models.print_estimate(
            distinct_requests(posed), client, price_in=price_in, price_out=price_out,
            as_json=as_json,
        )  # fmt: skip
        return
    with counting(f"questions to {model}") as done:
        result = study_priors(
            posed, drawn, client, profile=profile, seed=seed, workers=workers, done=done
        )
    try:
        if out is not None:
            write_atomic(out, table_bytes(result.scores, kind))
            typer.echo(f"{len(result.scores)} rows written to {out}", err=True)
    finally:  # a disk that is full by now costs the file, and not what is to be seen
        _print(result, as_json)
    if result.answers["failed"].sum() == result.answers["questions"].sum():
        typer.echo("no question was answered", err=True)
        raise typer.Exit(1)


def _print(result: PriorStudy, as_json: bool) -> None:
    if as_json:
        names = ("closed", "answers", "beliefs", "scores")
        print_json({name: records(getattr(result, name)) for name in names})
        return
    typer.echo(
        "Share of the gap between OOD and ID score that a prior closes, with its 95 % interval\n"
        "(reversed: the first with all signs flipped; oracle: knows the pool; flat: the linear "
        "baseline)"
    )
    print_table(result.closed, as_json=False)
    typer.echo("\nAnswers: what became of the coefficients that the model was asked for")
    counts = result.answers.drop(columns="dataset").groupby("variant", sort=False).sum()
    print_table(counts.reset_index(), as_json=False)
