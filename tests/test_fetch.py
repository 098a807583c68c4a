"""Fetching: what arrives is right and whole, and every fault of a source is told."""

from __future__ import annotations

import dataclasses
import hashlib
import http.server
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from inconvenient.errors import InputError, NotAvailableError, StoreError
from inconvenient.fetch import INDEX, STORE, bringing, fetch, published_index

CONTENT = {
    "data": {"a.parquet": os.urandom(200_000), "catalogue.parquet": b"names"},
    "artefacts/full/publish": {"shifts.parquet": b"many" * 50, "in/more.json": b"{}"},
    "artefacts/full/report": {"report.html": b"<html>", "same.json": b"{}"},
    "artefacts/full/split": {"split.parquet": b"halves"},
    "study": {"tuned.parquet": b"scores"},
}
#: What another profile publishes, and what is for `dvc pull` alone.
QUICK = {
    "artefacts/quick/publish": {"shifts.parquet": b"few"},
    "artefacts/quick/split": {"split.parquet": b"halves"},  # as that of full
}
UNFETCHED = {
    "artefacts/full/shifts": {"shifts.parquet": b"all"},
    "artefacts/quick/filter": {"filter.parquet": b"flags"},
}


def put(store: Path, content: bytes, end: str = "") -> str:
    name = hashlib.md5(content).hexdigest() + end
    path = store / "files" / "md5" / name[:2] / name[2:]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return name


def publish(checkout: Path, content: dict[str, dict[str, bytes]]) -> Path:
    """Write what DVC would: data.dvc, dvc.lock and the store; then the index."""
    store = checkout / STORE
    outs = {}
    for path, files in content.items():
        listing = [{"md5": put(store, value), "relpath": name} for name, value in files.items()]
        md5 = put(store, json.dumps(listing).encode(), ".dir")
        outs[path] = {"path": path, "md5": md5, "size": sum(map(len, files.values()))}
    (checkout / "data.dvc").write_text(json.dumps({"outs": [outs.pop("data")]}))
    (checkout / "dvc.lock").write_text(
        json.dumps({"stages": {"shifts": {"outs": list(outs.values())}}})
    )
    (store / INDEX).write_text(published_index(checkout))
    return store


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("INCONVENIENT_SOURCE", raising=False)
    publish(tmp_path / "checkout", {**CONTENT, **QUICK, **UNFETCHED})
    return tmp_path / "checkout"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("INCONVENIENT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(bringing, "_PAUSE", 0.01)
    return tmp_path / "home"


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def expected(content: dict[str, dict[str, bytes]] = CONTENT) -> dict[str, bytes]:
    return {f"{o}/{name}": value for o, files in content.items() for name, value in files.items()}


def arrived(home: Path) -> dict[str, bytes]:
    return {k: v for k, v in tree(home).items() if k not in ("fetched.json", ".fetch.lock")}


# -- a server with faults ------------------------------------------------------------------------

Answer = tuple[int, dict[str, str], bytes]


class Server:
    """A store over HTTP; `faults` may answer a request in another way."""

    def __init__(self, root: Path) -> None:
        self.root, self.ranges = root, True
        self.faults: Callable[[str, int], Answer | None] = lambda path, count: None
        self.requests: list[tuple[str, str]] = []
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.requests.append((self.path, self.headers.get("Range", "")))
                count = sum(path == self.path for path, _ in server.requests)
                status, headers, body = server.faults(self.path, count) or server.answer(self)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    def answer(self, request: http.server.BaseHTTPRequestHandler) -> Answer:
        file = self.root / request.path.partition("?")[0].lstrip("/")
        if not file.is_file():
            return 404, {"Content-Length": "0"}, b""
        body = file.read_bytes()
        start = request.headers.get("Range", "")
        if not (start and self.ranges):
            return 200, {"Content-Length": str(len(body))}, body
        first = int(start.removeprefix("bytes=").rstrip("-"))
        if first >= len(body):
            return 416, {"Content-Length": "0", "Content-Range": f"bytes */{len(body)}"}, b""
        part = body[first:]
        place = f"bytes {first}-{len(body) - 1}/{len(body)}"
        return 206, {"Content-Length": str(len(part)), "Content-Range": place}, part

    def close(self) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


@pytest.fixture
def server(checkout: Path) -> Iterator[Server]:
    made = Server(checkout / STORE)
    yield made
    made.close()


BIG = hashlib.md5(CONTENT["data"]["a.parquet"]).hexdigest()
PLACE = f"/files/md5/{BIG[:2]}/{BIG[2:]}"


def at(path: str, answer: Callable[[int], Answer | None]) -> Callable[[str, int], Answer | None]:
    return lambda asked, count: answer(count) if asked == path else None


# -- from a folder and from a server -------------------------------------------------------------


@pytest.mark.parametrize("below", [".", STORE])
@pytest.mark.parametrize("web", [False, True])
def test_everything_arrives(checkout: Path, home: Path, web: bool, below: str) -> None:
    made = Server(checkout) if web else None
    try:
        source = f"{made.url}/{below if below != '.' else ''}" if made else checkout / below
        done = fetch(source)
        assert arrived(home) == expected()
        assert done.paths == done.renewed == tuple(sorted(CONTENT))
        assert (done.folder, done.files) == (home, 7)  # two files are the same
        again = fetch()
        assert (again.renewed, again.files) == ((), 0)
        assert again.source == done.source
    finally:
        if made:
            made.close()


def test_a_profile_alone(checkout: Path, home: Path, server: Server) -> None:
    fetch(server.url, profiles=["quick"])
    quick = {"data": CONTENT["data"], "study": CONTENT["study"], **QUICK}
    assert arrived(home) == expected(quick)
    asked = {path for path, _ in server.requests}
    many = hashlib.md5(CONTENT["artefacts/full/publish"]["shifts.parquet"]).hexdigest()
    assert not any(many[2:] in path for path in asked)
    with pytest.raises(InputError, match="no profile 'quik'; published are full, quick"):
        fetch(checkout, profiles=["quik"])
    # Another profile comes beside it.
    done = fetch(server.url)
    assert done.renewed == tuple(sorted(set(CONTENT) - {"data", "study"}))
    assert arrived(home) == expected({**CONTENT, **QUICK})
    shutil.rmtree(home)
    fetch(checkout, profiles=["quick", "full"])
    assert arrived(home) == expected({**CONTENT, **QUICK})


def test_the_profile_that_is_there(checkout: Path, home: Path) -> None:
    without = {"data": CONTENT["data"], **QUICK, **UNFETCHED}
    publish(checkout, without)
    fetch(checkout)
    assert arrived(home) == expected({"data": CONTENT["data"], **QUICK})
    with pytest.raises(InputError, match="no profile 'full'; published are quick"):
        fetch(checkout, profiles=["full"])
    publish(checkout, {"data": CONTENT["data"], **UNFETCHED})
    with pytest.raises(InputError, match="no profile 'quick'; none is published"):
        fetch(checkout, profiles=["quick"])


def test_the_index_names_what_a_fetch_may_bring(checkout: Path) -> None:
    index = json.loads((checkout / STORE / INDEX).read_text())
    assert [out["path"] for out in index["outs"]] == sorted([*CONTENT, *QUICK])


def test_an_index_that_names_more(checkout: Path, home: Path) -> None:
    """As those of before: the folders that a fetch does not bring are left out."""
    index = json.loads((checkout / STORE / INDEX).read_text())
    outs = json.loads((checkout / "dvc.lock").read_text())["stages"]["shifts"]["outs"]
    lock = [out for out in outs if out["path"] in UNFETCHED]
    assert len(lock) == 2
    (checkout / STORE / INDEX).write_text(json.dumps({**index, "outs": [*index["outs"], *lock]}))
    fetch(checkout)
    assert arrived(home) == expected()


def test_a_new_version_brings_what_is_new_and_replaces_whole_folders(
    checkout: Path, home: Path, server: Server
) -> None:
    fetch(server.url)
    newer = {**CONTENT, "data": {"a.parquet": CONTENT["data"]["a.parquet"], "b.parquet": b"new"}}
    publish(checkout, newer)
    (home / "data" / "a.parquet").rename(home / "data" / "moved")
    server.requests.clear()
    done = fetch()
    assert arrived(home) == expected(newer)
    assert (done.renewed, done.files) == (("data",), 1)
    assert PLACE not in dict(server.requests)
    # What was damaged is brought again.
    (home / "data" / "b.parquet").write_bytes(b"old")
    assert fetch().renewed == ("data",)
    assert arrived(home) == expected(newer)


def test_progress_ends_at_the_whole(home: Path, server: Server) -> None:
    told: list[tuple[int, int]] = []
    done = fetch(server.url, jobs=1, progress=lambda there, total: told.append((there, total)))
    assert told[0][0] < told[-1][0]
    assert {total for _, total in told} == {sum(len(v) for v in expected().values())}
    assert told[-1][0] >= told[-1][1] - 2  # two files are the same
    assert done.size > 200_000


def test_an_address_may_carry_a_query(home: Path, server: Server) -> None:
    fetch(f"{server.url}?sig=a%2Fb")
    assert arrived(home) == expected()
    assert all(path.endswith("?sig=a%2Fb") for path, _ in server.requests)


# -- faults --------------------------------------------------------------------------------------


def failing(home: Path, source: str | Path, words: str) -> None:
    """Fetch in vain: the words are said, and nothing but the staging folder is there."""
    with pytest.raises(NotAvailableError, match=words):
        fetch(source, jobs=1)
    assert not (home / "data").exists()
    assert not (home / "artefacts").exists()


def test_an_absent_object(home: Path, server: Server) -> None:
    server.faults = at(PLACE, lambda count: (404, {}, b""))
    failing(home, server.url, f"{PLACE} was answered with 404")
    assert dict(server.requests)[PLACE] == ""
    assert sum(path == PLACE for path, _ in server.requests) == 1  # no second try
    server.faults = at(PLACE, lambda count: None)
    fetch(server.url)
    assert arrived(home) == expected()


def test_a_server_that_fails_for_good_and_for_a_while(home: Path, server: Server) -> None:
    server.faults = at(PLACE, lambda count: (500, {"Content-Length": "0"}, b""))
    failing(home, server.url, "500 Internal Server Error; tried 4 times. Check .* run again")
    server.requests.clear()
    server.faults = at(PLACE, lambda count: (503, {}, b"") if count < 3 else None)
    fetch(server.url)
    assert arrived(home) == expected()


@pytest.mark.parametrize("ranges", [True, False])
def test_a_truncated_body_goes_on(home: Path, server: Server, ranges: bool) -> None:
    body = CONTENT["data"]["a.parquet"]
    half = (200, {"Content-Length": str(len(body))}, body[:70_000])
    server.ranges = ranges
    server.faults = at(PLACE, lambda count: half if count == 1 else None)
    fetch(server.url, jobs=1)
    assert arrived(home) == expected()
    assert [r for path, r in server.requests if path == PLACE] == ["", "bytes=70000-"]
    shutil.rmtree(home)
    server.faults = at(PLACE, lambda count: half)
    failing(home, server.url, "(ended after|broke off).*tried 4 times")


def test_a_truncated_index(home: Path, server: Server) -> None:
    body = (server.root / INDEX).read_bytes()
    half = (200, {"Content-Length": str(len(body))}, body[:30])
    server.faults = at(f"/{INDEX}", lambda count: half if count == 1 else None)
    fetch(server.url)
    assert arrived(home) == expected()


def test_wrong_content(home: Path, server: Server) -> None:
    page = b"<html>Log in</html>"
    wrong = (200, {"Content-Length": str(len(page))}, page)
    server.faults = at(PLACE, lambda count: wrong)
    failing(home, server.url, rf"{PLACE} has other content than its name says \(19 bytes\)")
    assert not list((home / ".fetch").glob(f"{BIG}*"))


def test_a_part_that_is_wrong_is_brought_anew(home: Path, server: Server) -> None:
    (home / ".fetch").mkdir(parents=True)
    part = home / ".fetch" / f"{BIG}.part"
    for wrong in (b"x" * 1000, b"x" * 200_000, b"x" * 300_000):
        part.write_bytes(wrong)
        fetch(server.url)
        assert arrived(home) == expected()
        shutil.rmtree(home)
        (home / ".fetch").mkdir(parents=True)


def test_nobody_listens(home: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    failing(home, f"http://127.0.0.1:{port}", "cannot be reached .*refused.*tried 4 times")


def test_an_interrupted_fetch_goes_on(home: Path, server: Server) -> None:
    """Kill the process in the middle of a file; the next one asks for the rest only."""
    body = CONTENT["data"]["a.parquet"]
    slow = threading.Event()

    # Half of a body, after which the server says nothing more and stays on the line.
    half = (200, {"Content-Length": str(len(body))}, body[:131_072])
    server.faults = at(PLACE, lambda count: half if count == 1 else None)
    original = http.server.BaseHTTPRequestHandler.finish

    code = f"from inconvenient.fetch import fetch; fetch({server.url!r}, jobs=1)"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            http.server.BaseHTTPRequestHandler,
            "finish",
            lambda self: (PLACE in self.path and slow.wait(20), original(self)),
        )
        process = subprocess.Popen([sys.executable, "-c", code], env={**os.environ})
        part = home / ".fetch" / f"{BIG}.part"
        deadline = time.monotonic() + 20
        while not (part.is_file() and part.stat().st_size >= 131_072):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        slow.set()
    assert not (home / "data").exists()
    server.requests.clear()
    fetch(server.url)
    assert dict(server.requests)[PLACE] == "bytes=131072-"
    assert arrived(home) == expected()


def test_ctrl_c_waits_for_no_server(home: Path, server: Server) -> None:
    body = CONTENT["data"]["a.parquet"]
    half = (200, {"Content-Length": str(len(body))}, body[:131_072])
    server.faults = at(PLACE, lambda count: half)
    silent = threading.Event()
    original = http.server.BaseHTTPRequestHandler.finish
    code = (
        "import signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from inconvenient.cli import main\n"
        f"sys.exit(main(['fetch', '--from', {server.url!r}]))"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            http.server.BaseHTTPRequestHandler,
            "finish",
            lambda self: (PLACE in self.path and silent.wait(20), original(self)),
        )
        process = subprocess.Popen(
            [sys.executable, "-c", code], env={**os.environ}, stderr=subprocess.PIPE, text=True
        )
        part = home / ".fetch" / f"{BIG}.part"
        deadline = time.monotonic() + 20
        while not (part.is_file() and part.stat().st_size >= 131_072):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=10)
        silent.set()
    assert process.returncode == 130
    assert "stopped; what has arrived is kept" in err
    assert not (home / "data").exists()


def test_a_second_fetch_waits_for_nothing(checkout: Path, home: Path) -> None:
    with bringing._alone(home), pytest.raises(NotAvailableError, match="another fetch is writing"):
        fetch(checkout)
    fetch(checkout)


def test_a_folder_that_cannot_be_written(checkout: Path, home: Path) -> None:
    home.parent.mkdir(exist_ok=True)
    home.write_text("a file")
    with pytest.raises(StoreError, match="had to be written, but File exists; .*INCONVENIENT_HOME"):
        fetch(checkout)


SOURCES = {
    "nothing there": ("nowhere", NotAvailableError, "has no index.json, nor has dvc-store/ below"),
    "another scheme": ("ftp://a/b", InputError, "must be http://, https:// or a path, got ftp"),
    "no host": ("http:///b", InputError, "an address with a host was needed"),
    "none": (None, InputError, "an address to fetch from was needed, got none; .*--from URL|path"),
}


@pytest.mark.parametrize("case", SOURCES)
def test_sources_that_are_none(case: str, checkout: Path, home: Path) -> None:
    source, kind, words = SOURCES[case]
    with pytest.raises(kind, match=words):
        fetch(source)


INDICES = {
    "no JSON": (b"<html>", "is no index of published data"),
    "another version": (b'{"version": 2, "outs": []}', "is of version 2, this package reads 1"),
    "outside": (
        json.dumps({"version": 1, "outs": [{"path": "../x", "md5": BIG, "size": 1}]}).encode(),
        "is no index",
    ),
    "the user's own": (
        json.dumps({"version": 1, "outs": [{"path": "datasets", "md5": BIG, "size": 1}]}).encode(),
        "is no index",
    ),
    "no hash": (
        json.dumps({"version": 1, "outs": [{"path": "data", "md5": "../", "size": 1}]}).encode(),
        "is no index",
    ),
}


@pytest.mark.parametrize("case", INDICES)
def test_indices_that_are_none(case: str, checkout: Path, home: Path) -> None:
    text, words = INDICES[case]
    (checkout / STORE / INDEX).write_bytes(text)
    failing(home, checkout, words)


def test_a_list_of_files_that_leads_out(checkout: Path, home: Path) -> None:
    md5 = put(checkout / STORE, json.dumps([{"md5": BIG, "relpath": "../../x"}]).encode(), ".dir")
    entry = {"path": "data", "md5": md5, "size": 1}
    (checkout / STORE / INDEX).write_text(json.dumps({"version": 1, "outs": [entry]}))
    failing(home, checkout, "the list of the files of data cannot be used")


def test_a_checkout_is_not_written_to(checkout: Path, home: Path) -> None:
    home.mkdir()
    (home / "dvc.yaml").write_text("")
    with pytest.raises(InputError, match="is a checkout, .*run `dvc pull`"):
        fetch(checkout)
    with pytest.raises(InputError, match="jobs must be 1 or more"):
        fetch(checkout, folder=checkout / "other", jobs=0)


# -- what this repository publishes --------------------------------------------------------------


def test_the_published_index_is_current(root: Path) -> None:
    """After `dvc push`, `make index` (or `inconvenient data index`) writes it anew."""
    assert (root / STORE / INDEX).read_text(encoding="utf-8") == published_index(root)


def test_an_index_needs_its_objects(checkout: Path) -> None:
    (checkout / STORE / PLACE.lstrip("/")).unlink()
    with pytest.raises(NotAvailableError, match=rf"lacks {PLACE[1:]} .*run `dvc push`"):
        published_index(checkout)


def test_what_was_fetched_is_found(
    root: Path,
    home: Path,
    cli: Callable[..., tuple[int, str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import inconvenient as ic
    from inconvenient.data import loading
    from inconvenient.shifts import loading as shifts_loading

    for module in (loading, shifts_loading):
        monkeypatch.setattr(module, "checkouts", list)
    monkeypatch.setattr("inconvenient.cli.report.checkouts", list)
    with pytest.raises(NotAvailableError, match=r"run `inconvenient fetch`"):
        ic.list_datasets()
    with pytest.raises(NotAvailableError, match=r"run `inconvenient fetch`"):
        ic.list_shifts()
    made = Server(root)
    try:
        status, out, err = cli("fetch", "--from", made.url, "--profile", "quick", "--json")
        assert (status, err) == (0, "")
        assert json.loads(out)["folder"] == str(home)
        status, out, _ = cli("fetch", "--profile", "quick")
        assert status == 0
        assert "0 files, 0.0 MB from" in out
    finally:
        made.close()
    listed = ic.list_shifts()
    status, out, _ = cli("report")
    assert (status, Path(out.strip())) == (0, home / "artefacts/quick/report/report.html")
    shift = ic.load_shift(listed["shift_id"].iloc[0])
    X, y = shift.train()
    assert len(X) == len(y) == shift.size
    assert np.array_equal(X.index, shift.rows)
    assert (
        len(ic.load_dataset(shift.dataset))
        == ic.list_datasets().set_index("name").loc[shift.dataset, "rows"]
    )


def test_records_are_frozen(checkout: Path, home: Path) -> None:
    done = fetch(checkout)
    with pytest.raises(dataclasses.FrozenInstanceError):
        done.files = 0
