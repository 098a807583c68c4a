"""Row ids as bytes and back, and one hash per row set."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from inconvenient.errors import InputError

__all__ = ["pack_rows", "rows_hash", "unpack_rows"]

_WIDTH = 4
_LARGEST = 2**31 - 1


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
        Distinct row ids in selection order, in [0, 2**31).

    Returns
    -------
    bytes
        The ids as little-endian int32, 4 k bytes.

    Raises
    ------
    InputError
        If the ids are not integers, not one-dimensional, negative, not distinct or too large.

    Notes
    -----
    Not compressed: the samples of one trajectory share their first rows, which the compression of
    a Parquet page finds and one of each cell cannot.
    """
    array = _checked(ids)
    if array.size and array.max() > _LARGEST:
        raise InputError(f"row ids must be at most {_LARGEST}, got {int(array.max())}")
    return array.astype("<i4").tobytes()


def unpack_rows(blob: bytes) -> npt.NDArray[np.int64]:
    """Return the row ids that :func:`pack_rows` packed.

    Parameters
    ----------
    blob : bytes
        Little-endian int32.

    Returns
    -------
    int64 array of shape (k,), read-only
        The ids in selection order.

    Raises
    ------
    InputError
        If the bytes are no whole number of ids, or hold some that are negative or not distinct.
    """
    if not isinstance(blob, bytes | bytearray | memoryview):
        raise InputError(f"packed rows must be bytes, got {type(blob).__name__}")
    blob = bytes(blob)
    if len(blob) % _WIDTH:
        raise InputError(
            f"packed rows must be whole int32 numbers of {_WIDTH} bytes, got {len(blob)} bytes; "
            "fetch the shifts again"
        )
    ids = _checked(np.frombuffer(blob, dtype="<i4"))
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
