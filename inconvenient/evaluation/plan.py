"""Which training sets the scores of a dataset's shifts need: full pool, controls, convenience."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from inconvenient.config import TuningParams
from inconvenient.selection.chance import shared_size, uniform_rows
from inconvenient.shifts.rows import unpack_rows

if TYPE_CHECKING:
    from inconvenient.data import Split

__all__ = ["Plan", "TrainingSet", "draw_shifts", "drawn_shifts", "plans", "training_rows"]


@dataclass(frozen=True, slots=True)
class TrainingSet:
    """Rows to train on, drawn or unpacked only where they are needed.

    Parameters
    ----------
    role : {"id", "control", "ood"}
        The full pool, a uniform sample, or a convenience sample.
    name : str
        Its name among those of its role: "pool", "<size>/<draw>", or the row set's hash.
    size : int
        Number of rows.
    draw : int
        Of a control, the number of the draw.
    packed : bytes
        Of a convenience sample, the row ids.
    """

    role: str
    name: str
    size: int
    draw: int = 0
    packed: bytes = b""


@dataclass(frozen=True, slots=True)
class Plan:
    """The distinct training sets of one dataset.

    Parameters
    ----------
    name : str
        The dataset.
    pool : ndarray of int64
        Row ids, sorted.
    seed : int
        Of the uniform samples.
    full : TrainingSet
        The whole pool.
    controls : dict of int to tuple of TrainingSet
        Uniform samples by shared size, sizes ascending, in order of draw.
    samples : dict of str to TrainingSet
        Convenience samples by ``rows_hash``, in its order.
    """

    name: str
    pool: NDArray[np.int64]
    seed: int
    full: TrainingSet
    controls: Mapping[int, tuple[TrainingSet, ...]]
    samples: Mapping[str, TrainingSet]


def training_rows(
    item: TrainingSet, pool: NDArray[np.int64], *, seed: int, name: str
) -> NDArray[np.int64]:
    """Return the row ids of a training set, sorted; ``seed`` and ``name`` are its plan's."""
    if item.role == "id":
        return pool
    if item.role == "control":
        return uniform_rows(pool, item.size, item.draw, seed=seed, name=name)
    return np.sort(unpack_rows(item.packed))


def plans(
    splits: Mapping[str, Split], shifts: pd.DataFrame, *, controls: int, seed: int
) -> dict[str, Plan]:
    """Return the training sets per dataset that has shifts, in order of name.

    Parameters
    ----------
    splits : mapping of str to Split
    shifts : DataFrame
        Verified shifts: columns ``dataset``, ``size``, ``rows`` and ``rows_hash``.
    controls : int
        Uniform samples per size: the first so many of those that stand behind ``p_uniform``.
    seed : int
        Seed of the uniform samples.
    """
    out: dict[str, Plan] = {}
    columns = ["size", "rows", "rows_hash"]
    for key, own in shifts.groupby("dataset", sort=True)[columns]:
        name = str(key)
        pool = np.sort(splits[name].pool)
        distinct = own.drop_duplicates("rows_hash").sort_values("rows_hash")
        samples = {
            digest: TrainingSet("ood", digest, int(size), packed=packed)
            for size, packed, digest in zip(*(distinct[c] for c in columns), strict=True)
        }
        drawn = {
            size: tuple(
                TrainingSet("control", f"{size}/{draw}", size, draw) for draw in range(controls)
            )
            for size in sorted({shared_size(item.size) for item in samples.values()})
        }
        out[name] = Plan(name, pool, seed, TrainingSet("id", "pool", pool.size), drawn, samples)
    return out


def draw_shifts(shifts: pd.DataFrame, *, per_dataset: int, seed: int) -> list[str]:
    """Draw the shifts that tuned baselines are scored on.

    Parameters
    ----------
    shifts : DataFrame
        Verified shifts: columns ``shift_id``, ``dataset``, ``operation`` and ``rows_hash``.
    per_dataset : int
        How many per dataset, fewer where it has fewer distinct row sets.
    seed : int

    Returns
    -------
    list of str
        Sorted shift ids. No two share a row set; the operations take turns in random order, each
        giving a random row set of its own (named by the smallest shift id), so that their numbers
        differ by one at most while all have row sets left. A dataset's draw does not depend on
        the other datasets.
    """
    drawn: list[str] = []
    for name, own in shifts.groupby("dataset", sort=True):
        rng = np.random.default_rng([seed, *str(name).encode()])
        queues = []
        for _, part in own.sort_values("shift_id").groupby("operation", sort=True):
            distinct = part.drop_duplicates("rows_hash")
            order = rng.permutation(len(distinct))
            pairs = list(zip(distinct["shift_id"], distinct["rows_hash"], strict=True))
            queues.append([pairs[i] for i in order])
        turns = [queues[i] for i in rng.permutation(len(queues))]
        drawn += _take_turns(turns, per_dataset)
    return sorted(drawn)


def _take_turns(queues: list[list[tuple[str, str]]], k: int) -> list[str]:
    taken: dict[str, str] = {}
    while len(taken) < k and any(queues):
        for queue in queues:
            while queue and queue[0][1] in taken:
                queue.pop(0)
            if queue and len(taken) < k:
                shift_id, digest = queue.pop(0)
                taken[digest] = shift_id
    return list(taken.values())


def drawn_shifts(shifts: pd.DataFrame, tuning: TuningParams, *, seed: int) -> pd.DataFrame:
    """Return the rows of ``shifts`` that :func:`draw_shifts` draws; none without trials."""
    if tuning.trials == 0 or tuning.shifts_per_dataset == 0:
        return shifts.iloc[:0]
    ids = draw_shifts(shifts, per_dataset=tuning.shifts_per_dataset, seed=seed)
    return shifts[shifts["shift_id"].isin(ids)]
