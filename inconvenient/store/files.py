"""Files that are whole or absent: atomic writes of files and folders, Parquet with stable bytes."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from inconvenient.errors import StoreError

__all__ = [
    "canonical_json",
    "check_writable",
    "file_hash",
    "frame_bytes",
    "pack_frames",
    "read_frame",
    "store_error",
    "unpack_frames",
    "write_atomic",
    "write_folder",
    "write_frame",
]

#: Rows of a row group: a reader of one row, or of those of one dataset, reads few others. Bytes
#: (2 kB a row) take some 10 us a row to read.
_GROUP = 50_000
_GROUP_WITH_BYTES = 1000

#: What the names of files begin with that are being written.
TEMPORARY = ".tmp-"

_WAYS_OUT = {
    errno.EFBIG: "files may not grow so large here; raise the limit (ulimit -f) and run again, "
    "what is finished is kept",
    errno.ENOSPC: "the disk is full; free some space and run again, what is finished is kept",
    errno.EDQUOT: "the quota is used up; free some space and run again, what is finished is kept",
    errno.EACCES: "there is no permission to write; choose a folder that can be written",
    errno.EPERM: "there is no permission to write; choose a folder that can be written",
    errno.EISDIR: "is a folder; name a file",
    errno.EROFS: "the file system is read-only; choose a folder that can be written",
}


def store_error(path: Path, error: OSError) -> StoreError:
    """Return the error that says what could not be written, why, and the way out."""
    way_out = _WAYS_OUT.get(
        error.errno or 0, f"{error.strerror}; choose a folder that can be written"
    )
    return StoreError(f"{path} had to be written, but {way_out}")


def file_hash(path: str | Path) -> str:
    """Return the SHA-256 of a file, 64 hexadecimal digits."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_writable(path: str | Path) -> None:
    """Raise now what :func:`write_atomic` would raise after long work; the folder is made.

    Raises
    ------
    StoreError
        If the path is a folder, or its folder cannot be made or written.
    """
    path = Path(path)
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent) as file:
            file.write(b" ")
    except OSError as error:
        raise store_error(path, error) from error


def write_atomic(path: str | Path, value: bytes) -> None:
    """Write a file that is whole or absent, whatever happens meanwhile.

    Parameters
    ----------
    path : path
        Its folder is made if need be; a file there is replaced.
    value : bytes
        The content.

    Raises
    ------
    StoreError
        If the disk is full or the folder cannot be written; nothing is left behind.
    """
    path = Path(path)
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=TEMPORARY, dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(value)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
        temporary = None
    except OSError as error:
        raise store_error(path, error) from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def write_folder(path: str | Path, files: Mapping[str, bytes]) -> None:
    """Write a folder that holds exactly the given files; a reader never sees a half-filled one.

    Parameters
    ----------
    path : path
        The folder; one that exists is replaced as a whole.
    files : mapping of file name to bytes
        The content.

    Raises
    ------
    StoreError
        If the disk is full or the folder cannot be written; what stood there before stays.
    """
    path = Path(path)
    fresh = path.with_name(f".{path.name}.new")
    stale = path.with_name(f".{path.name}.old")
    try:
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.rmtree(stale, ignore_errors=True)
        fresh.mkdir(parents=True)
        for name, value in files.items():
            write_atomic(fresh / name, value)
        if path.exists():
            os.replace(path, stale)
        os.replace(fresh, path)
    except StoreError:
        raise
    except OSError as error:
        raise store_error(path, error) from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.rmtree(stale, ignore_errors=True)


def frame_bytes(frame: pd.DataFrame, provenance: Mapping[str, Any] | None = None) -> bytes:
    """Return a frame as Parquet: the same frame gives the same bytes with one version of pyarrow.

    Parameters
    ----------
    frame : DataFrame
        Its index is left out.
    provenance : mapping, optional
        JSON-able facts (stage, parameters, input hashes), kept in the file's metadata under
        ``inconvenient``.

    Returns
    -------
    bytes
        Compressed by zstd, in row groups.
    """
    table = pa.Table.from_pandas(frame, preserve_index=False)
    # Without pandas' own metadata: library versions, and nothing needed to read the columns.
    facts = {} if provenance is None else {"inconvenient": canonical_json(provenance)}
    large = {field.name for field in table.schema if pa.types.is_binary(field.type)}
    buffer = io.BytesIO()
    pq.write_table(
        table.replace_schema_metadata(facts),
        buffer,
        compression="zstd",
        compression_level=9,
        row_group_size=_GROUP_WITH_BYTES if large else _GROUP,
        # Bytes hardly ever repeat.
        use_dictionary=[name for name in table.column_names if name not in large],
    )
    return buffer.getvalue()


def write_frame(
    path: str | Path, frame: pd.DataFrame, provenance: Mapping[str, Any] | None = None
) -> None:
    """Write a frame with :func:`frame_bytes` and :func:`write_atomic`."""
    write_atomic(path, frame_bytes(frame, provenance))


def read_frame(source: str | Path | bytes) -> pd.DataFrame:
    """Read what :func:`write_frame` wrote, or its bytes."""
    handle = io.BytesIO(source) if isinstance(source, bytes) else source
    # One thread: a process that ends while Arrow's pool still starts may be aborted after its work.
    with pq.ParquetFile(handle) as file:  # half the time of read_table, which looks for datasets
        frame: pd.DataFrame = file.read(use_threads=False).to_pandas(use_threads=False)
    return frame


def pack_frames(**frames: pd.DataFrame) -> pd.DataFrame:
    """Return several frames as one, with columns ``name`` and ``parquet``."""
    return pd.DataFrame(
        {"name": list(frames), "parquet": [frame_bytes(frame) for frame in frames.values()]}
    )


def unpack_frames(packed: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the frames that :func:`pack_frames` packed, by name."""
    return {
        str(name): read_frame(bytes(value))
        for name, value in zip(packed["name"], packed["parquet"])
    }


def canonical_json(value: Any) -> str:
    """Return JSON that depends on the value alone: sorted keys, no spaces, ASCII, no NaN."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    )
