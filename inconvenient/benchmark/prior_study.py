"""What a model's knowledge is worth: elicited priors scored on published shifts beside others."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from inconvenient.data import Dataset, load_dataset
from inconvenient.errors import InputError
from inconvenient.evaluation.evaluate import evaluate
from inconvenient.llm.cache import Client, Request
from inconvenient.llm.elicitation import Elicitation, Elicited, requests_of
from inconvenient.llm.elicitation_prompt import SIZES, VARIANTS
from inconvenient.llm.likelihood import LikelihoodClient, statements_of
from inconvenient.llm.primary import draw_shifts
from inconvenient.llm.priors import (
    Prior,
    PriorModel,
    flat_prior,
    gap_closed,
    oracle_prior,
    prior_key,
    reversed_prior,
)
from inconvenient.llm.run import ask_all
from inconvenient.shifts import list_shifts
from inconvenient.shifts.published import read_published
from inconvenient.store import Store

__all__ = [
    "PriorStudy",
    "closed_by",
    "distinct_requests",
    "drawn_shifts",
    "pose_priors",
    "study_priors",
]

#: How far off a convenience sample's standardised coefficients are taken to be: by a medium one.
SAMPLE_SD = SIZES["medium"]

#: Names of the priors beside those of a model.
FLAT, REVERSED, ORACLE = "flat", "reversed", "oracle"

Posed = Mapping[tuple[str, str], Elicitation]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class PriorStudy:
    """What came of eliciting priors.

    Parameters
    ----------
    closed : DataFrame
        Column ``prior``, then those of :func:`~inconvenient.llm.priors.gap_closed` against the
        flat prior, a row per prior and task. Priors are the variants that were asked for;
        "reversed", the first of them with the sign of every mean flipped; "oracle", which knows
        the pool; "flat", the linear baseline. Last "documented over masked", against the masked
        one: what names and documentation add to the shrinkage that any answer brings.
    scores : DataFrame
        Column ``prior``, then those of :func:`inconvenient.evaluate`; a row per prior and shift.
    answers : DataFrame
        A row per variant and dataset: ``variant``, ``dataset``, the counts of
        :class:`~inconvenient.llm.elicitation.Elicited`, ``tokens_in``, ``tokens_out``. What was
        sent once for several coefficients or datasets, in the same words, counts with each.
    beliefs : DataFrame
        A row per variant, dataset and coefficient that the model said something usable of:
        ``variant``, ``dataset``, ``feature``, ``level`` and ``class`` (None where there is none),
        ``mean`` and ``sd``, in sample-standardised units.
    """

    closed: pd.DataFrame
    scores: pd.DataFrame
    answers: pd.DataFrame
    beliefs: pd.DataFrame


def drawn_shifts(
    count: int, *, operation: str = "flip", profile: str | None = None, seed: int = 0
) -> pd.DataFrame:
    """Draw published shifts of one operation, spread over the datasets.

    By the rule of :func:`~inconvenient.llm.primary.draw_shifts`, with datasets of any number of
    features: in random order they give one random shift each in turn. All if there are no more.
    """
    if count < 1:
        raise InputError(f"shifts must be at least 1, got {count}")
    published = list_shifts(profile=profile, operation=operation)
    features = dict.fromkeys(published["dataset"], 1)
    return draw_shifts(
        published, features, per_operation=min(count, len(published)), min_features=0, seed=seed
    )


def pose_priors(
    shifts: pd.DataFrame,
    *,
    variants: Sequence[str] = VARIANTS,
    likelihood: bool = False,
    seed: int = 0,
    parameters: Mapping[str, Any] | None = None,
) -> dict[tuple[str, str], Elicitation]:
    """Put into words what the priors of some shifts are elicited by; nothing is sent.

    Parameters
    ----------
    shifts : DataFrame
        With a column ``dataset``; each dataset is asked about once per variant.
    variants : sequence of {"documented", "masked"}
    likelihood : bool
        By log-probabilities of opposite statements instead of by words.
    seed : int
        Of the order of the features.
    parameters : mapping, optional
        Settings of the model.

    Returns
    -------
    dict of (variant, dataset) to Elicitation
    """
    pose: Callable[..., Elicitation] = statements_of if likelihood else requests_of
    how: dict[str, Any] = {"seed": seed} | ({"parameters": parameters} if parameters else {})
    datasets = [load_dataset(name) for name in sorted(set(shifts["dataset"]))]
    return {
        (variant, dataset.name): pose(dataset, variant=variant, **how)
        for variant in dict.fromkeys(variants)
        for dataset in datasets
    }


def distinct_requests(posed: Posed) -> list[Request]:
    """Return what is sent: every request once, for without names many are in the same words."""
    every = (request for one in posed.values() for request in one.requests)
    return list({request.of(""): request for request in every}.values())


def study_priors(
    posed: Posed,
    shifts: pd.DataFrame,
    client: Client,
    *,
    profile: str | None = None,
    seed: int = 0,
    workers: int | None = None,
    store: Store | None = None,
    done: Callable[[int, int], None] | None = None,
) -> PriorStudy:
    """Ask a model for priors and score them beside the flat, the reversed and the oracle prior.

    Parameters
    ----------
    posed : mapping of (variant, dataset) to Elicitation
        Of :func:`pose_priors`.
    shifts : DataFrame
        Rows of :func:`inconvenient.list_shifts`, of these datasets.
    client : Client
    profile : str, optional
        Where the shifts are published.
    seed : int
        Of the bootstrap.
    workers : int, optional
        Processes for the scores.
    store : Store, optional
        Of the scores.
    done : callable, optional
        Told how many questions of how many are answered.

    Returns
    -------
    PriorStudy

    Raises
    ------
    ModelError
        If the model is not there, or gives no log-probabilities where they are needed.
    NotAvailableError
        In a replay, if an answer is not kept.

    Notes
    -----
    An elicited prior is scored by ``PriorModel(prior, strength="size", sample_sd=0.3)``: the
    coefficients of a sample are taken to be off by about a medium one, however many rows it has,
    so that a belief with a standard deviation of 0.3 counts as much as the sample. At strength 1,
    as if the sample were representative, its rows drown every belief: of regressions, answers that
    are all right and answers that are all wrong then close about as much of the gap, by mere
    shrinkage (tests/test_prior_study.py). No model's score had a part in this choice. The oracle
    has strength 1, for its standard deviations are those of the pool's rows.

    A question without an answer counts as one that says nothing: no dataset is left out.
    """
    requests = distinct_requests(posed)
    found = ask_all(requests, LikelihoodClient(client), done=done)
    outcomes = {request.of(""): outcome for request, outcome in zip(requests, found)}
    elicited = {
        place: one.read([outcomes[request.of("")] for request in one.requests])
        for place, one in posed.items()
    }
    names = sorted({name for _, name in posed})
    datasets = {name: load_dataset(name) for name in names}
    ids = shifts["shift_id"].tolist()
    models = _models(elicited, datasets, ids, profile)
    options: dict[str, Any] = {
        "profile": profile,
        "workers": workers,
        "store": store,
        "controls": 1,
    }
    tables = {name: evaluate(model, ids, **options) for name, model in models.items()}
    scores = _stacked(tables)
    return PriorStudy(
        closed_by(scores, seed=seed),
        scores,
        _answers(elicited),
        _beliefs(elicited),
    )


def closed_by(scores: pd.DataFrame, *, seed: int = 0) -> pd.DataFrame:
    """Return the share of the gap that each prior closes.

    Parameters
    ----------
    scores : DataFrame
        See :class:`PriorStudy`.
    seed : int
        Of the bootstrap.

    Returns
    -------
    DataFrame
        As ``closed`` of :class:`PriorStudy`.
    """
    tables = {
        str(name): own.drop(columns="prior").reset_index(drop=True)
        for name, own in scores.groupby("prior", sort=False)
    }
    closed = {name: gap_closed(own, tables[FLAT], seed=seed) for name, own in tables.items()}
    if set(VARIANTS) <= set(tables):
        # In units of the linear baseline's gap, too, so that it is the first minus the second.
        gap = tables[FLAT]["score_id"] - tables[FLAT]["score_ood"]
        base = tables["masked"].assign(score_id=tables["masked"]["score_ood"] + gap)
        closed["documented over masked"] = gap_closed(tables["documented"], base, seed=seed)
    return _stacked(closed)


def _models(
    elicited: Mapping[tuple[str, str], Elicited],
    datasets: Mapping[str, Dataset],
    ids: Sequence[str],
    profile: str | None,
) -> dict[str, PriorModel]:
    """Return a model for each prior, by its name, the flat one last."""
    keys = {name: prior_key(dataset) for name, dataset in datasets.items()}
    splits = read_published(ids, profile).splits
    priors: dict[str, dict[str, Prior]] = {}
    for (variant, name), one in elicited.items():
        priors.setdefault(variant, {})[keys[name]] = one.prior
    first = next(iter(priors.values()))
    priors[REVERSED] = {key: reversed_prior(prior) for key, prior in first.items()}
    models = {
        name: PriorModel(own, strength="size", sample_sd=SAMPLE_SD) for name, own in priors.items()
    }
    oracle = {keys[n]: oracle_prior(own, splits[n].pool) for n, own in datasets.items()}
    return {**models, ORACLE: PriorModel(oracle), FLAT: PriorModel(flat_prior())}


def _stacked(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    for name, table in tables.items():
        table.insert(0, "prior", name)
    return pd.concat(tables.values(), ignore_index=True)


def _beliefs(elicited: Mapping[tuple[str, str], Elicited]) -> pd.DataFrame:
    rows = []
    for place, one in elicited.items():
        for key, term in one.prior.terms.items():
            feature = key if isinstance(key, tuple) else (key, None)
            by_class = term if isinstance(term, Mapping) else {None: term}
            rows += [(*place, *feature, class_, *own) for class_, own in by_class.items()]
    names = ["variant", "dataset", "feature", "level", "class", "mean", "sd"]
    return pd.DataFrame(rows, columns=names)


def _answers(elicited: Mapping[tuple[str, str], Elicited]) -> pd.DataFrame:
    rows = [
        {"variant": variant, "dataset": name, **one.counts}
        | {"tokens_in": one.tokens_in, "tokens_out": one.tokens_out}
        for (variant, name), one in elicited.items()
    ]
    return pd.DataFrame(rows)
