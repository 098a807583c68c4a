"""How far the numbers of a profile depend on the seed of its split: tables over a few seeds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from inconvenient.report.material import OPERATIONS, POPULATIONS, TASKS, Material
from inconvenient.report.summary import dataset_medians, summarise

__all__ = ["SPREAD", "agreement_table", "datasets_table", "seed_tables", "spread_table"]

Row = dict[str, Any]

#: Numbers whose spread over seeds is told, and the part of the score whose medians they average.
SPREAD: dict[str, str | None] = {
    "mean_degradation": None,
    "headline": "degradation",
    "size": "size",
    "bias": "bias",
    "headline_relative": None,
    "collateral": None,
}

#: Half the width of a 95 % interval in standard errors.
_NORMAL = 1.959964


def seed_tables(materials: Mapping[int, Material], *, published: int) -> dict[str, pd.DataFrame]:
    """Return what the same pipeline finds with several split seeds.

    Parameters
    ----------
    materials : mapping of int to Material
        The joined frames of one profile by split seed.
    published : int
        The seed of the published split.

    Returns
    -------
    dict of str to DataFrame
        "summary", one row per seed, task, baseline, set of shifts and ``main``:

        - ``seed``, ``published``, ``task``, ``baseline``;
        - ``shift_set``: "verified", "retained" or "retained_paper"; ``main``: whether the
          conditions of the main tables (chance, useful datasets) are asked as well;
        - ``datasets``, ``shifts``, ``failed``, ``row_sets``: counts, the first and the last of
          scored shifts;
        - ``mean_degradation``: mean over shifts; ``mean_relative``: that over the mean ID score;
        - ``headline``, ``size``, ``bias``: mean over datasets of the median degradation, price of
          size, price of bias, each with ``_low`` and ``_high``, the 95 % bootstrap interval over
          families (NaN with fewer than three); ``headline_relative``;
        - ``collateral``, ``collateral_control``: medians over shifts, the same for each baseline.

        "spread": see :func:`spread_table`; "agreement": see :func:`agreement_table`; "datasets":
        see :func:`datasets_table`.

    Notes
    -----
    Only the split varies; the seeds of selection, control samples and models stay the same. The
    controls differ, for they are drawn from another pool.
    """
    summary = pd.DataFrame(
        [row for seed, own in materials.items() for row in _summary(own, seed, published)]
    )
    datasets = datasets_table(materials)
    return {
        "summary": summary,
        "spread": spread_table(summary, datasets),
        "agreement": agreement_table(materials),
        "datasets": datasets,
    }


def _chosen(frame: pd.DataFrame, task: str, population: str, main: bool) -> pd.DataFrame:
    keep = (frame["task"] == task) & frame[POPULATIONS[population]]
    return frame[keep & frame["main"]] if main else frame[keep]


def _summary(material: Material, seed: int, published: int) -> list[Row]:
    rows = []
    baselines = sorted(material.default["baseline"].unique())
    for task, baseline, population, main in itertools.product(
        TASKS, baselines, POPULATIONS, (False, True)
    ):
        scores = material.default[material.default["baseline"] == baseline]
        own = _chosen(scores, task, population, main)
        shifts = _chosen(material.shifts, task, population, main)
        found = summarise(own)
        row: Row = {"seed": seed, "published": seed == published}
        row |= {"task": task, "baseline": baseline, "shift_set": population, "main": main}
        row |= {name: found[name] for name in ("datasets", "shifts", "failed", "row_sets")}
        row |= {name: found[name] for name in ("mean_degradation", "mean_relative")}
        row["headline_relative"] = found["median_relative"]
        for name, part in SPREAD.items():
            if part is not None:
                row[name] = found[f"median_{part}"]
                low, high = material.bootstrap.interval(dataset_medians(own, part))
                row |= {f"{name}_low": low, f"{name}_high": high}
        for name in ("collateral", "collateral_control"):
            row[name] = float(shifts[name].median()) if shifts[name].notna().any() else math.nan
        rows.append(row)
    return rows


def datasets_table(materials: Mapping[int, Material]) -> pd.DataFrame:
    """Return what each seed gives for each dataset.

    Parameters
    ----------
    materials : mapping of int to Material

    Returns
    -------
    DataFrame
        One row per seed, dataset, baseline, set of shifts and ``main``: ``seed``, ``dataset``,
        ``task``, ``status`` ("ok", or why the split failed), ``score`` (of the reference model),
        ``baseline``, ``shift_set``, ``main``, ``shifts`` (scored ones) and the medians over them,
        ``headline``, ``size`` and ``bias``.
    """
    rows: list[Row] = []
    for seed, material in materials.items():
        scores = material.default.dropna(subset=["degradation"])
        facts = list(zip(*(material.datasets[c] for c in ("dataset", "task", "status", "score"))))
        baselines = sorted(scores["baseline"].unique())
        for (name, task, status, score), baseline, population, main in itertools.product(
            facts, baselines, POPULATIONS, (False, True)
        ):
            own = scores[(scores["dataset"] == name) & (scores["baseline"] == baseline)]
            own = _chosen(own, task, population, main)
            row: Row = {"seed": seed, "dataset": name, "task": task, "status": status}
            row |= {"score": score, "baseline": baseline, "shift_set": population, "main": main}
            row["shifts"] = len(own)
            for column, part in SPREAD.items():
                if part is not None:
                    row[column] = float(own[part].median()) if len(own) else math.nan
            rows.append(row)
    return pd.DataFrame(rows)


def spread_table(summary: pd.DataFrame, datasets: pd.DataFrame) -> pd.DataFrame:
    """Return how far each number moves between seeds, beside its interval within one.

    Parameters
    ----------
    summary, datasets : DataFrame
        As in :func:`seed_tables`.

    Returns
    -------
    DataFrame
        One row per task, baseline, set of shifts, ``main`` and number (the keys of SPREAD):

        - ``number``; ``seeds``: with how many of them it exists;
        - ``published``, ``mean``, ``least``, ``greatest``: its value with the published split, and
          over the seeds;
        - ``between_sd``: its standard deviation between seeds (divisor one less; NaN under two);
        - ``low``, ``high``: the bootstrap interval within the published split, over datasets;
        - ``within_se``: the mean over seeds of that interval's width over 2 x 1.96; NaN, as low
          and high, where a number has no interval;
        - ``dataset_sd``: the root of the mean over datasets of the variance between seeds of a
          dataset's own median, of the datasets that have one with every seed.

    Notes
    -----
    ``between_sd`` is what another split would change while the datasets stay; ``within_se`` is
    what other datasets would change. Were the datasets' medians independent between seeds,
    ``between_sd`` would be near ``dataset_sd / sqrt(datasets)``. A standard deviation of three
    values is itself uncertain by half its size.
    """
    rows = []
    keys = ["task", "baseline", "shift_set", "main"]
    medians = dict(iter(datasets.groupby(keys, sort=False)))
    for key, own in summary.groupby(keys, sort=False):
        head: Row = dict(zip(keys, key))
        for number, part in SPREAD.items():
            values = own[number].dropna()
            row: Row = {**head, "number": number, "seeds": len(values)}
            row["published"] = _first(own.loc[own["published"], number])
            row |= {"mean": values.mean(), "least": values.min(), "greatest": values.max()}
            row["between_sd"] = values.std(ddof=1) if len(values) > 1 else math.nan
            row |= {"low": math.nan, "high": math.nan, "within_se": math.nan}
            row["dataset_sd"] = math.nan
            if part is not None:
                low, high = f"{number}_low", f"{number}_high"
                row["low"] = _first(own.loc[own["published"], low])
                row["high"] = _first(own.loc[own["published"], high])
                row["within_se"] = (own[high] - own[low]).mean() / (2 * _NORMAL)
                row["dataset_sd"] = _dataset_sd(medians.get(key, datasets[:0]), number)
            rows.append(row)
    return pd.DataFrame(rows)


def _first(values: pd.Series) -> float:
    return float(values.iloc[0]) if len(values) else math.nan


def _dataset_sd(medians: pd.DataFrame, number: str) -> float:
    table = medians.pivot(index="dataset", columns="seed", values=number).dropna()
    if not len(table) or table.shape[1] < 2:
        return math.nan
    return float(np.sqrt(table.var(axis=1, ddof=1).mean()))


def agreement_table(materials: Mapping[int, Material]) -> pd.DataFrame:
    """Return how many shifts are found with one, two, ... all of the seeds.

    Parameters
    ----------
    materials : mapping of int to Material

    Returns
    -------
    DataFrame
        One row per task, operation (and "all"), set of shifts and ``unit``: "cell" is (dataset,
        what is bent, operation, factor, minimum fraction, mode), as in a shift id; "triple" is
        (dataset, what is bent, direction), for of several nearly equal row sets of a trajectory
        the filters keep one, and which one is an accident.

        - ``candidates``: units that are candidates with at least one seed; ``in_all_grids``: with
          every seed (another pool ranks features by another |b|);
        - ``in_any``, and ``in_1``, ``in_2``, ...: units found with at least one seed, with exactly
          one, two, ...;
        - ``again``: probability that a unit found with one seed is found with another one, over
          ordered pairs of seeds;
        - ``base``: the same for a candidate taken at random: share of candidates found, mean over
          seeds.
    """
    named = [(_named(m.candidates), _named(m.shifts)) for m in materials.values()]
    rows = []
    for task, operation, population in itertools.product(TASKS, (*OPERATIONS, "all"), POPULATIONS):
        asked = [_at(candidates, task, operation) for candidates, _ in named]
        found = [_at(shifts, task, operation) for _, shifts in named]
        found = [shifts[shifts[POPULATIONS[population]]] for shifts in found]
        for unit in ("cell", "triple"):
            head: Row = {"task": task, "operation": operation}
            head |= {"shift_set": population, "unit": unit}
            sets = ([set(frame[unit]) for frame in frames] for frames in (asked, found))
            rows.append({**head, **_agreement(*sets)})
    return pd.DataFrame(rows)


_DIRECTION = {"amplify": "+", "attenuate": "-", "flip": "-"}


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with their units as text."""
    label = frame["feature"].where(frame["kind"] == "single", "bin:" + frame["importance_bin"])
    triple = frame["dataset"] + "/" + label + "/" + frame["operation"].map(_DIRECTION)
    return frame.assign(cell=frame["shift_id"], triple=triple)


def _at(frame: pd.DataFrame, task: str, operation: str) -> pd.DataFrame:
    own = frame[frame["task"] == task]
    return own if operation == "all" else own[own["operation"] == operation]


def _agreement(asked: list[set[str]], found: list[set[str]]) -> Row:
    seeds = len(found)
    times = pd.Series([name for own in found for name in own], dtype="str").value_counts()
    row: Row = {
        "candidates": len(set().union(*asked)),
        "in_all_grids": len(set.intersection(*asked)),
        "in_any": len(times),
    }
    row |= {f"in_{k}": int((times == k).sum()) for k in range(1, seeds + 1)}
    total = int(times.sum())
    pairs = int((times * (times - 1)).sum())
    row["again"] = pairs / (total * (seeds - 1)) if total and seeds > 1 else math.nan
    shares = [len(f) / len(a) for a, f in zip(asked, found) if a]
    row["base"] = float(np.mean(shares)) if shares else math.nan
    return row
