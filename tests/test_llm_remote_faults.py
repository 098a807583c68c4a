"""A remote model is asked until it answers, nothing received is lost, nothing is asked twice."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from model_server import SAID, TOKENS, Server, Step, question, serving
from remote_clients import (
    INTERFACES,
    VARIABLES,
    client_at,
    remote_server,
    request,
)

from inconvenient.errors import ModelError
from inconvenient.llm import remote
from inconvenient.llm.cache import Answer, CachedClient
from inconvenient.llm.remote import RemoteClient
from inconvenient.llm.run import ask_all


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with remote_server(monkeypatch) as running:
        yield running


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
