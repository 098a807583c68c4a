"""Published data and shifts in the user's folder: hash-checked, resumable, all of it or nothing."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import queue
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from inconvenient.config import user_folder
from inconvenient.errors import InputError, NotAvailableError, StoreError
from inconvenient.fetch import outs as published
from inconvenient.fetch.outs import INDEX, STORE, Out, place_of
from inconvenient.fetch.sources import PassingError, Source, source_of

__all__ = ["Fetched", "fetch"]

_STAGING = ".fetch"
_LOCK = ".fetch.lock"
_RECORD = "fetched.json"

_TRIES = 4
_PAUSE = 0.3  # seconds before the second try; doubled each time

Progress = Callable[[int, int], None]


@dataclasses.dataclass(frozen=True, slots=True)
class Fetched:
    """What a fetch did.

    Parameters
    ----------
    folder : path
        Where data and artefacts lie now.
    source : str
    paths : tuple of str
        The published folders that are present.
    renewed : tuple of str
        Those of them that were absent or of another version before.
    files : int
        Files brought over.
    size : int
        Bytes brought over, lists and repeated tries included.
    """

    folder: Path
    source: str
    paths: tuple[str, ...]
    renewed: tuple[str, ...]
    files: int
    size: int


def fetch(
    source: str | os.PathLike[str] | None = None,
    *,
    folder: str | os.PathLike[str] | None = None,
    profiles: Sequence[str] = (),
    jobs: int = 4,
    progress: Progress | None = None,
) -> Fetched:
    """Bring the datasets, and the published shifts of a profile, into a folder of the user's.

    Parameters
    ----------
    source : str or path, optional
        URL or path of a checkout or of its ``dvc-store/``. By default ``$INCONVENIENT_SOURCE``,
        else the source of the last fetch.
    folder : path, optional
        By default ``$INCONVENIENT_HOME``, else a user data folder. The published folders in it
        are replaced as a whole, and only once everything has arrived.
    profiles : sequence of str
        Profiles to bring beside the data: their shifts, the split, and the report. "full" by
        default if that is published, else "quick". Those that an earlier call brought stay.
    jobs : int
        Downloads at a time.
    progress : callable, optional
        Called with the bytes that have arrived and those that will.

    Returns
    -------
    Fetched

    Raises
    ------
    InputError
        If the source, a profile or the folder cannot be used.
    NotAvailableError
        If something cannot be had, or has other content than its hash says. What had arrived
        stays in ``.fetch``, where the next call goes on; what stood there before is untouched.
    StoreError
        If the folder cannot be written.
    """
    root = user_folder() if folder is None else Path(folder)
    if (root / "dvc.yaml").is_file():
        raise InputError(
            f"{root} is a checkout, whose data belong to DVC; run `dvc pull` there, or name "
            "another folder in INCONVENIENT_HOME"
        )
    if jobs < 1:
        raise InputError(f"jobs must be 1 or more, got {jobs}; give the downloads at a time")
    with _writing(root), _alone(root):
        run = _Run(source_of(_named(source, root)), root / _STAGING, jobs, progress)
        outs = published.wanted(run.index(), profiles)
        listings = run.listings(outs)
        stale = {o: f for o, f in listings.items() if not published.is_current(root, o, f)}
        needed = {md5 for files in stale.values() for md5 in files.values()}
        there = {md5: path for o in stale for md5, path in published.present(root, o)}
        kept = {md5: path for md5, path in there.items() if md5 in needed}
        absent = needed - set(kept)
        total = sum(o.size for o in stale) - sum(path.stat().st_size for path in kept.values())
        run.bring(sorted(absent), max(total, 1))
        for out, files in stale.items():
            published.assemble(root, out, files, {**kept, **run.found})
        for out in stale:
            published.swap(root, out)
        record = {"source": run.source.name, "outs": {out.path: out.md5 for out in outs}}
        fresh = root / f".{_RECORD}.new"
        fresh.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        os.replace(fresh, root / _RECORD)
        shutil.rmtree(root / _STAGING)
    return Fetched(
        folder=root,
        source=run.source.name,
        paths=tuple(out.path for out in outs),
        renewed=tuple(out.path for out in stale),
        files=len(absent),
        size=run.received,
    )


def _named(given: str | os.PathLike[str] | None, root: Path) -> str:
    named = os.fspath(given) if given is not None else os.environ.get("INCONVENIENT_SOURCE", "")
    if not named and (root / _RECORD).is_file():
        named = str(json.loads((root / _RECORD).read_text(encoding="utf-8"))["source"])
    if not named:
        raise InputError(
            "an address to fetch from was needed, got none; name the repository or its folder "
            f"{STORE}/, a URL or a path, with --from or in INCONVENIENT_SOURCE"
        )
    return named


@contextlib.contextmanager
def _writing(root: Path) -> Iterator[None]:
    """Say of a full disk and the like what to do."""
    try:
        yield
    except (NotAvailableError, StoreError):
        raise
    except OSError as error:
        raise StoreError(
            f"{root} had to be written, but {error.strerror or error}; make room or name another "
            "folder in INCONVENIENT_HOME, and run again: what has arrived is kept"
        ) from error


@contextlib.contextmanager
def _alone(root: Path) -> Iterator[None]:
    """Keep a second fetch out of the folder."""
    import fcntl

    root.mkdir(parents=True, exist_ok=True)
    with open(root / _LOCK, "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise NotAvailableError(
                f"another fetch is writing to {root}; wait for its end and run again"
            ) from error
        yield


class _Run:
    """Objects of one source on their way into a staging folder."""

    def __init__(self, source: Source, staging: Path, jobs: int, progress: Progress | None) -> None:
        self.source = source
        self.received = 0
        self.found: dict[str, Path] = {}
        self._staging, self._jobs, self._progress = staging, jobs, progress
        self._stop, self._lock = threading.Event(), threading.Lock()
        self._there = self._total = 0

    def index(self) -> list[Out]:
        """Find the index at the source, or in the folder of the store below it."""
        given, faults = self.source, []
        for source in (given, given.below(STORE)):
            self.source = source
            try:
                text: bytes = self._again(self._read_index)
            except NotAvailableError as error:
                faults.append(error)
                if isinstance(error.__cause__, PassingError):
                    raise  # nor will the folder below be within reach
            else:
                return published.read_index(text, source.label(INDEX))
        raise NotAvailableError(
            f"{given.name} has no {INDEX}, nor has {STORE}/ below it: {faults[0]}; name the "
            f"repository or its folder {STORE}/ with --from"
        ) from faults[0]

    def _read_index(self) -> bytes:
        return self.source.read(INDEX)

    def listings(self, outs: Sequence[Out]) -> dict[Out, dict[str, str]]:
        """Bring the lists of the files of folders."""
        # Folders of two profiles may be the same.
        self.bring(sorted({out.md5 for out in outs if out.md5.endswith(".dir")}), 0)
        read = {name: path.read_bytes() for name, path in self.found.items()}
        return {out: published.files_of(out, read.get(out.md5, b"")) for out in outs}

    def bring(self, names: Sequence[str], total: int) -> None:
        """Bring objects, several at a time; the first fault stops them all."""
        self._staging.mkdir(parents=True, exist_ok=True)
        self._there, self._total = 0, total
        todo: queue.SimpleQueue[str] = queue.SimpleQueue()
        ends: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()
        for name in names:
            todo.put(name)
        # Daemons, so that after Ctrl-C nobody waits for a server that says nothing.
        threads = [
            threading.Thread(target=self._work, args=(todo, ends), daemon=True)
            for _ in range(min(self._jobs, len(names)))
        ]
        for thread in threads:
            thread.start()
        fault = None
        try:
            fault = next((end for _ in names if (end := ends.get()) is not None), None)
        except BaseException:
            self._stop.set()
            raise
        if fault is not None:
            self._stop.set()
        for thread in threads:
            thread.join()
        if fault is not None:
            raise fault

    def _work(
        self, todo: queue.SimpleQueue[str], ends: queue.SimpleQueue[Exception | None]
    ) -> None:
        while not (todo.empty() or self._stop.is_set()):
            try:
                self._bring(todo.get_nowait())
            except queue.Empty:  # another thread was faster
                return
            except Exception as error:
                ends.put(error)
            else:
                ends.put(None)

    def _bring(self, name: str) -> None:
        final, part = self._staging / name, self._staging / f"{name}.part"
        wanted = name.removesuffix(".dir")
        if final.is_file() and published.md5_of(final) == wanted:
            self._tell(final.stat().st_size, 0)
        else:
            if part.is_file():
                self._tell(part.stat().st_size, 0)
            self._again(lambda: self._complete(name, wanted, part))
            os.replace(part, final)
        with self._lock:
            self.found[name] = final

    def _complete(self, name: str, wanted: str, part: Path) -> None:
        resumed = part.is_file() and part.stat().st_size > 0
        self.source.copy(place_of(name), part, self._arrived)
        if published.md5_of(part) == wanted:
            return
        got = part.stat().st_size
        part.unlink()
        self._tell(-got, 0)
        message = (
            f"{self.source.label(place_of(name))} has other content than its name says "
            f"({got} bytes); the source, or something on the way, is at fault"
        )
        # What an earlier run left may be what is wrong; without it there is nothing to hope for.
        if resumed:
            raise PassingError(message)
        raise NotAvailableError(f"{message}: try again later, or name another with --from")

    def _arrived(self, size: int) -> None:
        if self._stop.is_set():
            raise NotAvailableError("the fetch was stopped; run it again, and it goes on")
        self._tell(size, max(size, 0))

    def _tell(self, size: int, received: int) -> None:
        with self._lock:
            self.received += received
            self._there += size
            there = self._there
        if self._progress is not None and self._total:
            self._progress(there, max(self._total, there))

    def _again(self, call: Callable[[], Any]) -> Any:
        for attempt in range(_TRIES):
            try:
                return call()
            except PassingError as error:
                fault = error
            if attempt < _TRIES - 1 and self._stop.wait(_PAUSE * 2**attempt):
                break
        raise NotAvailableError(
            f"{fault}; tried {_TRIES} times. Check address and network and run again: what has "
            "arrived is kept"
        ) from fault
