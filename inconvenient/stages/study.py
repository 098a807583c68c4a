"""``python -m inconvenient.stages.study``: the tuned study, which takes hours and no stage.

All baselines of params.yaml's block ``study`` are tuned and scored on shifts of the full profile.
Each result is a record of the store, so that the command may be stopped and run again. After every
group of datasets the folder study/ is written anew with all that is finished; study.dvc tracks it.
With --table nothing is computed: the tables of docs/tuned_study.md are printed from study/.
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

from inconvenient.baselines import get_baseline
from inconvenient.benchmark.study import study_order, study_shifts, study_table
from inconvenient.config import TuningParams
from inconvenient.data import list_datasets
from inconvenient.errors import InconvenientError, NotAvailableError
from inconvenient.evaluation.runner import assemble_tuned, tuned_units
from inconvenient.stages.inputs import read_datasets, read_splits
from inconvenient.stages.run import Run
from inconvenient.store import frame_bytes, library_versions, read_frame, write_folder

PARAMETERS = ("split", "shifts", "evaluate", "study")
COLUMNS = ["shift_id", "dataset", "task", "operation", "mode", "factor", "importance_bin"]
COLUMNS += ["min_fraction", "size", "rows_hash"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the study in the current folder; return 0, 1 after an explained error, or 130."""
    parser = argparse.ArgumentParser(prog="python -m inconvenient.stages.study")
    parser.add_argument("--workers", type=int, help="processes; default: $INCONVENIENT_WORKERS")
    parser.add_argument("--hours", type=float, help="begin no group of datasets after so long")
    parser.add_argument("--table", action="store_true", help="print the tables of study/")
    given = parser.parse_args(arguments)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    try:
        run = Run(Path.cwd(), "evaluate", "full", given.workers)
        if given.table:
            print(tables(Path("study"), run.params.study.seed))
        else:
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
    models = [get_baseline(name) for name in run.params.study.baselines]
    libraries = sorted({module for model in models for module in model.requires})
    facts = {**run.facts(PARAMETERS), "libraries": library_versions("optuna", *libraries)}
    scores = scores.sort_values(["shift_id", "baseline"], ignore_index=True)
    frames = {"shifts": drawn[COLUMNS], "tuned": scores}
    write_folder(Path("study"), {f"{k}.parquet": frame_bytes(v, facts) for k, v in frames.items()})


def tables(folder: Path, seed: int) -> str:
    """Return the tables of a finished study, or of what is finished, as Markdown."""
    names = ("shifts", "tuned")
    missing = [folder / f"{k}.parquet" for k in names if not (folder / f"{k}.parquet").is_file()]
    if missing:
        raise NotAvailableError(f"{missing[0]} is needed and absent; run `dvc pull study.dvc`")
    drawn, tuned = (read_frame((folder / f"{name}.parquet").read_bytes()) for name in names)
    found = study_table(drawn, tuned, list_datasets(), seed=seed)
    lines = []
    for task, own in found.groupby("task", sort=True):
        first = own.iloc[0]
        facts = f"{first['datasets']} datasets, {first['shifts']} shifts"
        lines += [f"### {str(task).capitalize()}: {facts}, {own['failed'].sum()} failures", ""]
        lines += [_HEAD, "|" + " --- |" * _HEAD.count(" | ") + " --- |"]
        for row in own.sort_values(["mean_rank", "baseline"]).to_dict("records"):
            cells = [str(row["baseline"]), *(f"{row[name]:.3f}" for name in _SCORES)]
            cells.append(f"{row['degradation']:.3f} ({row['low']:.3f} to {row['high']:.3f})")
            cells += [f"{row['price_of_size']:.3f}", f"{row['price_of_bias']:.3f}"]
            lines.append(f"| {' | '.join([*cells, format(row['mean_rank'], '.2f')])} |")
        lines.append("")
    return "\n".join(lines).rstrip()


_SCORES = ("score_id", "score_control", "score_ood")
_HEAD = "| baseline | ID | control | OOD | ID - OOD (95 %) | ID - control | control - OOD | rank |"


if __name__ == "__main__":
    sys.exit(main())
