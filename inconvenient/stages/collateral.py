"""Stage ``collateral``: what every verified shift does to the coefficients it does not bend."""

from __future__ import annotations

import pandas as pd

from inconvenient.benchmark.collateral import collateral_frame
from inconvenient.config import Params, as_json
from inconvenient.data import Dataset, Split
from inconvenient.stages.inputs import key_parts, read_datasets, read_splits
from inconvenient.stages.run import Run, stack
from inconvenient.store import ALGORITHM, Unit, content_key

PARAMETERS = ("collateral", "evaluate", "reference", "shifts")


def main(run: Run) -> None:
    """Write collateral/collateral, one row per verified shift."""
    splits, shifts = read_splits(run), run.read("shifts/shifts")
    units = [
        _unit(dataset, splits[name], shifts[shifts["dataset"] == name], run.params)
        for name, dataset in read_datasets(run).items()
    ]
    table = stack(run.compute(units)).sort_values("shift_id", ignore_index=True)
    run.write({"collateral": table}, PARAMETERS)


def _unit(dataset: Dataset, split: Split, shifts: pd.DataFrame, params: Params) -> Unit:
    own = shifts[["shift_id", "rows_hash"]].sort_values("shift_id")
    parts = {
        **key_parts(dataset, split),
        "own": own.to_numpy().tolist(),
        "collateral": as_json(params.collateral),
        "controls": params.evaluate.controls,
        "reference": as_json(params.reference),
        "seed": params.shifts.seed,
    }
    key = content_key("collateral", ALGORITHM["collateral"], **parts)
    return Unit(key, collateral_frame, (dataset, split, shifts, params), dataset.name)
