"""``python -m inconvenient.stages study full``: the tuned study, which takes hours and no stage.

All baselines of params.yaml's block ``study`` are tuned and scored on shifts of the full profile.
Each result is a record of the store, so that the command may be stopped and run again. After every
group of datasets the folder study/ is written anew with all that is finished; study.dvc tracks it.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pandas as pd

from inconvenient.baselines import get_baseline
from inconvenient.benchmark.study import study_order, study_shifts
from inconvenient.config import TuningParams
from inconvenient.data import list_datasets
from inconvenient.evaluation.runner import assemble_tuned, tuned_units
from inconvenient.stages.inputs import read_datasets, read_splits
from inconvenient.stages.run import Run
from inconvenient.store import frame_bytes, library_versions, write_folder

PARAMETERS = ("split", "shifts", "evaluate", "study")
COLUMNS = ["shift_id", "dataset", "task", "operation", "mode", "factor", "importance_bin"]
COLUMNS += ["min_fraction", "size", "rows_hash"]


def main(run: Run) -> None:
    """Write study/shifts and study/tuned, anew after every group of datasets."""
    run.stage = "evaluate"  # whose records these are
    datasets, splits = read_datasets(run), read_splits(run)
    sizes = {name: len(split.pool) for name, split in splits.items()}
    published = run.read("publish/shifts")
    drawn = study_shifts(published, list_datasets(), sizes, run.params.study)
    chosen = set(drawn["dataset"])
    run.inputs = {
        k: v for k, v in run.inputs.items() if not k.startswith("data/") or k[5:] in chosen
    }
    block = dataclasses.replace(run.params.evaluate, baselines=run.params.study.baselines)
    params = dataclasses.replace(run.params, evaluate=block)
    tuning = TuningParams(run.params.study.shifts_per_dataset, run.params.study.trials)
    tables: list[pd.DataFrame] = []
    for group in study_order(drawn):
        own = drawn[drawn["dataset"].isin(group)]
        frames = run.compute(tuned_units(datasets, splits, own, params, tuning))
        tables.append(assemble_tuned(splits, own, params, tuning, frames))
        _write(run, drawn, pd.concat(tables, ignore_index=True))


def _write(run: Run, drawn: pd.DataFrame, scores: pd.DataFrame) -> None:
    """Write study/shifts and study/tuned: what was drawn, and the scores that are finished."""
    models = [get_baseline(name) for name in run.params.study.baselines]
    libraries = sorted({module for model in models for module in model.requires})
    facts = {**run.facts(PARAMETERS), "libraries": library_versions("optuna", *libraries)}
    scores = scores.sort_values(["shift_id", "baseline"], ignore_index=True)
    frames = {"shifts": drawn[COLUMNS], "tuned": scores}
    write_folder(Path("study"), {f"{k}.parquet": frame_bytes(v, facts) for k, v in frames.items()})
