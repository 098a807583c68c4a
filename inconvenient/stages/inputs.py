"""The datasets of a run and their splits, as the stages after ``split`` read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from inconvenient.data import Dataset, Split, load_dataset
from inconvenient.errors import InputError
from inconvenient.shifts.rows import rows_hash
from inconvenient.store import library_versions

if TYPE_CHECKING:
    from inconvenient.stages.run import Run

__all__ = ["key_parts", "read_datasets", "read_splits"]

PARTS = ("pool", "filter", "report")


def read_datasets(run: Run) -> dict[str, Dataset]:
    """Return the datasets that could be split, most work first, and note their hashes.

    Raises
    ------
    InputError
        If none could be split.
    """
    table = run.read("split/datasets")
    names = table.loc[table["status"] == "ok", "dataset"].tolist()
    if not names:
        raise InputError(
            f"no dataset of profile {run.profile_name} could be split: "
            + "; ".join(f"{d}: {s}" for d, s in zip(table["dataset"], table["status"]))
        )
    datasets = [load_dataset(name) for name in names]
    run.inputs.update({f"data/{dataset.name}": dataset.hash for dataset in datasets})
    datasets.sort(key=lambda dataset: (-_work(dataset), dataset.name))
    return {dataset.name: dataset for dataset in datasets}


def _work(dataset: Dataset) -> int:
    """Return what the work on a dataset roughly grows with: entries, and contrasts squared."""
    return dataset.frame.size * max(1, len(dataset.classes) - 1) ** 2


def read_splits(run: Run) -> dict[str, Split]:
    """Return the splits by dataset."""
    table = run.read("split/split")
    return {str(name): _split(rows) for name, rows in table.groupby("dataset")}


def _split(rows: pd.DataFrame) -> Split:
    ids = {part: rows.loc[rows["part"] == part, "row_id"].to_numpy() for part in PARTS}
    return Split(**ids)


def key_parts(dataset: Dataset, split: Split) -> dict[str, object]:
    """Return what every record of a dataset depends on, for its key."""
    return {
        "dataset": dataset.name,
        "hash": dataset.hash,
        "split": [rows_hash(getattr(split, part)) for part in PARTS],
        "libraries": library_versions("numba"),
    }
