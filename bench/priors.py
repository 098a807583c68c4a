"""What prior knowledge is worth at best and at worst: ``python bench/priors.py``.

Prints the share of the gap between OOD and ID that a prior closes on flips of the quick profile, at
most four of a dataset: one that knows the pool's coefficients, the same with its strength chosen
on the sample (cv), and one that knows them with the sign reversed.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import inconvenient as ic
from inconvenient.llm.priors import PriorModel, gap_closed, oracle_prior, prior_key, reversed_prior
from inconvenient.shifts.published import read_published
from inconvenient.store import Store

SEED = 1


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
    print("| prior | task | shifts | gap closed (95 %) |\n| --- | --- | --- | --- |")
    for row in pd.concat(tables).to_dict("records"):
        ends = f"{row['closed']:.2f} ({row['low']:.2f} to {row['high']:.2f})"
        print(f"| {row['prior']} | {row['task']} | {row['shifts']} | {ends} |")


if __name__ == "__main__":
    priors()
