"""The Dataset record: one raw table, its target and what is documented about both."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt
import pandas as pd

from inconvenient.errors import InputError

__all__ = ["TASKS", "Dataset"]

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

TASKS = ("regression", "binary", "multiclass")


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """A named raw table with its target column and task.

    Parameters
    ----------
    name : str
        Name in the catalogue, or of the user's table.
    frame : DataFrame
        Features and target; its index is 0..n-1, the row ids. Strings, bool, categories and
        numbers; NaN where a value is missing. The target has no gaps.
    target : str
        The column to predict.
    task : {"regression", "binary", "multiclass"}
        Kind of the target.
    classes : tuple of str
        Sorted as strings; empty for regression. The positive class of two is the last.
    groups : int64 array (n,), optional
        Cluster code of each row, never a feature; None without clusters.
    description, target_description : str
        What the documentation says of the table and of the target.
    feature_descriptions : dict of str to str
        What the documentation says of each feature.
    family, domain, source, licence : str
        Survey family, subject, where it was taken from, and under which licence.
    hash : str
        SHA-256 of the Parquet file's bytes, or of the canonical content of a user's table.
    dropped_rows : int
        Rows left out because their target was missing.
    """

    name: str
    frame: pd.DataFrame
    target: str
    task: str
    classes: tuple[str, ...] = ()
    groups: IntArray | None = None
    description: str = ""
    target_description: str = ""
    feature_descriptions: dict[str, str] = dataclasses.field(default_factory=dict)
    family: str = ""
    domain: str = ""
    source: str = ""
    licence: str = ""
    hash: str = ""
    dropped_rows: int = 0

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            raise InputError(f"task must be one of {', '.join(TASKS)}, got {self.task!r}")
        if self.target not in self.frame.columns:
            raise InputError(f"{self.name}: the table has no target column {self.target!r}")
        if self.groups is not None:
            groups = np.array(self.groups, dtype=np.int64)
            groups.flags.writeable = False
            object.__setattr__(self, "groups", groups)

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def features(self) -> list[str]:
        """Names of the raw columns to predict from, in the table's order."""
        return [str(column) for column in self.frame.columns if column != self.target]

    @property
    def X(self) -> pd.DataFrame:
        """The features, a new frame that shares its values with the table."""
        return self.frame[self.features]

    @property
    def y(self) -> FloatArray | IntArray:
        """The target, (n,): float64 for regression, else int64 positions in ``classes``.

        Raises
        ------
        InputError
            If a value is none of the classes.
        """
        values = self.frame[self.target]
        if self.task == "regression":
            numbers = values.to_numpy(dtype=np.float64, na_value=np.nan, copy=True)
            numbers.flags.writeable = False
            return numbers
        labels = pd.Index(values.astype(str))
        array = pd.Index(self.classes).get_indexer(labels).astype(np.int64)
        if (array < 0).any():
            row = int(np.argmax(array < 0))
            raise InputError(
                f"{self.name}: row {row} of the target {self.target!r} is {values.iloc[row]!r}, "
                f"which is none of the classes {', '.join(self.classes)}"
            )
        array.flags.writeable = False
        return array
