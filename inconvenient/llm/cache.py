"""Answers of language models: kept as JSON under what was asked, replayed from there alone."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from inconvenient.errors import InputError, NotAvailableError
from inconvenient.llm.prompts import Message
from inconvenient.store import Store, canonical_json

__all__ = ["Answer", "CachedClient", "Client", "Request", "answer_key"]


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """What a model is asked.

    Parameters
    ----------
    messages : sequence of dict
        ``role`` and ``content``.
    schema : mapping
        JSON schema that the answer should meet, which a client may ignore; {} for free text.
    parameters : mapping
        JSON-able settings: ``max_tokens``, of the answer; ``temperature``; ``seed``, where the
        model takes one; ``logprobs``, how many alternatives of the first token to return with
        their log-probabilities. Never a key or a secret, for they are kept with the answer.
    """

    messages: Sequence[Message]
    schema: Mapping[str, Any]
    parameters: Mapping[str, Any]

    def of(self, model: str) -> str:
        """Return it as canonical JSON, together with the model that is asked."""
        messages = [dict(message) for message in self.messages]
        own = {"model": model, "messages": messages, "schema": dict(self.schema)}
        return canonical_json({**own, "parameters": dict(self.parameters)})


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """What a model answered.

    Parameters
    ----------
    text : str
        As it came.
    tokens_in, tokens_out : int
        Of messages and answer, as the client counts them; 0 where it does not.
    stop : {"end", "length", "refusal", "too long", ""}
        Why it ended: by itself, cut off at ``max_tokens``, refused by the model or its filter, not
        begun since the messages exceed the model's context; "" if unknown.
    logprobs : dict of str to float
        Of the likeliest first tokens, their natural log-probabilities; empty where a client has
        none or ``parameters`` did not ask for them.
    """

    text: str
    tokens_in: int = 0
    tokens_out: int = 0
    stop: str = ""
    logprobs: Mapping[str, float] = dataclasses.field(default_factory=dict)


class Client(Protocol):
    """Something that answers messages.

    Attributes
    ----------
    model : str
        Which model answers, "provider:name"; part of the key under which answers are kept.
    at_once : int
        Requests that may be under way at a time; ``ask`` is called from as many threads.
    """

    @property
    def model(self) -> str:
        """Return the name of the model."""

    @property
    def at_once(self) -> int:
        """Return how many requests may be under way at a time."""

    def ask(self, request: Request) -> Answer:
        """Answer a request.

        Raises
        ------
        ModelError
            If there is no answer, however often it was tried.
        """


def answer_key(model: str, request: Request) -> str:
    """Return the key of an answer: the SHA-256 of what was asked as canonical JSON, 64 digits."""
    return hashlib.sha256(request.of(model).encode("ascii")).hexdigest()


class CachedClient:
    """A client that asks nothing twice, and in replay nothing at all.

    Parameters
    ----------
    folder : path
        Of the answers, a file of JSON each: ``request`` and ``answer``, nothing else, so that the
        same run gives the same bytes.
    client : Client, optional
        Who answers what is not kept yet; None to replay.
    model : str, optional
        Whose answers are replayed; only without a client, which has its own.

    Raises
    ------
    InputError
        Unless exactly one of ``client`` and ``model`` is given.

    Notes
    -----
    An answer is written, atomically, before it is returned: what was received is never lost, and an
    interrupted run goes on where it stopped. A file that is not the answer to its request counts
    as absent.
    """

    def __init__(
        self, folder: str | Path, client: Client | None = None, *, model: str | None = None
    ) -> None:
        if (client is None) == (model is None):
            raise InputError(
                "either a client, or for a replay the model whose answers it gives, is needed; got "
                f"{'neither' if client is None else 'both'}"
            )
        self._store, self._client = Store(folder), client
        self.model = client.model if client is not None else str(model)
        self.at_once = client.at_once if client is not None else 1

    def holds(self, request: Request) -> bool:
        """Return whether the answer to a request is kept, so that it would not be asked for."""
        return self._kept(request) is not None

    def ask(self, request: Request) -> Answer:
        """Return the kept answer, else ask and keep it; see :class:`Client`.

        Raises
        ------
        NotAvailableError
            In replay, if the answer is not kept.
        StoreError
            If the folder cannot be read or written.
        """
        kept = self._kept(request)
        if kept is not None:
            return kept
        key = answer_key(self.model, request)
        if self._client is None:
            raise NotAvailableError(
                f"the answer {key[:12]}... of {self.model} was needed, but {self._store.root} does "
                "not hold it; bring all answers of the run, or run with a client"
            )
        answer = self._client.ask(request)
        asked = json.loads(request.of(self.model))
        value = canonical_json({"request": asked, "answer": dataclasses.asdict(answer)})
        self._store.put(f"{key}.json", value.encode("ascii") + b"\n")
        return answer

    def _kept(self, request: Request) -> Answer | None:
        """Return the answer that is kept, or None."""
        key = answer_key(self.model, request)
        return _read(self._store.get(f"{key}.json"), request.of(self.model))


def _read(value: bytes | None, asked: str) -> Answer | None:
    """Return the answer in a file, or None unless it is a whole one to this request."""
    if value is None:
        return None
    try:
        kept = json.loads(value)
        answer = Answer(**kept["answer"])
        same = canonical_json(kept["request"]) == asked
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return answer if same and _whole(answer) else None


def _whole(answer: Answer) -> bool:
    """Return whether every part is of its kind."""
    return (
        isinstance(answer.text, str)
        and isinstance(answer.stop, str)
        and all(type(n) is int and n >= 0 for n in (answer.tokens_in, answer.tokens_out))
        and isinstance(answer.logprobs, dict)
        and all(type(x) in (int, float) and math.isfinite(x) for x in answer.logprobs.values())
    )
