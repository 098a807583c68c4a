"""Uniform samples drawn and fitted anew: rows of controls, and what meets a criterion by chance."""

from __future__ import annotations

import dataclasses
import hashlib
import math

import numpy as np
from numpy.typing import NDArray

from inconvenient.verify.fits import Family, fit, hessian_at, usable
from inconvenient.verify.pool import Pool

__all__ = ["Uniform", "draw_rows", "meets", "shared"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Width of a band, relative to its factor, and of its sizes, relative to the least one.
BAND, BAND_SIZE = 0.1, 0.05

#: Ratio b' / b of a uniform sample up to which a coefficient is zero but for rounding.
ROUNDING = 1e-9


def shared(size: int) -> int:
    """Return the size that stands for those within 2 %: the nearest rounded power of 1.02."""
    if size < 50:
        return size
    power = math.floor(math.log(size) / math.log(1.02) + 0.5)
    return round(math.exp(power * math.log(1.02)))


def draw_rows(pool: Ints, size: int, draw: int, *, seed: int, name: str) -> Ints:
    """Return the uniform sample of a number: seed, name, size and draw make its generator."""
    word = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
    bits = np.random.PCG64(np.random.SeedSequence([seed, word, size, draw]))
    return np.sort(np.random.Generator(bits).permutation(pool)[:size])


def bounds(operation: str, factor: float, mode: str) -> tuple[float, float]:
    """Return the least and the greatest b' / b that an operation allows."""
    if operation == "flip":
        return -math.inf, 0.0
    if operation == "amplify":
        return factor, factor * (1.0 + BAND) if mode == "band" else math.inf
    return factor * (1.0 - BAND) if mode == "band" else 0.0, factor


def meets(
    ratio: Floats, operation: str, factor: float, mode: str, *, slack: float = 0.0
) -> NDArray[np.bool_]:
    """Tell whether ratios b' / b, float64 (..., k), meet an operation in all of their last axis.

    Parameters
    ----------
    ratio : float64
        NaN, where there is no fit, does not meet.
    operation, factor, mode
    slack : float
        By how much bounds are widened, relative to them: a bound of 0 stays where it is.
    """
    low, high = bounds(operation, factor, mode)
    give_low = slack * abs(low) if math.isfinite(low) else 0.0
    give_high = slack * abs(high) if math.isfinite(high) else 0.0
    with np.errstate(invalid="ignore"):
        met = (ratio >= low - give_low) & (ratio <= high + give_high) & np.isfinite(ratio)
    if operation == "flip":
        met &= ratio != 0.0
    return np.asarray(met.all(axis=-1))


@dataclasses.dataclass(frozen=True, slots=True)
class Uniform:
    """Fits of uniform samples of a pool, once per shared size.

    Parameters
    ----------
    pool : Pool
    family : Family
        Of the reference model.
    reference : float64 (c, p)
        Contrasts of the pool, where fits begin.
    samples : int
    seed : int
    name : str
        Of the dataset.
    """

    pool: Pool
    family: Family
    reference: Floats
    samples: int
    seed: int
    name: str
    _done: dict[int, Floats] = dataclasses.field(default_factory=dict)
    _hessian: list[Floats] = dataclasses.field(default_factory=list)

    def coefficients(self, size: int) -> Floats:
        """Return coefficients (samples, p, C) at the shared size; NaN where there is no fit."""
        key = shared(size)
        if key not in self._done:
            if self.family.n_classes and not self._hessian:
                found = hessian_at(self.pool.X, self.reference, self.family)
                self._hessian.append(found)
            self._done[key] = np.stack([self._fit(key, draw) for draw in range(self.samples)])
        return self._done[key]

    def _fit(self, size: int, draw: int) -> Floats:
        everywhere = np.arange(len(self.pool.rows), dtype=np.int64)
        at = draw_rows(everywhere, size, draw, seed=self.seed, name=self.name)
        X, y = self.pool.X[at], self.pool.y[at]
        none = np.full(self.family.reported(self.reference).shape, np.nan)
        k = self.family.n_classes
        if self.family.ridge:  # a penalty keeps the fit unique, but for the intercepts of classes
            if k and np.bincount(y.astype(np.int64), minlength=k).min() == 0:
                return none
        elif usable(X, y, n_classes=k, min_class=1):
            return none
        if not k:
            return np.asarray(fit(X, y, self.family)).T
        found = fit(X, y, self.family, start=self.reference, hessian=self._hessian[0])
        return none if found is None else self.family.reported(found)

    def share_range(
        self,
        entries: tuple[Ints, Ints],
        reference: Floats,
        criterion: tuple[str, float, str],
        size: int,
    ) -> tuple[float, float]:
        """Return the share of samples that meet a criterion, with and without those at a hair.

        A coefficient under 1e-9 of the pool's is 0: that of a column which the sample lacks.
        """
        ratio = self.coefficients(size)[:, entries[0], entries[1]] / reference
        ratio = np.where(np.abs(ratio) <= ROUNDING, 0.0, ratio)
        low = meets(ratio, *criterion, slack=-1e-7).mean()
        high = meets(ratio, *criterion, slack=1e-7).mean()
        return float(low), float(high)
