"""``python -m inconvenient.stages.study``: the tuned study, which takes hours and no stage.

All baselines of params.yaml's block ``study`` are tuned and scored on shifts of the full profile.
Each result is a record of the store, so that the command may be stopped and run again. After every
group of datasets the folder study/ is written anew with all that is finished; study.dvc tracks it.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from inconvenient.benchmark.study import study_order, study_shifts
from inconvenient.config import TuningParams
from inconvenient.data import list_datasets
from inconvenient.errors import InconvenientError
from inconvenient.evaluation.runner import assemble_tuned, tuned_units
from inconvenient.stages.inputs import read_datasets, read_splits
from inconvenient.stages.run import Run
from inconvenient.store import frame_bytes, write_folder

PARAMETERS = ("split", "shifts", "evaluate", "study")
COLUMNS = ["shift_id", "dataset", "task", "operation", "mode", "factor", "importance_bin"]
COLUMNS += ["min_fraction", "size", "rows_hash"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the study in the current folder; return 0, 1 after an explained error, or 130."""
    parser = argparse.ArgumentParser(prog="python -m inconvenient.stages.study")
    parser.add_argument("--workers", type=int, help="processes; default: $INCONVENIENT_WORKERS")
    parser.add_argument("--hours", type=float, help="begin no group of datasets after so long")
    given = parser.parse_args(arguments)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    try:
        run = Run(Path.cwd(), "evaluate", "full", given.workers)
        _study(run, given.hours)
    except InconvenientError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped; what is finished is kept, run again to go on", file=sys.stderr)
        return 130
    return 0


def _study(run: Run, hours: float | None) -> None:
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
    started = time.monotonic()
    groups = study_order(drawn)
    tables: list[pd.DataFrame] = []
    for number, group in enumerate(groups, start=1):
        if hours is not None and time.monotonic() - started > 3600 * hours:
            print(f"{number - 1} of {len(groups)} groups of datasets are done", file=sys.stderr)
            return
        own = drawn[drawn["dataset"].isin(group)]
        frames = run.compute(tuned_units(datasets, splits, own, params, tuning))
        tables.append(assemble_tuned(splits, own, params, tuning, frames))
        _write(run, drawn, pd.concat(tables, ignore_index=True))


def _write(run: Run, drawn: pd.DataFrame, scores: pd.DataFrame) -> None:
    """Write study/shifts and study/tuned: what was drawn, and the scores that are finished."""
    facts = run.facts(PARAMETERS)
    scores = scores.sort_values(["shift_id", "baseline"], ignore_index=True)
    frames = {"shifts": drawn[COLUMNS], "tuned": scores}
    write_folder(Path("study"), {f"{k}.parquet": frame_bytes(v, facts) for k, v in frames.items()})


if __name__ == "__main__":
    sys.exit(main())
