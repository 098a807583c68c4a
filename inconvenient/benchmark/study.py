"""The tuned study: which datasets and shifts baselines are tuned on, drawn before any result."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import pandas as pd

from inconvenient.config import StudyParams
from inconvenient.data.bootstrap import Bootstrap
from inconvenient.errors import InputError
from inconvenient.evaluation.plan import draw_shifts

__all__ = ["study_order", "study_shifts", "study_table"]


def study_shifts(
    published: pd.DataFrame,
    datasets: pd.DataFrame,
    pool_rows: Mapping[str, int],
    study: StudyParams,
) -> pd.DataFrame:
    """Draw the shifts of the study.

    Parameters
    ----------
    published : DataFrame
        Published shifts: ``shift_id``, ``dataset``, ``task``, ``operation``, ``rows_hash`` and
        ``retained``.
    datasets : DataFrame
        Columns ``name`` and ``family``.
    pool_rows : mapping of str to int
        Size of each pool.
    study : StudyParams

    Returns
    -------
    DataFrame
        Rows of ``published``, sorted by ``shift_id``.

    Raises
    ------
    InputError
        If a task has too few datasets.

    Notes
    -----
    Eligible are datasets with a pool of at most ``max_pool`` rows and, among their retained shifts,
    ``shifts_per_dataset`` distinct row sets and two operations. Per task they come in random order;
    of a family the first one counts; the first ``datasets_per_task`` are taken. No score enters but
    by ``retained``, which is decided on the filter half, while the study reports the other half.
    """
    retained = published[published["retained"]]
    family = dict(zip(datasets["name"], datasets["family"], strict=True))
    rng = np.random.default_rng(study.seed)
    chosen: list[str] = []
    for task, own in retained.groupby("task", sort=True):
        per = own.groupby("dataset").agg({"rows_hash": "nunique", "operation": "nunique"})
        enough = (per["rows_hash"] >= study.shifts_per_dataset) & (per["operation"] >= 2)
        names = [n for n in sorted(per.index[enough]) if pool_rows[n] <= study.max_pool]
        taken: list[str] = []
        families: set[str] = set()
        for i in rng.permutation(len(names)):
            own_family = family[names[i]] or names[i]
            if own_family not in families and len(taken) < study.datasets_per_task:
                families.add(own_family)
                taken.append(names[i])
        if len(taken) < study.datasets_per_task:
            raise InputError(
                f"the study needs {study.datasets_per_task} datasets of task {task} with pools of "
                f"at most {study.max_pool} rows and {study.shifts_per_dataset} retained shifts of "
                f"two operations, found {len(taken)}; lower a number in params.yaml, block study"
            )
        chosen += taken
    own = retained[retained["dataset"].isin(chosen)]
    ids = draw_shifts(own, per_dataset=study.shifts_per_dataset, seed=study.seed)
    return own[own["shift_id"].isin(ids)].sort_values("shift_id", ignore_index=True)


def study_order(shifts: pd.DataFrame) -> list[list[str]]:
    """Return the datasets of the study in groups of one per task, to be done one after another.

    So that an unfinished study holds the tasks in equal parts.
    """
    by_task = shifts.groupby("task", sort=True)["dataset"]
    columns = [sorted(set(names)) for _, names in by_task]
    return [[n for n in group if n is not None] for group in itertools.zip_longest(*columns)]


def study_table(
    drawn: pd.DataFrame, tuned: pd.DataFrame, datasets: pd.DataFrame, *, seed: int
) -> pd.DataFrame:
    """Return what the study comes to, one row per task and baseline.

    Parameters
    ----------
    drawn : DataFrame
        ``shift_id``, ``dataset`` and ``task`` of the shifts.
    tuned : DataFrame
        Scores per shift and baseline, as :func:`inconvenient.evaluation.runner.assemble_tuned`
        makes them.
    datasets : DataFrame
        Columns ``name`` and ``family``.
    seed : int
        Of the bootstrap.

    Returns
    -------
    DataFrame
        Means over datasets, of each the mean over its shifts: ``score_id``, ``score_control``,
        ``score_ood``, ``degradation`` (ID minus OOD) with its 95 % interval ``low`` to ``high``
        over survey families, ``price_of_size`` (ID minus control), ``price_of_bias`` (control minus
        OOD); ``mean_rank`` of the baselines by ``score_ood`` within datasets (1 is best);
        ``datasets``, ``shifts`` and ``failed``, the shifts without a score, which are left out of
        the means of their baseline.
    """
    bootstrap = Bootstrap(dict(zip(datasets["name"], datasets["family"])), seed=seed)
    joined = tuned.merge(drawn[["shift_id", "dataset", "task"]], on="shift_id", validate="m:1")
    joined["degradation"] = joined["score_id"] - joined["score_ood"]
    joined["price_of_size"] = joined["score_id"] - joined["score_control"]
    joined["price_of_bias"] = joined["score_control"] - joined["score_ood"]
    rows = []
    for task, part in joined.groupby("task", sort=True):
        means = part.groupby(["baseline", "dataset"])[_MEANS].mean()
        ranks = means["score_ood"].unstack("baseline").dropna().rank(axis=1, ascending=False)
        for baseline, own in part.groupby("baseline", sort=True):
            mine = means.xs(baseline).dropna()
            low, high = bootstrap.interval(mine["degradation"])
            row = {"task": task, "baseline": baseline, **{k: mine[k].mean() for k in _MEANS}}
            row |= {"low": low, "high": high, "mean_rank": ranks[baseline].mean()}
            row |= {"datasets": len(mine), "shifts": len(own)}
            rows.append({**row, "failed": int((own["status"] != "ok").sum())})
    return pd.DataFrame(rows)


_MEANS = ["score_id", "score_control", "score_ood"]
_MEANS += ["degradation", "price_of_size", "price_of_bias"]
