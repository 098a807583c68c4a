"""One and two workers make the same bytes."""

from __future__ import annotations

import dataclasses

import pandas as pd
import pytest
from hostile import shifts_of

from inconvenient.benchmark.filters import filter_scores, filter_units
from inconvenient.config import TuningParams, load_params
from inconvenient.evaluation.runner import (
    assemble_default,
    assemble_tuned,
    default_units,
    tuned_units,
)
from inconvenient.store import Store, frame_bytes, run_units


@pytest.mark.slow
def test_tables_do_not_depend_on_the_number_of_workers(root, data_folder, tmp_path):
    from inconvenient.data import load_dataset, split_dataset

    params = load_params(root / "params.yaml")
    params = dataclasses.replace(
        params,
        filter=dataclasses.replace(params.filter, controls=2),
        evaluate=dataclasses.replace(params.evaluate, controls=2),
    )
    tuning = TuningParams(shifts_per_dataset=1, trials=2)
    dataset = load_dataset("hpc_job_class")
    datasets = {dataset.name: dataset}
    splits = {dataset.name: split_dataset(dataset, seed=params.split.seed)}
    shifts = shifts_of([dataset], splits)

    def tables(workers):
        store = Store(tmp_path / str(workers))

        def run(units):
            return run_units(units, store=store, workers=workers, label="test")

        default = run(default_units(datasets, splits, shifts, params))
        tuned = run(tuned_units(datasets, splits, shifts, params, tuning))
        scores = run(filter_units(datasets, splits, shifts, params))
        return [
            assemble_default(splits, shifts, params, default),
            assemble_tuned(splits, shifts, params, tuning, tuned),
            filter_scores(splits, shifts, params, scores),
        ]

    for one, two in zip(tables(1), tables(2), strict=True):
        pd.testing.assert_frame_equal(one, two, check_exact=True)
        assert frame_bytes(one) == frame_bytes(two)
        assert (one.get("status", pd.Series(["ok"])) == "ok").all()
