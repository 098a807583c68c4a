"""Of one shift, as a record: which features moved, and the rankings that need no language model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from inconvenient.llm.rankings import (
    RESAMPLES,
    bootstrap_table,
    generator_of,
    rank_by_instability,
    rank_by_size,
    rank_by_spread,
    rank_randomly,
)
from inconvenient.llm.tasks import ask_about, truth_of
from inconvenient.shifts import load_shift
from inconvenient.store import Store, Unit, content_key, library_versions, run_units

__all__ = ["KNOWN", "known_rankings"]

#: Rankings beside those of a language model, by name; "random" is one draw.
KNOWN = ("random", "absolute coefficient", "bootstrap spread", "instability")

#: Raised when an edit changes what is stored: truth, or one of the rankings.
VERSION = 1

Order = tuple[str, ...]


def known_rankings(
    shifts: pd.DataFrame,
    *,
    profile: str | None,
    seed: int,
    store: Store,
    workers: int,
) -> tuple[dict[str, Order], dict[str, dict[str, Order]]]:
    """Return the truth and the rankings without a language model of each shift.

    Parameters
    ----------
    shifts : DataFrame
        Rows of :func:`inconvenient.list_shifts`.
    profile : str, optional
        Where they are published.
    seed : int
        Of the random ranking and the bootstrap.
    store : Store
        What was computed before is read from there.
    workers : int
        Processes; the result does not depend on their number.

    Returns
    -------
    truths : dict of shift id to features
        By falling distance; see :func:`~inconvenient.llm.tasks.truth_of`.
    rankings : dict of str to dict of shift id to features
        Those of ``KNOWN``.

    Raises
    ------
    UnitError
        If a shift could not be ranked, when all others are.
    """
    libraries = library_versions()
    units = []
    for row in shifts.itertuples(index=False):
        own = {"shift": row.shift_id, "rows": row.rows_hash, "dataset": row.data_hash}
        how = {"seed": seed, "resamples": RESAMPLES, "libraries": libraries}
        key = content_key("anomalies", VERSION, **own, **how)
        units.append(Unit(key, _ranked, (row.shift_id, profile, seed), str(row.dataset)))
    frames = run_units(units, store=store, workers=workers, label="rankings without a model")
    truths: dict[str, Order] = {}
    rankings: dict[str, dict[str, Order]] = {name: {} for name in KNOWN}
    for shift_id, frame in zip(shifts["shift_id"], frames):
        truths[shift_id] = _ordered(frame, "truth")
        for name in KNOWN:
            rankings[name][shift_id] = _ordered(frame, name)
    return truths, rankings


def _ranked(shift_id: str, profile: str | None, seed: int) -> pd.DataFrame:
    """Return a row per feature: its place in the truth and in each ranking, 0 for the first."""
    shift = load_shift(shift_id, profile=profile)
    X, y = shift.train()
    question = ask_about(X, y, shift.context)
    table = bootstrap_table(X, y, shift.context, generator_of(seed, f"{shift_id} bootstrap"))
    orders: dict[str, Sequence[str]] = {
        "truth": truth_of(shift).order,
        "random": rank_randomly(question.features, generator_of(seed, f"{shift_id} random")),
        "absolute coefficient": rank_by_size(question),
        "bootstrap spread": rank_by_spread(table),
        "instability": rank_by_instability(table),
    }
    places = {
        name: pd.Series(np.arange(len(order)), index=list(order)) for name, order in orders.items()
    }
    frame = pd.DataFrame(places).loc[list(orders["truth"])]
    return frame.rename_axis("feature").reset_index()


def _ordered(frame: pd.DataFrame, name: str) -> Order:
    return tuple(frame.sort_values(name)["feature"])
