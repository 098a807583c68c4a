from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inconvenient.errors import InputError
from inconvenient.shifts.rows import pack_rows, rows_hash, unpack_rows


@given(st.lists(st.integers(0, 2**31 - 1), unique=True, max_size=400))
def test_round_trip_keeps_the_order(ids: list[int]) -> None:
    packed = pack_rows(ids)
    assert packed == b"".join(i.to_bytes(4, "little") for i in ids)
    back = unpack_rows(packed)
    assert back.dtype == np.int64
    assert back.tolist() == ids
    assert not back.flags.writeable


def test_any_integer_type_gives_the_same_bytes() -> None:
    ids = np.random.default_rng(0).permutation(70_000)
    for kind in (np.int32, np.uint32, np.uint64, ">i8"):
        assert pack_rows(ids.astype(kind)) == pack_rows(ids)
    assert np.array_equal(unpack_rows(memoryview(pack_rows(ids))), ids)


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
        pack_rows(ids)
    with pytest.raises(InputError, match=text):
        rows_hash(ids)


def test_ids_beyond_four_bytes_are_refused() -> None:
    with pytest.raises(InputError, match="at most 2147483647, got 2147483648"):
        pack_rows([0, 2**31])


def test_damaged_bytes_are_refused() -> None:
    good = pack_rows(np.arange(1000))
    with pytest.raises(InputError, match="whole int32 numbers of 4 bytes, got 3999 bytes"):
        unpack_rows(good[:-1])
    with pytest.raises(InputError, match="must not be negative, got -1"):
        unpack_rows(b"\xff" * 4)
    with pytest.raises(InputError, match="got 0 more than once"):
        unpack_rows(bytes(16))
    with pytest.raises(InputError, match="must be bytes, got list"):
        unpack_rows([1, 2])
