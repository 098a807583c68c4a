"""Tables of the report, one function each: lists of rows of plain numbers."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from inconvenient.report.material import OPERATIONS, POPULATIONS, TASKS, Material
from inconvenient.report.paper import COLLATERAL
from inconvenient.report.summary import dataset_medians, summarise

__all__ = [
    "bounds_table",
    "chance_table",
    "collateral_table",
    "composition_table",
    "degradation_table",
    "headline_table",
    "severity_table",
]

Row = dict[str, Any]

#: Lower bounds of R2 whose effect on the headline is shown; None is no bound.
BOUNDS: tuple[float | None, ...] = (0.0, -1.0, None)


def _baselines(scores: pd.DataFrame) -> list[str]:
    return sorted(scores["baseline"].unique())


def _with_intervals(row: Row, scores: pd.DataFrame, material: Material) -> Row:
    for part in ("degradation", "size", "bias"):
        ends = material.bootstrap.interval(dataset_medians(scores, part))
        row[f"{part}_low"], row[f"{part}_high"] = ends
    return row


def headline_table(material: Material) -> list[Row]:
    """Return task x default-setting model over retained shifts of the main tables."""
    rows = []
    chosen = material.default[material.default["retained"] & material.default["main"]]
    for task, baseline in itertools.product(TASKS, _baselines(material.default)):
        own = chosen[(chosen["task"] == task) & (chosen["baseline"] == baseline)]
        row: Row = {"task": task, "baseline": baseline, **summarise(own)}
        rows.append(_with_intervals(row, own, material))
    return rows


def degradation_table(scores: pd.DataFrame) -> list[Row]:
    """Return task x operation (and all) x baseline, each population side by side.

    Parameters
    ----------
    scores : DataFrame
        Either the default-setting or the tuned scores; no condition on chance or on datasets.
    """
    rows = []
    for task, operation, baseline in itertools.product(
        TASKS, (*OPERATIONS, "all"), _baselines(scores)
    ):
        own = scores[(scores["task"] == task) & (scores["baseline"] == baseline)]
        if operation != "all":
            own = own[own["operation"] == operation]
        row: Row = {"task": task, "operation": operation, "baseline": baseline}
        for name, flag in POPULATIONS.items():
            row[name] = summarise(own[own[flag]])
        rows.append(row)
    return rows


def _levels(material: Material, dimension: str, grid: Any) -> list[tuple[str, dict[str, Any]]]:
    """Return label and column values of each level of a severity."""
    if dimension == "min_fraction":
        found = set(material.candidates.get("min_fraction", pd.Series(dtype="float64")))
        asked = set(grid.min_fractions) if grid is not None else set()
        return [(f"{f:g}", {"min_fraction": f}) for f in sorted(found | asked)]
    if dimension == "importance_bin":
        return [(name, {"importance_bin": name}) for name in ("top", "middle", "bottom")]
    if dimension == "strategy":
        return [(name, {"strategy": name}) for name in ("push", "steer", "exchange")]
    cells = material.candidates
    if not len(cells):
        return []
    doses = cells[["mode", "operation", "factor"]].drop_duplicates()
    doses = doses.sort_values(["mode", "operation", "factor"])
    out = []
    for mode, operation, factor in doses.itertuples(index=False):
        dose = "" if math.isnan(factor) else f" x{factor:g}"
        level = {"mode": mode, "operation": operation, "factor": factor}
        out.append((f"{mode}: {operation}{dose}", level))
    return out


def _at(scores: pd.DataFrame, level: dict[str, Any]) -> pd.DataFrame:
    keep = np.ones(len(scores), dtype=bool)
    for column, value in level.items():
        if isinstance(value, float) and math.isnan(value):
            keep &= scores[column].isna().to_numpy()
        else:
            keep &= (scores[column] == value).to_numpy()
    return scores[keep]


def severity_table(material: Material, dimension: str, grid: Any) -> list[Row]:
    """Return task x level x default-setting model, verified and retained, as in main tables.

    Parameters
    ----------
    material : Material
    dimension : str
        "min_fraction", "importance_bin", "factor" or "strategy".
    grid : GridParams or None
        Levels that are listed even if nothing was searched there.
    """
    rows = []
    main = material.default[material.default["main"]]
    for task, (label, level), baseline in itertools.product(
        TASKS, _levels(material, dimension, grid), _baselines(material.default)
    ):
        own = main[(main["task"] == task) & (main["baseline"] == baseline)]
        own = _at(own, level)
        row: Row = {"task": task, "level": label, "baseline": baseline}
        row["verified"] = summarise(own)
        row["retained"] = summarise(own[own["retained"]])
        rows.append(row)
    return rows


def _quartiles(values: pd.Series) -> tuple[float, float, float]:
    known = values.dropna().to_numpy(dtype=np.float64)
    if not known.size:
        return math.nan, math.nan, math.nan
    low, middle, high = np.quantile(known, [0.25, 0.5, 0.75])
    return float(low), float(middle), float(high)


def composition_table(material: Material) -> list[Row]:
    """Return how far samples are from their pools, per task x operation, verified and published."""
    rows = []
    for task, operation in itertools.product(TASKS, OPERATIONS):
        shifts = material.shifts
        own = shifts[(shifts["task"] == task) & (shifts["operation"] == operation)]
        row: Row = {"task": task, "operation": operation}
        for name in ("verified", "published"):
            part = own[own[name]]
            row[name] = {"shifts": len(part)}
            for column in ("label_tv", "smd_mean", "smd_max", "fraction"):
                low, middle, high = _quartiles(part[column])
                ends = {"low_quartile": low, "median": middle, "high_quartile": high}
                row[name][column] = ends
        rows.append(row)
    return rows


def collateral_table(material: Material) -> list[Row]:
    """Return the median collateral effect per task x operation beside the control's."""
    rows = []
    for task, operation in itertools.product(TASKS, OPERATIONS):
        shifts = material.shifts
        own = shifts[(shifts["task"] == task) & (shifts["operation"] == operation)]
        kind = "regression" if task == "regression" else "classification"
        row: Row = {"task": task, "operation": operation}
        row["paper"] = COLLATERAL[kind][operation]
        for name in ("verified", "retained", "published"):
            part = own[own[name]]
            low, middle, high = _quartiles(part["collateral"])
            row[name] = {
                "shifts": int(part["collateral"].notna().sum()),
                "median": middle,
                "low_quartile": low,
                "high_quartile": high,
                "control": _quartiles(part["collateral_control"])[1],
            }
        rows.append(row)
    return rows


def chance_table(material: Material) -> list[Row]:
    """Return how often chance alone meets the criteria, per task x operation."""
    rows = []
    limit = material.params.report.p_uniform_max
    for task, operation in itertools.product(TASKS, (*OPERATIONS, "all")):
        own = material.shifts[material.shifts["task"] == task]
        if operation != "all":
            own = own[own["operation"] == operation]
        rows.append(
            {
                "task": task,
                "operation": operation,
                "shifts": len(own),
                "rare": int((own["p_uniform"] <= limit).sum()),
                "share_rare": float((own["p_uniform"] <= limit).mean()) if len(own) else math.nan,
                "median_p": float(own["p_uniform"].median()) if len(own) else math.nan,
                "share_weak_t": float(own["weak_t"].mean()) if len(own) else math.nan,
                "retained": int(own["retained"].sum()),
                "retained_rare": int((own["retained"] & (own["p_uniform"] <= limit)).sum()),
            }
        )
    return rows


def bounds_table(material: Material, shifts: pd.DataFrame) -> list[Row]:
    """Return the regression headline with other lower bounds of R2 in the filters.

    Parameters
    ----------
    material : Material
    shifts : DataFrame
        The artefact, with the packed rows, for subsumption runs anew under each bound.
    """
    from inconvenient.benchmark.retention import retain

    own = shifts[shifts["task"] == "regression"] if len(shifts) else shifts
    filters = material.filters
    filters = filters[filters["shift_id"].isin(own["shift_id"])] if len(own) else filters[:0]
    rows = []
    for bound in BOUNDS:
        kept: Sequence[str] = ()
        if len(filters):
            low = -math.inf if bound is None else bound
            params = dataclasses.replace(material.params.filter, r2_lower_bound=low)
            again = retain(filters, own, params)
            kept = again.loc[again["retained"], "shift_id"].tolist()
        scores = material.default[material.default["shift_id"].isin(kept)]
        scores = scores[scores["main"]]
        for baseline in _baselines(material.default):
            part = scores[scores["baseline"] == baseline]
            rows.append({"bound": bound, "baseline": baseline, **summarise(part)})
    return rows
