"""A remote model is asked until it answers, and its answer comes as it was sent; keys stay here."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from model_server import SAID, TOKENS, Server, Step, question, serving

from inconvenient.errors import InputError, MissingDependencyError, ModelError
from inconvenient.llm import remote
from inconvenient.llm.cache import Answer, CachedClient, Request
from inconvenient.llm.prompts import ANSWER_SCHEMA
from inconvenient.llm.remote import RemoteClient
from inconvenient.llm.run import ask_all

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


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
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

FAULTS = {
    "429": Step(status=429, error="slow down", code="rate_limit_error"),
    "500": Step(status=500, error="oops"),
    "503": Step(status=503, error="overloaded"),
    "529": Step(status=529, error="overloaded", code="overloaded_error"),
    "408": Step(status=408, error="timeout"),
    "409": Step(status=409, error="locked"),
    "slow": Step(wait=20.0),
    "drip": Step(drip=0.05),
    "page": Step(raw=b"<html>Bad gateway</html>", kind="text/html"),
    "page as JSON": Step(raw=b"<html>Bad gateway</html>"),
    "empty body": Step(raw=b""),
    "other JSON": Step(raw=b'{"a": [1]}'),
    "no object": Step(raw=b"[]"),
    "bytes": Step(raw=b"\xff\xfe\x00"),
    "cut off": Step(cut=True),
    "cut JSON": Step(raw=b'{"choices": [{"mess'),
    "empty answer": Step("", plain=True),
    "blank answer": Step(" \n", plain=True),
}
REASONS = {
    "429": "rate limit", "500": "server error", "503": "server error", "529": "server error",
    "408": "timeout", "409": "server error", "slow": "timeout", "drip": "timeout",
    "cut off": "connection",
}  # fmt: skip


@pytest.mark.parametrize("interface", ["local", "anthropic", "openai"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_tried_again(server: Server, interface: str, fault: str) -> None:
    server.script = [FAULTS[fault]]
    short = fault in ("slow", "drip")
    client = client_at(server, interface, timeout=0.7 if short else 60.0, retries=9)
    assert client.ask(request()) == Answer(SAID, *TOKENS, "end")
    # On a busy machine another try may take longer than the short timeout.
    assert len(server.asked) == 2 or (short and len(server.asked) > 2)


@pytest.mark.parametrize("fault", FAULTS)
def test_after_the_last_try_the_reason_is_told(server: Server, fault: str) -> None:
    server.script = [FAULTS[fault]] * 9
    short = fault in ("slow", "drip")
    client = client_at(server, "local", timeout=0.7 if short else 60.0, retries=2)
    with pytest.raises(ModelError, match="local:tiny gave no answer in 3 tries: .*; ") as caught:
        client.ask(request())
    assert len(server.asked) == 3 or (short and len(server.asked) < 3)
    assert caught.value.reason == REASONS.get(fault, "no answer")
    assert not caught.value.fatal


@pytest.mark.parametrize("interface", INTERFACES)
def test_libraries_do_not_try_again_themselves(server: Server, interface: str) -> None:
    server.script = [FAULTS["500"]] * 9
    with pytest.raises(ModelError, match="gave no answer: status 500"):
        client_at(server, interface, retries=0).ask(request())
    assert len(server.asked) == 1


def test_no_server_at_all(server: Server) -> None:
    with serving() as other:
        url = f"{other.url}/v1"
    with pytest.raises(
        ModelError, match=f"in 2 tries.*check the network, and that {url}"
    ) as caught:
        RemoteClient("local:tiny", url=url, retries=1, wait=0.01).ask(request())
    assert (caught.value.reason, caught.value.fatal) == ("connection", False)


@pytest.mark.parametrize("interface", INTERFACES)
def test_a_server_may_ask_for_a_longer_wait(
    server: Server, interface: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script = [Step(status=429, error="slow down", headers={"Retry-After": "1"})]
    client = client_at(server, interface)
    began = time.monotonic()
    client.ask(request())
    assert time.monotonic() - began >= 1.0
    monkeypatch.setattr(remote, "LONGEST_WAIT", 0.05)
    server.script = [Step(status=429, error="slow down", headers={"Retry-After": "3600"})]
    began = time.monotonic()
    client.ask(request())
    assert time.monotonic() - began < 30.0
    assert len(server.asked) == 4


def test_waits_grow_and_differ_between_questions(server: Server) -> None:
    import random

    from inconvenient.llm.failures import Failure

    client = client_at(server, "local", wait=1.0)
    failure = Failure("timeout", "slow", again=True)
    drawn = [[client._pause(k, failure, random.Random(seed)) for k in range(1, 12)]
             for seed in range(50)]  # fmt: skip
    for k, waits in enumerate(zip(*drawn, strict=True)):
        assert 0.5 * min(60.0, 2.0**k) < max(waits) <= min(60.0, 2.0**k)
        assert len(set(waits)) == 50


REFUSALS = {
    401: (True, "not allowed"), 403: (True, "not allowed"), 404: (True, "unknown model"),
    400: (False, "refused request"), 422: (False, "refused request"),
}  # fmt: skip


@pytest.mark.parametrize("interface", INTERFACES)
@pytest.mark.parametrize("status", REFUSALS)
def test_a_refused_request_is_not_repeated(server: Server, interface: str, status: int) -> None:
    server.script = [Step(status=status, error="such words")] * 3
    with pytest.raises(ModelError, match=f"gave no answer: status {status}") as caught:
        client_at(server, interface).ask(request())
    assert (caught.value.fatal, caught.value.reason) == REFUSALS[status]
    assert len(server.asked) == 1
    if status in (401, 403):
        assert VARIABLES[interface] in str(caught.value)
    else:
        assert "such words" in str(caught.value)


def test_a_used_up_quota_is_not_waited_for(server: Server) -> None:
    server.script = [Step(status=429, error="quota", code="insufficient_quota")]
    with pytest.raises(ModelError, match="quota or credit is used up") as caught:
        client_at(server, "openai-chat").ask(request())
    assert (caught.value.fatal, caught.value.reason) == (True, "not allowed")
    assert len(server.asked) == 1


LONG = {
    "anthropic": Step(status=400, error="prompt is too long: 9", code="invalid_request_error"),
    "openai": Step(status=400, error="too long", code="context_length_exceeded"),
    "openai-chat": Step(status=400, error="This model's maximum context length is 8 tokens"),
    "local": Step(
        status=400,
        error="the request exceeds the available context size",
        code="exceed_context_size_error",
    ),
}


@pytest.mark.parametrize("interface", INTERFACES)
def test_messages_that_are_too_long_are_an_answer(server: Server, interface: str) -> None:
    server.script = [LONG[interface], Step(status=413, error="too large")]
    client = client_at(server, interface)
    assert client.ask(request()) == client.ask(request()) == Answer("", stop="too long")
    assert len(server.asked) == 2


# -- before anything is sent ----------------------------------------------------------------------


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


def test_a_local_server_is_sent_its_own_key_alone(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", OTHER)
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-openai")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-of-openai")
    client_at(server, "local").ask(request())
    monkeypatch.setenv("INCONVENIENT_LOCAL_KEY", KEY)
    client_at(server, "local").ask(request())
    first, second = (str(headers) for headers in server.sent)
    assert KEY not in first
    assert f"Bearer {KEY}" in second
    assert not any(word in first + second for word in (OTHER, "of-openai"))


def chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize("interface", INTERFACES)
@pytest.mark.parametrize("status", [200, 400, 401, 429, 500])
def test_a_key_that_a_server_quotes_stays_here(
    server: Server,
    interface: str,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("INCONVENIENT_LOCAL_KEY", KEY)
    client = CachedClient(tmp_path, client_at(server, interface, retries=1))
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(logging.Formatter("%(name)s %(message)s"))
    logging.getLogger().addHandler(handler)
    caplog.set_level(logging.DEBUG)
    cut = f"you sent {KEY.upper()[:20]}..."
    quoting = Step(status=status, error=f"{KEY} {cut}", headers={"X-Key": KEY})
    page = Step(status=status, raw=f"<b>{KEY}</b> {cut}".encode(), kind="text/html")
    text = json.dumps({"ranking": [], "key": KEY})
    server.script = [quoting, page, page, quoting, Step(text, headers={"X-Key": KEY})]
    told = []
    try:
        for _ in range(5):
            try:
                told.append(str(client.ask(request())))
            except ModelError as error:
                for one in chain(error):
                    assert isinstance(one, ModelError)
                    told += [str(one), repr(one), str(one.args), str(vars(one))]
                told += traceback.format_exception(error)
    finally:
        logging.getLogger().removeHandler(handler)
    assert any(KEY in str(headers) for headers in server.sent)
    kept = [path.read_text("utf-8") for path in tmp_path.rglob("*") if path.is_file()]
    assert len(kept) == 1
    assert '[hidden]"}' in json.loads(kept[0])["answer"]["text"]
    logged = written.getvalue()
    assert "receive_response_headers.complete" in logged
    assert "X-Key" in logged
    everything = "\n".join([*told, *kept, logged, caplog.text, repr(client), str(vars(client))])
    for piece in (KEY, KEY[:12], KEY[-12:]):
        assert piece.lower() not in everything.lower()


def test_what_is_no_key_stays_in_a_message(server: Server) -> None:
    server.script = [Step(status=400, error="temperature: must be below 1, known as 2")]
    with pytest.raises(ModelError, match="temperature: must be below 1, known as 2"):
        client_at(server, "anthropic").ask(request())


# -- threads, loops, interruptions ----------------------------------------------------------------


@pytest.mark.parametrize("interface", ["local", "anthropic"])
def test_eight_threads_get_their_own_answers(
    server: Server, interface: str, tmp_path: Path
) -> None:
    server.reply = lambda body: json.dumps({"to": question(body)})
    faults = [FAULTS[name] for name in ("500", "cut off", "429", "empty body")]
    server.script = [step for fault in faults for step in (fault, Step(), Step())]
    client = CachedClient(tmp_path, client_at(server, interface, at_once=8))
    asked = [f"question {i}" for i in range(24)]
    with ThreadPoolExecutor(client.at_once) as pool:
        answers = list(pool.map(lambda text: client.ask(request(text)), asked))
    assert [json.loads(answer.text)["to"] for answer in answers] == asked
    assert len(server.asked) == 28
    again = CachedClient(tmp_path, model=client.model)
    assert [again.ask(request(text)) for text in asked] == answers


def test_a_notebook_has_a_loop_of_its_own(server: Server) -> None:
    client = client_at(server, "local")

    async def cell() -> Answer:
        return client.ask(request())

    assert asyncio.run(cell()).text == SAID


def test_no_answer_that_came_is_lost(server: Server, tmp_path: Path) -> None:
    server.reply = lambda body: json.dumps({"to": question(body)})
    server.script = [Step(), FAULTS["500"], FAULTS["500"], Step(), FAULTS["cut off"], Step(),
                     Step(status=400, error="no"), Step()]  # fmt: skip
    client = CachedClient(tmp_path, client_at(server, "local", retries=1))
    asked = [f"question {i}" for i in range(5)]
    failed = []
    for text in asked:
        try:
            client.ask(request(text))
        except ModelError:
            failed.append(text)
    assert failed == [asked[1], asked[4]]
    before = len(server.asked)
    answers = [client.ask(request(text)) for text in asked]
    assert server.questions()[before:] == failed
    assert [json.loads(answer.text)["to"] for answer in answers] == asked


RUN = """
import sys
from inconvenient.llm.cache import CachedClient, Request
from inconvenient.llm.remote import RemoteClient

client = CachedClient(sys.argv[1], RemoteClient("local:tiny", url=sys.argv[2]))
for i in range(6):
    client.ask(Request([{"role": "user", "content": f"question {i}"}], {}, {}))
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["killed", "interrupted"])
def test_an_interrupted_run_goes_on_without_asking_twice(
    server: Server, how: signal.Signals, tmp_path: Path
) -> None:
    server.script = [Step(), Step(), Step(), Step(wait=60.0)]
    command = [sys.executable, "-c", RUN, str(tmp_path), f"{server.url}/v1"]
    run = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 60.0
        while len(server.asked) < 4 and run.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        run.send_signal(how)
        _, said = run.communicate(timeout=30.0)
    finally:
        run.kill()
    assert run.returncode != 0
    assert ("KeyboardInterrupt" in said) == (how == signal.SIGINT)
    assert server.questions() == [f"question {i}" for i in range(4)]
    subprocess.run(command, check=True)
    # The fourth had no answer yet, and is all that is asked again.
    assert server.questions() == [f"question {i}" for i in (0, 1, 2, 3, 3, 4, 5)]


def test_a_run_that_has_ended_tries_nothing_again(server: Server) -> None:
    # The first question is refused for good while the second waits for its next try.
    server.script = [Step(status=500, error="no"), Step(status=401, error="no", wait=0.5)]
    client = client_at(server, "local", at_once=2, wait=0.0, retries=20)
    server.script += [Step(status=500, error="no", wait=0.3)] * 20
    with pytest.raises(ModelError, match="the key is refused"):
        ask_all([request("one"), request("two")], client)
    assert len(server.asked) <= 6


def test_counts_beyond_any_context_fit_a_table(server: Server) -> None:
    usage = {"prompt_tokens": 10**30, "completion_tokens": 3, "total_tokens": 10**30}
    message = {"role": "assistant", "content": "yes"}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "tiny"}
    raw = json.dumps({**body, "choices": [choice], "usage": usage}).encode()
    server.script = [Step(raw=raw)]
    answer = client_at(server, "local").ask(request("Is it?"))
    assert (answer.text, answer.tokens_in, answer.tokens_out) == ("yes", 10**9, 3)
