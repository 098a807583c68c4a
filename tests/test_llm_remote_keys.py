"""Keys stay in the environment: out of messages, answers, logs and other servers."""

from __future__ import annotations

import io
import json
import logging
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest
from model_server import Server, Step
from remote_clients import (
    INTERFACES,
    KEY,
    OTHER,
    client_at,
    remote_server,
    request,
)

from inconvenient.errors import ModelError
from inconvenient.llm.cache import CachedClient


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with remote_server(monkeypatch) as running:
        yield running


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
