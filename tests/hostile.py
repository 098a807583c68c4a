"""Small tables that hold everything a biased sample can hold, and stand-ins for datasets."""

from __future__ import annotations

from dataclasses import dataclass, field

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
