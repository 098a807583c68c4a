"""A server on the loopback that answers as OpenAI and Anthropic do, with faults by a script."""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

#: What the server says unless told otherwise, and the tokens that it counts.
SAID = '{"ranking": [{"feature": "f1", "reason": "odd"}]}'
TOKENS = (11, 7)

#: The reason for an answer's end, as each of the interfaces names it.
_ENDS = {
    "chat": {"stop": "stop", "length": "length", "refusal": "content_filter"},
    "messages": {"stop": "end_turn", "length": "max_tokens", "refusal": "refusal"},
    "responses": {"stop": None, "length": "max_output_tokens", "refusal": None},
}


@dataclass(frozen=True)
class Step:
    """What happens to one request; by default a whole answer."""

    text: str | None = None
    status: int = 200
    end: str = "stop"
    #: Words of an error; the headers that were sent are quoted behind them, in the headers too.
    error: str = ""
    code: str = ""
    #: Instead of a reply, and its type.
    raw: bytes | None = None
    kind: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    #: Half the body, after which the connection breaks.
    cut: bool = False
    #: Seconds until anything is sent, and between any two bytes of the body.
    wait: float = 0.0
    drip: float = 0.0
    #: Alternatives of the first token.
    first: tuple[tuple[str, float], ...] = ()
    #: As text although a tool was offered.
    plain: bool = False


class Server(http.server.ThreadingHTTPServer):
    """Holds the script, a step for each request and then whole answers, and what was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.script: list[Step] = []
        self.reply: Callable[[dict[str, Any]], str] = lambda body: SAID
        self.asked: list[dict[str, Any]] = []
        self.sent: list[dict[str, str]] = []
        self.gone = threading.Event()
        self.lock = threading.Lock()

    def questions(self) -> list[str]:
        """Return the last message of every request."""
        return [question(body) for body in self.asked]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that hang up."""


def question(body: dict[str, Any]) -> str:
    """Return the last message of a request."""
    content = body.get("messages", body.get("input"))[-1]["content"]
    return content if isinstance(content, str) else content[-1]["text"]


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with server.lock:
            server.asked.append(body)
            server.sent.append(dict(self.headers))
            step = server.script.pop(0) if server.script else Step()
        if step.wait:
            server.gone.wait(step.wait)
        headers = dict(step.headers)
        if step.raw is not None:
            content = step.raw
        elif step.error:
            quoted = f"{step.error} {dict(self.headers)}"
            headers["X-Quoted"] = str(dict(self.headers)).replace("\n", " ")
            error = {"message": quoted, "type": step.code, "code": step.code}
            content = json.dumps({"type": "error", "error": error}).encode()
        else:
            text = server.reply(body) if step.text is None else step.text
            write = _WRITERS[self.path.split("?")[0].removeprefix("/v1/")]
            content = json.dumps(write(body, text, step)).encode()
        self.send_response(step.status)
        self.send_header("Content-Type", step.kind)
        self.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if step.drip:
            for i in range(len(content)):
                self.wfile.write(content[i : i + 1])
                if server.gone.wait(step.drip):
                    break
        else:
            self.wfile.write(content[: len(content) // 2] if step.cut else content)
        if step.cut:
            self.close_connection = True


def _completion(body: dict[str, Any], text: str, step: Step) -> dict[str, Any]:
    """Return an answer as OpenAI's chat completions give it."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    end = _ENDS["chat"][step.end]
    if body.get("tools") and not step.plain and step.end != "refusal":
        call = {"name": body["tools"][0]["function"]["name"], "arguments": text}
        message["content"] = None
        message["tool_calls"] = [{"id": "t1", "type": "function", "function": call}]
        end = "tool_calls" if step.end == "stop" else end
    choice: dict[str, Any] = {"index": 0, "finish_reason": end, "message": message}
    if step.first:
        top = [{"token": token, "logprob": value, "bytes": None} for token, value in step.first]
        choice["logprobs"] = {"content": [{**top[0], "top_logprobs": top}]}
    usage = {
        "prompt_tokens": TOKENS[0], "completion_tokens": TOKENS[1], "total_tokens": sum(TOKENS),
    }  # fmt: skip
    whole = {"id": "c1", "object": "chat.completion", "created": 1, "model": body["model"]}
    return {**whole, "choices": [choice], "usage": usage}


def _message(body: dict[str, Any], text: str, step: Step) -> dict[str, Any]:
    """Return an answer as Anthropic's messages give it."""
    content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    end = _ENDS["messages"][step.end]
    if body.get("tools") and not step.plain and step.end != "refusal":
        given = {"id": "t1", "name": body["tools"][0]["name"], "input": json.loads(text)}
        content = [{"type": "tool_use", **given}]
        end = "tool_use" if step.end == "stop" else end
    usage = {"input_tokens": TOKENS[0], "output_tokens": TOKENS[1]}
    whole = {"id": "m1", "type": "message", "role": "assistant", "model": body["model"]}
    return {**whole, "content": content, "stop_reason": end, "stop_sequence": None, "usage": usage}


def _response(body: dict[str, Any], text: str, step: Step) -> dict[str, Any]:
    """Return an answer as OpenAI's responses give it."""
    end = _ENDS["responses"][step.end]
    part: dict[str, Any] = {"type": "output_text", "text": text, "annotations": []}
    if step.end == "refusal":
        part = {"type": "refusal", "refusal": text}
    if step.first:
        top = [{"token": token, "logprob": value, "bytes": []} for token, value in step.first]
        part["logprobs"] = [{**top[0], "top_logprobs": top}]
    item: dict[str, Any] = {"type": "message", "role": "assistant", "content": [part]}
    if body.get("tools") and not step.plain and step.end != "refusal":
        given = {"call_id": "t1", "name": body["tools"][0]["name"], "arguments": text}
        item = {"type": "function_call", **given}
    usage = {
        "input_tokens": TOKENS[0], "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": TOKENS[1], "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": sum(TOKENS),
    }  # fmt: skip
    return {
        "id": "r1", "object": "response", "created_at": 1, "model": body["model"],
        "status": "incomplete" if end else "completed",
        "incomplete_details": {"reason": end} if end else None,
        "output": [{"id": "i1", "status": "completed", **item}], "usage": usage,
        "parallel_tool_calls": False, "tool_choice": "auto", "tools": [],
    }  # fmt: skip


_WRITERS = {"chat/completions": _completion, "messages": _message, "responses": _response}


@contextlib.contextmanager
def serving() -> Iterator[Server]:
    """Run a server in a thread."""
    server = Server()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.gone.set()
        server.shutdown()
        thread.join()
        server.server_close()
