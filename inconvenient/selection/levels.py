"""Raw columns as the design reads them: floats with NaN for gaps, or codes of named levels."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt
import pandas as pd

__all__ = ["Levels", "is_numeric", "levels_of", "raw_values"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

MISSING_LEVEL = "(missing)"


@dataclasses.dataclass(frozen=True, slots=True)
class Levels:
    """A categorical column as codes.

    Parameters
    ----------
    codes : int64 (n,)
        Positions in ``names``.
    names : tuple of str
        Distinct levels, sorted; gaps are a level, "(missing)".
    """

    codes: IntArray
    names: tuple[str, ...]

    def among(self, levels: tuple[str, ...]) -> FloatArray:
        """Return 1 where the level is one of these, else 0, float64 (n,)."""
        wanted = set(levels)
        member = np.array([name in wanted for name in self.names], dtype=np.float64)
        return member[self.codes] if self.codes.size else np.empty(0)


def is_numeric(series: pd.Series) -> bool:
    """Tell whether a raw column enters the design as a number; booleans are categorical."""
    numeric = pd.api.types.is_numeric_dtype(series)
    return bool(numeric) and not pd.api.types.is_bool_dtype(series)


def levels_of(series: pd.Series) -> Levels:
    """Return a categorical column as codes of its levels, which are named by ``str``."""
    exact = series.dtype != object or pd.api.types.infer_dtype(series, skipna=True) == "string"
    if exact:
        codes, values = pd.factorize(series)
        texts = [str(value) for value in np.asarray(values, dtype=object)]
        codes = np.where(codes < 0, len(texts), codes)
    else:
        # Mixed objects: 1, 1.0 and True are equal and yet three levels.
        missing = series.isna().to_numpy()
        codes, texts = np.arange(len(series)), [str(value) for value in series.to_numpy()]
        codes[missing] = len(texts)
    texts.append(MISSING_LEVEL)
    order = {text: code for code, text in enumerate(sorted({*texts}))}
    renamed = np.array([order[text] for text in texts], dtype=np.int64)[codes]
    present = np.bincount(renamed, minlength=len(order)) > 0
    dense = np.cumsum(present, dtype=np.int64) - 1
    return Levels(dense[renamed], tuple(text for text, code in order.items() if present[code]))


def raw_values(series: pd.Series) -> FloatArray | Levels:
    """Return a raw column as floats with NaN for gaps, or as levels."""
    if is_numeric(series):
        return series.to_numpy(dtype=np.float64, na_value=np.nan)
    return levels_of(series)
