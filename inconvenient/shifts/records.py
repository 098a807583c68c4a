"""Records of a shift and of what a method may know: frozen, arrays read-only."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from inconvenient.errors import InputError
from inconvenient.shifts.rows import rows_hash, unpack_rows
from inconvenient.shifts.schema import PUBLISHED_COLUMNS, baselines_of

if TYPE_CHECKING:
    from inconvenient.data import Dataset

__all__ = ["Context", "Scores", "Shift", "context_of", "shift_from_row"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True, slots=True)
class Context:
    """What an estimator is told about its dataset; nothing about the shift.

    Parameters
    ----------
    task : str
        "regression", "binary" or "multiclass".
    classes : tuple of str
        Sorted; empty for regression.
    target_name, target_description, dataset_description : str
    feature_descriptions : dict of str to str
        Every feature of the dataset, in its order; "" where the source says nothing.
    """

    task: str
    classes: tuple[str, ...]
    target_name: str
    target_description: str
    dataset_description: str
    feature_descriptions: dict[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class Scores:
    """Default-setting scores of a baseline on the report half, R2 or AUC; NaN where it failed.

    Parameters
    ----------
    id, control, ood : float
        After training on the pool, on uniform samples of the shift's size (mean), on the
        convenience sample.
    control_sd : float
        Standard deviation over the uniform samples.
    """

    id: float
    control: float
    control_sd: float
    ood: float


def context_of(dataset: Dataset) -> Context:
    """Return the context of a dataset, its dictionary a copy."""
    return Context(
        task=dataset.task,
        classes=tuple(dataset.classes),
        target_name=dataset.target,
        target_description=dataset.target_description,
        dataset_description=dataset.description,
        feature_descriptions={
            name: dataset.feature_descriptions.get(name, "") for name in dataset.features
        },
    )


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Shift:
    """A shift set with its feature, operation, severity, verified coefficients and provenance.

    Parameters
    ----------
    shift_id : str
        "<dataset>/<feature or bin:top>/<operation>[-x<factor>]/<fraction>/<mode>".
    dataset, task : str
    kind : str
        "single" or "group".
    feature : str
        "" for a group.
    importance_bin : str
        "top", "middle" or "bottom".
    operation : str
        "amplify", "attenuate" or "flip".
    factor : float or None
        None for flip.
    mode : str
        "at_least" or "band".
    min_fraction : float
        Asked size over pool size, in (0, 1].
    features : tuple of str
        What the shift bends.
    columns, classes : tuple of str
        Design column and class ("" without classes) of each bent coefficient.
    b_reference, b_sample, t_pool : float64 (k,), read-only
        Coefficients on the pool and on the selected rows, pool-standardised; the pool's t values.
    achieved : float
        |b'/b|, the least favourable of a group.
    pool_rows, size : int
    fraction : float
        ``size / pool_rows``.
    strategy : str
        "push", "steer" or "exchange".
    p_uniform : float
        Share of uniform samples of this size that meet the criterion, in [0, 1].
    rows : int64 (size,), read-only
        Row ids in selection order.
    rows_hash : str
    label_tv, smd_mean, smd_max : float
        Composition: total variation of the label, standardised mean differences of the columns.
    ridge : float
        Penalty of the reference model, 0.0 if there is none.
    separable : bool
        Whether the pool has no finite maximum-likelihood fit.
    data_hash : str
        Of the dataset.
    retained, retained_paper : bool
        What the filters decided; at least one is set.
    gap, gap_paper : float
        What they decided by, on the filter half: the mean over the filter models of control minus
        OOD, and of ID minus OOD.
    collateral, collateral_control : float
        Collateral effect of the shift and of uniform samples of its size; NaN where it bends every
        feature.
    scores : dict of str to Scores
        By baseline.
    """

    shift_id: str
    dataset: str
    task: str
    kind: str
    feature: str
    importance_bin: str
    operation: str
    factor: float | None
    mode: str
    min_fraction: float
    features: tuple[str, ...]
    columns: tuple[str, ...]
    classes: tuple[str, ...]
    b_reference: FloatArray
    b_sample: FloatArray
    achieved: float
    t_pool: FloatArray
    pool_rows: int
    size: int
    fraction: float
    strategy: str
    p_uniform: float
    rows: IntArray = dataclasses.field(repr=False)
    rows_hash: str
    label_tv: float
    smd_mean: float
    smd_max: float
    ridge: float
    separable: bool
    data_hash: str
    retained: bool
    retained_paper: bool
    gap: float
    gap_paper: float
    collateral: float
    collateral_control: float
    scores: dict[str, Scores]
    _dataset: Dataset = dataclasses.field(repr=False)
    _halves: Mapping[str, IntArray] = dataclasses.field(repr=False)

    def train(self) -> tuple[pd.DataFrame, pd.Series]:
        """Return the convenience sample.

        Returns
        -------
        X : DataFrame (size, m)
            Raw features in selection order; the index holds the row ids.
        y : Series (size,)
            Raw target values.
        """
        return self._take(self.rows)

    def test(self, half: str = "report") -> tuple[pd.DataFrame, pd.Series]:
        """Return one half of the population test set.

        Parameters
        ----------
        half : str
            "report", which every published score is computed on, or "filter".

        Returns
        -------
        X : DataFrame
            Raw features; the index holds the row ids.
        y : Series
            Raw target values.

        Raises
        ------
        InputError
            If there is no half of that name.
        """
        if half not in self._halves:
            raise InputError(f"half must be one of {', '.join(sorted(self._halves))}, got {half!r}")
        return self._take(self._halves[half])

    @property
    def groups(self) -> IntArray | None:
        """Cluster codes of the training rows, int64 (size,), or None without clusters."""
        codes = self._dataset.groups
        return None if codes is None else np.asarray(codes[self.rows], dtype=np.int64)

    @property
    def context(self) -> Context:
        """What a method may know of the dataset; it says nothing about the shift."""
        return context_of(self._dataset)

    def _take(self, rows: IntArray) -> tuple[pd.DataFrame, pd.Series]:
        part = self._dataset.frame.iloc[rows]
        return part[list(self._dataset.features)], part[self._dataset.target]


def _array(values: Any) -> FloatArray:
    out = np.array(values, dtype=np.float64)
    out.flags.writeable = False
    return out


def shift_from_row(
    row: Mapping[str, Any], dataset: Dataset, halves: Mapping[str, IntArray]
) -> Shift:
    """Make the record of a row of the table of shifts.

    Parameters
    ----------
    row : mapping
        All columns of the table.
    dataset : Dataset
        The dataset the shift was made from.
    halves : mapping of str to int64 array
        Row ids of "filter" and "report".

    Returns
    -------
    Shift

    Raises
    ------
    InputError
        If the packed rows are damaged, or the dataset is of another version.
    """
    facts: dict[str, Any] = {name: row[name] for name in PUBLISHED_COLUMNS if name != "outcome"}
    rows = unpack_rows(facts["rows"])
    if len(rows) != facts["size"] or rows_hash(rows) != facts["rows_hash"]:
        raise InputError(f"the rows of {facts['shift_id']!r} are damaged; fetch the shifts again")
    if dataset.hash != facts["data_hash"]:
        raise InputError(
            f"{facts['shift_id']!r} was made of dataset {dataset.name!r} with hash "
            f"{facts['data_hash'][:12]}..., the one here has {dataset.hash[:12]}...; fetch data "
            "and shifts of the same version"
        )
    for name in ("features", "columns", "classes"):
        facts[name] = tuple(str(value) for value in facts[name])
    for name in ("b_reference", "b_sample", "t_pool"):
        facts[name] = _array(facts[name])
    factor = float(facts["factor"])
    facts["factor"] = None if np.isnan(factor) else factor
    facts["rows"] = rows
    facts["scores"] = {
        name: Scores(*(float(row[column]) for column in columns))
        for name, columns in baselines_of(row).items()
        if not name.startswith("filter_")
    }
    return Shift(**facts, _dataset=dataset, _halves=dict(halves))
