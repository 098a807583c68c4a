"""Counts at each step, per dataset and task, and why a dataset yields nothing."""

from __future__ import annotations

from typing import Any

import pandas as pd

from inconvenient.report.material import TASKS, Material
from inconvenient.shifts.schema import OUTCOMES

__all__ = [
    "COUNTS",
    "REASONS",
    "counts_table",
    "failures_table",
    "nothing_table",
    "reasons_table",
]

Row = dict[str, Any]

#: What is counted, in the order of the steps, and the words for it.
COUNTS = {
    "candidates": "candidates",
    "infeasible_size": "infeasible by size",
    "unmet": "unmet",
    "rank_loss": "rank loss",
    "constant_column": "constant column",
    "small_class": "small class",
    "separation": "separation",
    "close_call": "close call",
    "not_confirmed": "not confirmed",
    "verified": "verified",
    "row_sets": "distinct row sets",
    "triples": "independent triples",
    "retained": "retained",
    "retained_paper": "retained (paper)",
    "main": "headline",
}

#: Why the filters drop a shift, and the words for it.
REASONS = {
    "failed": "a fit failed",
    "out_of_range": "score out of range",
    "small_gap": "gap too small",
    "within_chance": "within two standard errors",
    "subsumed": "subsumed",
}


def _count(candidates: pd.DataFrame, shifts: pd.DataFrame) -> Row:
    outcome = candidates["outcome"].value_counts()
    triples = shifts[["dataset", "label", "direction"]].drop_duplicates()
    return {
        "candidates": len(candidates),
        **{name: int(outcome.get(name, 0)) for name in OUTCOMES},
        "row_sets": int(shifts[["dataset", "rows_hash"]].drop_duplicates().shape[0]),
        "triples": len(triples),
        "retained": int(shifts["retained"].sum()),
        "retained_paper": int(shifts["retained_paper"].sum()),
        "main": int((shifts["retained"] & shifts["main"]).sum()),
    }


def counts_table(material: Material) -> list[Row]:
    """Return one row per dataset, then one per task and one for all."""
    candidates, shifts = material.candidates, material.shifts
    rows: list[Row] = []
    facts = zip(*(material.datasets[c] for c in ("dataset", "task", "status", "score", "pool")))
    for name, task, status, score, pool in facts:
        head: Row = {"dataset": name, "task": task, "status": status, "score": score, "pool": pool}
        own = candidates[candidates["dataset"] == name]
        rows.append({**head, **_count(own, shifts[shifts["dataset"] == name])})
    order = {task: place for place, task in enumerate(TASKS)}
    rows.sort(key=lambda row: (order.get(row["task"], len(TASKS)), row["dataset"]))
    for task in (*TASKS, "all"):
        names = material.datasets["dataset"]
        if task != "all":
            names = names[material.datasets["task"] == task]
        own = candidates[candidates["dataset"].isin(names)]
        head = {"dataset": "", "task": task, "status": "", "score": None, "pool": None}
        rows.append({**head, **_count(own, shifts[shifts["dataset"].isin(names)])})
    return rows


_WORDS = {
    "infeasible_size": "infeasible by size",
    "unmet": "criterion not met",
    "rank_loss": "rank loss",
    "constant_column": "a column turned constant",
    "small_class": "a class too small",
    "separation": "separation",
    "close_call": "met only within rounding of the threshold",
    "not_confirmed": "not confirmed by the independent fit",
}


def nothing_table(material: Material) -> list[Row]:
    """Return the datasets without a shift in the headline, and at which step the last were lost."""
    rows: list[Row] = []
    for name, task, status in zip(
        *(material.datasets[column] for column in ("dataset", "task", "status"))
    ):
        own = material.shifts[material.shifts["dataset"] == name]
        if (own["retained"] & own["main"]).any():
            continue
        row: Row = {"dataset": name, "task": task, "why": _why(material, name, status)}
        rows.append({**row, "verified": len(own), "retained": int(own["retained"].sum())})
    return rows


def _why(material: Material, name: str, status: str) -> str:
    if status != "ok":
        return f"not split: {status}"
    cells = material.candidates[material.candidates["dataset"] == name]
    if not len(cells):
        return "no candidate: no feature has a coefficient to bend"
    own = material.shifts[material.shifts["dataset"] == name]
    if not len(own):
        counts = cells["outcome"].value_counts()
        parts = [f"{counts[key]} {words}" for key, words in _WORDS.items() if counts.get(key, 0)]
        return f"of {len(cells)} candidates, " + ", ".join(parts)
    if own["retained"].any():
        return _why_not_main(material, name, own)
    dropped = material.filters[material.filters["shift_id"].isin(own["shift_id"])]["reason"]
    by_reason = _reasons(dropped)
    parts = [f"{count} {REASONS[key]}" for key, count in by_reason.items() if count]
    return f"none of {len(own)} verified shifts was retained: " + ", ".join(parts)


def _why_not_main(material: Material, name: str, own: pd.DataFrame) -> str:
    """Say why no retained shift of a dataset is in the headline."""
    kept = int(own["retained"].sum())
    known = material.datasets.set_index("dataset")
    if not known.loc[name, "useful"]:
        score = float(known["score"].to_dict()[name])
        return f"{kept} retained, but its reference model scores {score:.3g}, under the floor"
    limit = material.params.report.p_uniform_max
    return f"{kept} retained, but chance alone often meets each (p_uniform above {limit:g})"


def _reasons(reason: pd.Series) -> dict[str, int]:
    """Count reasons; "failed: <line>" is one."""
    kind = reason.str.partition(":")[0] if len(reason) else reason
    return {key: int((kind == key).sum()) for key in REASONS}


def reasons_table(material: Material) -> list[Row]:
    """Return per task, and for all, why verified shifts are not retained."""
    rows = []
    for task in (*TASKS, "all"):
        own = material.shifts
        if task != "all":
            own = own[own["task"] == task]
        reason = material.filters[material.filters["shift_id"].isin(own["shift_id"])]["reason"]
        head: Row = {"task": task, "verified": len(own), "retained": int(own["retained"].sum())}
        rows.append({**head, **_reasons(reason)})
    return rows


def failures_table(material: Material) -> list[Row]:
    """Return setting x model x dataset where fits failed, with the first failure's last line."""
    rows: list[Row] = []
    for setting, scores in (("default", material.default), ("tuned", material.tuned)):
        failed = scores[scores["status"].ne("ok")]
        for (baseline, dataset), own in failed.groupby(["baseline", "dataset"], sort=True):
            row = {"setting": setting, "baseline": str(baseline), "dataset": str(dataset)}
            rows.append({**row, "shifts": len(own), "why": str(own["status"].iloc[0])})
    return rows
