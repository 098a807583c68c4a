"""Prints the tables of language_models.md from llm_study/: ``python docs/language_models.py``."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from inconvenient.benchmark.prior_study import FLAT, closed_by
from inconvenient.llm.anomalies import Anomalies, anomalies_of
from inconvenient.llm.summary import (
    answer_counts,
    paired_differences,
    recall_by_operation,
    recall_overall,
)

ROOT = Path(__file__).resolve().parents[1]
SEED = 1


def read_anomalies(folder: Path) -> Anomalies:
    """Return what `inconvenient anomalies --out FOLDER` wrote."""
    questions, recalls = (
        pd.read_parquet(folder / f"{name}.parquet") for name in ("questions", "recalls")
    )
    return anomalies_of(questions, recalls, seed=SEED)


def tables(result: Anomalies) -> str:
    """Return the tables of a run as Markdown."""
    operations = recall_by_operation(result)
    lines = ["### Recall@K over all operations", "", *_overall(recall_overall(result))]
    lines += ["", "### Recall@5 by operation", ""]
    names = ("mean over datasets (95 %)", "mean over shifts", "chance", "corrected")
    lines += _head("ranking", "operation", "shifts", *names)
    for row in operations.to_dict("records"):
        shifts = "" if pd.isna(row["shifts"]) else f"{row['shifts']:.0f}"
        by_dataset = _interval(row["recall"], row["low"], row["high"])
        numbers = [f"{row[name]:.3f}" for name in ("recall_shifts", "chance", "corrected")]
        lines.append(_row(row["ranking"], row["operation"], shifts, by_dataset, *numbers))
    lines += ["", "### What a variant finds more than others, Recall@5", ""]
    lines += _head("ranking", "other", "difference (95 %)")
    for row in paired_differences(result).to_dict("records"):
        ends = _interval(row["difference"], row["low"], row["high"])
        lines.append(_row(row["ranking"], row["other"], ends))
    return "\n".join([*lines, "", "### What became of the questions", "", *_counts(result)])


def _overall(table: pd.DataFrame) -> list[str]:
    lines = _head("ranking", "K", "recall (95 %)", "chance", "corrected (95 %)")
    for row in table.to_dict("records"):
        ends = _interval(row["corrected"], row["corrected_low"], row["corrected_high"])
        recall = _interval(row["recall"], row["low"], row["high"])
        lines.append(_row(row["ranking"], row["K"], recall, f"{row['chance']:.3f}", ends))
    return lines


def _counts(result: Anomalies) -> list[str]:
    counts = answer_counts(result)
    lines = _head(*counts.columns)
    for row in counts.to_dict("records"):
        lines.append(_row(*(f"{v:.3f}" if isinstance(v, float) else v for v in row.values())))
    return lines


def prior_table(scores: pd.DataFrame) -> str:
    """Return the shares of the gap that priors close as Markdown, from their scores."""
    lines = _head("prior", "task", "shifts", "gap closed (95 %)")
    for row in closed_by(scores, seed=SEED).to_dict("records"):
        if row["prior"] != FLAT:
            ends = _interval(row["closed"], row["low"], row["high"])
            lines.append(_row(row["prior"], row["task"], row["shifts"], ends))
    return "\n".join(lines)


def _head(*names: object) -> list[str]:
    return [_row(*(str(name).replace("_", " ") for name in names)), _row(*["---"] * len(names))]


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _interval(value: float, low: float, high: float) -> str:
    if pd.isna(value):
        return ""
    return f"{value:.3f}" if pd.isna(low) else f"{value:.3f} ({low:.3f} to {high:.3f})"


if __name__ == "__main__":
    FOLDER = ROOT / "llm_study" / "smollm2"
    print(tables(read_anomalies(FOLDER)))
    print(f"\n{prior_table(pd.read_parquet(FOLDER / 'priors.parquet'))}")
