"""What commands that ask language models share: their options, the client, the dry run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inconvenient.cli.output import print_facts
from inconvenient.errors import InputError

if TYPE_CHECKING:
    from inconvenient.llm.budget import Price
    from inconvenient.llm.cache import CachedClient, Request

__all__ = [
    "Answers",
    "AtOnce",
    "DryRun",
    "MaxCost",
    "Model",
    "PriceIn",
    "PriceOut",
    "Replay",
    "Timeout",
    "Url",
    "opened",
    "output_format",
    "print_estimate",
]

Model = Annotated[
    str | None,
    typer.Option(
        help="anthropic:claude-haiku-4-5 or another of pydantic-ai's names, its key in the "
        "environment; local:NAME behind --url; embedded:smollm2, offline."
    ),
]
Url = Annotated[
    str | None, typer.Option(help="Of an OpenAI-compatible server, for --model local:NAME.")
]
Answers = Annotated[
    Path | None,
    typer.Option(help="Folder where answers are kept, and found again; in the record store."),
]
Replay = Annotated[
    bool, typer.Option("--replay", help="Answer from the kept answers alone; fail on a miss.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print calls, tokens and cost, and send nothing.")
]
MaxCost = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        help="Dollars; stops before a question, or another try of one, that may cost more.",
    ),
]
PriceIn = Annotated[
    float | None, typer.Option(min=0.0, help="Dollars per million tokens of messages.")
]
PriceOut = Annotated[
    float | None, typer.Option(min=0.0, help="Dollars per million tokens of answers.")
]
Timeout = Annotated[float, typer.Option(min=1.0, help="Seconds for an answer, for each try.")]
AtOnce = Annotated[
    int | None, typer.Option(min=1, help="Questions under way at a time; 4, or the cores.")
]


def opened(
    model: str | None,
    *,
    url: str | None,
    answers: Path | None,
    replay: bool,
    dry_run: bool,
    max_cost: float | None,
    price_in: float | None,
    price_out: float | None,
    timeout: float,
    at_once: int | None,
) -> CachedClient | None:
    """Return the client that the options name, which keeps its answers; None without a model.

    For a replay and a dry run it has nobody to ask, and needs neither key nor library.
    """
    from inconvenient.llm.budget import BudgetClient
    from inconvenient.llm.cache import CachedClient
    from inconvenient.llm.clients import client_of, provider_of
    from inconvenient.llm.suspicion import kept_answers
    from inconvenient.store import check_writable

    if model is None:
        if url or answers or replay or dry_run or max_cost is not None:
            raise InputError("a model was needed, to be asked or replayed; give --model")
        return None
    provider_of(model)
    folder = kept_answers() if answers is None else answers
    if replay or dry_run:
        return CachedClient(folder, model=model)
    check_writable(folder / "answer.json")  # before anything is paid for
    client = client_of(model, url=url, timeout=timeout, at_once=at_once)
    if max_cost is not None:
        client = BudgetClient(client, _price(model, price_in, price_out), max_cost)
    return CachedClient(folder, client)


def _price(model: str, price_in: float | None, price_out: float | None) -> Price | None:
    """Return the price given by hand, else that of the list."""
    from inconvenient.llm.budget import Price, price_of

    if price_in is None and price_out is None:
        return price_of(model)
    if price_in is None or price_out is None:
        raise InputError("a price has two parts; give both --price-in and --price-out")
    return Price(price_in, price_out)


def print_estimate(
    requests: Sequence[Request],
    client: CachedClient,
    *,
    price_in: float | None,
    price_out: float | None,
    as_json: bool,
) -> None:
    """Print what requests would cost at most; nothing is sent."""
    from inconvenient.llm.budget import estimate

    price = _price(client.model, price_in, price_out)
    found = estimate(requests, client.model, client.holds, price=price)
    facts: dict[str, Any] = {
        "model": client.model,
        "calls": found.calls,
        "kept answers": found.kept,
        "tokens of messages, at most": found.tokens_in,
        "tokens of answers, at most": found.tokens_out,
        "cost in dollars, at most": found.cost,
    }
    if found.cost is None and not as_json:
        facts["cost in dollars, at most"] = "unknown price; give --price-in and --price-out"
    print_facts(facts, as_json=as_json)


def output_format(out: Path | None) -> str:
    """Return the format of a table by the name of its file.

    Raises
    ------
    InputError
        If it ends otherwise.
    """
    kind = "csv" if out is None else out.suffix.lower().removeprefix(".")
    if kind not in ("csv", "parquet"):
        raise InputError(f"the output must end in .csv or .parquet, got {out}; name one with --out")
    return kind
