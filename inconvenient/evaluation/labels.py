"""A dataset's target as its table holds it, and what a user's classifier says in its terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from inconvenient.errors import InputError

if TYPE_CHECKING:
    from inconvenient.data import Dataset

__all__ = ["Labels", "class_scores"]


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """The target of a dataset as its table holds it.

    Parameters
    ----------
    name : str
        Of the target.
    kind : dtype
        Of the target's column.
    classes : tuple of str
        Sorted; empty for regression.
    values : array
        The value of each class, of the column's dtype; empty for regression.
    """

    name: str
    kind: Any
    classes: tuple[str, ...]
    values: Any

    @classmethod
    def of(cls, dataset: Dataset) -> Labels:
        """Return the labels of a dataset."""
        column = dataset.frame[dataset.target]
        first: list[int] = []
        if dataset.task != "regression":
            codes = dataset.y
            first = [int(np.argmax(codes == k)) for k in range(len(dataset.classes))]
        values = column.iloc[first].array.copy()
        return cls(dataset.target, column.dtype, tuple(dataset.classes), values)

    def raw(self, y: NDArray[Any]) -> pd.Series:
        """Return targets as the table holds them, of floats or class codes."""
        if not self.classes:
            return pd.Series(y, name=self.name).astype(self.kind)
        return pd.Series(self.values.take(y), name=self.name)

    def codes(self, labels: Any) -> NDArray[np.int64]:
        """Return the class codes of labels, int64; -1 where one is no class."""
        known: dict[Any, int] = {name: k for k, name in enumerate(self.classes)}
        known |= {value: k for k, value in enumerate(self.values)}  # 1 and 1.0 are one label
        found = [known.get(label, known.get(str(label), -1)) for label in labels]
        return np.array(found, dtype=np.int64)


def class_scores(
    values: Any, labels: Labels, *, n: int, present: Any = None, seen: Sequence[int] | Any = ()
) -> NDArray[np.float64]:
    """Return what a classifier gave as one column per class of the dataset.

    Parameters
    ----------
    values : array-like or DataFrame
        Scores, a column per class; or labels, or for two classes one score, a value per row.
    labels : Labels
    n : int
        Number of rows.
    present : sequence, optional
        The classifier's ``classes_``: the labels of the columns.
    seen : sequence of int
        Codes of the classes in the training sample.

    Returns
    -------
    float64 (n, K)
        Never renormalised; 0 for a class without a column. Labels give 1 and 0.

    Raises
    ------
    InputError
        If the columns cannot be told to be classes.

    Notes
    -----
    A DataFrame is read by its column names, an array by ``present``, else as the dataset's classes
    in sorted order, else as those of the training sample. Of one value per row, labels are those
    that all are classes; other numbers are scores of the second class.
    """
    k = len(labels.classes)
    if isinstance(values, pd.DataFrame):
        values, present = values.to_numpy(), list(values.columns)
    array = np.asarray(values)
    if array.ndim == 0 or len(array) != n or array.ndim > 2:
        raise InputError(
            f"predictions must have one row per row to predict, {n}, got {array.shape}"
        )
    out = np.zeros((n, k))
    if array.ndim == 1:
        codes = labels.codes(array.tolist())
        if present is None and (codes >= 0).all():
            out[np.arange(n), codes] = 1.0
            return out
        second = _columns_of(labels, present) if present is not None else np.arange(k)
        if second.size != 2 or array.dtype.kind not in "fiub":
            strange = array[codes < 0][:1].tolist()
            raise InputError(
                "predictions of one value a row must be labels of the dataset's classes, or for "
                f"two classes scores of the second, got {strange}"
            )
        out[:, second] = np.column_stack([-array.astype(np.float64), array])
        return out
    if present is not None:
        columns = _columns_of(labels, present)
    else:
        columns = np.arange(k) if array.shape[1] == k else np.asarray(seen, dtype=np.int64)
    if columns.size != array.shape[1]:
        raise InputError(
            f"predictions must have a column for each of {columns.size} classes, got "
            f"{array.shape[1]}; set classes_ or return a DataFrame with the classes as columns"
        )
    out[:, columns] = array
    return out


def _columns_of(labels: Labels, present: Any) -> NDArray[np.int64]:
    names = list(present)
    codes = labels.codes(names)
    if (codes < 0).any() or np.unique(codes).size != codes.size:
        raise InputError(
            f"the columns of predictions must be distinct classes of {', '.join(labels.classes)}, "
            f"got {', '.join(map(str, names))}"
        )
    return codes
