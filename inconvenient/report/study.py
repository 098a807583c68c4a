"""The severity study: what minimum fraction, importance bin and factor do to the degradation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from inconvenient.report.material import TASK_FAMILIES, Material
from inconvenient.report.paper import baselines
from inconvenient.report.summary import dataset_medians

__all__ = ["KNOBS", "knobs_table", "levels_table", "paired_table"]

Row = dict[str, Any]

PRICES = ("degradation", "size", "bias")
MODES = ("at_least", "band")
SETS = ("verified", "published")
BINS = ("bottom", "middle", "top")

#: What stays the same while a severity moves, the severity itself and its weakest level.
PAIRS: dict[str, list[str]] = {
    "min_fraction": ["dataset", "label", "operation", "factor"],
    "importance_bin": ["dataset", "kind", "operation", "factor", "min_fraction"],
    "factor": ["dataset", "label", "operation", "min_fraction"],
}

#: Severities as knobs, and the words for them; "achieved" is the factor as measured.
KNOBS = {
    "min_fraction": "minimum fraction, falling",
    "importance_bin": "importance bin, rising",
    "factor": "factor as asked",
    "achieved": "factor as achieved",
}


def _studied(material: Material) -> pd.DataFrame:
    """Return scored shifts on useful datasets, whatever chance says of them.

    Chance is no condition here: p_uniform depends on severity itself.
    """
    scores = material.default
    own = scores[scores["useful"]].dropna(subset=["degradation"])
    # A number, for pairs are grouped by it; flips have none.
    return own.assign(factor=own["factor"].fillna(0.0))


def _strata(scores: pd.DataFrame, material: Material) -> Iterator[tuple[Row, pd.DataFrame]]:
    """Yield task family x mode x model."""
    for family, mode, baseline in itertools.product(TASK_FAMILIES, MODES, baselines(material)):
        keep = (scores["task_family"] == family) & (scores["mode"] == mode)
        own = scores[keep & (scores["baseline"] == baseline)]
        yield {"task_family": family, "mode": mode, "baseline": baseline}, own


def _dose(operation: str, factor: float) -> str:
    return f"{operation} x{factor:g}" if factor else operation


def _levels(scores: pd.DataFrame) -> dict[str, list[tuple[str, Row]]]:
    """Return label and column values of each level, from the weakest to the strongest."""
    fractions = sorted(scores["min_fraction"].unique(), reverse=True)
    doses = scores[["operation", "factor"]].drop_duplicates()
    doses = doses.assign(
        rank=doses["factor"].where(doses["operation"] == "amplify", -doses["factor"])
    )
    doses = doses.sort_values(["operation", "rank"])
    return {
        "min_fraction": [(f"{value:g}", {"min_fraction": value}) for value in fractions],
        "importance_bin": [(name, {"importance_bin": name}) for name in BINS],
        "factor": [
            (_dose(operation, factor), {"operation": operation, "factor": factor})
            for operation, factor, _ in doses.itertuples(index=False)
        ],
    }


def _with_ends(values: pd.Series, name: str, material: Material) -> Row:
    """Return the mean over datasets and its interval."""
    low, high = material.bootstrap.interval(values)
    mean = float(values.mean()) if len(values) else math.nan
    return {name: mean, f"{name}_low": low, f"{name}_high": high}


def levels_table(material: Material) -> list[Row]:
    """Return degradation and its two prices at each level of each severity.

    Returns
    -------
    list of dict
        Task family x mode x severity x level x model; for each of SETS the counts ``shifts`` and
        ``datasets``, and of each price the mean over datasets of each dataset's median with the
        ends of its interval.
    """
    scores = _studied(material)
    rows = []
    for head, own in _strata(scores, material):
        for dimension, levels in _levels(own).items():
            for label, level in levels:
                keep = np.logical_and.reduce([own[c] == v for c, v in level.items()])
                cell = own[keep]
                row: Row = {**head, "dimension": dimension, "level": label}
                for name in SETS:
                    part = cell[cell[name]]
                    row[name] = {"shifts": len(part), "datasets": int(part["dataset"].nunique())}
                    for price in PRICES:
                        medians = dataset_medians(part, price)
                        row[name] |= _with_ends(medians, price, material)
                rows.append(row)
    rows.sort(key=lambda row: (row["task_family"] != "regression", row["mode"], _order(row)))
    return rows


def _order(row: Row) -> int:
    return list(PAIRS).index(row["dimension"])


def paired_table(material: Material) -> list[Row]:
    """Return what each level costs more than the weakest, all else being the same.

    Returns
    -------
    list of dict
        Task family x mode x severity x level x model: ``reference`` (the weakest level), ``pairs``,
        ``datasets``, ``more`` (share of pairs in which the level costs more) and of each price the
        mean over datasets of the median difference with the ends of its interval. Verified shifts
        alone: a difference between published ones would be chosen by its own ends.

    Notes
    -----
    Pairs are of one dataset, model and mode, and: for the minimum fraction of one feature,
    operation and factor; for the factor of one feature, operation and minimum fraction; for the bin
    of one operation, factor and minimum fraction, each bin by the median over its features.
    """
    scores = _studied(material)
    rows = []
    for head, own in _strata(scores, material):
        for dimension, keys in PAIRS.items():
            if dimension != "factor":
                rows += _paired(own, dimension, keys, head, material)
                continue
            for operation in ("amplify", "attenuate"):
                part = own[own["operation"] == operation]
                rows += _paired(part, dimension, keys, head, material)
    return rows


def _paired(
    scores: pd.DataFrame, dimension: str, keys: list[str], head: Row, material: Material
) -> list[Row]:
    levels = _levels(scores)[dimension]
    columns = [spec[dimension] for _, spec in levels]
    if len(levels) < 2 or scores.empty:
        return []
    tables = scores.groupby([*keys, dimension])[list(PRICES)].median().unstack(dimension)
    rows = []
    for (label, _), column in zip(levels[1:], columns[1:]):
        row: Row = {**head, "dimension": dimension, "level": label, "reference": levels[0][0]}
        differences = pd.DataFrame(
            {
                price: tables.get((price, column), math.nan)
                - tables.get((price, columns[0]), math.nan)
                for price in PRICES
            },
            index=tables.index,
        ).dropna()
        row["pairs"] = len(differences)
        row["datasets"] = int(differences.index.get_level_values("dataset").nunique())
        more = (differences["degradation"] > 0).mean() if len(differences) else math.nan
        row["more"] = float(more)
        for price in PRICES:
            medians = differences.groupby("dataset")[price].median()
            row |= _with_ends(medians, price, material)
        rows.append(row)
    return rows


def knobs_table(material: Material) -> list[Row]:
    """Return the rank correlation of each severity with the degradation, all else being the same.

    Returns
    -------
    list of dict
        Task family x mode x model x knob (KNOBS), for the factor x operation ("amplify",
        "attenuate", "both"): ``cells`` (groups of at least three levels with all else the same),
        ``constant`` (of them, with one and the same degradation at every level), ``features``
        (pairs of dataset and feature; of dataset and kind for the bin), ``positive`` (share of them
        whose correlation is above zero), ``datasets``, and ``rho`` with the ends of its interval.

    Notes
    -----
    Spearman's coefficient in each cell, ranks rising with severity (amplify by more, attenuate to
    less, smaller fraction, higher bin); a constant cell counts as 0, for there the knob does
    nothing. Then the mean over the cells of a feature, over the features of a dataset, and over
    datasets. Verified shifts of single features.
    """
    scores = _studied(material)
    single = scores[scores["kind"] == "single"]
    rows = []
    for head, own in _strata(single, material):
        dosed = own[own["operation"] != "flip"]
        for knob in KNOBS:
            factor = knob in ("factor", "achieved")
            for operation in ("both", "amplify", "attenuate") if factor else ("both",):
                part = dosed if factor else own
                if operation != "both":
                    part = part[part["operation"] == operation]
                row: Row = {**head, "knob": knob, "operation": operation}
                rows.append({**row, **_correlation(part, knob, material)})
    return rows


def _severity(scores: pd.DataFrame, knob: str) -> pd.Series:
    """Return a number that rises with severity."""
    if knob == "min_fraction":
        return -scores["min_fraction"]
    if knob == "importance_bin":
        return scores["importance_bin"].map({name: i for i, name in enumerate(BINS)}).astype(float)
    values: pd.Series = scores[knob]
    return values.where(scores["operation"] == "amplify", -values)


def _correlation(scores: pd.DataFrame, knob: str, material: Material) -> Row:
    keys = PAIRS["factor" if knob == "achieved" else knob]
    unit = ["dataset", "kind" if knob == "importance_bin" else "label"]
    own = scores[keys].assign(
        # One row set at several levels has one score; the last digits must not rank it.
        loss=scores["degradation"].round(9),
        severity=_severity(scores, knob),
    )
    if knob == "importance_bin":
        own = own.groupby([*keys, "severity"])["loss"].median().reset_index()
    cells = own.groupby(keys)
    own = own[cells["loss"].transform("size") >= 3]
    rho: pd.Series = spearman(own, keys)
    by_unit: pd.Series = rho.groupby(unit).mean()
    row: Row = {"cells": len(rho)}
    row["constant"] = int((own.groupby(keys)["loss"].nunique() == 1).sum())
    row["features"] = len(by_unit)
    row["positive"] = float((by_unit > 0).mean()) if len(by_unit) else math.nan
    by_dataset: pd.Series = by_unit.groupby("dataset").mean()
    return {**row, "datasets": len(by_dataset), **_with_ends(by_dataset, "rho", material)}


def spearman(table: pd.DataFrame, keys: list[str]) -> pd.Series:
    """Return Spearman's coefficient of ``severity`` and ``loss`` within each group of ``keys``.

    Ties share their mean rank; a group in which one of the two is constant has 0.
    """
    grouped = table.groupby(keys)
    ranks = pd.DataFrame({name: grouped[name].rank() for name in ("severity", "loss")})
    by = [table[key] for key in keys]
    centred = ranks - ranks.groupby(by).transform("mean")
    sums = pd.DataFrame(
        {
            "both": centred["severity"] * centred["loss"],
            "severity": centred["severity"] ** 2,
            "loss": centred["loss"] ** 2,
        }
    )
    total = sums.groupby(by).sum()
    scale = (total["severity"] * total["loss"]) ** 0.5
    rho: pd.Series = (total["both"] / scale.where(scale > 0)).fillna(0.0)
    return rho
