"""Files at the door: what is read, what is refused, and in which words."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inconvenient.data import prepare_table, read_table
from inconvenient.errors import InputError, MissingDependencyError

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
    "suffix": ("t.xls", b"PK", r"must end in .csv, .tsv, .xlsx, .* or .arrow, got '.xls'"),
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


def test_file_without_rights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(GOOD)
    path.chmod(0)
    if os.geteuid() == 0:  # whom no rights keep out: the system's answer to others
        denied = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        monkeypatch.setattr(Path, "read_bytes", lambda self: (_ for _ in ()).throw(denied))
    with pytest.raises(InputError, match="cannot be read: Permission denied"):
        read_table(path)


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


# -- numbers as people write them ----------------------------------------------------------------


def read(tmp_path: Path, raw: str | bytes, name: str = "t.csv", **wishes: Any) -> pd.DataFrame:
    (tmp_path / name).write_bytes(raw if isinstance(raw, bytes) else raw.encode())
    return read_table(tmp_path / name, **wishes)


MANY = "\n".join(f"{i},{i / 7:.3f}" for i in range(20))

NUMERALS: dict[str, tuple[str, dict[str, Any], list[Any]]] = {
    "quoted": ('a,b\n"1","x"\n"2","y"\n', {}, [1, 2]),
    "question marks": ("a,b\n1,x\n?,y\n3,z\n", {}, [1.0, np.nan, 3.0]),
    "padded marks": ("a,b\n1,x\n ? ,y\n NA,z\n", {}, [1.0, np.nan, np.nan]),
    "own marks": ("a,b\n1,x\nunknown,y\n", {"na": ["unknown"]}, [1.0, np.nan]),
    "one own mark": ("a,b\n1,x\nunknown,y\n", {"na": "unknown"}, [1.0, np.nan]),
    "signs and blanks": ("a,b\n+1.5,x\n -2 ,y\n", {}, [1.5, -2.0]),
    "thousands": ('a,b\n"1,234",x\n56,y\n"7,890,123",z\n', {}, [1234, 56, 7890123]),
    "thousands and fractions": ('a,b\n"1,234.5",x\n.25,y\n', {}, [1234.5, 0.25]),
    "blanks between thousands": ("a,b\n1 234,x\n1\u202f234\u202f567,y\n", {}, [1234, 1234567]),
    "apostrophes": ("a,b\n1'234.5,x\n2,y\n", {}, [1234.5, 2.0]),
    "decimal commas": ("a;b\n1,5;x\n2;y\n;z\n", {}, [1.5, 2.0, np.nan]),
    "decimal commas, quoted": ('a,b\n"1,5",x\n"2,25",y\n', {}, [1.5, 2.25]),
    "points between thousands": ("a;b\n1.234,5;x\n2.000.000;y\n", {}, [1234.5, 2e6]),
    "what another column shows": ("a;b\n1,234;1,5\n2,345;2,5\n", {}, [1.234, 2.345]),
    "thousands that another column shows": (
        'a;b\n1,234;"1,234.5"\n2,345;2.5\n',
        {},
        [1234, 2345],
    ),
    "a comma as told": ("a;b\n1,234;x\n2,345;y\n", {"decimal": ","}, [1.234, 2.345]),
    "a point as told": ("a;b\n1,234;x\n2,345;y\n", {"decimal": "."}, [1234, 2345]),
    "points as told": ("a;b\n1.234;x\n2.345;y\n", {"decimal": ","}, [1234, 2345]),
    "percent": ("a,b\n12 %,x\n2.5%,y\n", {}, [12.0, 2.5]),
    "a currency": ('a,b\n"$1,234",x\n$56,y\n', {}, [1234, 56]),
    "a currency behind": ("a;b\n1.234,5 €;x\n2 €;y\n", {}, [1234.5, 2.0]),
    "two currencies": ("a,b\n$12,x\n€56,y\n", {}, ["$12", "€56"]),
    "a long minus": ("a,b\n\u22125,x\n6,y\n", {}, [-5, 6]),
    "exponents": ("a;b\n1,5e3;x\n2,5E-1;y\n", {}, [1500.0, 0.25]),
    "text as told": ("a,b\n007,x\n1.50,y\n", {"text": ["a"]}, ["007", "1.50"]),
    "levels of digits": ("a,b\n1,x\n2,y\n3+,z\n", {}, ["1", "2", "3+"]),
    "codes": ("a,b\n" + MANY.replace(",", "A,"), {}, [f"{i}A" for i in range(20)]),
    "a comma in the header": ('a;"b, in EUR"\n1,5;2\n2,5;3\n', {}, [1.5, 2.5]),
    "semicolons in a field": ("a,b\n1,x; y\n2,z\n", {}, [1, 2]),
}


@pytest.mark.parametrize("case", NUMERALS)
def test_numbers_are_read_however_they_are_written(case: str, tmp_path: Path) -> None:
    raw, wishes, wanted = NUMERALS[case]
    column = read(tmp_path, raw, **wishes).iloc[:, 0]
    np.testing.assert_array_equal(column, wanted)
    assert (column.dtype.kind == "i") == isinstance(wanted[0], int)


MISFITS: dict[str, tuple[str, str]] = {
    "a word among numbers": (
        f"a,b\n{MANY}\nunknown,2\n",
        r"t\.csv, line 22, column 'a': a number was needed, as 20 of 21 values are, got 'unknown'; "
        r"mark it as missing \(na=\['unknown'\], --na\), or keep the column as text",
    ),
    "a word after a field of two lines": (
        f'a,b\n"1","2\n"\n\n{MANY}\nunknown,2\n',
        r"t\.csv, line 25, column 'a'",
    ),
    "two ways": (
        "a;b\n1,234;x\n2,345;y\n",
        r"line 2, column 'a': 1,234 can be read in two ways; .*decimal=\",\" or \"\.\", --decimal",
    ),
    "two ways, with points": (
        "a;b\n1.234;1,5\n2.345;2,5\n",
        "line 2, column 'a': 1.234 can be read in two ways",
    ),
    "two signs": ("a;b\n1,5;x\n2,5;y\n2.5;z\n", "line 4, column 'a': one decimal .*2.5 beside 1,5"),
    "long integers": (
        'a,b\n"9,007,199,254,740,995",x\n1,y\n',
        r"line 2, column 'a': .* integers beyond 2\^53 \(such as 9,007,199,254,740,995\)",
    ),
}


@pytest.mark.parametrize("case", MISFITS)
def test_numbers_that_cannot_be_told_are_refused_with_line_and_column(
    case: str, tmp_path: Path
) -> None:
    raw, words = MISFITS[case]
    with pytest.raises(InputError, match=words):
        read(tmp_path, raw)


@pytest.mark.parametrize(
    ("name", "wishes", "words"),
    [
        ("t.csv", {"decimal": ";"}, 'decimal must be "." or ","'),
        ("t.csv", {"text": ["z"]}, "text names 'z', which is no column"),
        ("t.csv", {"sheet": "a"}, "a sheet is a part of a workbook"),
        ("t.parquet", {"na": ["-"]}, "has types of its own; leave them out"),
    ],
)
def test_wishes_that_make_no_sense(
    name: str, wishes: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=words):
        read(tmp_path, GOOD, name, **wishes)


def test_feather(tmp_path: Path, cancer: pd.DataFrame) -> None:
    import pyarrow as pa
    from pyarrow import feather

    table = pa.Table.from_pandas(cancer)
    for name, how in (("t.feather", "lz4"), ("t.arrow", "uncompressed")):
        feather.write_feather(table, str(tmp_path / name), compression=how)
        pd.testing.assert_frame_equal(read_table(tmp_path / name), cancer, check_dtype=False)
    with pytest.raises(InputError, match=r"t\.feather is no Feather \(version 2\) or Arrow file"):
        read(tmp_path, b"FEA1....", "t.feather")


# -- workbooks -----------------------------------------------------------------------------------


def workbook(path: Path, **sheets: list[list[Any]]) -> Path:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(path)
    book.close()
    return path


def test_workbook(tmp_path: Path) -> None:
    rows = [
        [None, None],
        ["age", "region", "price ", 2020, None],
        [30, "north", 1.5, "1,5"],
        [],
        [41, None, "2.5", "NA"],
        [50, "?", 3, "2"],
    ]
    frame = read_table(workbook(tmp_path / "t.xlsx", data=rows, empty=[]))
    assert frame.columns.tolist() == ["age", "region", "price ", "2020"]
    assert frame["age"].tolist() == [30, 41, 50]
    assert frame["age"].dtype == np.int64
    assert frame["region"].isna().tolist() == [False, True, True]
    assert frame["price "].tolist() == [1.5, 2.5, 3.0]
    np.testing.assert_array_equal(frame["2020"], [1.5, np.nan, 2.0])
    kept = read_table(tmp_path / "t.xlsx", text=["2020", "age"], na="north")
    assert kept["2020"].tolist()[::2] == ["1,5", "2"]
    assert kept["age"].tolist() == ["30", "41", "50"]
    assert kept["region"].isna().all()


SHEETS: dict[str, tuple[dict[str, list[list[Any]]], dict[str, Any], str]] = {
    "empty": ({"a": []}, {}, "t.xlsx is empty"),
    "header only": ({"a": [["x", "y"]]}, {}, "sheet 'a' holds no rows below its header"),
    "two sheets": (
        {"a": [["x"], [1]], "b": [["x"], [1]]},
        {},
        r"has 2 sheets that hold something \(a, b\); name one \(sheet=..., --sheet\)",
    ),
    "absent sheet": ({"a": [["x"], [1]]}, {"sheet": "c"}, "has no sheet 'c'; there are a"),
    "no name": ({"a": [["x", None], [1, 2]]}, {}, "sheet 'a': column 2 of 2 has no name"),
    "equal names": ({"a": [["x", "x"], [1, 2]]}, {}, "sheet 'a': .*'x' occurs more than once"),
    "an error": (
        {"a": [["x"], [1], ["#DIV/0!"]]},
        {},
        "sheet 'a', row 3, column 'x': a value was needed, got #DIV/0!",
    ),
    "a formula": (
        {"a": [["x", "y"], ["=1+1", 1]]},
        {},
        r"sheet 'a', row 2: the formula =1\+1 has no value",
    ),
    "a word among numbers": (
        {"a": [["x"], *[[i] for i in range(20)], [], ["many"]]},
        {},
        "sheet 'a', row 23, column 'x': a number was needed, as 20 of 21 .*got 'many'",
    ),
    "absent text": ({"a": [["x"], [1]]}, {"text": ["y"]}, "text names 'y'"),
}


@pytest.mark.parametrize("case", SHEETS)
def test_sheets_that_cannot_be_used(case: str, tmp_path: Path) -> None:
    sheets, wishes, words = SHEETS[case]
    with pytest.raises(InputError, match=words):
        read_table(workbook(tmp_path / "t.xlsx", **sheets), **wishes)


def test_no_workbook_and_no_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    pytest.importorskip("openpyxl")
    with pytest.raises(InputError, match=r"is no \.xlsx workbook: .*save it anew"):
        read(tmp_path, b"a,b\n1,2\n", "t.xlsx")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingDependencyError, match=r"openpyxl is needed .*inconvenient\[excel\]"):
        read_table(tmp_path / "t.xlsx")


# -- ARFF ----------------------------------------------------------------------------------------

ARFF = """% a comment
@RELATION houses

@attribute 'living area' numeric
@attribute region {north, 'far south', "e,ast"}
@Attribute note string
@attribute sold date "yyyy-MM-dd"
@attribute price REAL
@data
% another
1, north, 'it\\'s, new', 2020-01-02, 1.5

2.5,'far south',?,2020-01-03,?
?,"e,ast","plain",?,3e2
"""


def test_arff(tmp_path: Path) -> None:
    frame = read(tmp_path, ARFF, "t.arff")
    assert frame.columns.tolist() == ["living area", "region", "note", "sold", "price"]
    np.testing.assert_array_equal(frame["living area"], [1.0, 2.5, np.nan])
    assert frame["region"].tolist() == ["north", "far south", "e,ast"]
    assert frame["note"].tolist()[::2] == ["it's, new", "plain"]
    assert frame["note"].isna().tolist() == [False, True, False]
    assert frame["sold"].dtype.kind == "M"
    np.testing.assert_array_equal(frame["price"], [1.5, np.nan, 300.0])


def test_sparse_arff(tmp_path: Path) -> None:
    raw = (
        "@relation s\n@attribute a numeric\n@attribute b {u, 'v w'}\n@attribute c numeric\n"
        "@data\n{0 1.5, 1 'v w'}\n{}\n{2 ?}\n"
    )
    frame = read(tmp_path, raw, "t.arff")
    assert frame["a"].tolist() == [1.5, 0.0, 0.0]
    assert frame["b"].tolist() == ["v w", "u", "u"]
    np.testing.assert_array_equal(frame["c"], [0.0, 0.0, np.nan])


ARFF_CASES = {
    "no data": (ARFF.partition("@data")[0], "has no @data; is it an ARFF file, and whole"),
    "no rows": (ARFF.partition("% another")[0], "holds no rows behind @data"),
    "another file": ("a,b\n1,2\n", "line 1: @relation, @attribute or @data was needed, got 'a,b'"),
    "a word": (ARFF.replace("2.5,", "many,"), "line 13, column 'living area': a number .*'many'"),
    "a level": (
        ARFF.replace("1, north", "1, nowhere"),
        "line 11, column 'region': one of the declared levels north, far south, e,ast was needed",
    ),
    "a date": (ARFF.replace("2020-01-03", "soon"), "line 13, column 'sold': a date .*'soon'"),
    "too few": (ARFF.replace(",?,2020-01-03", ""), "line 13: 5 values were needed.*got 3"),
    "a quote": (ARFF.replace('"plain"', '"plain'), "line 14: a quote is not closed"),
    "a type": (ARFF.replace("REAL", "money"), "line 8: attribute 'price' must be numeric.*'money'"),
    "no type": (ARFF.replace(" REAL", ""), "line 8: an attribute reads @attribute NAME TYPE"),
    "equal names": (ARFF.replace("note", "price"), "'price' occurs more than once"),
    "an index": (
        "@relation s\n@attribute a numeric\n@data\n{7 1}\n",
        "line 4: a sparse row reads .*below 1, got '7 1'",
    ),
}


@pytest.mark.parametrize("case", ARFF_CASES)
def test_arff_that_cannot_be_used(case: str, tmp_path: Path) -> None:
    raw, words = ARFF_CASES[case]
    with pytest.raises(InputError, match=words):
        read(tmp_path, raw, "t.arff")
    with pytest.raises(InputError, match="line 1: no UTF-8"):
        read(tmp_path, b"% \xff\n", "t.arff")


# How a number may be written: between thousands, and before the fraction.
STYLES = [("", "."), (",", "."), (" ", "."), ("'", "."), ("", ","), (".", ","), ("\u202f", ",")]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    cents=st.lists(st.integers(-(10**11), 10**11), min_size=2, max_size=30),
    style=st.sampled_from(STYLES),
    told=st.booleans(),
)
def test_numbers_come_back(
    cents: list[int], style: tuple[str, str], told: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    between, sign = style
    cells = [f"{c / 100:,.2f}".translate({44: between, 46: sign}) for c in cents]
    path = tmp_path_factory.mktemp("numbers") / "t.csv"
    path.write_text("\n".join(["a;b", *(f"{cell};x" for cell in cells)]), encoding="utf-8")
    frame = read_table(path, decimal=sign if told else None)
    assert frame["a"].tolist() == [c / 100 for c in cents]
