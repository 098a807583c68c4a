"""A remote model's answer comes as it was sent; names and settings that cannot be used are told."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Iterator
from typing import Any

import pytest
from model_server import SAID, TOKENS, Server, Step
from remote_clients import (
    INTERFACES,
    KEY,
    NAMES,
    VARIABLES,
    client_at,
    free,
    remote_server,
    request,
)

from inconvenient.errors import InputError, MissingDependencyError, ModelError
from inconvenient.llm.cache import Answer, Request
from inconvenient.llm.prompts import ANSWER_SCHEMA
from inconvenient.llm.remote import RemoteClient


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with remote_server(monkeypatch) as running:
        yield running


@pytest.mark.parametrize("interface", INTERFACES)
def test_an_answer_comes_as_it_was_sent(server: Server, interface: str) -> None:
    client = client_at(server, interface)
    assert (client.model, client.at_once) == (NAMES[interface], 4)
    assert client.ask(request()) == Answer(SAID, *TOKENS, "end")
    (body,) = server.asked
    assert body["model"] == NAMES[interface].partition(":")[2]
    assert 50 in (
        body.get("max_tokens"), body.get("max_completion_tokens"), body.get("max_output_tokens"),
    )  # fmt: skip
    assert body["temperature"] == 0
    assert "Be brief." in json.dumps(body)
    schema = json.loads(json.dumps(ANSWER_SCHEMA))
    if interface == "local":
        assert body["response_format"]["json_schema"]["schema"] == schema
        assert not {"tools", "tool_choice"} & set(body)
    else:
        (tool,) = body["tools"]
        tool = tool.get("function", tool)
        sent = tool.get("parameters", tool.get("input_schema"))
        assert sent["properties"]["ranking"]["items"]["required"] == ["feature", "reason"]
        assert body["tool_choice"] in ("required", {"type": "any"})


@pytest.mark.parametrize("interface", INTERFACES)
def test_free_text_is_asked_for_without_a_form(server: Server, interface: str) -> None:
    server.script = [Step(' {"a": 1} and more\n')]
    assert client_at(server, interface).ask(free()).text == ' {"a": 1} and more\n'
    assert not {"tools", "tool_choice", "response_format"} & set(server.asked[0])


@pytest.mark.parametrize("interface", ["openai-chat", "openai"])
@pytest.mark.parametrize("text", ['{"ranking": [{"feature": "f1', "[1, 2]", "no JSON", '{ "a" :1}'])
def test_malformed_arguments_of_a_tool_are_not_mended(
    server: Server, interface: str, text: str
) -> None:
    server.script = [Step(text)]
    assert client_at(server, interface).ask(request()).text == text
    assert len(server.asked) == 1


@pytest.mark.parametrize("interface", INTERFACES)
def test_text_in_place_of_a_tool_is_the_answer(server: Server, interface: str) -> None:
    server.script = [Step("I think f3.", plain=True)]
    assert client_at(server, interface).ask(request()) == Answer("I think f3.", *TOKENS, "end")


@pytest.mark.parametrize("interface", INTERFACES)
@pytest.mark.parametrize("end", ["length", "refusal"])
def test_why_an_answer_ended(server: Server, interface: str, end: str) -> None:
    server.script = [Step('{"ranking": []}', end=end)]
    assert client_at(server, interface).ask(request()) == Answer('{"ranking": []}', *TOKENS, end)
    # An answer that was cut off before its first character is one, too: asking again costs more.
    server.script = [Step("", end=end, plain=True)]
    assert client_at(server, interface).ask(request()).stop == end
    assert len(server.asked) == 2


@pytest.mark.parametrize("interface", ["local", "openai-chat", "openai"])
def test_the_first_tokens_have_their_logprobs(server: Server, interface: str) -> None:
    first = (("A", -0.25), ("B", -1.5), ("A", -7.0), ("C", float("-inf")))
    server.script = [Step("A", first=first)]
    answer = client_at(server, interface).ask(free(logprobs=4))
    assert answer.logprobs == {"A": -0.25, "B": -1.5}
    assert server.asked[0]["top_logprobs"] == 4
    assert client_at(server, interface).ask(free()).logprobs == {}
    assert "top_logprobs" not in server.asked[1]


def test_a_blank_first_token_is_an_answer_to_who_asks_for_logprobs(server: Server) -> None:
    server.script = [Step(" ", first=((" ", -0.1),))]
    assert client_at(server, "local").ask(free(logprobs=1)).logprobs == {" ": -0.1}


def test_anthropic_has_no_logprobs_and_no_seed(server: Server) -> None:
    assert client_at(server, "anthropic").ask(free(logprobs=3, seed=1)).logprobs == {}
    assert not {"logprobs", "seed"} & set(server.asked[0])
    client_at(server, "openai-chat").ask(free(seed=1))
    assert server.asked[1]["seed"] == 1


def test_a_conversation_keeps_its_order(server: Server) -> None:
    said = [("system", "s"), ("user", "u1"), ("assistant", "a"), ("user", "u2")]
    messages = [{"role": role, "content": text} for role, text in said]
    client_at(server, "local").ask(Request(messages, {}, {}))
    assert server.asked[0]["messages"] == messages


def test_a_frugal_server_is_understood(server: Server) -> None:
    # No usage, no reason for the end, a name with a tag, thoughts beside the answer.
    message = {"role": "assistant", "content": SAID, "reasoning": "f1, surely"}
    reply = {"id": "1", "object": "chat.completion", "model": "qwen3:8b",
             "choices": [{"index": 0, "finish_reason": None, "message": message}]}  # fmt: skip
    server.script = [Step(raw=json.dumps(reply).encode())]
    client = RemoteClient("local:qwen3:8b", url=f"{server.url}/v1")
    assert client.ask(request()) == Answer(SAID, 0, 0, "end")
    assert server.asked[0]["model"] == "qwen3:8b"


def test_what_is_not_known_is_not_passed_over(server: Server) -> None:
    client = client_at(server, "local")
    with pytest.raises(InputError, match="must be one of logprobs, max_tokens, .* got 'top_p'"):
        client.ask(free(top_p=0.5))
    with pytest.raises(InputError, match="must be system, user or assistant, got 'tool'"):
        client.ask(Request([{"role": "tool", "content": ""}], {}, {}))
    assert server.asked == []


# -- faults ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("interface", ["anthropic", "openai", "openai-chat"])
def test_a_missing_key_is_told_at_once(
    server: Server, interface: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLES[interface])
    monkeypatch.delenv("OPENAI_BASE_URL")
    with pytest.raises(ModelError, match=f"{VARIABLES[interface]}, which is not set") as caught:
        client_at(server, interface)
    assert (caught.value.fatal, caught.value.reason) == (True, "not allowed")
    assert server.asked == []


@pytest.mark.parametrize("model", NAMES.values())
def test_a_missing_library_is_told_with_its_extra(
    server: Server, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'inconvenient\[llm\]'"):
        RemoteClient(model, url=server.url if model.startswith("local") else None)


def test_a_library_of_another_provider_is_told_with_its_own_extra() -> None:
    with pytest.raises(MissingDependencyError, match=r"pip install 'pydantic-ai-slim\[cohere\]'"):
        RemoteClient("cohere:command-r")


@pytest.mark.parametrize(
    ("model", "url", "message"),
    [
        ("claude", None, "named 'provider:name', got 'claude'"),
        (":claude", None, "named 'provider:name'"),
        ("anthropic:", None, "named 'provider:name'"),
        ("nobody:claude", None, "'nobody' is no provider that pydantic-ai knows"),
        ("local:tiny", None, "belong together, got 'local:tiny' without a url"),
        ("openai:gpt-4.1", "http://localhost/v1", "belong together, got 'openai:gpt-4.1' with a"),
        ("local:tiny", "localhost:11434/v1", "a url such as http://localhost:11434/v1 is needed"),
        ("local:tiny", "ftp://localhost/v1", "a url such as"),
    ],
)
def test_a_name_or_address_that_cannot_be_used(model: str, url: str | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        RemoteClient(model, url=url)


@pytest.mark.parametrize("url", [f"http://me:{KEY}@localhost/v1", f"http://localhost/v1?k={KEY}"])
def test_a_key_in_an_address_is_refused_and_not_quoted(url: str) -> None:
    with pytest.raises(InputError, match=r"put the key into \$INCONVENIENT_LOCAL_KEY") as caught:
        RemoteClient("local:tiny", url=url)
    assert KEY not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "settings", [{"timeout": 0}, {"retries": -1}, {"at_once": 0}, {"wait": -1}]
)
def test_settings_out_of_range(server: Server, settings: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="timeout must be above 0"):
        client_at(server, "local", **settings)


# -- keys -----------------------------------------------------------------------------------------
