"""A server on the loopback that answers as OpenML, Kaggle or a file server, with faults."""

from __future__ import annotations

import base64
import contextlib
import gzip
import hashlib
import http.server
import importlib.resources
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest

NAMESPACE = 'xmlns:oml="http://openml.org/openml"'


class Server(http.server.ThreadingHTTPServer):
    """Holds what is served by path, the faults that are to happen, and what was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.files: dict[str, bytes] = {}
        #: Path to what happens there instead, once per entry: a status, "cut", "damage", "stall".
        self.faults: dict[str, list[Any]] = {}
        #: Path to a status and the body that goes with it.
        self.errors: dict[str, tuple[int, bytes]] = {}
        self.ranges = True
        self.asked: list[tuple[str, str]] = []
        self.gone = threading.Event()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that hang up."""


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.do_GET()

    def do_GET(self) -> None:
        server, path = self.server, self.path.split("?")[0]
        wanted = self.headers.get("Range") or ""
        server.asked.append((path, wanted))
        fault = server.faults[path].pop(0) if server.faults.get(path) else None
        if isinstance(fault, int):
            return self.answer(fault, b"<html>no</html>", "text/html")
        if path in server.errors:
            return self.answer(*server.errors[path], "text/xml")
        if path not in server.files:
            return self.answer(404, b"<html>nothing here</html>", "text/html")
        content = server.files[path]
        if fault == "stall":
            server.gone.wait(20)
            return None
        if fault == "damage":
            content = content[:-1] + bytes([content[-1] ^ 1])
        kind = "text/xml" if "/xml/" in path else "application/octet-stream"
        kind = "application/json" if path.startswith("/api/v1/") and kind[0] == "a" else kind
        if path.endswith((".csv", "download_dataset", "DownloadDataset")):
            kind = "application/octet-stream"
        tag = f'"{hashlib.md5(server.files[path]).hexdigest()}"'
        if self.headers.get("If-Range", tag) != tag:
            wanted = ""
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and server.ranges else 0
        # Half of what is left, and then the connection breaks.
        sent = content[start:]
        half = sent[: len(sent) // 2] if fault == "cut" else sent
        return self.answer(206 if start else 200, half, kind, start, len(content))

    def answer(
        self, status: int, body: bytes, kind: str, start: int = 0, total: int | None = None
    ) -> None:
        total = len(body) if total is None else total
        packed = kind == "text/xml" and "gzip" in (self.headers.get("Accept-Encoding") or "")
        cut = len(body) < total - start
        if packed and not cut:
            body = gzip.compress(body)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(total - start if cut else len(body)))
        if packed and not cut:
            self.send_header("Content-Encoding", "gzip")
        if self.server.ranges:
            self.send_header("Accept-Ranges", "bytes")
        whole = self.server.files.get(self.path.split("?")[0])
        if whole is not None and kind == "application/octet-stream":
            digest = hashlib.md5(whole).digest()
            self.send_header("ETag", f'"{digest.hex()}"')
            self.send_header("x-goog-hash", f"md5={base64.b64encode(digest).decode()}")
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{total - 1}/{total}")
        self.end_headers()
        self.wfile.write(body)
        if cut:
            self.close_connection = True


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
        server.server_close()
        thread.join()


# ---- OpenML: the real descriptions and files that scikit-learn ships for its own tests


def _recorded(number: int, start: str) -> bytes:
    folder = importlib.resources.files("sklearn.datasets.tests.data.openml") / f"id_{number}"
    (file,) = [f for f in folder.iterdir() if re.match(start, f.name)]
    return gzip.decompress(file.read_bytes())


def _xml(tag: str, value: Any) -> str:
    """Return JSON as the XML that it was made from."""
    if isinstance(value, list):
        return "".join(_xml(tag, item) for item in value)
    if isinstance(value, dict):
        inner = "".join(_xml(key, item) for key, item in value.items())
        return f"<oml:{tag}>{inner}</oml:{tag}>"
    return f"<oml:{tag}>{escape(str(value))}</oml:{tag}>"


def _document(record: dict[str, Any]) -> bytes:
    ((tag, value),) = record.items()
    text = _xml(tag, value).replace(f"<oml:{tag}>", f"<oml:{tag} {NAMESPACE}>", 1)
    return f'<?xml version="1.0" encoding="UTF-8"?>{text}'.encode()


def add_openml(server: Server, number: int, **changes: Any) -> str:
    """Serve a recorded dataset; return the path of its data file.

    Changes go to the description; ``file`` replaces the data, ``kinds`` data types by column.
    """
    description = json.loads(_recorded(number, f"api-v1-jd-{number}"))
    features = json.loads(_recorded(number, f"api-v1-jdf-{number}"))
    content = changes.pop("file", None) or _recorded(number, "data-v1-dl-")
    kinds = changes.pop("kinds", {})
    for feature in features["data_features"]["feature"]:
        # Older recordings keep the values as JSON within JSON.
        values = feature.pop("nominal_values", None)
        if isinstance(values, str):
            feature["nominal_value"] = json.loads(values)
        feature["data_type"] = kinds.get(feature["name"], feature["data_type"])
        if feature["data_type"] == "nominal":
            # One recording leaves them out; the client only counts on their being there.
            feature.setdefault("nominal_value", ["0", "1"])
        else:
            feature.pop("nominal_value", None)
    facts = description["data_set_description"]
    path = f"/data/v1/download/{facts['file_id']}/{facts['name']}.arff"
    facts["url"] = server.url + path
    facts.update(changes)
    for key in [key for key, value in facts.items() if value is None]:
        del facts[key]
    server.files[f"/api/v1/xml/data/{number}"] = _document(description)
    server.files[f"/api/v1/xml/data/features/{number}"] = _document(features)
    server.files[path] = content
    return path


def add_openml_suite(server: Server, number: int, tasks: list[tuple[int, int, str, str]]) -> None:
    """Serve a suite of tasks (id, dataset, target, type), in the form of OpenML's answers."""
    ids = "".join(f"<oml:task_id>{task[0]}</oml:task_id>" for task in tasks)
    data = "".join(f"<oml:data_id>{task[1]}</oml:data_id>" for task in tasks)
    server.files[f"/api/v1/xml/study/{number}"] = (
        f"<oml:study {NAMESPACE}><oml:id>{number}</oml:id>"
        "<oml:main_entity_type>task</oml:main_entity_type><oml:name>suite</oml:name>"
        "<oml:description>recorded form</oml:description><oml:status>active</oml:status>"
        "<oml:creation_date>2020-01-01T00:00:00</oml:creation_date><oml:creator>1</oml:creator>"
        f"<oml:data>{data}</oml:data><oml:tasks>{ids}</oml:tasks></oml:study>"
    ).encode()
    listed = "".join(
        f"<oml:task><oml:task_id>{task}</oml:task_id><oml:task_type_id>"
        f"{2 if kind == 'Supervised Regression' else 1}</oml:task_type_id>"
        f"<oml:task_type>{kind}</oml:task_type><oml:did>{did}</oml:did><oml:name>d{did}</oml:name>"
        "<oml:status>active</oml:status><oml:format>ARFF</oml:format>"
        '<oml:input name="estimation_procedure">1</oml:input>'
        f'<oml:input name="source_data">{did}</oml:input>'
        f'<oml:input name="target_feature">{target}</oml:input>'
        '<oml:quality name="NumberOfFeatures">5.0</oml:quality>'
        '<oml:quality name="NumberOfInstances">150.0</oml:quality></oml:task>'
        for task, did, target, kind in tasks
    )
    asked = ",".join(str(task[0]) for task in tasks)
    server.files[f"/api/v1/xml/task/list/task_id/{asked}/limit/10000/offset/0"] = (
        f"<oml:tasks {NAMESPACE}>{listed}</oml:tasks>".encode()
    )
    procedures = "".join(
        f"<oml:estimationprocedure><oml:id>{j}</oml:id><oml:ttid>{j}</oml:ttid><oml:name>10-fold "
        "Crossvalidation</oml:name><oml:type>crossvalidation</oml:type></oml:estimationprocedure>"
        for j in (1, 2)
    )
    server.files["/api/v1/xml/estimationprocedure/list"] = (
        f"<oml:estimationprocedures {NAMESPACE}>{procedures}</oml:estimationprocedures>".encode()
    )


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Shorten the time-outs, and keep every file of a source in the test's folder."""
    from inconvenient.data import sources_web

    home = tmp_path / "home"
    monkeypatch.setenv("INCONVENIENT_HOME", str(home))
    monkeypatch.setattr(sources_web, "TIMEOUT", 0.5)
    monkeypatch.setattr(sources_web, "PAUSE", 0.0)
    return home
