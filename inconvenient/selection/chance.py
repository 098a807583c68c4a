"""Uniform samples: how often chance alone meets a criterion, and the rows behind every control."""

from __future__ import annotations

import hashlib
import math

import numpy as np
import numpy.typing as npt

from inconvenient.selection.criterion import Criterion
from inconvenient.selection.engine import Engine, State
from inconvenient.selection.reference import Aim, ReferenceModel
from inconvenient.selection.threads import in_parts
from inconvenient.selection.verification import fit_design, next_to_separated

__all__ = ["UniformFits", "shared_size", "uniform_rows"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_STEP = math.log(1.02)

# With a penalty, the coefficient of a column that a sample lacks is zero but for rounding, whose
# sign must not decide whether the sample flips it.
_ROUNDING = 1e-9


def shared_size(size: int) -> int:
    """Return the size that stands for all sizes within 2 % of each other.

    Parameters
    ----------
    size : int
        At least 1.

    Returns
    -------
    int
        The nearest power of 1.02, rounded, which is within 1 % of ``size`` and half a row; below
        50 every size stands for itself.
    """
    if size < 50:
        return size
    return round(math.exp(_STEP * round(math.log(size) / _STEP)))


def uniform_rows(pool: IntArray, size: int, draw: int, *, seed: int, name: str) -> IntArray:
    """Draw a uniform sample of the pool without replacement.

    Parameters
    ----------
    pool : int64 (n,)
        Row ids.
    size : int
        At most n; a larger one means the whole pool.
    draw : int
        Number of the draw; the first 10 are the control.
    seed : int
    name : str
        Of the dataset, so that two of equal length do not share their draws.

    Returns
    -------
    int64 (min(size, n),), ascending
    """
    digest = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
    generator = np.random.Generator(
        np.random.PCG64(np.random.SeedSequence([seed, digest, size, draw]))
    )
    return np.sort(generator.permutation(pool)[:size])


class UniformFits:
    """Coefficients of uniform samples, fitted once per size and shared by all shifts of it.

    Parameters
    ----------
    engine : Engine
        Of the pool.
    reference : ReferenceModel
    samples : int
        How many per size.
    seed : int
    name : str
        Of the dataset.
    """

    def __init__(
        self, engine: Engine, reference: ReferenceModel, *, samples: int, seed: int, name: str
    ) -> None:
        self._engine, self._reference = engine, reference
        self._samples, self._seed, self._name = samples, seed, name
        self._fits: dict[int, FloatArray] = {}

    def coefficients(self, size: int) -> FloatArray:
        """Return coefficients (samples, p, C) at the shared size; NaN where there is no fit."""
        shared = shared_size(size)
        if shared not in self._fits:
            shape = (self._samples, *self._reference.coefficients.shape)
            fits = np.full(shape, np.nan)
            positions = np.arange(self._engine.n, dtype=np.int64)

            def task(first: int, last: int) -> None:
                for draw in range(first, last):
                    rows = uniform_rows(positions, shared, draw, seed=self._seed, name=self._name)
                    state = self._engine.fit(
                        rows, ridge=self._reference.ridge, start=self._reference.state
                    )
                    fits[draw] = self._settled(rows, state)

            in_parts(task, self._samples, 0.5 * shared * self._engine.p**2)
            self._fits[shared] = fits
        return self._fits[shared]

    def _settled(self, rows: IntArray, state: State | None) -> FloatArray | float:
        """Return coefficients (p, C), or NaN where the sample has no fit.

        Without a penalty the verification's fit has the last word wherever a kernel's fit fails or
        lies near to separation, so that no verdict hangs on how a method rounds.
        """
        if self._reference.ridge > 0.0:
            return np.nan if state is None else state.coefficients
        design = self._engine.design
        if state is None:
            return fit_design(design, rows, ridge=0.0, min_class=1).coefficients
        if design.task != "regression" and next_to_separated(design.X[rows], state.contrasts):
            return np.nan
        return state.coefficients

    def share_meeting(self, aim: Aim, criterion: Criterion, size: int) -> float:
        """Return the share of uniform samples of a size that meet a criterion, in [0, 1].

        A sample without a fit does not meet it. A coefficient under 1e-9 of the pool's counts as 0.
        """
        values = self.coefficients(size)[:, aim.columns, aim.classes]
        values = np.where(np.abs(values) <= _ROUNDING * np.abs(aim.reference), 0.0, values)
        met = criterion.each_met(aim.reference, values).all(axis=1)
        return int(np.count_nonzero(met)) / self._samples
