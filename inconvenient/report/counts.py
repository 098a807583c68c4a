"""Counts at each step, per dataset and task, and why a dataset yields nothing."""

from __future__ import annotations

from typing import Any

import pandas as pd

from inconvenient.report.material import OPERATIONS, TASK_FAMILIES, TASKS, Material
from inconvenient.shifts.schema import OUTCOMES

__all__ = [
    "COUNTS",
    "REASONS",
    "counts_table",
    "failures_table",
    "nothing_table",
    "operations_table",
    "publication_table",
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
    "published": "published",
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


def _count(material: Material, key: str) -> pd.DataFrame:
    """Return COUNTS per value of a column of the datasets, "dataset" or "task"."""
    known = material.datasets.set_index("dataset")["task"]
    places = pd.Index(material.datasets[key].unique(), name=key)
    out = pd.DataFrame(0, index=places, columns=list(COUNTS))

    def keyed(frame: pd.DataFrame) -> pd.Series:
        names = frame["dataset"]
        return names if key == "dataset" else names.map(known).rename("task")

    cells = material.candidates
    by_outcome = pd.crosstab(keyed(cells), cells["outcome"])
    out["candidates"] = by_outcome.sum(axis=1).reindex(places, fill_value=0)
    for name in OUTCOMES:
        if name in by_outcome:
            out[name] = by_outcome[name].reindex(places, fill_value=0)
    shifts = material.shifts.assign(
        main=material.shifts["main"] & material.shifts["retained"], by=keyed(material.shifts)
    )
    for name in ("retained", "retained_paper", "published", "main"):
        out[name] = shifts.groupby("by")[name].sum().reindex(places, fill_value=0)
    for name, columns in (("row_sets", ["rows_hash"]), ("triples", ["label", "direction"])):
        distinct = shifts.drop_duplicates(["dataset", *columns])
        out[name] = distinct.groupby("by").size().reindex(places, fill_value=0)
    return out.astype("int64")


def _row(counts: pd.Series) -> Row:
    return {str(name): int(value) for name, value in counts.items()}


def counts_table(material: Material) -> list[Row]:
    """Return one row per dataset, then one per task and one for all."""
    rows: list[Row] = []
    by_dataset = _count(material, "dataset")
    facts = zip(*(material.datasets[c] for c in ("dataset", "task", "status", "score", "pool")))
    for name, task, status, score, pool in facts:
        head: Row = {"dataset": name, "task": task, "status": status, "score": score, "pool": pool}
        rows.append({**head, **_row(by_dataset.loc[name])})
    order = {task: place for place, task in enumerate(TASKS)}
    rows.sort(key=lambda row: (order.get(row["task"], len(TASKS)), row["dataset"]))
    by_task = _count(material, "task")
    sizes = material.datasets["task"].value_counts()
    for task in (*TASKS, "all"):
        of_task = by_task[by_task.index == task] if task != "all" else by_task
        datasets = int(sizes.sum() if task == "all" else sizes.get(task, 0))
        head = {"dataset": "", "task": task, "status": "", "score": None, "pool": None}
        rows.append({**head, "datasets": datasets, **_row(of_task.sum())})
    return rows


def operations_table(material: Material) -> list[Row]:
    """Return how many shifts are published per operation (and all) x task family and mode."""
    own = material.shifts[material.shifts["published"]]
    rows: list[Row] = []
    for operation in (*OPERATIONS, "all"):
        part = own if operation == "all" else own[own["operation"] == operation]
        row: Row = {"operation": operation}
        for name in TASK_FAMILIES:
            cells = part[part["task_family"] == name]
            row[name] = len(cells)
            row[f"{name}_retained"] = int(cells["retained"].sum())
            for mode in ("at_least", "band"):
                row[f"{name}_{mode}"] = int((cells["mode"] == mode).sum())
            row[f"{name}_datasets"] = int(cells["dataset"].nunique())
        rows.append({**row, "both": len(part)})
    return rows


#: What the full profile is meant to hold: name, words, and the least (or, for the share, most).
AIMS: tuple[tuple[str, str, float], ...] = (
    ("published", "published shifts", 15_500),
    ("published_retained", "of them retained", 10_000),
    ("regression", "published, regression", 8_000),
    ("classification", "published, classification", 6_000),
    ("least_cell", "least of operation x task family", 1_000),
    ("datasets", "datasets with published shifts", 200),
    ("largest_share", "largest share of one dataset", 0.015),
)


def publication_table(material: Material) -> list[Row]:
    """Return what is published beside what the full profile is meant to hold."""
    own = material.shifts[material.shifts["published"]]
    sizes = own["dataset"].value_counts()
    cells = [
        int(((own["operation"] == operation) & (own["task_family"] == name)).sum())
        for operation in OPERATIONS
        for name in TASK_FAMILIES
    ]
    found: dict[str, float] = {
        "published": len(own),
        "published_retained": int(own["retained"].sum()),
        **{name: int((own["task_family"] == name).sum()) for name in TASK_FAMILIES},
        "least_cell": min(cells),
        "datasets": len(sizes),
        "largest_share": float(sizes.max() / len(own)) if len(own) else 0.0,
    }
    rows = []
    for name, words, aim in AIMS:
        share = name == "largest_share"
        row: Row = {"name": name, "words": words, "found": found[name], "aim": aim, "share": share}
        row["met"] = found[name] <= aim and len(own) > 0 if share else found[name] >= aim
        row["note"] = f"{sizes.index[0]}, {sizes.iloc[0]} shifts" if share and len(own) else ""
        rows.append(row)
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
    shifts = material.shifts
    held = set(shifts.loc[shifts["retained"] & shifts["main"], "dataset"])
    found = dict(iter(shifts.groupby("dataset")))
    cells = dict(iter(material.candidates.groupby("dataset")["outcome"]))
    for name, task, status in zip(
        *(material.datasets[column] for column in ("dataset", "task", "status"))
    ):
        if name in held:
            continue
        own, outcomes = found.get(name, shifts[:0]), cells.get(name, pd.Series(dtype="str"))
        row: Row = {
            "dataset": name,
            "task": task,
            "why": _why(material, name, status, outcomes, own),
        }
        row["verified"] = len(own)
        row |= {flag: int(own[flag].sum()) for flag in ("retained", "published")}
        rows.append(row)
    return rows


def _why(material: Material, name: str, status: str, outcomes: pd.Series, own: pd.DataFrame) -> str:
    """Say at which step a dataset lost its last candidate or verified shift."""
    if status != "ok":
        return f"not split: {status}"
    if not len(outcomes):
        return "no candidate: no feature has a coefficient to bend"
    if not len(own):
        counts = outcomes.value_counts()
        parts = [f"{counts[key]} {words}" for key, words in _WORDS.items() if counts.get(key, 0)]
        return f"of {len(outcomes)} candidates, " + ", ".join(parts)
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
