"""Prints the tables of tuned_study.md from study/: ``python docs/tuned_study.py``."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from inconvenient.benchmark.study import study_table
from inconvenient.config import load_params
from inconvenient.data import list_datasets

ROOT = Path(__file__).resolve().parents[1]
_SCORES = ("score_id", "score_control", "score_ood")
_HEAD = "| baseline | ID | control | OOD | ID - OOD (95 %) | ID - control | control - OOD | rank |"


def tables(folder: Path, seed: int) -> str:
    """Return the tables of a finished study, or of what is finished, as Markdown."""
    drawn, tuned = (pd.read_parquet(folder / f"{name}.parquet") for name in ("shifts", "tuned"))
    found = study_table(drawn, tuned, list_datasets(), seed=seed)
    lines = []
    for task, own in found.groupby("task", sort=True):
        first = own.iloc[0]
        facts = f"{first['datasets']} datasets, {first['shifts']} shifts"
        lines += [f"### {str(task).capitalize()}: {facts}, {own['failed'].sum()} failures", ""]
        lines += [_HEAD, "|" + " --- |" * _HEAD.count(" | ") + " --- |"]
        for row in own.sort_values(["mean_rank", "baseline"]).to_dict("records"):
            cells = [str(row["baseline"]), *(f"{row[name]:.3f}" for name in _SCORES)]
            cells.append(f"{row['degradation']:.3f} ({row['low']:.3f} to {row['high']:.3f})")
            cells += [f"{row['price_of_size']:.3f}", f"{row['price_of_bias']:.3f}"]
            lines.append(f"| {' | '.join([*cells, format(row['mean_rank'], '.2f')])} |")
        lines.append("")
    return "\n".join(lines).rstrip()


if __name__ == "__main__":
    print(tables(ROOT / "study", load_params(ROOT / "params.yaml").study.seed))
