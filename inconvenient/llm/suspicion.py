"""Asks a model which features of one shift are suspicious."""

from __future__ import annotations

from pathlib import Path

from inconvenient.errors import InputError
from inconvenient.llm.asking import Reply, ask_ranking
from inconvenient.llm.cache import CachedClient, Client
from inconvenient.llm.clients import client_of
from inconvenient.llm.tasks import ask_about
from inconvenient.shifts import Shift, load_shift
from inconvenient.store import Store

__all__ = ["kept_answers", "rank_suspicious"]


def kept_answers() -> Path:
    """Return the folder in which answers are kept by default: ``answers`` in the record store."""
    return Store().root / "answers"


def rank_suspicious(
    shift: Shift | str,
    model: str | Client,
    *,
    variant: str = "documented",
    url: str | None = None,
    seed: int = 0,
    answers: str | Path | None = None,
) -> Reply:
    """Ask a language model which coefficients of a convenience sample are likely to be bent.

    Parameters
    ----------
    shift : Shift or str
        Or the id of a published one.
    model : str or Client
        "anthropic:claude-haiku-4-5", or whatever else pydantic-ai names, its key in the
        environment; "local:NAME" behind ``url``; "embedded:smollm2", in this process and offline.
    variant : {"documented", "masked", "names"}
        What is told beside the coefficients: names and documentation; neither, features being
        numbered; names alone.
    url : str, optional
        Of an OpenAI-compatible server (Ollama, vLLM, llama.cpp), for "local:NAME".
    seed : int
        Of the order in which features are listed, and of what fills places without an answer.
    answers : path, optional
        Folder where answers are kept: what was asked before costs nothing. By default in the
        record store.

    Returns
    -------
    Reply
        ``.ranking.features``, all m features, most suspicious first; ``.ranking.reasons``, of those
        that the model named; ``.ranking.status``; ``.answer``, the text as it came, its tokens.

    Raises
    ------
    InputError
        If there is no such variant or model, or the sample allows no fit.
    NotAvailableError
        If the shift or its dataset is not on this machine.
    MissingDependencyError
        If the client's library is not installed.
    ModelError
        If the model gives no answer.

    Examples
    --------
    >>> import inconvenient as ic
    >>> reply = ic.rank_suspicious(
    ...     "psid_wages_panel/education/flip/0.1/at_least", "embedded:smollm2"
    ... )  # doctest: +SKIP
    >>> reply.ranking.features[:3]  # doctest: +SKIP

    References
    ----------
    INCONVENIENT, arXiv 2610.21038, section 4.4.
    """
    if isinstance(shift, str):
        shift = load_shift(shift)
    if not isinstance(shift, Shift):
        raise InputError(f"shift must be a shift or the id of one, got {type(shift).__name__}")
    client = client_of(model, url=url) if isinstance(model, str) else model
    question = ask_about(*shift.train(), shift.context)
    kept = CachedClient(kept_answers() if answers is None else answers, client)
    return ask_ranking(question, kept, name=shift.shift_id, variant=variant, seed=seed)
