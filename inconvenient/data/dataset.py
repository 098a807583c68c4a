"""The dataset: a named raw table with its target column, its task and its documentation."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

__all__ = ["TASKS", "Dataset"]

TASKS = ("regression", "binary", "multiclass")


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """A versioned raw table; a row's id is its position.

    Parameters
    ----------
    name : str
    frame : DataFrame (n, m + 1)
        Features and target, with a RangeIndex. Columns are numeric, boolean, string or
        categorical; a gap is NaN.
    target : str
        The column to predict.
    task : str
        "regression", "binary" or "multiclass".
    classes : tuple of str
        Labels as strings, sorted; the last is the positive one of two. Empty for a regression.
    groups : int64 (n,) or None
        Cluster of each row; rows of a cluster never part in a split. Not a feature.
    description, target_description : str
    feature_descriptions : dict of str to str
        For the features that are documented.
    family : str
        Datasets of one survey share it; the dataset's own name where it stands alone.
    domain, source, licence : str
    hash : str
        SHA-256 of the Parquet file, or of the canonical content of a user's table.
    dropped_rows : int
        Rows without a target that were left out.
    """

    name: str
    frame: pd.DataFrame
    target: str
    task: str
    classes: tuple[str, ...]
    groups: npt.NDArray[np.int64] | None = None
    description: str = ""
    target_description: str = ""
    feature_descriptions: dict[str, str] = dataclasses.field(default_factory=dict)
    family: str = ""
    domain: str = ""
    source: str = ""
    licence: str = ""
    hash: str = ""
    dropped_rows: int = 0

    @property
    def features(self) -> list[str]:
        """Names of the features, in the order of the table."""
        return [str(name) for name in self.frame.columns if name != self.target]

    @property
    def X(self) -> pd.DataFrame:
        """The features, DataFrame (n, m)."""
        return self.frame[self.features]

    @property
    def y(self) -> npt.NDArray[Any]:
        """The target: float64 (n,) for a regression, else int64 (n,) codes of ``classes``."""
        column = self.frame[self.target]
        if self.task == "regression":
            return column.to_numpy(dtype=np.float64)
        labels = column.astype(str).to_numpy(dtype=object)
        return np.searchsorted(np.array(self.classes, dtype=object), labels).astype(np.int64)
