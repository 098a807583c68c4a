"""Collateral effect: how far a shift moves the coefficients that it does not bend."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from inconvenient.benchmark.grid import pool_design
from inconvenient.config import Params
from inconvenient.selection.chance import shared_size, uniform_rows
from inconvenient.selection.penalised import penalised_coefficients
from inconvenient.shifts.rows import unpack_rows

if TYPE_CHECKING:
    from inconvenient.data import Dataset, Split
    from inconvenient.selection.design import Design

__all__ = ["collateral_frame", "relative_change"]


def relative_change(
    sample: NDArray[np.float64], pool: NDArray[np.float64], rest: NDArray[np.bool_]
) -> float:
    """Return ||b'_rest - b_rest|| / ||b_rest||; NaN where rest is empty or all 0.

    Parameters
    ----------
    sample, pool : ndarray of float64, shape (q, C)
    rest : ndarray of bool, shape (q,)
    """
    size = float(np.linalg.norm(pool[rest]))
    if size == 0.0:
        return float("nan")
    return float(np.linalg.norm(sample[rest] - pool[rest])) / size


def collateral_frame(
    dataset: Dataset, split: Split, shifts: pd.DataFrame, params: Params
) -> pd.DataFrame:
    """Compute the collateral effect of every verified shift of a dataset.

    Parameters
    ----------
    dataset : Dataset
    split : Split
    shifts : DataFrame
        Verified shifts; those of other datasets are ignored. Columns ``shift_id``, ``dataset``,
        ``features``, ``size``, ``rows`` and ``rows_hash``.
    params : Params

    Returns
    -------
    DataFrame
        Sorted by ``shift_id``: ``collateral``, and ``collateral_control``, the mean over the
        control samples of the shift's shared size; both NaN where a shift bends every feature.

    Notes
    -----
    Over the design columns (pool-standardised) that belong to no feature the shift bends, without
    intercept, for all classes. Sample and pool are fitted alike, with the per-row penalty
    ``params.collateral.ridge``. Each distinct row set is fitted once. Fits use the threads they are
    given; run it as a unit.
    """
    own = shifts[shifts["dataset"] == dataset.name].sort_values("shift_id")
    design = pool_design(dataset, split.pool, params)
    columns = np.flatnonzero(design.feature_of >= 0)
    ridge = params.collateral.ridge

    def fit(rows: NDArray[np.int64]) -> NDArray[np.float64]:
        positions = np.searchsorted(split.pool, np.sort(rows))
        return _fit(design, positions, columns, ridge)

    reference = fit(split.pool)
    controls = {
        size: [
            fit(uniform_rows(split.pool, size, draw, seed=params.shifts.seed, name=dataset.name))
            for draw in range(params.evaluate.controls)
        ]
        for size in sorted({shared_size(int(size)) for size in own["size"]})
    }
    distinct = own.drop_duplicates("rows_hash")
    samples = {
        digest: fit(unpack_rows(packed))
        for digest, packed in zip(distinct["rows_hash"], distinct["rows"], strict=True)
    }

    effect, beside = [], []
    for features, size, digest in zip(own["features"], own["size"], own["rows_hash"], strict=True):
        bent = [design.features.index(name) for name in features]
        rest = ~np.isin(design.feature_of[columns], bent)
        effect.append(relative_change(samples[digest], reference, rest))
        drawn = controls[shared_size(int(size))]
        beside.append(float(np.mean([relative_change(b, reference, rest) for b in drawn])))
    return pd.DataFrame(
        {
            "shift_id": pd.Series(own["shift_id"].tolist(), dtype="str"),
            "collateral": np.array(effect, dtype=np.float64),
            "collateral_control": np.array(beside, dtype=np.float64),
        }
    )


def _fit(
    design: Design, positions: NDArray[np.int64], columns: NDArray[np.int64], ridge: float
) -> NDArray[np.float64]:
    X = np.ascontiguousarray(design.X[np.ix_(positions, columns)])
    return penalised_coefficients(X, design.y[positions], n_classes=design.n_classes, ridge=ridge)
