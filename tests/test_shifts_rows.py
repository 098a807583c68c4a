from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inconvenient.errors import InputError
from inconvenient.shifts.rows import pack_rows, rows_hash, unpack_rows


@given(st.lists(st.integers(0, 2**62), unique=True, max_size=400))
def test_round_trip_keeps_the_order(ids: list[int]) -> None:
    back = unpack_rows(pack_rows(ids))
    assert back.dtype == np.int64
    assert back.tolist() == ids
    assert not back.flags.writeable


@pytest.mark.parametrize("k", [0, 1, 31, 32, 33, 8191, 8192, 8193, 70000])
def test_every_length_of_the_frame_header(k: int) -> None:
    ids = np.random.default_rng(k).permutation(k)
    assert np.array_equal(unpack_rows(pack_rows(ids)), ids)
    assert pack_rows(ids) == pack_rows(ids.astype(np.int32))


def test_hash_ignores_the_order_and_is_plain_sha256() -> None:
    assert rows_hash([3, 1, 2]) == rows_hash(np.array([1, 2, 3], dtype=np.int32))
    expected = hashlib.sha256(np.array([1, 2, 3], dtype="<i8").tobytes()).hexdigest()
    assert rows_hash([3, 1, 2]) == expected
    assert rows_hash([1, 2]) != rows_hash([1, 2, 3])


@pytest.mark.parametrize(
    ("ids", "text"),
    [
        ([1, 1], "more than once"),
        ([-1, 2], "negative"),
        ([0.5], "integers"),
        ([[1, 2]], "one-dimensional"),
        ([True, False], "integers"),
    ],
)
def test_ids_that_cannot_be_packed(ids: list[object], text: str) -> None:
    with pytest.raises(InputError, match=text):
        pack_rows(ids)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=text):
        rows_hash(ids)  # type: ignore[arg-type]


def test_damaged_bytes_are_refused() -> None:
    good = pack_rows(np.arange(1000))
    with pytest.raises(InputError, match="zstd frame"):
        unpack_rows(b"nonsense")
    with pytest.raises(InputError, match="zstd frame"):
        unpack_rows(b"")
    with pytest.raises(InputError):
        unpack_rows(good[: len(good) // 2])
    import pyarrow as pa

    with pytest.raises(InputError, match="whole int64"):
        unpack_rows(pa.Codec("zstd").compress(b"1234567", asbytes=True))
    with pytest.raises(InputError, match="more than once"):
        unpack_rows(pa.Codec("zstd").compress(np.zeros(4, "<i8").tobytes(), asbytes=True))
