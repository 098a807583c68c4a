"""Clients of all interfaces at one server on the loopback, and what they are asked."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from model_server import Server, serving

from inconvenient.llm.cache import Request
from inconvenient.llm.prompts import ANSWER_SCHEMA
from inconvenient.llm.remote import RemoteClient

KEY = "sk-recognisable-0123456789abcdef"
OTHER = "sk-of-openai-alone-9876543210"
INTERFACES = ("local", "anthropic", "openai-chat", "openai")
NAMES = {
    "local": "local:tiny",
    "anthropic": "anthropic:claude-haiku-4-5",
    "openai-chat": "openai-chat:gpt-4.1-mini",
    "openai": "openai:gpt-4.1-mini",
}
VARIABLES = {
    "local": "INCONVENIENT_LOCAL_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "openai-chat": "OPENAI_API_KEY",
    "openai": "OPENAI_API_KEY",
}
SETTINGS = {"max_tokens": 50, "temperature": 0}


@contextlib.contextmanager
def remote_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Run a server that all providers' libraries are sent to."""
    for name in list(os.environ):
        if name.startswith(("ANTHROPIC_", "OPENAI_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.delenv("INCONVENIENT_LOCAL_KEY", raising=False)
    # No certificates: they take most of a try's time to load, and nothing here is encrypted.
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(Path(__file__).parent))
    with serving() as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        yield server


def client_at(server: Server, interface: str, **settings: Any) -> RemoteClient:
    url = f"{server.url}/v1" if interface == "local" else None
    return RemoteClient(NAMES[interface], url=url, **{"wait": 0.01, **settings})


def request(text: str = "who?", **parameters: Any) -> Request:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}]
    return Request(messages, ANSWER_SCHEMA, {**SETTINGS, **parameters})


def free(text: str = "who?", **parameters: Any) -> Request:
    return Request([{"role": "user", "content": text}], {}, {**SETTINGS, **parameters})


# -- what is sent, and what comes back -----------------------------------------------------------
