"""Numbers of a group of scored shifts: counts and means."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from inconvenient.report.material import PARTS

__all__ = ["dataset_medians", "rounded", "summarise"]


def rounded(value: Any) -> Any:
    """Return JSON-able data: floats with 6 significant digits, None where not finite."""
    if isinstance(value, Mapping):
        return {str(k): rounded(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(v) for v in value]
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(f"{float(value):.6g}") if math.isfinite(value) else None
    return value


def dataset_medians(scores: pd.DataFrame, column: str) -> pd.Series:
    """Return the median of a column per dataset, without failed fits."""
    medians: pd.Series = scores.dropna(subset=[column]).groupby("dataset")[column].median()
    return medians


def summarise(scores: pd.DataFrame) -> dict[str, Any]:
    """Summarise scored shifts of one task and baseline.

    Parameters
    ----------
    scores : DataFrame
        Rows of one baseline: ``dataset``, ``rows_hash`` and the columns of PARTS.

    Returns
    -------
    dict
        ``shifts``, ``failed`` (of them, without a score), ``row_sets``, ``datasets``;
        ``mean_<part>`` over shifts; ``median_<part>``, the mean over datasets of each dataset's
        median; ``mean_relative`` and ``median_relative``, degradation over ID of those means. NaN
        where there is nothing to average.
    """
    scored = scores.dropna(subset=list(PARTS))
    out: dict[str, Any] = {
        "shifts": len(scores),
        "failed": len(scores) - len(scored),
        "row_sets": int(scored["rows_hash"].nunique()),
        "datasets": int(scored["dataset"].nunique()),
    }
    for part in PARTS:
        out[f"mean_{part}"] = float(scored[part].mean()) if len(scored) else math.nan
    medians = scored.groupby("dataset")[list(PARTS)].median()
    for part in PARTS:
        out[f"median_{part}"] = float(medians[part].mean()) if len(medians) else math.nan
    for kind in ("mean", "median"):
        whole = out[f"{kind}_id"]
        lost = out[f"{kind}_degradation"]
        out[f"{kind}_relative"] = lost / whole if whole > 0 else math.nan
    return out
