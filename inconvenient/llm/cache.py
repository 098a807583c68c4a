"""Answers of language models: kept as JSON under what was asked, replayed from there alone."""

from __future__ import annotations

import dataclasses
import hashlib
import json
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
        JSON schema that the answer should meet, which a client may ignore.
    parameters : mapping
        JSON-able settings of the model, such as ``max_tokens``; never a key or a secret, for they
        are kept with the answer.
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
    stop : str
        Why it ended, in the client's words, such as "end", "length" or "refusal"; "" if unknown.
    """

    text: str
    tokens_in: int = 0
    tokens_out: int = 0
    stop: str = ""


class Client(Protocol):
    """Something that answers messages.

    Attributes
    ----------
    model : str
        Which model answers, "provider:name"; part of the key under which answers are kept.
    """

    @property
    def model(self) -> str:
        """Return the name of the model."""

    def ask(self, request: Request) -> Answer:
        """Answer a request."""


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

    def ask(self, request: Request) -> Answer:
        """Return the kept answer, else ask and keep it; see :class:`Client`.

        Raises
        ------
        NotAvailableError
            In replay, if the answer is not kept.
        StoreError
            If the folder cannot be read or written.
        """
        asked = request.of(self.model)
        key = answer_key(self.model, request)
        kept = _read(self._store.get(f"{key}.json"), asked)
        if kept is not None:
            return kept
        if self._client is None:
            raise NotAvailableError(
                f"the answer {key[:12]}... of {self.model} was needed, but {self._store.root} does "
                "not hold it; bring all answers of the run, or run with a client"
            )
        answer = self._client.ask(request)
        value = canonical_json({"request": json.loads(asked), "answer": dataclasses.asdict(answer)})
        self._store.put(f"{key}.json", value.encode("ascii") + b"\n")
        return answer


def _read(value: bytes | None, asked: str) -> Answer | None:
    """Return the answer in a file, or None unless it is a whole one to this request."""
    if value is None:
        return None
    try:
        kept = json.loads(value)
        answer = Answer(**kept["answer"])
        same = canonical_json(kept["request"]) == asked
    except (ValueError, KeyError, TypeError):
        return None
    return answer if same and isinstance(answer.text, str) else None
