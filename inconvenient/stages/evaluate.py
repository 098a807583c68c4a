"""Stage ``evaluate``: scores of the baselines on the report half, default and tuned."""

from __future__ import annotations

from inconvenient.evaluation.runner import (
    assemble_default,
    assemble_tuned,
    default_units,
    tuned_units,
)
from inconvenient.stages.inputs import read_datasets, read_splits
from inconvenient.stages.run import Run

PARAMETERS = ("evaluate", "shifts", "profile.tuning")


def main(run: Run) -> None:
    """Write evaluate/default and evaluate/tuned, one row per shift and baseline."""
    params, tuning = run.params, run.profile.tuning
    datasets, splits, shifts = read_datasets(run), read_splits(run), run.read("shifts/shifts")
    default = run.compute(default_units(datasets, splits, shifts, params))
    tuned = run.compute(tuned_units(datasets, splits, shifts, params, tuning))
    tables = {
        "default": assemble_default(splits, shifts, params, default),
        "tuned": assemble_tuned(splits, shifts, params, tuning, tuned),
    }
    run.write(tables, PARAMETERS)
