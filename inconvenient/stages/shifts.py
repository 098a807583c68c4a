"""Stage ``shifts``: every cell of the grid on every dataset, and the verified shifts."""

from __future__ import annotations

import pandas as pd

from inconvenient.benchmark.grid import make_shifts
from inconvenient.config import GridParams, Params, as_json
from inconvenient.data import Dataset, Split
from inconvenient.errors import UnmetError
from inconvenient.shifts.schema import validate
from inconvenient.stages.inputs import key_parts, read_datasets, read_splits
from inconvenient.stages.run import Run, stack
from inconvenient.store import ALGORITHM, Unit, content_key, pack_frames, unpack_frames

TABLES = ("candidates", "shifts")
PARAMETERS = ("reference", "shifts", "profile.grid")


def main(run: Run) -> None:
    """Write shifts/candidates and shifts/shifts, sorted by shift id."""
    splits = read_splits(run)
    grid = run.profile.grid
    units = [_unit(d, splits[d.name], run.params, grid) for d in read_datasets(run).values()]
    found = [unpack_frames(frame) for frame in run.compute(units)]
    tables = {name: _table(name, [frames[name] for frames in found]) for name in TABLES}
    if tables["shifts"].empty:
        raise UnmetError(
            f"no cell of profile {run.profile_name} gave a verified shift; "
            "widen its grid or its datasets in params.yaml"
        )
    run.write(tables, PARAMETERS)


def _table(name: str, frames: list[pd.DataFrame]) -> pd.DataFrame:
    table = stack(frames)
    return validate(table.sort_values("shift_id", ignore_index=True) if len(table) else table, name)


def _unit(dataset: Dataset, split: Split, params: Params, grid: GridParams) -> Unit:
    parts = {
        **key_parts(dataset, split),
        "reference": as_json(params.reference),
        "shifts": as_json(params.shifts),
        "grid": as_json(grid),
    }
    key = content_key("shifts", ALGORITHM["shifts"], **parts)
    return Unit(key, _compute, (dataset, split, params, grid), dataset.name)


def _compute(dataset: Dataset, split: Split, params: Params, grid: GridParams) -> pd.DataFrame:
    candidates, shifts = make_shifts(dataset, split, params, grid)
    return pack_frames(candidates=candidates, shifts=shifts)
