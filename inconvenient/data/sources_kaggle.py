"""Tables of Kaggle's datasets, through kagglehub: it resumes and compares the MD5 it is given."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from inconvenient.data import sources_web
from inconvenient.data.reading import read_table
from inconvenient.data.sources import RawTable
from inconvenient.data.sources_web import RemoteTable, column_texts, missing, patient, unreachable
from inconvenient.errors import InconvenientError, InputError, NotAvailableError

__all__ = ["read_kaggle"]

_TABLES = (".csv", ".tsv", ".parquet", ".pq")
# The client's folder is a variable of the environment, and is put back.
_ONE_AT_A_TIME = threading.RLock()


def read_kaggle(item: str, folder: Path) -> RemoteTable:
    """Read a table of a dataset.

    Parameters
    ----------
    item : str
        "owner/name/file.csv", or "owner/name" if the dataset holds one table;
        "owner/name/versions/3/file.csv" for a version that is not the newest.
    folder : path
        For what is downloaded; the caller removes it.

    Returns
    -------
    RemoteTable
        Kaggle names no targets.

    Raises
    ------
    InputError
        If there is no such dataset or file, or it is no table.
    NotAvailableError
        If Kaggle cannot be reached, asks for a login, or sends a damaged file.
    MissingDependencyError
        If the client is not installed.
    """
    owner, name, version, file = _parts(item)
    with _client(f"dataset {owner}/{name}", folder) as kagglehub:
        facts = _facts(owner, name)
        version = version or int(facts.current_version_number or 1)
        place = _bring(kagglehub, f"{owner}/{name}/versions/{version}", file)
        texts = _column_texts(owner, name, file or place.name)
    path = place if place.is_file() else _only_table(place, item)
    frame = read_table(_as_utf8(path))
    names = [str(column) for column in frame.columns]
    description = str(facts.description or facts.subtitle or "").strip()
    columns = {**column_texts(description, names), **texts}
    return RemoteTable(
        raw=RawTable(
            frame=frame,
            title=str(facts.title or name),
            description=description,
            columns={column: text for column, text in columns.items() if column in names},
            source=f"Kaggle dataset {owner}/{name} version {version}, file {path.name}",
        ),
        licence=str(facts.license_name or ""),
        checksum=sources_web.md5_of(path),
    )


def _parts(item: str) -> tuple[str, str, int, str]:
    owner, _, rest = item.partition("/")
    name, _, file = rest.partition("/")
    version = "0"
    if file.startswith("versions/"):
        version, _, file = file.removeprefix("versions/").partition("/")
    if not owner or not name or not version.isdigit():
        raise InputError(
            f"Kaggle's tables are named owner/name/file.csv, as in its addresses, got {item!r}"
        )
    return owner, name, int(version), file


def _bring(kagglehub: Any, handle: str, file: str) -> Path:
    """Download, going on where a connection broke off."""
    from requests import exceptions

    for attempt in range(1, sources_web.ATTEMPTS + 1):
        try:
            return Path(kagglehub.dataset_download(handle, path=file or None))
        except (exceptions.ConnectionError, exceptions.ChunkedEncodingError, exceptions.Timeout):
            if attempt == sources_web.ATTEMPTS:
                raise
            time.sleep(sources_web.PAUSE * attempt)
    raise AssertionError  # the last attempt returns or raises


def _facts(owner: str, name: str) -> Any:
    from kagglehub.clients import build_kaggle_client
    from kagglesdk.datasets.types.dataset_api_service import ApiGetDatasetRequest

    request = ApiGetDatasetRequest()
    request.owner_slug, request.dataset_slug = owner, name
    with build_kaggle_client() as client:
        return client.datasets.dataset_api_client.get_dataset(request)


def _column_texts(owner: str, name: str, file: str) -> dict[str, str]:
    """Return what the dataset's page says of the file's columns; nothing if it says nothing."""
    from kagglehub.clients import build_kaggle_client
    from kagglesdk.datasets.types.dataset_api_service import ApiGetDatasetMetadataRequest
    from requests import exceptions

    request = ApiGetDatasetMetadataRequest()
    request.owner_slug, request.dataset_slug = owner, name
    try:
        with build_kaggle_client() as client:
            answer = client.datasets.dataset_api_client.get_dataset_metadata(request)
    except (exceptions.RequestException, ValueError):
        # Kaggle may want a login for this, and the table is of use without.
        return {}
    found = {}
    for described in (answer.info.data if answer.info else None) or []:
        if Path(described.name).name == Path(file).name:
            for column in described.columns or []:
                if column.description:
                    found[str(column.name)] = str(column.description).strip()
    return found


@contextlib.contextmanager
def _client(what: str, folder: Path) -> Iterator[Any]:
    """Give the client, with its files in a folder of ours and time-outs; explain its errors."""
    try:
        import kagglehub
        from kagglehub.exceptions import DataCorruptionError, UnauthenticatedError
        from kagglesdk import kaggle_http_client
        from requests import exceptions as network
    except ImportError as error:
        raise missing("kagglehub") from error
    folder.mkdir(parents=True, exist_ok=True)
    login = "log in first (KAGGLE_API_TOKEN, or ~/.kaggle/kaggle.json from the account page)"
    with _ONE_AT_A_TIME, _environment("KAGGLEHUB_CACHE", str(folder / "client")):
        try:
            with patient(kaggle_http_client), _quiet(logging.getLogger("kagglehub")):
                yield kagglehub
        except InconvenientError:
            raise
        except UnauthenticatedError as error:
            raise NotAvailableError(f"Kaggle gives {what} to known users only; {login}") from error
        except DataCorruptionError as error:
            raise NotAvailableError(
                f"Kaggle sent a file of {what} with another MD5 than it announced; nothing was "
                "kept; try again later"
            ) from error
        except network.HTTPError as error:
            status = 0 if error.response is None else error.response.status_code
            if status in (401, 403):
                raise NotAvailableError(
                    f"Kaggle gives {what} to known users only (error {status}); {login}"
                ) from error
            if status == 404:
                raise InputError(
                    f"Kaggle has no such file or {what} (error 404); check owner, name and file"
                ) from error
            raise unreachable("Kaggle", what, f"it answered with the error {status}") from error
        except network.Timeout as error:
            raise unreachable("Kaggle", what, "it was silent for too long") from error
        except network.ChunkedEncodingError as error:
            raise unreachable("Kaggle", what, "the connection broke off") from error
        except network.ConnectionError as error:
            raise unreachable("Kaggle", what, "it cannot be reached") from error
        except (ValueError, KeyError) as error:
            reason = f"its answer cannot be read ({type(error).__name__})"
            raise unreachable("Kaggle", what, reason) from error


@contextlib.contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """Keep a client from printing on stdout, where a command's result goes."""
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextlib.contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _only_table(folder: Path, item: str) -> Path:
    tables = sorted(p for p in folder.rglob("*") if p.suffix.lower() in _TABLES and p.is_file())
    if len(tables) != 1:
        names = ", ".join(str(table.relative_to(folder)) for table in tables[:10]) or "none"
        raise InputError(
            f"kaggle:{item} must hold one table, got {names}; name one, as in "
            f"kaggle:{item}/{tables[0].relative_to(folder) if tables else 'file.csv'}"
        )
    return tables[0]


def _as_utf8(path: Path) -> Path:
    """Return the file, or a copy in UTF-8 of what Windows wrote in its own encoding."""
    if path.suffix.lower() in (".parquet", ".pq"):
        return path
    content = path.read_bytes()
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        plain = path.with_name(f"utf8-{path.name}")
        plain.write_text(content.decode("cp1252", "replace"), encoding="utf-8", newline="")
        return plain
    return path
