"""How the make-up of a sample differs from its pool's: label, columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from inconvenient.selection.design import Design

__all__ = ["Comparison", "composition", "label_bins"]


def label_bins(y: NDArray[np.float64], *, n_classes: int) -> NDArray[np.int64]:
    """Return the bin of every pool row's label: its class, or its decile for a numeric target.

    Parameters
    ----------
    y : ndarray of float64, shape (n,)
        Target of the pool; class codes 0..K-1 where ``n_classes`` is not 0.
    n_classes : int
        Number of classes, 0 for regression.

    Returns
    -------
    ndarray of int64, shape (n,)

    Notes
    -----
    Deciles are the pool's; where ties make several cut points coincide, their bins are one, so a
    heavily tied target has fewer than ten bins.
    """
    if n_classes:
        return y.astype(np.int64)
    cuts = np.unique(np.quantile(y, np.arange(1, 10) / 10))
    return np.searchsorted(cuts, y, side="left").astype(np.int64)


class Comparison:
    """Compares the composition of samples with that of their pool, which is looked at once.

    Parameters
    ----------
    design : Design
        Design of the pool.
    """

    def __init__(self, design: Design) -> None:
        self._X = design.X
        self._bins = label_bins(design.y, n_classes=design.n_classes)
        self._kinds = int(self._bins.max()) + 1
        self._share = np.bincount(self._bins, minlength=self._kinds) / self._bins.size
        self._mean = design.X.mean(axis=0)
        self._columns = np.flatnonzero(design.feature_of >= 0)

    def of(self, positions: NDArray[np.int64]) -> tuple[float, float, float]:
        """Compare a sample with the pool; see :func:`composition`."""
        rows = np.sort(positions)
        share = np.bincount(self._bins[rows], minlength=self._kinds) / rows.size
        label_tv = 0.5 * float(np.abs(share - self._share).sum())
        if self._columns.size == 0:
            return label_tv, 0.0, 0.0
        smd = np.abs(self._X[rows].mean(axis=0) - self._mean)[self._columns]
        return label_tv, float(smd.mean()), float(smd.max())


def composition(design: Design, positions: NDArray[np.int64]) -> tuple[float, float, float]:
    """Compare the composition of a sample with that of its pool.

    Parameters
    ----------
    design : Design
        Design of the pool.
    positions : ndarray of int64, shape (k,)
        Positions of the sample's rows in the pool, in any order.

    Returns
    -------
    label_tv : float
        Total variation between the label distributions of sample and pool (classes, or the pool's
        target deciles), in [0, 1].
    smd_mean, smd_max : float
        Mean and largest absolute standardised mean difference over the design columns without
        the intercept, in pool standard deviations. Both 0.0 where there is no such column.

    Notes
    -----
    The design is standardised on the pool, whose means are 0 and standard deviations 1, so the
    difference of a column is its mean in the sample minus its mean in the pool. The pool's
    standard deviation is the unit, for a column may be constant in the sample. Cost O(k p + n).
    """
    return Comparison(design).of(positions)
