"""How our mean degradation moves with what is counted, and what that says of a difference."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from inconvenient.report.material import TASK_FAMILIES, Material
from inconvenient.report.paper import baselines, scores_of

__all__ = ["paper_statements", "variants_table"]

Row = dict[str, Any]

SCORES = {"regression": "R2", "classification": "AUC"}

#: What the other rules are compared with: the mode that the paper has, and its mean.
BASE = "mode at_least, mean over shifts"


def _variants(own: pd.DataFrame, material: Material) -> dict[str, pd.DataFrame]:
    """Return the shifts of a set as counted by other rules, by the words for the rule."""
    band = own[own["mode"] == "band"]
    scores = own[own["mode"] == "at_least"].dropna(subset=["degradation"])
    report, filters = material.params.report, material.params.filter
    low = filters.r2_lower_bound
    parts = ["id", "control", "ood"]
    regression = scores["task_family"] == "regression"
    inside = scores[parts].ge(low).all(axis=1) | ~regression
    clipped = scores.copy()
    clipped[parts] = clipped[parts].where(~regression, clipped[parts].clip(lower=0.0))
    clipped["degradation"] = clipped["id"] - clipped["ood"]
    clipped["size"] = clipped["id"] - clipped["control"]
    clipped["bias"] = clipped["control"] - clipped["ood"]
    smallest = scores.groupby("dataset")["min_fraction"].transform("min")
    out = {
        BASE: scores,
        "mode band instead": band.dropna(subset=["degradation"]),
        f"R2 on the report half at or above {_plain(low, 0)}": scores[inside],
        "R2 below 0 counted as 0": clipped,
        f"p_uniform at most {report.p_uniform_max:g}": scores[
            scores["p_uniform"] <= report.p_uniform_max
        ],
        "datasets whose reference model passes its floor": scores[scores["useful"]],
        "smallest fraction of each dataset": scores[scores["min_fraction"] == smallest],
        "each row set once": scores.drop_duplicates(["dataset", "rows_hash"]),
    }
    if not len(scores) or not regression.all():
        out = {name: frame for name, frame in out.items() if "R2" not in name}
    return out


def _weighted(scores: pd.DataFrame, keys: list[str]) -> tuple[float, float, float]:
    """Return mean degradation, size and bias with the same weight for each value of the keys."""
    if not len(scores):
        return math.nan, math.nan, math.nan
    means = scores.groupby(keys)[["degradation", "size", "bias"]].mean().mean()
    return float(means["degradation"]), float(means["size"]), float(means["bias"])


def variants_table(material: Material) -> list[Row]:
    """Return how the mean degradation moves with what is counted, per task family x model x set.

    Returns
    -------
    list of dict
        ``rule`` (words; BASE stands first), ``shifts``, ``datasets``, ``degradation``, ``size``,
        ``bias`` (means), ``moves`` (its degradation minus that of BASE).
    """
    rows: list[Row] = []
    for family, baseline, name in itertools.product(
        TASK_FAMILIES, baselines(material), ("retained_paper", "verified")
    ):
        own = scores_of(material, family, baseline)
        variants = _variants(own[own[name]], material)
        everything = variants[BASE]
        whole = _weighted(everything, ["shift_id"])[0]
        weights = [(rule, frame, ["shift_id"]) for rule, frame in variants.items()]
        weights.append(("each dataset the same weight", everything, ["dataset"]))
        weights.append(
            (
                "each (dataset, feature, direction) the same weight",
                everything,
                ["dataset", "label", "direction"],
            )
        )
        for rule, frame, keys in weights:
            degradation, size, bias = _weighted(frame, keys)
            head: Row = {"task_family": family, "baseline": baseline, "set": name, "rule": rule}
            head |= {"shifts": len(frame), "datasets": int(frame["dataset"].nunique())}
            head |= {"degradation": degradation, "size": size, "bias": bias}
            rows.append({**head, "moves": degradation - whole})
    return rows


def _signed(value: float) -> str:
    return f"{value:+.3f}".replace("-", "\N{MINUS SIGN}")


def _plain(value: float, digits: int = 3) -> str:
    return f"{value:.{digits}f}".replace("-", "\N{MINUS SIGN}")


def _place(value: float, low: float, high: float) -> str:
    """Say where a mean lies beside a stated range."""
    if value < low:
        return f"{_plain(low - value)} below the paper's {low:g} to {high:g}"
    if value > high:
        return f"{_plain(value - high)} above the paper's {low:g} to {high:g}"
    return f"within the paper's {low:g} to {high:g}"


def paper_statements(
    comparison: Sequence[Row], variants: Sequence[Row], facts: Row
) -> list[dict[str, str]]:
    """Say in words where our average differs from the paper's, by how much, and what moves it.

    Parameters
    ----------
    comparison : list of dict
        See :func:`inconvenient.report.paper.comparison_table`.
    variants : list of dict
        See :func:`variants_table`.
    facts : dict
        See :func:`inconvenient.report.paper.paper_facts`.

    Returns
    -------
    list of dict
        ``about`` (task family and model) and ``text``; on the paper's rule and mode. Every number
        is one of the two tables', or a quotient of two of them.
    """
    out = []
    for row in comparison:
        own = row["retained_paper"]
        if row["modes"] != "at_least" or not own["shifts"]:
            continue
        family, baseline = row["task_family"], row["baseline"]
        stated = facts["average"][family]["absolute"]
        loss, size = own["mean_degradation"], own["mean_size"]
        text = [
            f"By the paper's rule and mode, {own['shifts']:,} shifts of {own['datasets']} datasets "
            f"lose {_plain(loss)} {SCORES[family]} on average, "
            f"{_place(loss, stated['low'], stated['high'])}."
        ]
        if loss > 0:
            text.append(
                f"Of it {_plain(size)} ({100 * size / loss:.0f} %) is the price of size, which "
                f"the paper counts as well, and {_plain(own['mean_bias'])} that of bias."
            )
        text.append(
            f"With the same weight for each dataset, by medians, it is "
            f"{_plain(own['median_degradation'])}; "
            f"over all verified shifts {_plain(row['verified']['mean_degradation'])} by shifts and "
            f"{_plain(row['verified']['median_degradation'])} by medians."
        )
        text.append(_implied(own["mean_id"], facts["average"][family]))
        text += _movers(variants, family, baseline)
        out.append({"about": f"{family.capitalize()}, {baseline}", "text": " ".join(text)})
    return out


def _implied(mean_id: float, stated: Row) -> str:
    """Compare our ID score with the one that the paper's two ranges imply."""
    low, high = (stated["absolute"][end] / stated["relative"][end] for end in ("low", "high"))
    low, high = min(low, high), max(low, high)
    return (
        f"The ID score is {_plain(mean_id)} on average; that of the paper, absolute over relative "
        f"loss, is {low:.2f} to {high:.2f}."
    )


def _movers(variants: Sequence[Row], family: str, baseline: str) -> list[str]:
    """Name the rules of counting that move the mean most, on each set."""
    out = []
    for name, words in (("retained_paper", "the paper's rule"), ("verified", "verified shifts")):
        own = [
            row
            for row in variants
            if (row["task_family"], row["baseline"], row["set"]) == (family, baseline, name)
            and row["rule"] != BASE
            and row["shifts"]
        ]
        own.sort(key=lambda row: -abs(row["moves"]))
        parts = [f"{row['rule']} ({_signed(row['moves'])})" for row in own[:3]]
        if parts:
            out.append(f"What moves the mean most on {words}: {', '.join(parts)}.")
    return out
