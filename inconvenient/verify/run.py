"""Verification of published shifts, dataset by dataset, in one process or several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import pandas as pd

from inconvenient.errors import InputError
from inconvenient.shifts.schema import PUBLISHED_COLUMNS
from inconvenient.store.processes import in_processes
from inconvenient.verify.checks import Findings, Report, summarise
from inconvenient.verify.dataset import verify_dataset

if TYPE_CHECKING:
    from inconvenient.verify.settings import Settings

__all__ = ["PARTS", "verify_shifts"]

#: What can be skipped: shares of uniform samples, collateral effects, scores of the report half,
#: and those of the filter half with gaps, flags and similarity.
PARTS = ("chance", "collateral", "scores", "filter")


def verify_shifts(
    published: pd.DataFrame,
    split: pd.DataFrame,
    params: Settings,
    *,
    skip: Iterable[str] = (),
    workers: int = 1,
    advance: Callable[[str, int], None] | None = None,
) -> Report:
    """Recompute published shifts from raw tables and row ids, and compare every number.

    Parameters
    ----------
    published : DataFrame
        Rows of the table of published shifts, all or some.
    split : DataFrame
        Table of splits: ``dataset``, ``row_id``, ``part``.
    params : Settings
        Those that the shifts were made with.
    skip : iterable of str
        Of :data:`PARTS`.
    workers : int
        Processes; the result does not depend on it.
    advance : callable, optional
        Called with the name of each dataset that is done and its number of shifts.

    Returns
    -------
    Report

    Raises
    ------
    InputError
        If there is nothing to verify, or no such part.

    Notes
    -----
    No module of ``inconvenient.kernels`` is imported. Design, reference model, fits of samples,
    chance, composition, importance and collateral effect have an implementation of their own here;
    scores are those of :mod:`inconvenient.baselines`, fitted anew. What a table of results cannot
    show is left: the order of the rows within a selection, the strategy that found them, and
    whether a shift that could be ``retained_paper`` was subsumed by one that is not published.
    """
    skipped = frozenset(skip)
    unknown = sorted(skipped - {*PARTS})
    if unknown:
        raise InputError(f"parts that can be skipped are {', '.join(PARTS)}, got {unknown[0]!r}")
    if published.empty:
        raise InputError("at least one published shift was needed to verify, got none")
    absent = [column for column in PUBLISHED_COLUMNS if column not in published]
    if absent:
        raise InputError(
            f"the table of published shifts lacks {', '.join(absent)}; fetch it for this version"
        )
    wanted = frozenset(PARTS) - skipped
    by_name = {str(name): rows for name, rows in published.groupby("dataset", sort=True)}
    parts = {
        str(name): rows[["row_id", "part"]]
        for name, rows in split[split["dataset"].isin(by_name)].groupby("dataset")
    }
    found = []
    for name, findings in _each(by_name, parts, params, wanted, workers):
        found.append(findings)
        if advance is not None:
            advance(name, len(by_name[name]))
    return summarise(found, published)


def _one(
    name: str,
    published: pd.DataFrame,
    parts: pd.DataFrame,
    params: Settings,
    wanted: frozenset[str],
) -> tuple[str, Findings]:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        return name, verify_dataset(name, published, parts, params, wanted)


def _each(
    by_name: Mapping[str, pd.DataFrame],
    parts: Mapping[str, pd.DataFrame],
    params: Settings,
    wanted: frozenset[str],
    workers: int,
) -> Iterator[tuple[str, Findings]]:
    """Yield the findings of datasets, the largest first where several processes share them."""
    nothing = pd.DataFrame({"row_id": [], "part": []})
    work = {name: float(rows["size"].sum()) for name, rows in by_name.items()}
    tasks = [
        (name, by_name[name], parts.get(name, nothing), params, wanted)
        for name in sorted(by_name, key=lambda name: -work[name])
    ]
    if workers == 1 or len(tasks) == 1:
        for task in tasks:
            yield _one(*task)
        return
    left = [task[0] for task in tasks]

    def died() -> str:
        return (
            f"a worker process died while these were at work: {', '.join(left[:workers])}; the "
            "memory was used up, or a library crashed; verify again with fewer workers"
        )

    for name, findings in in_processes(_one, tasks, workers=workers, died=died):
        left.remove(name)
        yield name, findings
