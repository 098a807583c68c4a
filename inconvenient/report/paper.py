"""The paper's figures beside ours: what it states, our numbers, and the difference."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import pandas as pd

from inconvenient.report.material import OPERATIONS, TASK_FAMILIES, TASKS, Material
from inconvenient.report.summary import summarise

__all__ = [
    "AVERAGE",
    "COLLATERAL",
    "TRENDS",
    "baselines",
    "cells_table",
    "collateral_comparison",
    "comparison_table",
    "outside",
    "paper_facts",
    "scores_of",
    "trends_table",
]

Row = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Stated:
    """What the paper states of a number: a range, or an upper bound (``low`` None)."""

    low: float | None
    high: float


#: Average loss in the paper (arXiv 2610.21038), absolute (R2, AUC) and relative to ID.
AVERAGE = {
    "regression": (Stated(0.35, 0.45), Stated(0.53, 0.82)),
    "classification": (Stated(0.18, 0.24), Stated(0.20, 0.29)),
}

#: Median collateral effect in the paper.
COLLATERAL = {
    "regression": {"amplify": 0.26, "attenuate": 0.61, "flip": 0.55},
    "classification": {"amplify": 1.09, "attenuate": 1.07, "flip": 1.04},
}

#: What the paper says a shift costs at one level of a severity: column, level, and per task family.
TRENDS: tuple[tuple[str, str | float, dict[str, Stated]], ...] = (
    (
        "importance_bin",
        "top",
        {"regression": Stated(0.18, 0.29), "classification": Stated(0.07, 0.11)},
    ),
    (
        "importance_bin",
        "bottom",
        {"regression": Stated(None, 0.07), "classification": Stated(None, 0.04)},
    ),
    ("min_fraction", 0.1, {"regression": Stated(0.09, 0.23), "classification": Stated(0.08, 0.12)}),
)

#: The sets of shifts that are compared, the paper's own rule first.
COMPARED = ("retained_paper", "retained", "verified")

#: Shifts that count: of both modes, or of the only one the paper has.
MODES = {"both": ("at_least", "band"), "at_least": ("at_least",)}


def paper_facts() -> Row:
    """Return the paper's figures as they stand in the tables."""
    return {
        "average": {
            name: {"absolute": dataclasses.asdict(loss), "relative": dataclasses.asdict(share)}
            for name, (loss, share) in AVERAGE.items()
        },
        "collateral": COLLATERAL,
        "top": {name: dataclasses.asdict(TRENDS[0][2][name]) for name in TASK_FAMILIES},
        "above_top": {name: _above_top(name) for name in TASK_FAMILIES},
    }


def _above_top(family: str) -> bool:
    """Tell whether the paper's average loss lies wholly above its loss in the hardest bin."""
    least = AVERAGE[family][0].low
    return least is not None and least > TRENDS[0][2][family].high


def outside(value: float, stated: Stated) -> float:
    """Return by how much a value lies above (positive) or below a stated range; 0 within."""
    if math.isnan(value):
        return math.nan
    if value > stated.high:
        return value - stated.high
    return min(0.0, value - stated.low) if stated.low is not None else 0.0


def baselines(material: Material) -> list[str]:
    """Return the default-setting models, by name."""
    return sorted(material.default["baseline"].unique())


def scores_of(material: Material, family: str, baseline: str) -> pd.DataFrame:
    """Return the default-setting scores of one task family and model."""
    scores = material.default
    return scores[(scores["task_family"] == family) & (scores["baseline"] == baseline)]


def _beside(scores: pd.DataFrame, loss: Stated, share: Stated | None) -> Row:
    """Summarise scores and say how far each mean lies outside of the stated range."""
    out: Row = summarise(scores)
    for kind in ("mean", "median"):
        out[f"{kind}_outside"] = outside(out[f"{kind}_degradation"], loss)
        if share is not None:
            out[f"{kind}_relative_outside"] = outside(out[f"{kind}_relative"], share)
    return out


def comparison_table(material: Material) -> list[Row]:
    """Return task family x model x modes: our average loss on each set beside the paper's."""
    rows = []
    for family, baseline, modes in itertools.product(TASK_FAMILIES, baselines(material), MODES):
        loss, share = AVERAGE[family]
        own = scores_of(material, family, baseline)
        own = own[own["mode"].isin(MODES[modes])]
        row: Row = {"task_family": family, "baseline": baseline, "modes": modes}
        for name in COMPARED:
            row[name] = _beside(own[own[name]], loss, share)
        rows.append(row)
    return rows


def trends_table(material: Material) -> list[Row]:
    """Return what shifts cost at the levels of severity for which the paper states it."""
    rows = []
    for (column, level, stated), family, baseline in itertools.product(
        TRENDS, TASK_FAMILIES, baselines(material)
    ):
        own = scores_of(material, family, baseline)
        own = own[own[column] == level]
        row: Row = {"dimension": column, "level": level, "task_family": family}
        row |= {"baseline": baseline, "stated": dataclasses.asdict(stated[family])}
        for name in COMPARED:
            row[name] = _beside(own[own[name]], stated[family], None)
        rows.append(row)
    return rows


def collateral_comparison(material: Material) -> list[Row]:
    """Return the median collateral effect per task family x operation beside the paper's."""
    rows = []
    for family, operation in itertools.product(TASK_FAMILIES, OPERATIONS):
        shifts = material.shifts
        own = shifts[(shifts["task_family"] == family) & (shifts["operation"] == operation)]
        stated = COLLATERAL[family][operation]
        row: Row = {"task_family": family, "operation": operation, "paper": stated}
        for name in COMPARED:
            part = own[own[name]]
            median = float(part["collateral"].median()) if len(part) else math.nan
            control = float(part["collateral_control"].median()) if len(part) else math.nan
            row[name] = {
                "shifts": int(part["collateral"].notna().sum()),
                "median": median,
                "control": control,
                "difference": median - stated,
            }
        rows.append(row)
    return rows


def cells_table(material: Material, fractions: tuple[float, ...]) -> list[Row]:
    """Return the layout of the paper's Table 1 over published shifts.

    Parameters
    ----------
    material : Material
    fractions : tuple of float
        Minimum fractions of the grid.

    Returns
    -------
    list of dict
        One row per task x operation x bin; ``cells[baseline][fraction]`` holds ``shifts`` (scored),
        ``datasets`` and ``mean``, the mean over shifts of ID minus OOD on the report half, NaN in
        an empty cell. Features and groups are in the bin they belong to; both modes count.
    """
    own = material.default[material.default["published"]].dropna(subset=["degradation"])
    keys = ["task", "operation", "importance_bin", "baseline", "min_fraction"]
    found = own.groupby(keys).agg(
        shifts=("degradation", "size"),
        datasets=("dataset", "nunique"),
        mean=("degradation", "mean"),
    )
    cells = found.to_dict("index")
    empty = {"shifts": 0, "datasets": 0, "mean": math.nan}
    names = baselines(material)
    rows: list[Row] = []
    for task, operation, bin_ in itertools.product(TASKS, OPERATIONS, ("top", "middle", "bottom")):
        row: Row = {"task": task, "operation": operation, "importance_bin": bin_, "cells": {}}
        for baseline in names:
            row["cells"][baseline] = {
                f"{fraction:g}": cells.get((task, operation, bin_, baseline, fraction), empty)
                for fraction in fractions
            }
        rows.append(row)
    return rows
