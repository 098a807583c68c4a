"""Results beside the published baselines on the same shifts: differences, ranks and tests."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from inconvenient.data.bootstrap import Bootstrap
from inconvenient.errors import InputError
from inconvenient.shifts import list_shifts
from inconvenient.shifts.schema import baselines_of
from inconvenient.shifts.study import read_study

__all__ = ["LEAST_DATASETS", "Comparison", "compare"]

#: With fewer, the smallest two-sided p value of the signed-rank test is above 0.05.
LEAST_DATASETS = 6

_TASKS = ("regression", "binary", "multiclass")
_QUANTITIES = ("score_ood", "degradation")
_NEEDED = ("model", "shift_id", "status", *_QUANTITIES)


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Models beside the published baselines.

    Parameters
    ----------
    differences : DataFrame
        A row per task, model, baseline and quantity (``score_ood``, ``degradation``): ``shifts``
        that both have scores of, ``left_out``, ``datasets``; ``mean`` of model minus baseline over
        datasets (of each the mean over its shifts), and its 95 % interval ``low``, ``high``, NaN
        with fewer than three families.
    ranks : DataFrame
        A row per task and model, published baselines included: ``mean_rank`` by ``score_ood`` over
        ``datasets`` (1 is best, ties averaged), on ``shifts`` that all models have scores of.
    tests : DataFrame
        A row per task, model, baseline and quantity: ``statistic`` and two-sided ``p`` of
        Wilcoxon's signed-rank test over ``datasets``, ``p_holm`` corrected for all tests of the
        task and quantity; ``note`` says why there is none.
    """

    differences: pd.DataFrame
    ranks: pd.DataFrame
    tests: pd.DataFrame


def compare(
    result: pd.DataFrame, *, profile: str | None = None, study: bool = False, seed: int = 0
) -> Comparison:
    """Set results beside the published scores of the baselines on the same shifts.

    Parameters
    ----------
    result : DataFrame
        Of :func:`inconvenient.evaluate`; of several models, under one another.
    profile : str, optional
        Whose published scores; "full" if that is present, else "quick".
    study : bool
        The tuned study's baselines stand beside, too, as "catboost, tuned" and the like; every
        shift must be one of the study.
    seed : int
        Of the bootstrap.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        If a shift is not published (or not of the study), or a model has it twice.
    NotAvailableError
        If the published shifts, or the study, are not on this machine.

    Notes
    -----
    Published scores are those of the default settings, but for the study's. Shifts on which either
    failed are left out and counted. Intervals resample survey families, and datasets within; tests
    are over datasets, since the shifts of one are not independent.
    """
    from inconvenient.data import list_datasets

    absent = [name for name in _NEEDED if name not in result]
    if absent:
        raise InputError(
            f"a result must have the columns of ic.evaluate, {', '.join(absent)} are missing; "
            "hand over its table, or what it wrote with --out"
        )
    published = list_shifts(profile=profile)
    rivals = _default_scores(published)
    if study:
        rivals |= _tuned_scores(result)
    wide, models = _joined(result, published, rivals)
    baselines = sorted(rivals)
    catalogue = list_datasets()
    bootstrap = Bootstrap(dict(zip(catalogue["name"], catalogue["family"])), seed=seed)
    differences: list[dict[str, Any]] = []
    tests: list[dict[str, Any]] = []
    ranks: list[dict[str, Any]] = []
    for task in [task for task in _TASKS if task in set(wide["task"])]:
        own = wide[wide["task"] == task]
        for quantity in _QUANTITIES:
            family = []
            for model in models:
                for baseline in baselines:
                    names = {"task": task, "model": model, "baseline": baseline}
                    names["quantity"] = quantity
                    row, means = _difference(own, model, baseline, quantity, bootstrap)
                    differences.append({**names, **row})
                    family.append({**names, **_signed_rank(means)})
            tests += _holm(family)
        ranks += [{"task": task, **row} for row in _ranks(own, models, baselines)]
    return Comparison(pd.DataFrame(differences), pd.DataFrame(ranks), pd.DataFrame(tests))


def _default_scores(published: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return, per baseline, its quantities by shift id."""
    found = {}
    for baseline, names in baselines_of(map(str, published.columns)).items():
        if not baseline.startswith("filter_"):
            own = published.set_index("shift_id")
            found[baseline] = _quantities(own[names[0]], own[names[3]])
    return found


def _tuned_scores(result: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the same for the baselines of the tuned study."""
    tuned = read_study()
    strange = sorted(set(result["shift_id"]) - set(tuned["shift_id"]))
    if strange:
        raise InputError(
            f"results beside the tuned study must be of its shifts, got {strange[0]!r}; score "
            "those of `inconvenient.shifts.study.read_study()`, on the command line by --study"
        )
    found = {}
    for baseline, own in tuned.groupby("baseline", sort=True):
        rows = own.set_index("shift_id")
        found[f"{baseline}, tuned"] = _quantities(rows["score_id"], rows["score_ood"])
    return found


def _quantities(full: pd.Series, ood: pd.Series) -> pd.DataFrame:
    return pd.DataFrame({"score_ood": ood, "degradation": full - ood})


def _joined(
    result: pd.DataFrame, published: pd.DataFrame, rivals: Mapping[str, pd.DataFrame]
) -> tuple[pd.DataFrame, list[str]]:
    """Return one row per shift: facts, and by model and quantity the scores, NaN after a failure.

    Columns of scores are pairs: (model or "<baseline> (published)", quantity).
    """
    twice = result.duplicated(["model", "shift_id"])
    if twice.any():
        raise InputError(
            f"a result must have a shift once per model, got {result['shift_id'][twice].iloc[0]!r} "
            "more than once; compare one result of a model at a time"
        )
    strange = sorted(set(result["shift_id"]) - set(published["shift_id"]))
    if strange:
        raise InputError(
            f"results must be of published shifts, got {strange[0]!r}; name their profile"
        )
    rows = published[published["shift_id"].isin(result["shift_id"])].set_index("shift_id")
    columns: dict[Any, pd.Series] = {"dataset": rows["dataset"], "task": rows["task"]}
    for baseline, own in rivals.items():
        for quantity in _QUANTITIES:
            columns[_published(baseline), quantity] = own[quantity].reindex(rows.index)
    models = [str(model) for model in result["model"].unique()]
    for model in models:
        own = result[(result["model"] == model) & (result["status"] == "ok")].set_index("shift_id")
        for quantity in _QUANTITIES:
            columns[model, quantity] = own[quantity].reindex(rows.index)
    return pd.DataFrame({name: column.to_numpy() for name, column in columns.items()}), models


def _published(baseline: str) -> str:
    return f"{baseline} (published)"


def _difference(
    own: pd.DataFrame, model: str, baseline: str, quantity: str, bootstrap: Bootstrap
) -> tuple[dict[str, Any], NDArray[np.float64]]:
    """Return the row of a paired difference, and its mean per dataset."""
    gap = own[model, quantity] - own[_published(baseline), quantity]
    means = gap.groupby(own["dataset"]).mean().dropna()
    low, high = bootstrap.interval(means) if len(means) else (math.nan, math.nan)
    paired = int(gap.notna().sum())
    row = {
        "shifts": paired,
        "left_out": len(gap) - paired,
        "datasets": len(means),
        "mean": float(means.mean()) if len(means) else math.nan,
        "low": low,
        "high": high,
    }
    return row, means.to_numpy(dtype=np.float64)


def _signed_rank(means: NDArray[np.float64]) -> dict[str, Any]:
    """Return Wilcoxon's test of differences per dataset, or why there is none."""
    from scipy.stats import wilcoxon

    row: dict[str, Any] = {"datasets": means.size, "statistic": math.nan, "p": math.nan}
    if means.size < LEAST_DATASETS:
        note = f"no test: {means.size} datasets, at least {LEAST_DATASETS} are needed"
        return {**row, "note": note}
    if not means.any():
        return {**row, "p": 1.0, "note": "no dataset differs"}
    found = wilcoxon(means)
    return {**row, "statistic": float(found.statistic), "p": float(found.pvalue), "note": ""}


def _holm(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add ``p_holm``: p values, the k-th smallest of n times n - k + 1, not falling, at most 1."""
    tested = sorted((row for row in rows if row["p"] == row["p"]), key=lambda row: row["p"])
    corrected: dict[int, float] = {}
    largest = 0.0
    for k, row in enumerate(tested):
        largest = max(largest, min(1.0, (len(tested) - k) * row["p"]))
        corrected[id(row)] = largest
    out = []
    for row in rows:
        note = row["note"]
        rest = {key: value for key, value in row.items() if key != "note"}
        out.append({**rest, "p_holm": corrected.get(id(row), math.nan), "note": note})
    return out


def _ranks(own: pd.DataFrame, models: list[str], baselines: list[str]) -> list[dict[str, Any]]:
    """Return the average rank of every model over datasets, on shifts that all have scores of."""
    from scipy.stats import rankdata

    names = [*models, *map(_published, baselines)]
    scores: Mapping[str, pd.Series] = {name: own[name, "score_ood"] for name in names}
    table = pd.DataFrame(dict(scores)).assign(dataset=own["dataset"]).dropna()
    means = table.groupby("dataset")[names].mean()
    if means.empty:
        return [
            {"model": name, "mean_rank": math.nan, "datasets": 0, "shifts": 0} for name in names
        ]
    # Equal scores of two models may differ in the last digit of their means.
    ranks = rankdata(-means.to_numpy().round(12), axis=1).mean(axis=0)
    return [
        {"model": name, "mean_rank": float(rank), "datasets": len(means), "shifts": len(table)}
        for name, rank in zip(names, ranks)
    ]
