"""Which published shifts a model is scored on: by id, by pattern, at random, or all."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from inconvenient.errors import InputError, NotAvailableError
from inconvenient.shifts import list_shifts
from inconvenient.shifts.published import Published, read_published

if TYPE_CHECKING:
    from inconvenient.data import Dataset

__all__ = ["TASKS", "choose", "chosen"]

TASKS = ("regression", "binary", "multiclass")


def choose(
    shifts: pd.DataFrame,
    patterns: Sequence[str] | None = None,
    *,
    tasks: Collection[str] = TASKS,
    limit: int | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Choose some of the published shifts.

    Parameters
    ----------
    shifts : DataFrame
        Rows of :func:`inconvenient.list_shifts`.
    patterns : sequence of str, optional
        Ids, or with ``*`` and ``?`` as in a shell; all by default.
    tasks : collection of str
        A shift of another task is taken only if its id is named.
    limit : int, optional
        Draw so many of them, without replacement; all if there are no more.
    seed : int
        Of the draw.

    Returns
    -------
    DataFrame
        In the order of ``shifts``.

    Raises
    ------
    InputError
        If a pattern names no shift, or none is left.
    """
    ids = shifts["shift_id"].tolist()
    known = set(ids)
    named = {pattern for pattern in patterns or () if pattern in known}
    wanted = set(named) if patterns is not None else known
    for pattern in patterns or ():
        found = [pattern] if pattern in known else fnmatch.filter(ids, pattern)
        if not found:
            near = difflib.get_close_matches(pattern, ids, n=3, cutoff=0.3)
            hint = f"closest are {', '.join(near)}" if near else "see list_shifts()"
            raise InputError(f"no published shift matches {pattern!r}; {hint}")
        wanted.update(found)
    fit = shifts["shift_id"].isin(wanted) & shifts["task"].isin(tasks)
    rows = shifts[fit | shifts["shift_id"].isin(named)]
    if limit is not None and limit < 1:
        raise InputError(f"shifts to score on were needed, got a limit of {limit}; give 1 or more")
    if rows.empty:
        raise InputError(
            f"shifts to score on were needed, got none of {len(shifts)} that are "
            f"{' or '.join(sorted(tasks)) or 'of a task all models are for'}; ask for others"
        )
    if limit is None or limit >= len(rows):
        return rows
    drawn = np.random.default_rng(seed).choice(len(rows), size=limit, replace=False)
    return rows.iloc[np.sort(drawn)]


def chosen(
    shifts: Any, tasks: Collection[str], profile: str | None
) -> tuple[Published, dict[str, Dataset]]:
    """Return the shifts to score and their datasets.

    Parameters
    ----------
    shifts : str or Shift, iterable of them, DataFrame with ``shift_id``, or None
        None for all whose datasets are on this machine.
    tasks, profile
        As in :func:`choose` and :func:`inconvenient.list_shifts`.

    Raises
    ------
    InputError
        If there is no such shift, or the data are of another version.
    NotAvailableError
        If the tables of shifts, or a dataset that is needed, are not on this machine.
    """
    known = list_shifts(profile=profile)
    if isinstance(shifts, pd.DataFrame):
        if "shift_id" not in shifts:
            raise InputError(
                f"a table of shifts must have the column shift_id, got {list(shifts)[:5]}; "
                "take rows of list_shifts()"
            )
        shifts = shifts["shift_id"]
    given = [shifts] if isinstance(shifts, str) or not isinstance(shifts, Iterable) else shifts
    patterns = None if shifts is None else [str(getattr(s, "shift_id", s)) for s in given]
    ids = choose(known, patterns, tasks=tasks)["shift_id"].tolist()
    published = read_published(ids, profile)
    datasets = _datasets(published.shifts, all_needed=shifts is not None)
    here = published.shifts["dataset"].isin(datasets)
    return Published(published.shifts[here], published.splits, published.draws_seed), datasets


def _datasets(shifts: pd.DataFrame, *, all_needed: bool) -> dict[str, Dataset]:
    from inconvenient.data import load_dataset

    found: dict[str, Dataset] = {}
    absent: NotAvailableError | None = None
    for name, digest in shifts.groupby("dataset", sort=True)["data_hash"].first().items():
        try:
            dataset = load_dataset(str(name))
        except NotAvailableError as error:
            if all_needed:
                raise
            absent = error
            continue
        if dataset.hash != digest:
            raise InputError(
                f"the shifts were made of dataset {name} with hash {digest[:12]}..., the one here "
                f"has {dataset.hash[:12]}...; fetch data and shifts of the same version"
            )
        found[str(name)] = dataset
    if not found and absent is not None:
        raise absent
    return found
