"""What needs no language model: ``python bench/known_rankings.py [PER_OPERATION] [PROFILE]``.

Prints two tables that any language model is to be compared with.

- Recall@K of random ranking, of ranking by absolute coefficient, by its spread under the bootstrap,
  and by spread over size (instability), on so many shifts per operation of the primary set (100).
- The share of the gap between OOD and ID that a prior closes on flips of the quick profile, at
  most four of a dataset: one that knows the pool's coefficients, the same with its strength chosen
  on the sample (cv), and one that knows them with the sign reversed.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import inconvenient as ic
from inconvenient.data.bootstrap import Bootstrap
from inconvenient.llm.primary import draw_shifts
from inconvenient.llm.priors import PriorModel, gap_closed, oracle_prior, prior_key, reversed_prior
from inconvenient.llm.rankings import (
    bootstrap_table,
    generator_of,
    rank_by_instability,
    rank_by_size,
    rank_by_spread,
    rank_randomly,
)
from inconvenient.llm.recall import OVERALL, recall_table, summarise_recall
from inconvenient.llm.tasks import ask_about, truth_of
from inconvenient.shifts.published import read_published
from inconvenient.store import Store

SEED = 1


def rankings(per_operation: int, profile: str) -> None:
    """Print Recall@K overall, raw with its interval and corrected for chance."""
    catalogue = ic.list_datasets().set_index("name")
    published = ic.list_shifts(profile=profile)
    drawn = draw_shifts(published, catalogue["features"], per_operation=per_operation, seed=SEED)
    family = {name: own or name for name, own in catalogue["family"].items()}
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    truths = {}
    for shift_id in drawn["shift_id"]:
        shift = ic.load_shift(shift_id, profile=profile)
        X, y = shift.train()
        question = ask_about(X, y, shift.context)
        table = bootstrap_table(X, y, shift.context, generator_of(SEED, shift_id))
        truths[shift_id] = truth_of(shift).order
        by = {
            "random": rank_randomly(question.features, generator_of(SEED + 1, shift_id)),
            "absolute coefficient": rank_by_size(question),
            "bootstrap spread": rank_by_spread(table),
            "instability": rank_by_instability(table),
        }
        for name, ranking in by.items():
            found.setdefault(name, {})[shift_id] = ranking
    print(f"{len(drawn)} shifts of {drawn['dataset'].nunique()} datasets, means over datasets\n")
    print("| ranking | K | recall (95 %) | chance | corrected |\n| --- | --- | --- | --- | --- |")
    for name, own in found.items():
        summary = summarise_recall(recall_table(own, truths, drawn), Bootstrap(family, seed=SEED))
        for row in summary[summary["operation"] == OVERALL].to_dict("records"):
            ends = f"{row['recall']:.3f} ({row['recall_low']:.3f} to {row['recall_high']:.3f})"
            print(
                f"| {name} | {row['k']} | {ends} | {row['chance']:.3f} | {row['corrected']:.3f} |"
            )


def priors() -> None:
    """Print the share of the gap that oracles close."""
    shifts = ic.list_shifts(profile="quick", operation="flip")
    ids: list[str] = []
    for _, own in shifts.groupby("dataset"):
        ids += own["shift_id"].iloc[np.unique(np.linspace(0, len(own) - 1, 4).astype(int))].tolist()
    splits = read_published(ids, "quick").splits
    datasets = {name: ic.load_dataset(name) for name in splits}
    oracle = {prior_key(own): oracle_prior(own, splits[n].pool) for n, own in datasets.items()}
    models = {
        "oracle": PriorModel(oracle),
        "oracle, cv": PriorModel(oracle, strength="cv"),
        "reversed": PriorModel({key: reversed_prior(prior) for key, prior in oracle.items()}),
    }
    tables: list[pd.DataFrame] = []
    with tempfile.TemporaryDirectory() as folder:
        options = {"profile": "quick", "store": Store(Path(folder)), "controls": 1}
        base = ic.evaluate("linear", ids, **options)
        for name, model in models.items():
            closed = gap_closed(ic.evaluate(model, ids, **options), base, seed=SEED)
            tables.append(closed.assign(prior=name))
    print("\n| prior | task | shifts | gap closed (95 %) |\n| --- | --- | --- | --- |")
    for row in pd.concat(tables).to_dict("records"):
        ends = f"{row['closed']:.2f} ({row['low']:.2f} to {row['high']:.2f})"
        print(f"| {row['prior']} | {row['task']} | {row['shifts']} | {ends} |")


if __name__ == "__main__":
    rankings(int(sys.argv[1]) if len(sys.argv) > 1 else 100, (sys.argv[2:] or ["full"])[0])
    priors()
