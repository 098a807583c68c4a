"""Stage ``filter``: scores of the filter models on the filter half; what is retained, published."""

from __future__ import annotations

from inconvenient.benchmark.filters import filter_scores, filter_units
from inconvenient.benchmark.retention import published, retain
from inconvenient.stages.inputs import read_datasets, read_splits
from inconvenient.stages.run import Run

PARAMETERS = ("filter", "shifts")


def main(run: Run) -> None:
    """Write filter/filter, one row per verified shift."""
    params, splits, shifts = run.params, read_splits(run), run.read("shifts/shifts")
    frames = run.compute(filter_units(read_datasets(run), splits, shifts, params))
    scores = filter_scores(splits, shifts, params, frames)
    table = retain(scores, shifts, params.filter)
    table["published"] = published(table, shifts, params.filter)
    run.write({"filter": table}, PARAMETERS)
