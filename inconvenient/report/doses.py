"""Whether the factor is a dose: row sets that serve several factors, and what band achieves."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from inconvenient.report.material import TASK_FAMILIES, Material
from inconvenient.report.paper import baselines

__all__ = ["dose_table", "row_sets_table", "study_statements"]

Row = dict[str, Any]

#: What mode band allows: achieved over asked factor, and size over the least size.
BANDS = {"amplify": (1.0, 1.1), "attenuate": (0.9, 1.0)}
MAX_SIZE = 1.05


def row_sets_table(material: Material) -> list[Row]:
    """Return how often one row set serves several factors.

    Returns
    -------
    list of dict
        Mode x task family x operation: ``cells`` (what is bent x minimum fraction, verified at two
        factors or more), ``one`` and ``share_one`` (of them, with one row set for all), ``shifts``
        in those cells, ``row_sets`` of them, ``share_shared`` (of the shifts, whose row set serves
        another factor as well).
    """
    own = material.shifts[material.shifts["operation"] != "flip"]
    keys = ["dataset", "label", "operation", "min_fraction", "mode"]
    own = own[own.groupby(keys)["factor"].transform("nunique") > 1]
    twins = own.groupby([*keys, "rows_hash"])["shift_id"].transform("size") > 1
    sets = own.groupby(keys)["rows_hash"].nunique()
    rows = []
    for mode, family, operation in itertools.product(
        ("at_least", "band"), TASK_FAMILIES, ("amplify", "attenuate")
    ):
        keep = (own["mode"] == mode) & (own["task_family"] == family)
        keep &= own["operation"] == operation
        cells = sets.reindex(own[keep].set_index(keys).index.unique())
        row: Row = {"mode": mode, "task_family": family, "operation": operation}
        row |= {"cells": len(cells), "one": int((cells == 1).sum())}
        row["share_one"] = row["one"] / len(cells) if len(cells) else math.nan
        row |= {"shifts": int(keep.sum()), "row_sets": int(cells.sum())}
        row["share_shared"] = float(twins[keep].mean()) if row["shifts"] else math.nan
        rows.append(row)
    return rows


def dose_table(material: Material) -> list[Row]:
    """Return the achieved factor of shifts in mode "band" beside the asked one.

    Returns
    -------
    list of dict
        Operation x factor: ``shifts``, extremes and quartiles of the achieved factor,
        ``within`` (achieved in the band), ``sized`` (size at most 5 % over the least that the
        minimum fraction asks) and ``both``.
    """
    band = material.shifts[material.shifts["mode"] == "band"]
    rows = []
    for (operation, _), own in band.groupby(["operation", "factor"], sort=True):
        factor = float(own["factor"].iloc[0])
        low, high = BANDS[str(operation)]
        ratio = own["achieved"] / own["factor"]
        within = ratio.between(low * (1 - 1e-9), high * (1 + 1e-9))
        least = np.ceil(own["min_fraction"] * own["pool_rows"] - 1e-9)
        sized = own["size"].between(least, MAX_SIZE * least)
        quartiles = np.quantile(own["achieved"], [0.25, 0.5, 0.75])
        row: Row = {"operation": str(operation), "factor": factor, "shifts": len(own)}
        row |= dict(zip(("low_quartile", "median", "high_quartile"), map(float, quartiles)))
        row |= {"least": float(own["achieved"].min()), "greatest": float(own["achieved"].max())}
        row |= {"within": int(within.sum()), "sized": int(sized.sum())}
        row["both"] = int((within & sized).sum())
        rows.append(row)
    return rows


def study_statements(
    knobs: Sequence[Row], row_sets: Sequence[Row], doses: Sequence[Row], material: Material
) -> list[str]:
    """Say in words what the study finds on the factor as a knob.

    Parameters
    ----------
    knobs, row_sets, doses : list of dict
        See :func:`inconvenient.report.study.knobs_table`, :func:`row_sets_table`,
        :func:`dose_table`.
    material : Material

    Returns
    -------
    list of str
        One statement each; empty without shifts.
    """
    out = []
    shared = []
    for mode in ("at_least", "band"):
        own = [row for row in row_sets if row["mode"] == mode]
        cells, one = sum(row["cells"] for row in own), sum(row["one"] for row in own)
        if cells:
            sets, shifts = sum(r["row_sets"] for r in own), sum(r["shifts"] for r in own)
            shared.append(
                f"in mode {mode} one row set serves all factors in {one:,} of {cells:,} cells "
                f"({100 * one / cells:.0f} %), and {shifts:,} shifts are {sets:,} row sets"
            )
    if shared:
        text = "; ".join(shared)
        out.append(f"{text[0].upper()}{text[1:]}.")
    total, good = sum(row["shifts"] for row in doses), sum(row["both"] for row in doses)
    if total:
        out.append(
            f"{good:,} of {total:,} shifts of mode band have an achieved factor within the band at "
            "the stated size" + ("." if good == total else f"; {total - good:,} have not.")
        )
    pairs = list(itertools.product(TASK_FAMILIES, baselines(material)))
    out += _knob_summary(knobs, pairs)
    for family, baseline in pairs:
        out += _knob_statement(knobs, family, baseline)
    return out


def _find(knobs: Sequence[Row], pair: tuple[str, str], mode: str, knob: str) -> Row | None:
    """Return the row of a knob over both operations, None where nothing was measured."""
    for row in knobs:
        key = (row["task_family"], row["baseline"]), row["mode"], row["knob"], row["operation"]
        if key == (pair, mode, knob, "both"):
            return row if row["features"] else None
    return None


def _knob_summary(knobs: Sequence[Row], pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Say over all pairs of task family and model what the factor does in each mode."""
    parts = []
    for mode in ("at_least", "band"):
        rows = [
            (_find(knobs, p, mode, "factor"), _find(knobs, p, mode, "min_fraction")) for p in pairs
        ]
        own = [(factor, size) for factor, size in rows if factor is not None]
        if not own:
            return []
        positive = sum(factor["rho_low"] > 0 for factor, _ in own)
        weaker = sum(size is not None and factor["rho"] < size["rho"] for factor, size in own)
        constant = sum(factor["constant"] for factor, _ in own)
        cells = sum(factor["cells"] for factor, _ in own)
        mean = math.fsum(factor["rho"] for factor, _ in own) / len(own)
        parts.append(
            f"in mode {mode} its rank correlation with the degradation is {mean:.2f} on average "
            f"over {len(own)} pairs of task and model, its interval is above zero in {positive}, "
            f"it is below that of the minimum fraction in {weaker}, and the factor changes nothing "
            f"in {100 * constant / cells:.0f} % of cells".replace("-", "\N{MINUS SIGN}")
        )
    return ["The paper finds the factor to be no reliable knob. Here, " + "; ".join(parts) + "."]


def _knob_statement(knobs: Sequence[Row], family: str, baseline: str) -> list[str]:
    pair = (family, baseline)
    parts = []
    for mode in ("at_least", "band"):
        row = _find(knobs, pair, mode, "factor")
        if row is not None:
            parts.append(f"{_rho(row)} in mode {mode} ({_verdict(row)})")
    if not parts:
        return []
    text = f"{family.capitalize()}, {baseline}: the factor's rank correlation is "
    text += ", ".join(parts)
    others = [
        f"that of the {name} {_rho(row)}"
        for name, row in (
            ("minimum fraction", _find(knobs, pair, "at_least", "min_fraction")),
            ("importance bin", _find(knobs, pair, "at_least", "importance_bin")),
        )
        if row is not None
    ]
    if others:
        text += "; in mode at_least " + ", ".join(others)
    return [text + "."]


def _rho(row: Row) -> str:
    text = f"{row['rho']:.2f}"
    if math.isfinite(row["rho_low"]):
        text += f" [{row['rho_low']:.2f}, {row['rho_high']:.2f}]"
    return text.replace("-", "\N{MINUS SIGN}")


def _verdict(row: Row) -> str:
    """Say what the interval of a correlation allows to say."""
    if not math.isfinite(row["rho_low"]):
        return "too few families for an interval"
    if row["rho_low"] > 0:
        return "a stronger dose costs more"
    if row["rho_high"] < 0:
        return "a stronger dose costs less"
    return "no direction is established"
