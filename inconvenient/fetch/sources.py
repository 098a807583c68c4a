"""Where published objects come from: a folder, or the same folder over HTTP."""

from __future__ import annotations

import errno
import http.client
import os
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from inconvenient.errors import InputError, NotAvailableError

__all__ = ["Folder", "PassingError", "Source", "Web", "source_of"]

CHUNK = 1 << 16
TIMEOUT = 30.0

# Faults that another try may mend, as servers and what stands before them say.
_PASSING = {408, 425, 429, 500, 502, 503, 504}

Tell = Callable[[int], None]


class PassingError(Exception):
    """A fault that another try may mend."""


class Source(Protocol):
    """A folder of published objects."""

    name: str

    def label(self, path: str) -> str:
        """Return how a message names a file."""

    def below(self, folder: str) -> Source:
        """Return the source of a folder in this one."""

    def read(self, path: str) -> bytes:
        """Return a small file."""

    def copy(self, path: str, part: Path, tell: Tell) -> None:
        """Bring the rest of a file that is there in part; tell of every byte."""


def source_of(named: str) -> Source:
    """Return the source of a URL or path.

    Raises
    ------
    InputError
        If the address is neither.
    """
    scheme = re.match(r"([a-zA-Z][a-zA-Z0-9+.-]+)://", named)
    if scheme is None:
        return Folder(Path(named).expanduser().absolute())
    if scheme.group(1).lower() not in ("http", "https"):
        raise InputError(f"the source must be http://, https:// or a path, got {named}")
    return Web(named)


class Folder:
    """A folder of this machine."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.name = str(root)

    def label(self, path: str) -> str:
        """Return how a message names a file."""
        return str(self.root / path)

    def below(self, folder: str) -> Folder:
        """Return the source of a folder in this one."""
        return Folder(self.root / folder)

    def read(self, path: str) -> bytes:
        """Return a small file."""
        try:
            return (self.root / path).read_bytes()
        except OSError as error:
            raise self._absent(path, error) from error

    def copy(self, path: str, part: Path, tell: Tell) -> None:
        """Bring the rest of a file that is there in part; tell of every byte."""
        if not (self.root / path).is_file():
            raise self._absent(path, FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)))
        with open(self.root / path, "rb") as stream:
            start = part.stat().st_size if part.is_file() else 0
            if start > os.fstat(stream.fileno()).st_size:
                tell(-start)
                start = 0
            stream.seek(start)
            _pour(stream.read, part, start, tell)

    def _absent(self, path: str, error: OSError) -> NotAvailableError:
        return NotAvailableError(f"{self.label(path)} cannot be read ({error.strerror})")


class Web:
    """A folder that a server shows; parts go on where it can serve ranges."""

    def __init__(self, address: str) -> None:
        parts = urllib.parse.urlsplit(address)
        if not parts.netloc:
            raise InputError(f"an address with a host was needed, got {address}")
        self._parts = parts._replace(path=parts.path.rstrip("/"), fragment="")
        self.name = self._parts.geturl()

    def label(self, path: str) -> str:
        """Return how a message names a file."""
        # A query stays behind the path: signed addresses have their signature there.
        place = f"{self._parts.path}/{urllib.parse.quote(path)}"
        return self._parts._replace(path=place).geturl()

    def below(self, folder: str) -> Web:
        """Return the source of a folder in this one."""
        return Web(self.label(folder))

    def read(self, path: str) -> bytes:
        """Return a small file."""
        with self._answer(path, 0) as answer:
            length = _length(answer)
            try:
                content: bytes = answer.read()
            except (OSError, http.client.HTTPException) as error:
                raise self._broken(path, error) from error
        if length is not None and len(content) < length:
            raise PassingError(f"{self.label(path)} ended after {len(content)} of {length} bytes")
        return content

    def copy(self, path: str, part: Path, tell: Tell) -> None:
        """Bring the rest of a file that is there in part; tell of every byte."""
        start = part.stat().st_size if part.is_file() else 0
        with self._answer(path, start) as answer:
            if start and not _goes_on(answer, start):
                tell(-start)
                start = 0
            length = _length(answer)
            poured = _pour(lambda size: self._chunk(answer, path, size), part, start, tell)
        if length is not None and poured < length:
            raise PassingError(
                f"{self.label(path)} ended after {start + poured} of {start + length} bytes"
            )

    def _chunk(self, answer: Any, path: str, size: int) -> bytes:
        try:
            chunk: bytes = answer.read(size)
        except (OSError, http.client.HTTPException) as error:
            raise self._broken(path, error) from error
        return chunk

    def _answer(self, path: str, start: int) -> Any:
        request = urllib.request.Request(self.label(path), headers={"User-Agent": "inconvenient"})
        if start:
            request.add_header("Range", f"bytes={start}-")
        try:
            return urllib.request.urlopen(request, timeout=TIMEOUT)
        except urllib.error.HTTPError as error:
            with error:
                return self._refused(path, start, error.code, str(error.reason))
        except urllib.error.URLError as error:
            raise PassingError(f"{self.label(path)} cannot be reached ({error.reason})") from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self._broken(path, error) from error

    def _refused(self, path: str, start: int, code: int, reason: str) -> Any:
        if start and code == 416:
            return self._answer(path, 0)  # what is there in part is longer than the file
        message = f"{self.label(path)} was answered with {code} {reason}"
        if code in _PASSING:
            raise PassingError(message)
        raise NotAvailableError(message)

    def _broken(self, path: str, error: Exception) -> PassingError:
        return PassingError(f"{self.label(path)} broke off ({error or type(error).__name__})")


def _length(answer: Any) -> int | None:
    value = answer.headers.get("Content-Length", "")
    return int(value) if value.isdigit() else None


def _goes_on(answer: Any, start: int) -> bool:
    """Tell whether an answer holds the bytes from a position on, and not all of them."""
    place = re.match(r"bytes (\d+)-", answer.headers.get("Content-Range", ""))
    return answer.status == 206 and place is not None and int(place.group(1)) == start


def _pour(read: Callable[[int], bytes], part: Path, start: int, tell: Tell) -> int:
    """Write what comes behind the first bytes of a part; return its length."""
    poured = 0
    with open(part, "r+b" if start else "wb") as file:
        file.truncate(start)
        file.seek(start)
        while chunk := read(CHUNK):
            file.write(chunk)
            poured += len(chunk)
            tell(len(chunk))
    return poured
