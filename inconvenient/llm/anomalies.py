"""Can a model tell which coefficients were bent: asked about many shifts, scored by Recall@K."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from inconvenient.data import list_datasets
from inconvenient.data.bootstrap import Bootstrap
from inconvenient.errors import ModelError
from inconvenient.llm.answers import COUNTS
from inconvenient.llm.asking import PARAMETERS, Posed, pose
from inconvenient.llm.cache import Answer, Client
from inconvenient.llm.known import KNOWN, known_rankings
from inconvenient.llm.primary import draw_shifts
from inconvenient.llm.prompts import VARIANTS
from inconvenient.llm.recall import recall_differences, recall_table, summarise_recall
from inconvenient.llm.run import ask_all
from inconvenient.llm.tasks import ask_about
from inconvenient.shifts import list_shifts, load_shift
from inconvenient.store import Store

__all__ = ["Anomalies", "anomalies_of", "drawn_shifts", "find_anomalies", "pose_all"]


@dataclasses.dataclass(frozen=True, slots=True)
class Anomalies:
    """What came of asking about many shifts.

    Parameters
    ----------
    questions : DataFrame
        A row per shift and variant: ``shift_id``, ``dataset``, ``operation``, ``variant``;
        ``status`` ("complete", "partial", "unusable", or "failed" where the model gave no answer),
        ``failure`` (why, else ""), ``stop``, ``tokens_in``, ``tokens_out``; of the places asked
        for how many were ``named``, ``missing``, ``repeated``, ``invented``, ``numbers``;
        ``surplus``, ``truncated``.
    recalls : DataFrame
        Column ``ranking`` (a variant, or one of those without a model), then those of
        :func:`~inconvenient.llm.recall.recall_table`.
    summary : DataFrame
        Column ``ranking``, then those of :func:`~inconvenient.llm.recall.summarise_recall`.
    differences : DataFrame
        Columns ``ranking`` and ``other``, then those of
        :func:`~inconvenient.llm.recall.recall_differences`: each variant less each ranking that
        stands behind it. Of two variants it is what one tells more than the other.
    """

    questions: pd.DataFrame
    recalls: pd.DataFrame
    summary: pd.DataFrame
    differences: pd.DataFrame


def drawn_shifts(count: int, *, profile: str | None, seed: int) -> pd.DataFrame:
    """Draw shifts of the primary set, a third of them (rounded up) of each operation.

    See :func:`~inconvenient.llm.primary.draw_shifts`.
    """
    catalogue, published = list_datasets(), list_shifts(profile=profile)
    features = dict(zip(catalogue["name"], catalogue["features"]))
    return draw_shifts(published, features, per_operation=-(-count // 3), seed=seed)


def pose_all(
    shifts: pd.DataFrame,
    *,
    profile: str | None,
    seed: int,
    variants: Sequence[str] = VARIANTS,
    parameters: Mapping[str, Any] = PARAMETERS,
    done: Callable[[int, int], None] | None = None,
) -> list[Posed]:
    """Put the questions about shifts into words, all of one variant before those of the next.

    Parameters
    ----------
    shifts : DataFrame
        Rows of :func:`inconvenient.list_shifts`.
    profile, seed, variants, parameters
        As of :func:`find_anomalies`.
    done : callable, optional
        Told how many shifts of how many are done.

    Returns
    -------
    list of Posed
    """
    posed: dict[str, list[Posed]] = {variant: [] for variant in variants}
    for count, shift_id in enumerate(shifts["shift_id"], start=1):
        shift = load_shift(shift_id, profile=profile)
        question = ask_about(*shift.train(), shift.context)
        for variant, own in posed.items():
            how = {"name": shift_id, "variant": variant, "seed": seed, "parameters": parameters}
            own.append(pose(question, **how))
        if done is not None:
            done(count, len(shifts))
    return [one for own in posed.values() for one in own]


def find_anomalies(
    posed: Sequence[Posed],
    shifts: pd.DataFrame,
    client: Client | None,
    *,
    profile: str | None,
    seed: int,
    store: Store,
    workers: int,
    done: Callable[[int, int], None] | None = None,
) -> Anomalies:
    """Ask a model about shifts and score what it says, beside rankings without a model.

    Parameters
    ----------
    posed : sequence of Posed
        Of :func:`pose_all`.
    shifts : DataFrame
        The shifts they are about.
    client : Client, optional
        Needed if there are questions.
    profile : str, optional
        Where the shifts are published.
    seed : int
        Of the random ranking and the bootstraps.
    store : Store
        Of the rankings without a model.
    workers : int
        Processes for these.
    done : callable, optional
        Told how many questions of how many are answered.

    Returns
    -------
    Anomalies

    Raises
    ------
    ModelError
        If the model is not there; see :func:`~inconvenient.llm.run.ask_all`.
    NotAvailableError
        In a replay, if an answer is not kept.

    Notes
    -----
    A question without an answer counts as one whose places are all missing: chance ranks the
    features. Nothing is left out of a mean.
    """
    outcomes: list[Answer | ModelError] = []
    if client is not None:
        outcomes = ask_all([one.request for one in posed], client, done=done)
    truths, rankings = known_rankings(
        shifts, profile=profile, seed=seed, store=store, workers=workers
    )
    facts = shifts.set_index("shift_id")
    rows = []
    for one, outcome in zip(posed, outcomes, strict=True):
        row, ranking = _read(one, outcome)
        own = facts.loc[one.name]
        place = {"shift_id": one.name, "dataset": own["dataset"], "operation": own["operation"]}
        rows.append({**place, "variant": one.variant, **row})
        rankings.setdefault(one.variant, {})[one.name] = ranking
    asked = [name for name in VARIANTS if name in rankings]
    recalls = [
        _named(recall_table(rankings[name], truths, shifts), name) for name in (*asked, *KNOWN)
    ]
    return anomalies_of(pd.DataFrame(rows), pd.concat(recalls, ignore_index=True), seed=seed)


def anomalies_of(questions: pd.DataFrame, recalls: pd.DataFrame, *, seed: int) -> Anomalies:
    """Return what came of asking, summarised anew from its two tables.

    Parameters
    ----------
    questions, recalls : DataFrame
        See :class:`Anomalies`.
    seed : int
        Of the bootstrap.

    Returns
    -------
    Anomalies
    """
    catalogue = list_datasets()
    bootstrap = Bootstrap(dict(zip(catalogue["name"], catalogue["family"])), seed=seed)
    tables = {str(name): own for name, own in recalls.groupby("ranking", sort=False)}
    summaries = [_named(summarise_recall(own, bootstrap), name) for name, own in tables.items()]
    differences = [
        _named(recall_differences(tables[name], tables[other], bootstrap), name, other)
        for name, other in itertools.combinations(tables, 2)
        if name in VARIANTS
    ]
    return Anomalies(
        questions,
        recalls,
        pd.concat(summaries, ignore_index=True),
        pd.concat(differences, ignore_index=True) if differences else pd.DataFrame(),
    )


def _read(one: Posed, outcome: Answer | ModelError) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return what became of a question, and the ranking that counts."""
    answer = Answer("") if isinstance(outcome, ModelError) else outcome
    ranking = one.read(answer.text)
    failure = outcome.reason if isinstance(outcome, ModelError) else ""
    row: dict[str, Any] = {
        "status": "failed" if failure else ranking.status,
        "failure": failure,
        "stop": answer.stop,
        "tokens_in": answer.tokens_in,
        "tokens_out": answer.tokens_out,
    }
    row |= {name: getattr(ranking, name) for name in (*COUNTS, "surplus", "truncated")}
    return row, ranking.features


def _named(table: pd.DataFrame, *names: str) -> pd.DataFrame:
    for place, (column, name) in enumerate(zip(("ranking", "other"), names)):
        table.insert(place, column, name)
    return table
