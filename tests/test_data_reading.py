"""Files at the door: what is read, what is refused, and in which words."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from inconvenient.data import prepare_table, read_table
from inconvenient.errors import InputError

GOOD = b"age,region,price\n30,north,1.5\n41,,2.5\n,south,3.5\n"

CASES: dict[str, tuple[str, bytes, str]] = {
    "empty": ("t.csv", b"", r"t\.csv is empty; a table needs a header and rows"),
    "blank": ("t.csv", b"\n \n", r"t\.csv is empty"),
    "only a mark": ("t.csv", b"\xef\xbb\xbf", r"t\.csv is empty"),
    "empty parquet": ("t.parquet", b"", r"t\.parquet is empty"),
    "header only": ("t.csv", b"a,b\n", r"t\.csv holds a header and no rows"),
    "duplicates": (
        "t.csv",
        b"a,b,a\n1,2,3\n",
        r"t\.csv: .*'a' occurs more than once \('a' in columns 1, 3\); rename",
    ),
    "blank name": ("t.csv", b",a\n0,1\n", r"t\.csv: column 1 of 2 has no name; .*index=False"),
    "padded blank name": ("t.csv", b"a,  \n0,1\n", "column 2 of 2 has no name"),
    "long row": ("t.csv", b"a,b\n1,2\n1,2,3\n", r"t\.csv, line 3: 2 fields were needed.*got 3"),
    "short row": (
        "t.csv",
        b"a,b\n1,2\n\n3\n4,5\n",
        r"t\.csv, line 4: 2 fields were needed, as in the header, got 1, so that column 'b' has",
    ),
    "short row after a quoted break": ("t.csv", b'a,b\n"1\n1",2\n3\n', r"t\.csv, line 4: 2 fields"),
    "latin-1": (
        "t.csv",
        b"id,city\n1,Bonn\n2,M\xfcnchen\n",
        r"t\.csv, line 3, column 'city': byte 0xfc is no UTF-8 text; save the file as UTF-8",
    ),
    "latin-1 header": ("t.csv", b"id,gr\xf6\xdfe\n1,2\n", r"t\.csv, line 1: byte 0xf6"),
    "latin-1 with line ends of old": (
        "t.csv",
        b"id,city\r1,Bonn\r2,M\xfcnchen\r",
        r"t\.csv, line 3, column 'city': byte 0xfc is no UTF-8 text",
    ),
    "latin-1 after a long field": (
        "t.csv",
        b"a,b\r\n1,2\r\n" + b"x" * 140_000 + b"\xfc,2\r\n",
        r"t\.csv, line 3: byte 0xfc",
    ),
    "one long word": ("t.csv", b"x" * 140_000, r"line 1 is no header of a CSV table: field larger"),
    "zero bytes": ("t.csv", "a,b\n1,2\n".encode("utf-16-le"), "line 1: a zero byte is no text"),
    "header without a line end": ("t.csv", b"a,b", r"t\.csv holds a header and no rows"),
    "utf-16": ("t.csv", "a,b\n1,2\n".encode("utf-16"), "must be UTF-8, got UTF-16"),
    "long integers": (
        "t.csv",
        b"id,b\n12345678901234567890123,1\n1,2\n",
        r"column 'id' holds integers beyond 2\^53 \(such as 12345678901234567890123\)",
    ),
    "suffix": ("t.xlsx", b"PK", r"must end in .csv, .tsv, .parquet or .pq, got '.xlsx'"),
    "no suffix": ("table", b"a\n1\n", "got 'no suffix'"),
    "no parquet": ("t.parquet", b"a,b\n1,2\n", r"t\.parquet is no Parquet file: "),
}


@pytest.mark.parametrize("case", CASES)
def test_file_that_cannot_be_used_is_explained(case: str, tmp_path: Path) -> None:
    name, raw, words = CASES[case]
    (tmp_path / name).write_bytes(raw)
    with pytest.raises(InputError, match=words):
        read_table(tmp_path / name)


def test_absent_file_and_folder(tmp_path: Path) -> None:
    (tmp_path / "prices.csv").write_bytes(GOOD)
    with pytest.raises(InputError, match=r"price\.csv does not exist \(there is .*prices\.csv\)"):
        read_table(tmp_path / "price.csv")
    with pytest.raises(InputError, match="nowhere/a.csv does not exist .nor does the folder"):
        read_table(tmp_path / "nowhere" / "a.csv")
    with pytest.raises(InputError, match="is a directory; name one CSV or Parquet file in it"):
        read_table(tmp_path)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match="is a directory"):
        read_table(str(tmp_path / "folder.csv"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_file_without_rights(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(GOOD)
    (tmp_path / "t.csv").chmod(0)
    with pytest.raises(InputError, match="cannot be read: Permission denied"):
        read_table(tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("t.csv", GOOD),
        ("t.CSV", GOOD),
        ("t.csv", b"\xef\xbb\xbf" + GOOD),
        ("t.csv", GOOD.replace(b"\n", b"\r\n")),
        ("t.csv", GOOD.rstrip()),
        ("t.csv", GOOD.replace(b",", b";")),
        ("t.csv", GOOD.replace(b",", b"\t")),
        ("t.tsv", GOOD.replace(b",", b"\t")),
        ("t.csv", GOOD.replace(b"north", b'"north"')),
        ("t.csv", GOOD.replace(b"41,,", b"41,NA,")),
    ],
)
def test_text_is_read(name: str, raw: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(raw)
    frame = read_table(tmp_path / name)
    assert frame.columns.tolist() == ["age", "region", "price"]
    np.testing.assert_array_equal(frame["age"], [30.0, 41.0, np.nan])
    assert frame["region"].isna().tolist() == [False, True, False]
    assert frame["price"].tolist() == [1.5, 2.5, 3.5]


def test_text_and_parquet_are_one_table(tmp_path: Path, cancer: pd.DataFrame) -> None:
    frame = cancer.copy()
    frame.iloc[::7, 0] = np.nan
    frame["count"] = pd.array(np.arange(len(frame)) % 9, dtype="Int64")
    frame.loc[::5, "count"] = pd.NA
    frame['odd, "name" '] = np.arange(len(frame)) % 3 == 0
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    frame.set_axis(np.arange(len(frame)) + 5).to_parquet(tmp_path / "index.parquet")
    wanted = prepare_table(frame, target="diagnosis")
    for name in ("t.csv", "t.parquet", "index.parquet"):
        read = read_table(tmp_path / name)
        assert read.columns.tolist() == frame.columns.tolist()
        assert prepare_table(read, target="diagnosis").hash == wanted.hash


def test_what_pandas_wrote_beside_the_columns_is_not_needed(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "g": ["x", "y"]})
    frame.set_index("g").to_parquet(tmp_path / "t.parquet")
    assert sorted(read_table(tmp_path / "t.parquet").columns) == ["a", "g"]
    raw = (tmp_path / "t.parquet").read_bytes()
    for word in (b"index_columns", b"numpy_type", b"pandas_version"):
        (tmp_path / "t.parquet").write_bytes(raw.replace(word, word[::-1]))
        assert len(read_table(tmp_path / "t.parquet")) == 2


def test_dates_are_refused_from_text_and_parquet_alike(
    tmp_path: Path, diabetes: pd.DataFrame
) -> None:
    frame = diabetes.assign(visit=pd.date_range("2020-01-01", periods=len(diabetes)))
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    for name in ("t.csv", "t.parquet"):
        read = read_table(tmp_path / name)
        with pytest.raises(InputError, match="feature 'visit' .*dates or times.*--drop visit"):
            prepare_table(read, target="progression")
        with pytest.raises(InputError, match="target 'visit' .*dates or times"):
            prepare_table(read, target="visit")
        assert len(prepare_table(read, target="progression", drop=["visit"]).features) == 10


def test_padded_name_is_kept_and_mentioned(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(GOOD.replace(b"price", b"price "))
    frame = read_table(tmp_path / "t.csv")
    assert frame.columns[-1] == "price "
    with pytest.raises(InputError, match="did you mean 'price ' .blanks belong to a name"):
        prepare_table(frame, target="price")


def test_integers_keep_their_digits(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": pd.array([2**60 + 1, None], dtype="Int64"), "n": [1, 2]})
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_csv(tmp_path / "t.csv", index=False)
    for name in ("t.parquet", "t.csv"):
        read = read_table(tmp_path / name)
        assert int(read["id"].iloc[0]) == 2**60 + 1
        assert read["n"].dtype == np.int64
        with pytest.raises(InputError, match=r"'id' .*2\^53"):
            prepare_table(read, target="n")


def test_large_floats_are_no_identifiers(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"mass,b\n1e20,1\n2.5e21,2\n")
    assert read_table(tmp_path / "t.csv")["mass"].tolist() == [1e20, 2.5e21]


def test_parquet_with_repeated_names(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table([[1], [2]], names=["a", "a"]), tmp_path / "t.parquet")
    with pytest.raises(InputError, match="'a' occurs more than once"):
        read_table(tmp_path / "t.parquet")
