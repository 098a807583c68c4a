"""Stage ``seeds``: the earlier stages with other split seeds, and how far the numbers move."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import pandas as pd

from inconvenient.config import TuningParams
from inconvenient.errors import ConfigError
from inconvenient.report.material import join
from inconvenient.report.seeds import seed_tables
from inconvenient.stages import collateral, evaluate, reference, shifts, split
from inconvenient.stages import filter as filtering
from inconvenient.stages.run import Run
from inconvenient.store import frame_bytes, read_frame

PARAMETERS = (
    "collateral",
    "evaluate",
    "filter",
    "reference",
    "report",
    "seeds",
    "shifts",
    "split",
    "profile.datasets",
    "profile.grid",
)

STEPS = {
    "split": split.main,
    "reference": reference.main,
    "shifts": shifts.main,
    "filter": filtering.main,
    "evaluate": evaluate.main,
    "collateral": collateral.main,
}


class SeedRun(Run):
    """A run of the earlier stages with another split seed, whose artefacts stay in memory.

    Records have the keys that they have elsewhere: the published split costs nothing where its
    stages have run. Nothing is tuned.

    Parameters
    ----------
    run : Run
        The stage's own.
    seed : int
        Of the split.
    """

    def __init__(self, run: Run, seed: int) -> None:
        self.stage = run.stage
        self.profile_name = run.profile_name
        block = dataclasses.replace(run.params.split, seed=seed)
        self.params = dataclasses.replace(run.params, split=block)
        none = TuningParams(shifts_per_dataset=0, trials=0)
        self.profile = dataclasses.replace(run.profile, tuning=none)
        self.folder = run.folder
        self.store = run.store
        self.workers = run.workers
        self.inputs: dict[str, str] = {}
        self.frames: dict[str, pd.DataFrame] = {}

    def read(self, name: str) -> pd.DataFrame:
        """Return what an earlier step wrote."""
        return self.frames[name]

    def write(self, frames: Mapping[str, pd.DataFrame], parameters: Sequence[str]) -> None:
        """Keep the frames of a step as they would be read from its artefact."""
        for name, frame in frames.items():
            self.frames[f"{self.stage}/{name}"] = read_frame(frame_bytes(frame))

    def all_steps(self) -> dict[str, pd.DataFrame]:
        """Run every step; return their frames by the names of the artefacts."""
        for self.stage, step in STEPS.items():
            step(self)
        return self.frames


def main(run: Run) -> None:
    """Write seeds/summary, seeds/spread, seeds/agreement and seeds/datasets."""
    published = run.params.split.seed
    seeds = (published, *run.params.seeds.other_splits)
    if len(set(seeds)) < len(seeds):
        raise ConfigError(
            f"seeds.other_splits must differ from each other and from split.seed, got {seeds}; "
            "correct params.yaml"
        )
    materials = {}
    for seed in seeds:
        rerun = SeedRun(run, seed)
        materials[seed] = join(rerun.all_steps(), rerun.params, {})
        run.inputs.update(rerun.inputs)
    run.write(seed_tables(materials, published=published), PARAMETERS)
