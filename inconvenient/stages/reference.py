"""Stage ``reference``: the reference model of every pool."""

from __future__ import annotations

import pandas as pd

from inconvenient.benchmark.grid import reference_frames
from inconvenient.config import Params, as_json
from inconvenient.data import Dataset, Split
from inconvenient.stages.inputs import key_parts, read_datasets, read_splits
from inconvenient.stages.run import Run, stack
from inconvenient.store import ALGORITHM, Unit, content_key, pack_frames, unpack_frames

PARAMETERS = ("reference",)


def main(run: Run) -> None:
    """Write reference/datasets and reference/coefficients, sorted by dataset."""
    splits = read_splits(run)
    units = [_unit(d, splits[d.name], run.params) for d in read_datasets(run).values()]
    found = [unpack_frames(frame) for frame in run.compute(units)]
    found.sort(key=lambda frames: str(frames["datasets"]["dataset"].iloc[0]))
    names = ("datasets", "coefficients")
    run.write({name: stack([frames[name] for frames in found]) for name in names}, PARAMETERS)


def _unit(dataset: Dataset, split: Split, params: Params) -> Unit:
    parts = {**key_parts(dataset, split), "reference": as_json(params.reference)}
    key = content_key("reference", ALGORITHM["reference"], **parts)
    return Unit(key, _compute, (dataset, split, params), dataset.name)


def _compute(dataset: Dataset, split: Split, params: Params) -> pd.DataFrame:
    datasets, coefficients = reference_frames(dataset, split, params)
    return pack_frames(datasets=datasets, coefficients=coefficients)
