"""Small tables that hold everything a biased sample can hold, and stand-ins for datasets."""

from __future__ import annotations

import datetime
import decimal
import fractions
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes, load_wine


def hostile_frame(n: int = 400, seed: int = 0) -> pd.DataFrame:
    """Return numbers, gaps, strings, categories, bools, many levels, constants, odd names."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "number": rng.normal(size=n),
            "gaps": np.where(rng.random(n) < 0.2, np.nan, rng.exponential(size=n)),
            "text": rng.choice(list("uvwxyz"), n),
            "category": pd.Categorical(rng.choice(["p", "q", "r"], n)),
            'odd{}[]":, name': rng.integers(0, 5, n),
            "all missing": np.full(n, np.nan),
            "empty text": pd.Series([None] * n, dtype=object),
            "constant": 1.0,
            "flag": rng.random(n) < 0.3,
            "levels": [f"level {i % 150}" for i in range(n)],
            "nullable": pd.array(rng.integers(0, 3, n), dtype="Int64"),
        }
    )
    frame.loc[::7, ["text", "category"]] = None
    frame.loc[::11, "nullable"] = pd.NA
    return frame


def hostile_target(frame: pd.DataFrame, n_classes: int, seed: int = 1) -> np.ndarray:
    """Return a target that depends on the frame: floats for 0 classes, else codes."""
    signal = frame["number"].to_numpy() + frame["gaps"].fillna(0).to_numpy()
    signal = signal + 0.3 * np.random.default_rng(seed).normal(size=len(frame))
    if not n_classes:
        return signal
    return np.digitize(signal, np.quantile(signal, np.arange(1, n_classes) / n_classes))


def few_trees(setting: dict[str, Any]) -> dict[str, Any]:
    """Return a setting with 20 trees at most, for tests that ask nothing of the score."""
    return {k: min(v, 20) if k == "n_trees" else v for k, v in setting.items()}


@dataclass
class Table:
    """A dataset without files."""

    name: str
    X: pd.DataFrame
    y: np.ndarray
    task: str
    classes: tuple[str, ...] = ()
    groups: np.ndarray | None = None
    hash: str = field(default="0" * 64)


@dataclass
class Halves:
    """A split."""

    pool: np.ndarray
    filter: np.ndarray
    report: np.ndarray


def split_of(n: int, seed: int = 0) -> Halves:
    order = np.random.default_rng(seed).permutation(n)
    a, b = n // 2, n // 2 + n // 4
    return Halves(np.sort(order[:a]), np.sort(order[a:b]), np.sort(order[b:]))


def diabetes_table() -> Table:
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    return Table("diabetes", X, y.to_numpy(dtype=np.float64), "regression")


def wine_table() -> Table:
    X, y = load_wine(return_X_y=True, as_frame=True)
    return Table("wine", X.iloc[:, :6], y.to_numpy(), "multiclass", ("0", "1", "2"))


def shifts_of(tables: list[Table], splits: dict[str, Halves], *, k: int = 4) -> pd.DataFrame:
    """Return verified shifts with row sets biased by the first feature."""
    from inconvenient.shifts.rows import pack_rows, rows_hash

    rows = []
    for table in tables:
        pool = splits[table.name].pool
        order = pool[np.argsort(table.X.iloc[pool, 0].to_numpy(), kind="stable")]
        for i in range(k):
            chosen = order[: len(pool) // 2 + 3 * (i // 2)]  # two by two the same row set
            operation = ("amplify", "attenuate", "flip")[i % 3]
            rows.append(
                {
                    "shift_id": f"{table.name}/f{i}/{operation}/0.5/at_least",
                    "dataset": table.name,
                    "task": table.task,
                    "operation": operation,
                    "features": [table.X.columns[0]],
                    "size": len(chosen),
                    "rows": pack_rows(chosen),
                    "rows_hash": rows_hash(chosen),
                }
            )
    return pd.DataFrame(rows)


# -- columns that users bring, for Hypothesis ----------------------------------------------------

_TEXTS = [
    "", " ", "a", "b", "A", "é", "e\u0301", "日本", "🙂", "\u200b", "\u202eabc", "\x00", "nan",
    "NA", "None", "(missing)", "(other)", "True", "1", "1.0", "inf", "x" * 3000, "a=b", "\n",
    "\ud800",
]  # fmt: skip
_DAY = pd.Timestamp("2020-02-29")


def _of(values: list[Any], kind: Any) -> Callable[[np.ndarray], Any]:
    """Return a maker of a column: values by code, of a dtype."""

    def make(codes: np.ndarray) -> Any:
        return pd.array([values[c % len(values)] for c in codes], dtype=kind)

    return make


def _objects(values: list[Any]) -> Callable[[np.ndarray], Any]:
    def make(codes: np.ndarray) -> Any:
        column = np.empty(len(codes), dtype=object)
        for i, code in enumerate(codes):
            column[i] = values[code % len(values)]
        return column

    return make


def _categories(categories: list[Any], ordered: bool = False) -> Callable[[np.ndarray], Any]:
    """Return a maker of a categorical whose last level no row has, and with gaps."""

    def make(codes: np.ndarray) -> Any:
        used = codes % len(categories) - 1
        return pd.Categorical.from_codes(used, categories=categories, ordered=ordered)

    return make


def _arrow(values: list[Any], kind: Any) -> Callable[[np.ndarray], Any]:
    import pyarrow as pa

    def make(codes: np.ndarray) -> Any:
        picked = [values[c % len(values)] for c in codes]
        return pd.arrays.ArrowExtensionArray(pa.array(picked, type=kind))

    return make


Columns = dict[str, Callable[[np.ndarray], Any]]


def hostile_columns() -> tuple[Columns, Columns]:
    """Return makers of columns by name, of those that can be used and those that cannot.

    Each takes codes (n,), which say which rows are alike.
    """
    import pyarrow as pa

    inf, nan = np.inf, np.nan
    usable: Columns = {
        "floats": lambda c: c * 1.7 + 0.1,
        "codes": lambda c: c % 4,
        "float16": lambda c: (c % 7).astype(np.float16),
        "float32 and gaps": lambda c: np.where(c % 5 == 0, nan, c).astype(np.float32),
        "long double": lambda c: c.astype(np.longdouble),
        "int8": lambda c: (c % 100).astype(np.int8),
        "big-endian": lambda c: c.astype(">f8"),
        "bool": lambda c: c % 3 == 0,
        "constant": lambda c: np.full(len(c), 2.5),
        "constant text": lambda c: np.full(len(c), "a", dtype=object),
        "all missing": lambda c: np.full(len(c), nan),
        "all None": lambda c: np.full(len(c), None, dtype=object),
        "many levels": lambda c: np.array([f"level {i}" for i in range(len(c))], dtype=object),
        "texts": _objects(_TEXTS[:-1]),
        "string dtype": _of([*_TEXTS[:20], None], "string"),
        "mixed": _objects(["1", 1, 1.0, True, None, nan, pd.NA, decimal.Decimal("1.0"), "b"]),
        "numbers as objects": _objects([1, 2.5, None, decimal.Decimal("3.25"), np.int8(4)]),
        "fractions": _objects([fractions.Fraction(1, 3), 2]),
        "tiny": _objects([5e-324, -1e-300, 0.0]),
        "Int64": _of([1, 2, None, -3], "Int64"),
        "UInt8": _of([1, 2, 255, None], "UInt8"),
        "Float32": _of([1.5, None, 2.5], "Float32"),
        "boolean": _of([True, False, None], "boolean"),
        "all NA": _of([None], "Int64"),
        "sparse": lambda c: pd.arrays.SparseArray(np.where(c % 3 == 0, 0.0, c)),
        "sparse bool": lambda c: pd.arrays.SparseArray(c % 3 == 0),
        "category": _categories(["a", "b", "c", "unused"]),
        "ordered": _categories([3, 1, 2, 9], ordered=True),
        "category of floats": _categories([1.5, 2.5, 1e99]),
        "category of one level": _categories(["only", "unused"]),
        "category of booleans": _categories([True, False]),
        "category of mixtures": _categories(["1", 1, 2.5, "unused"]),
        "category of 10,000": _categories([f"l{i}" for i in range(10_000)]),
        "empty category": lambda c: pd.Categorical([None] * len(c)),
        "intervals": lambda c: pd.arrays.IntervalArray.from_arrays(c % 5, c % 5 + 1),
        "category of intervals": lambda c: pd.cut(c, 3) if len(c) else pd.Categorical([]),
        "arrow int": _arrow([1, None, 3], pa.int64()),
        "arrow uint8": _arrow([1, 2, 255], pa.uint8()),
        "arrow float": _arrow([1.5, None, nan, 2.0], pa.float32()),
        "arrow half": _arrow([np.float16(1.5), np.float16(2)], pa.float16()),
        "arrow bool": _arrow([True, None, False], pa.bool_()),
        "arrow text": _arrow([*_TEXTS[:-1], None], pa.string()),
        "arrow large text": _arrow(["a", "b", None], pa.large_string()),
        "arrow decimal": _arrow([decimal.Decimal("1.25"), None], pa.decimal128(10, 2)),
        "arrow null": _arrow([None], pa.null()),
    }
    refused: Columns = {
        "infinite": lambda c: np.where(c % 11 == 3, inf, c),
        "minus infinite": _of([-inf, 1.0, None], "Float64"),
        "huge": lambda c: c * 1e150,
        "long integers": lambda c: c + 2**53,
        "negative long integers": lambda c: -(c + 2**62),
        "uint64": lambda c: np.uint64(2**64 - 1) - c.astype(np.uint64),
        "long Int64": _of([2**60, None], "Int64"),
        "longest integers": _objects([10**400, 1]),
        "arrow long": _arrow([2**62, None, 1], pa.int64()),
        "no Unicode": _objects(_TEXTS),
        "complex": lambda c: c * 1j,
        "dates": _objects([_DAY.date(), None]),
        "times": lambda c: _DAY + pd.to_timedelta(c, unit="h"),
        "times with a zone": lambda c: (_DAY + pd.to_timedelta(c, unit="h")).tz_localize("UTC"),
        "NaT": lambda c: np.full(len(c), np.datetime64("NaT", "ns")),
        "seconds": lambda c: c.astype("datetime64[s]"),
        "timedeltas": lambda c: pd.to_timedelta(c, unit="min"),
        "timedelta objects": _objects([datetime.timedelta(1), nan]),
        "periods": lambda c: pd.PeriodIndex.from_ordinals(c, freq="M"),
        "category of times": _categories([_DAY, _DAY + pd.Timedelta(1, "D")]),
        "arrow times": _arrow([_DAY.to_pydatetime(), None], pa.timestamp("us")),
        "arrow dates": _arrow([_DAY.date(), None], pa.date32()),
        "arrow clock": _arrow([datetime.time(1, 2), None], pa.time64("us")),
        "arrow durations": _arrow([datetime.timedelta(1), None], pa.duration("us")),
        "arrow lists": _arrow([[1, 2], None], pa.list_(pa.int64())),
        "arrow structs": _arrow([{"a": 1}, None], pa.struct({"a": pa.int64()})),
        "arrow bytes": _arrow([b"\xff", None], pa.binary()),
        "arrow long decimal": _arrow([decimal.Decimal(10) ** 30, None], pa.decimal128(38, 2)),
        "bytes": _objects([b"a", b"\xff"]),
        "numpy bytes": lambda c: np.array([b"a", b"b"])[c % 2],
        "numpy text": lambda c: pd.Series(np.array(["a", "b"])[c % 2]).array,
        "lists": _objects([[1], [1, 2], None]),
        "dicts": _objects([{}, {"a": 1}]),
        "frames": _objects([pd.DataFrame({"a": [1]}), None]),
        "arrays": _objects([np.zeros(2), None]),
        "objects": _objects([object(), len, uuid.UUID(int=1)]),
        "signalling NaN": _objects([decimal.Decimal("sNaN"), 1.0]),
        "decimal infinity": _objects([decimal.Decimal("Infinity"), 1.0]),
    }
    return usable, refused


USABLE, REFUSED = hostile_columns()

INDEXES: dict[str, Callable[[int], pd.Index]] = {
    "range": pd.RangeIndex,
    "repeated": lambda n: pd.Index(np.zeros(n, dtype=np.int64)),
    "reversed": lambda n: pd.RangeIndex(n, 0, -1),
    "texts": lambda n: pd.Index([f"r{i // 2}" for i in range(n)], dtype=object),
    "gaps": lambda n: pd.Index([None, np.nan, "a"] * n, dtype=object)[:n],
    "times": lambda n: pd.DatetimeIndex([_DAY] * n),
    "levels": lambda n: pd.MultiIndex.from_arrays([[1] * n, list(range(n))]),
    "names": lambda n: pd.RangeIndex(n, name="y"),
}

NAMES: list[Any] = ["y", "target", "a", "a ", "", 1, "1", 2.5, None, ("a", "b"), True, "a=b", "é",
                    "__group__", "index", "level_0", "\ud800", np.nan, _DAY]  # fmt: skip
