"""The registry of clients: who answers for a model, by the provider in its name."""

from __future__ import annotations

from inconvenient.errors import InputError
from inconvenient.llm.cache import Client

__all__ = ["client_of", "provider_of"]

#: Requests to a server under way at a time.
AT_ONCE = 4


def client_of(
    model: str,
    *,
    url: str | None = None,
    timeout: float = 120.0,
    retries: int = 5,
    at_once: int | None = None,
) -> Client:
    """Return the client of a model.

    Parameters
    ----------
    model : str
        "embedded:smollm2", or "embedded:" and the path of a file of weights, for a model in this
        process; "local:name" for a server at ``url``; else "provider:name" as pydantic-ai names it,
        such as "anthropic:claude-haiku-4-5".
    url : str, optional
        Of an OpenAI-compatible server, such as "http://localhost:11434/v1"; with "local:" alone.
    timeout : float
        Seconds after which a try is given up; of no effect on embedded models.
    retries : int
        Further tries after the first; of no effect on embedded models.
    at_once : int, optional
        Requests under way at a time; by default 4, and of an embedded model the cores.

    Returns
    -------
    Client

    Raises
    ------
    InputError
        If the name has no provider that is known, or url and name do not belong together.
    MissingDependencyError
        If a library is not installed, or weights are absent.
    ModelError
        If there is no key.
    """
    if provider_of(model) != "embedded":
        from inconvenient.llm.remote import RemoteClient

        return RemoteClient(
            model, url=url, timeout=timeout, retries=retries, at_once=at_once or AT_ONCE
        )
    if url is not None:
        raise InputError(f"a url belongs to 'local:name' alone, got one with {model!r}")
    from inconvenient.llm.embedded import EmbeddedClient

    return EmbeddedClient(model.partition(":")[2], workers=at_once)


def provider_of(model: str) -> str:
    """Return the provider in a model's name.

    Raises
    ------
    InputError
        If it is no "provider:name".
    """
    provider, colon, name = model.partition(":")
    if not (provider and colon and name):
        raise InputError(
            "a model is named 'provider:name', such as embedded:smollm2, local:qwen3 or "
            f"anthropic:claude-haiku-4-5, got {model!r}"
        )
    return provider
