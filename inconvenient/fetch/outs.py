"""What is published: an index of folders by hash, and how a folder is put in place as a whole."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from inconvenient.config import PROFILES
from inconvenient.errors import InputError, NotAvailableError
from inconvenient.fetch.sources import Folder

__all__ = [
    "INDEX",
    "STORE",
    "Out",
    "assemble",
    "files_of",
    "is_current",
    "md5_of",
    "place_of",
    "present",
    "published_index",
    "read_index",
    "swap",
    "wanted",
]

#: Published beside the objects; all else follows from the hashes that it holds.
INDEX = "index.json"
#: Folder of the repository that holds the objects.
STORE = "dvc-store"
_VERSION = 1
#: Brought whatever the profile; the study is 1 MB.
_ALWAYS = ("data", "study")
#: Folders of a profile without which its shifts cannot be listed, loaded and read about.
_SHIFTS = "publish"
_STAGES = (_SHIFTS, "split", "report")
# Folders beside the published ones, where a user's datasets lie.
_USERS = {"datasets", "downloads"}
_OBJECT = re.compile(r"[0-9a-f]{32}(\.dir)?")


@dataclasses.dataclass(frozen=True, slots=True)
class Out:
    """A published folder or file.

    Parameters
    ----------
    path : str
        Where it lies in a checkout.
    md5 : str
        Of the file, or of the list of the folder's files and ".dir".
    size : int
        Bytes of all its files.
    """

    path: str
    md5: str
    size: int


def place_of(name: str) -> str:
    """Return where an object lies in the store."""
    return f"files/md5/{name[:2]}/{name[2:]}"


def md5_of(path: Path) -> str:
    """Return the hash that names a file; of content, no protection against who serves it."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def published_index(checkout: str | os.PathLike[str]) -> str:
    """Return the index of what a checkout publishes, for ``dvc-store/index.json``.

    Parameters
    ----------
    checkout : path
        With ``*.dvc``, ``dvc.lock`` and ``dvc-store/``.

    Returns
    -------
    str
        JSON; path, hash and size (bytes) of the folders that a fetch may bring, sorted by path:
        the data, the tuned study, and of each profile the published shifts, the split and the
        report. What the
        other stages wrote is for ``dvc pull``.

    Raises
    ------
    NotAvailableError
        If ``dvc-store/`` lacks an object that the index would lead to.
    """
    import yaml

    root = Path(checkout)
    tracked: list[dict[str, Any]] = []
    for file in sorted(root.glob("*.dvc")):
        if file.is_file():
            tracked += yaml.safe_load(file.read_text(encoding="utf-8"))["outs"]
    lock = yaml.safe_load((root / "dvc.lock").read_text(encoding="utf-8"))
    for stage in lock["stages"].values():
        tracked += stage.get("outs", [])
    outs = [Out(entry["path"], entry["md5"], entry["size"]) for entry in tracked]
    outs = [out for out in outs if out.path in _ALWAYS or _part_of(out)]
    store = Folder(root / STORE)
    for out in outs:
        names = [out.md5]
        with contextlib.suppress(NotAvailableError):
            names += files_of(out, store.read(place_of(out.md5))).values()
        absent = [name for name in names if not (store.root / place_of(name)).is_file()]
        if absent:
            raise NotAvailableError(
                f"{store.root} lacks {place_of(absent[0])} of {out.path}; run `dvc push` first"
            )
    entries = [dataclasses.asdict(out) for out in sorted(outs, key=lambda out: out.path)]
    return json.dumps({"version": _VERSION, "outs": entries}, indent=1) + "\n"


def read_index(text: bytes, name: str) -> list[Out]:
    """Return what an index names.

    Raises
    ------
    NotAvailableError
        If it is none, or of another version.
    """
    outs: list[Out] = []
    version: Any = _VERSION
    with contextlib.suppress(ValueError, TypeError, KeyError):
        raw = json.loads(text)
        version = raw["version"]
        outs = [Out(**entry) for entry in raw["outs"]]
        if not all(
            _OBJECT.fullmatch(out.md5) and out.size >= 0 and _safe(out.path) for out in outs
        ):
            outs = []
    if version != _VERSION:
        raise NotAvailableError(
            f"{name} is of version {version}, this package reads {_VERSION}; update the package"
        )
    if not outs:
        raise NotAvailableError(
            f"{name} is no index of published data; name the address of the folder {STORE}/"
        )
    return outs


def wanted(outs: Sequence[Out], profiles: Sequence[str]) -> list[Out]:
    """Return the data, the study, and what is published of some profiles.

    Parameters
    ----------
    outs : sequence of Out
        What an index names.
    profiles : sequence of str
        If empty, the one that is preferred of those there are.

    Raises
    ------
    InputError
        If no shifts of a profile are published.
    """
    parts = {out: part for out in outs if (part := _part_of(out)) is not None}
    known = sorted(profile for profile, stage in parts.values() if stage == _SHIFTS)
    for profile in profiles:
        if profile not in known:
            there = f"published are {', '.join(known)}" if known else "none is published"
            raise InputError(f"there is no profile {profile!r}; {there}")
    chosen = profiles or [p for p in (*PROFILES, *known) if p in known][:1]
    return [o for o in outs if o.path in _ALWAYS or (o in parts and parts[o][0] in chosen)]


def _part_of(out: Out) -> tuple[str, str] | None:
    """Return profile and stage of an out that a fetch may bring, or None."""
    match out.path.split("/"):
        case ["artefacts", profile, stage] if stage in _STAGES:
            return profile, stage
    return None


def _safe(path: str) -> bool:
    """Tell whether a path that came from elsewhere stays inside, and is no file of the user's."""
    parts = PurePosixPath(path).parts
    inside = bool(parts) and not path.startswith("/") and "\\" not in path
    return inside and parts[0] not in _USERS and not any(part.startswith(".") for part in parts)


def files_of(out: Out, listing: bytes) -> dict[str, str]:
    """Return hash by path below an out; the path is "" if the out is a file itself.

    Raises
    ------
    NotAvailableError
        If the listing of a folder is none.
    """
    if not out.md5.endswith(".dir"):
        return {"": out.md5}
    try:
        files = {str(entry["relpath"]): str(entry["md5"]) for entry in json.loads(listing)}
    except (ValueError, TypeError, KeyError):
        files = {"": ""}
    if not all(_safe(path) and _OBJECT.fullmatch(md5) for path, md5 in files.items()):
        raise NotAvailableError(
            f"the list of the files of {out.path} cannot be used; name another source with --from"
        )
    return files


def present(root: Path, out: Out) -> Iterator[tuple[str, Path]]:
    """Yield hash and path of the files of an out that are there."""
    place = root / out.path
    for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
        if path.is_file():
            yield md5_of(path), path


def is_current(root: Path, out: Out, files: Mapping[str, str]) -> bool:
    """Tell whether exactly these files are there."""
    there = {path: digest for digest, path in present(root, out)}
    return there == {root / out.path / name: digest for name, digest in files.items()}


def assemble(root: Path, out: Out, files: Mapping[str, str], found: Mapping[str, Path]) -> None:
    """Make the new state of an out beside the old one."""
    fresh = _beside(root / out.path, "new")
    _remove(fresh)
    for name, digest in files.items():
        path = fresh / name if name else fresh
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(found[digest], path)


def swap(root: Path, out: Out) -> None:
    """Put the new state in the place of the old one."""
    place = root / out.path
    fresh, old = _beside(place, "new"), _beside(place, "old")
    _remove(old)
    if place.exists():
        os.replace(place, old)
    os.replace(fresh, place)
    _remove(old)


def _beside(place: Path, word: str) -> Path:
    return place.with_name(f".{place.name}.{word}")


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
