"""What sources on a network share: a table with its facts, downloads that resume, plain errors."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import http.client
import os
import re
import ssl
import time
import types
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from inconvenient.data.sources import RawTable
from inconvenient.errors import (
    InconvenientError,
    InputError,
    MissingDependencyError,
    NotAvailableError,
    StoreError,
)

__all__ = [
    "RemoteTable",
    "UnreachableError",
    "column_texts",
    "download",
    "locked",
    "md5_of",
    "missing",
    "patient",
    "unreachable",
]

#: Seconds without a byte, after which a server counts as silent.
TIMEOUT = 30.0
#: How often a file is asked for before the user is told; what came is kept in between.
ATTEMPTS = 3
#: Seconds before the second attempt; twice as many before the third.
PAUSE = 1.0

_PIECE = 1 << 20
# What a connection raises; any other OSError comes from the disk.
_NETWORK = (urllib.error.URLError, ConnectionError, TimeoutError, ssl.SSLError)


@dataclasses.dataclass(frozen=True, slots=True)
class RemoteTable:
    """A table as a source gives it, with what the source says of it.

    Parameters
    ----------
    raw : RawTable
    target : str
        The column to predict, or "" if the source names none.
    task : str
        The task, or "" if it has to be told from the target.
    drop : dict of str to str
        Columns that are no features, by reason.
    dates : tuple of str
        Columns of dates or times that are held as text.
    licence, checksum : str
        The licence and the MD5 of the file that was read, "" where unknown.
    """

    raw: RawTable
    target: str = ""
    task: str = ""
    drop: dict[str, str] = dataclasses.field(default_factory=dict)
    dates: tuple[str, ...] = ()
    licence: str = ""
    checksum: str = ""


def missing(package: str) -> MissingDependencyError:
    """Return the error that names the extra of an absent client."""
    return MissingDependencyError(
        f"{package} is needed to download from this source and is not installed; "
        "run `pip install 'inconvenient[sources]'`"
    )


class UnreachableError(NotAvailableError):
    """A source that gave no answer, or not the right one; another attempt may succeed."""


def unreachable(host: str, what: str, reason: str) -> UnreachableError:
    """Return the error of a source, with who was asked for what and what came of it."""
    return UnreachableError(
        f"{host} was asked for {what}, but {reason}; check the network connection and run the "
        "same again, what has arrived is kept"
    )


def column_texts(description: str, names: Sequence[str]) -> dict[str, str]:
    """Return what a free description says of columns, by name.

    Parameters
    ----------
    description : str
        Lines such as "3. age: in years", "* `age` - in years" or "age = in years" are read.
    names : sequence of str

    Returns
    -------
    dict of str to str
        For the columns that such a line names; the first line counts.
    """
    known = {name.casefold(): name for name in names}
    texts: dict[str, str] = {}
    for line in description.splitlines():
        found = re.match(
            r"\s*(?:[-*+]|\(?\d+[.):])?\s*[*_`'\"]*(?P<name>[^:=*`'\"]+?)[*`'\"]*\s*(?:\([^)]*\))?"
            r"[*_`'\"]*\s*(?::|=|\s-+\s)[*_`'\"]*\s*(?P<text>\S.*)",
            line,
        )
        if found is None:
            continue
        name = known.get(found["name"].strip().casefold())
        if name is not None and name not in texts:
            texts[name] = re.sub(r"[*`]+", "", found["text"]).strip()
    return texts


@contextlib.contextmanager
def patient(module: Any) -> Iterator[list[int]]:
    """Give up on silent servers within a client's module that uses `requests` without a time-out.

    Parameters
    ----------
    module : module
        Where the client's code says ``requests.Session()``; every other module keeps its own.

    Yields
    ------
    list of int
        The status of every answer so far, for a client's errors do not always say it.
    """
    import requests

    statuses: list[int] = []
    answers: list[Any] = []

    class Session(requests.Session):
        def send(self, request: Any, **options: Any) -> Any:
            options["timeout"] = options.get("timeout") or TIMEOUT
            statuses.append(0)
            answer = super().send(request, **options)
            statuses[-1] = answer.status_code
            answers.append(answer)
            return answer

    stand_in = types.ModuleType("requests")
    vars(stand_in).update(vars(requests))
    vars(stand_in)["Session"] = Session
    own = module.requests
    module.requests = stand_in
    try:
        yield statuses
    finally:
        module.requests = own
        for answer in answers:
            answer.close()  # one that broke off would keep its socket


def download(url: str, path: Path, *, host: str, what: str, md5: str = "") -> None:
    """Bring a file that is whole or absent; what an earlier attempt got is not asked for again.

    Parameters
    ----------
    url : str
        http or https.
    path : path
        A file there is taken as it is, if its MD5 is the one expected. What has arrived of an
        unfinished download lies beside it, with the suffix ``.part``.
    host, what : str
        For messages: who is asked, and for what.
    md5 : str
        Hexadecimal digits, or "" where the source gives none.

    Raises
    ------
    InputError
        If the server has no such file or the address is none.
    NotAvailableError
        If the server cannot be reached, fails, falls silent, or sends another file than expected.
    StoreError
        If the file cannot be written.

    Notes
    -----
    A rest is asked for only if it can be told to belong to the part: by the server's ETag or
    date (If-Range), or by the MD5 of the whole. A server that knows no ranges sends all anew.
    """
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise InputError(f"{host}: {what} must have an address with http or https, got {url!r}")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    with _alone(path):
        if path.is_file() and (not md5 or md5_of(path) == md5):
            return
        reason: InconvenientError | None = None
        for attempt in range(ATTEMPTS):
            time.sleep(PAUSE * attempt)
            resumed = part.exists()
            try:
                _receive(url, part, checked=bool(md5))
            except urllib.error.HTTPError as error:
                reason = _refused(error, host, what, url)
                if error.code == 416:
                    # What is here is no beginning of the server's file.
                    _forget(part)
                elif error.code < 500 and error.code not in (408, 429):
                    break
                continue
            except (*_NETWORK, http.client.HTTPException) as error:
                reason = unreachable(host, what, _fault(error))
                continue
            except OSError as error:
                raise StoreError(
                    f"{part} had to be written, but: {error.strerror}; free some space, or set "
                    "INCONVENIENT_HOME to a folder that can be written"
                ) from error
            found = md5_of(part) if md5 else ""
            if found == md5:
                os.replace(part, path)
                _tag(part).unlink(missing_ok=True)
                return
            _forget(part)
            reason = NotAvailableError(
                f"{host} sent {what} with the MD5 {found}, but its description says {md5}; "
                "the file is damaged or was replaced, nothing was kept; try again later"
            )
            if not resumed:
                break
        assert reason is not None
        raise reason


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Make a folder, and keep other processes that ask for it waiting."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _fault(error: Exception) -> str:
    """Return in a few words what went wrong with a connection."""
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, TimeoutError):
        return f"it was silent for {TIMEOUT:g} seconds"
    if isinstance(error, urllib.error.URLError):
        return "it cannot be reached"
    return "the connection broke off"


def _refused(error: urllib.error.HTTPError, host: str, what: str, url: str) -> InconvenientError:
    error.close()
    if error.code in (404, 410):
        return InputError(f"{host} has no {what} (error {error.code} at {url}); check the name")
    return unreachable(host, what, f"it answered with the error {error.code}")


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Keep two processes from writing the same part."""
    with open(path.with_name(path.name + ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _tag(part: Path) -> Path:
    return part.with_name(part.name + ".tag")


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _tag(part).unlink(missing_ok=True)


def _receive(url: str, part: Path, *, checked: bool) -> None:
    """Add to a part what it lacks, or write it anew."""
    start = part.stat().st_size if part.exists() else 0
    known = _tag(part).read_text(encoding="latin-1") if _tag(part).exists() else ""
    headers = {"User-Agent": "inconvenient", "Accept-Encoding": "identity"}
    if start and (known or checked):
        headers["Range"] = f"bytes={start}-"
        if known:
            headers["If-Range"] = known
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
        place = re.match(r"bytes (\d+)-", answer.headers.get("Content-Range") or "")
        goes_on = answer.status == 206 and place is not None and int(place.group(1)) == start
        if answer.status == 206 and not goes_on:
            _forget(part)
            raise http.client.HTTPException("a range that was not asked for")
        validator = answer.headers.get("ETag") or answer.headers.get("Last-Modified") or ""
        # A weak ETag is no proof of equal bytes, and If-Range does not take it.
        _tag(part).write_text("" if validator.startswith("W/") else validator, encoding="latin-1")
        length = answer.headers.get("Content-Length")
        got = 0
        with open(part, "ab" if goes_on else "wb") as file:
            while piece := answer.read(_PIECE):
                file.write(piece)
                got += len(piece)
    if length is not None and got < int(length):
        raise http.client.IncompleteRead(b"", int(length) - got)


def md5_of(path: Path) -> str:
    """Return the MD5 of a file, the sum that the sources publish."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
