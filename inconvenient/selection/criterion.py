"""Operations on reference coefficients, and what a sample must do to meet one."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import numpy.typing as npt

from inconvenient.errors import InputError

__all__ = ["BAND", "MODES", "OPERATIONS", "Criterion"]

FloatArray = npt.NDArray[np.float64]

OPERATIONS = ("amplify", "attenuate", "flip")
MODES = ("at_least", "band")

#: Relative width of the band, and the largest excess of its size over the minimum.
BAND = 0.1
BAND_SIZE = 0.05

_RANGES = {"amplify": (1.15, 5.0), "attenuate": (0.2, 0.9)}


@dataclasses.dataclass(frozen=True, slots=True)
class Criterion:
    """What the coefficients of a shift must meet.

    Parameters
    ----------
    operation : str
        "amplify", "attenuate" or "flip".
    factor : float, optional
        In [1.15, 5] for amplify, in [0.2, 0.9] for attenuate, None for flip.
    mode : str
        "at_least", or "band" (amplify and attenuate only).

    Raises
    ------
    InputError
        If the three do not go together.

    Notes
    -----
    With reference b and sample b': amplify asks sign(b') = sign(b) and |b'| >= f |b|; attenuate
    sign(b') = sign(b) or b' = 0, and |b'| <= f |b|; flip sign(b') = -sign(b). ``band`` asks
    |b' / b| in [f, 1.1 f] or in [0.9 f, f], with the sign kept. A group meets it when each
    coefficient does.
    """

    operation: str
    factor: float | None = None
    mode: str = "at_least"

    def __post_init__(self) -> None:
        if not isinstance(self.operation, str) or self.operation not in OPERATIONS:
            raise InputError(
                f"operation must be one of {', '.join(OPERATIONS)}, got {self.operation!r}"
            )
        if not isinstance(self.mode, str) or self.mode not in MODES:
            raise InputError(f"mode must be one of {', '.join(MODES)}, got {self.mode!r}")
        if self.operation == "flip":
            if self.factor is not None:
                raise InputError(f"flip takes no factor, got {self.factor}; leave factor out")
            if self.mode == "band":
                raise InputError("mode 'band' needs amplify or attenuate, got flip; use 'at_least'")
            return
        low, high = _RANGES[self.operation]
        if self.factor is None:
            raise InputError(f"{self.operation} needs a factor in [{low}, {high}], got none")
        if not (math.isfinite(self.factor) and low <= self.factor <= high):
            other = "attenuate" if self.operation == "amplify" else "amplify"
            raise InputError(
                f"factor must be in [{low}, {high}] for {self.operation}, got {self.factor}; "
                f"{other} takes the other range"
            )

    def _interval(self) -> tuple[float, float]:
        """Return the least and greatest allowed b' / b."""
        if self.operation == "flip":
            return -math.inf, 0.0
        assert self.factor is not None
        if self.operation == "amplify":
            return self.factor, self.factor * (1.0 + BAND) if self.mode == "band" else math.inf
        return (self.factor * (1.0 - BAND) if self.mode == "band" else 0.0), self.factor

    def each_met(self, reference: FloatArray, sample: FloatArray) -> npt.NDArray[np.bool_]:
        """Tell for each coefficient whether it meets the criterion.

        Parameters
        ----------
        reference : float64 (L,)
        sample : float64 (..., L)

        Returns
        -------
        bool (..., L)
        """
        low, high = self._interval()
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            ratio = sample / reference
        met = (ratio >= low) & (ratio <= high) & np.isfinite(ratio) & (reference != 0.0)
        if self.operation == "flip":
            met &= sample != 0.0
        return np.asarray(met)

    def met(self, reference: FloatArray, sample: FloatArray) -> bool:
        """Tell whether all coefficients meet the criterion."""
        return bool(self.each_met(reference, sample).all())

    def close_call(self, reference: FloatArray, sample: FloatArray, rtol: float = 1e-6) -> bool:
        """Tell whether a coefficient lies within ``rtol`` of a threshold, relative to it.

        Relative to |b| where the threshold is zero (flip).
        """
        ratio = sample / reference
        for bound in self._interval():
            if not math.isfinite(bound) or (bound == 0.0 and self.operation == "attenuate"):
                continue
            if bool((np.abs(ratio - bound) <= rtol * (abs(bound) or 1.0)).any()):
                return True
        return False

    def holds(self, reference: FloatArray, sample: FloatArray) -> bool:
        """Tell whether all coefficients meet the criterion and none of them by a hair."""
        return self.met(reference, sample) and not self.close_call(reference, sample)

    def goals(self, reference: FloatArray) -> FloatArray:
        """Return the allowed values that a dose is steered to, float64 (L,)."""
        if self.operation == "flip":
            return -0.25 * reference
        assert self.factor is not None
        if self.operation == "amplify":
            return self.factor * (1.0 + BAND / 2) * reference
        share = 1.0 - BAND / 2 if self.mode == "band" else 0.5
        return self.factor * share * reference

    def push_signs(self, reference: FloatArray) -> FloatArray:
        """Return the direction in which each coefficient is pushed, +1 or -1, float64 (L,)."""
        sign = np.sign(reference)
        return sign if self.operation == "amplify" else -sign
