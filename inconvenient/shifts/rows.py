"""Row ids as compact bytes and back, and one hash per row set."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from inconvenient.errors import InputError

__all__ = ["pack_rows", "rows_hash", "unpack_rows"]

_MAGIC = b"\x28\xb5\x2f\xfd"
_MAX_BYTES = 2**32  # half a billion rows; a damaged header cannot ask for more memory than this


def _checked(ids: npt.ArrayLike | Sequence[int]) -> npt.NDArray[np.int64]:
    """Return ``ids`` as int64 (k,), or raise InputError: integers, none negative, none twice."""
    array = np.asarray(ids)
    if array.ndim != 1:
        raise InputError(f"row ids must be one-dimensional, got {array.ndim} dimensions")
    if array.size == 0:
        return np.empty(0, dtype=np.int64)
    if array.dtype.kind not in "iu":
        raise InputError(f"row ids must be integers, got {array.dtype}; give positions in the data")
    out = array.astype(np.int64)
    if out.min() < 0:
        raise InputError(f"row ids must not be negative, got {int(out.min())}")
    ordered = np.sort(out)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if twice.size:
        raise InputError(f"row ids must be distinct, got {int(twice[0])} more than once")
    return out


def pack_rows(ids: npt.ArrayLike | Sequence[int]) -> bytes:
    """Pack row ids into bytes.

    Parameters
    ----------
    ids : int array of shape (k,)
        Distinct row ids in selection order, not negative.

    Returns
    -------
    bytes
        One zstd frame of the ids as little-endian int64, which states its own length.

    Raises
    ------
    InputError
        If the ids are not integers, not one-dimensional, negative or not distinct.
    """
    raw = _checked(ids).astype("<i8").tobytes()
    packed: bytes = pa.Codec("zstd", compression_level=9).compress(raw, asbytes=True)
    return packed


def _content_size(blob: bytes) -> int:
    """Return the number of bytes that a zstd frame says it holds (RFC 8878, section 3.1.1)."""
    if len(blob) < 6 or blob[:4] != _MAGIC:
        raise InputError(
            f"packed rows must be a zstd frame, got {len(blob)} other bytes; fetch the shifts again"
        )
    descriptor = blob[4]
    flag, single = descriptor >> 6, bool(descriptor & 0x20)
    start = 5 + (0 if single else 1) + (0, 1, 2, 4)[descriptor & 3]
    width = (1 if single else 0, 2, 4, 8)[flag]
    field = blob[start : start + width]
    if width == 0 or len(field) < width:
        raise InputError("packed rows do not state their length; pack them with pack_rows")
    return int.from_bytes(field, "little") + (256 if width == 2 else 0)


def unpack_rows(blob: bytes) -> npt.NDArray[np.int64]:
    """Return the row ids that :func:`pack_rows` packed.

    Parameters
    ----------
    blob : bytes
        A zstd frame of little-endian int64.

    Returns
    -------
    int64 array of shape (k,), read-only
        The ids in selection order.

    Raises
    ------
    InputError
        If the bytes are damaged or hold ids that are negative or not distinct.
    """
    blob = bytes(blob)
    size = _content_size(blob)
    if size % 8 or size > _MAX_BYTES:
        raise InputError(f"packed rows must hold whole int64 numbers, got {size} bytes")
    if size == 0:
        ids = np.empty(0, dtype=np.int64)
    else:
        try:
            raw = pa.Codec("zstd").decompress(blob, decompressed_size=size, asbytes=True)
        except (OSError, ValueError) as error:
            raise InputError(
                f"packed rows are damaged ({error}); fetch the shifts again"
            ) from error
        if len(raw) != size:
            raise InputError(f"packed rows should hold {size} bytes, got {len(raw)}")
        ids = _checked(np.frombuffer(raw, dtype="<i8"))
    ids.flags.writeable = False
    return ids


def rows_hash(ids: npt.ArrayLike | Sequence[int]) -> str:
    """Return one hash per row set, whatever the order of its rows.

    Parameters
    ----------
    ids : int array of shape (k,)
        Distinct row ids.

    Returns
    -------
    str
        SHA-256 in hex of the sorted ids as little-endian int64.

    Raises
    ------
    InputError
        If the ids are not integers, not one-dimensional, negative or not distinct.
    """
    return hashlib.sha256(np.sort(_checked(ids)).astype("<i8").tobytes()).hexdigest()
