"""A model's word on signs and sizes of coefficients, turned into a prior by rules fixed before."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from inconvenient.errors import ModelError
from inconvenient.llm.answers import list_in
from inconvenient.llm.cache import Answer, Client, Request
from inconvenient.llm.elicitation_prompt import (
    BATCH,
    SIZES,
    Wanted,
    answer_schema,
    check_variant,
    coefficients_of,
    scale_of,
    write_prior_prompt,
)
from inconvenient.llm.prior_records import Key, Prior, Term, prior_key
from inconvenient.llm.rankings import generator_of
from inconvenient.llm.run import ask_all
from inconvenient.shifts.records import context_of

if TYPE_CHECKING:
    from inconvenient.data import Dataset

__all__ = [
    "COUNTS",
    "PARAMETERS",
    "Elicitation",
    "Elicited",
    "Outcome",
    "belief",
    "elicit_prior",
    "prior_of",
    "requests_of",
]

Outcome = Answer | ModelError

#: What a model is asked for besides the messages: fifteen coefficients take 450 tokens.
PARAMETERS: Mapping[str, Any] = {"max_tokens": 800, "temperature": 0.0}

#: What became of the coefficients that were asked for; they sum to ``asked``.
COUNTS = ("said", "unsure", "missing", "repeated", "unreadable")

#: Least standard deviation of a belief: half the distance of two words, which say no more.
LEAST_SD = 0.1

#: Standard deviation beyond which a belief says less than the flat prior does on small samples.
MOST_SD = 3.0

#: Confidence in percent beyond which none is believed.
MOST_SURE = 99.0

#: Sizes given as a number must not be above, in units of a standardised regression.
LARGEST = 3.0

_SIGNS = {
    "+": 1.0, "positive": 1.0, "plus": 1.0,
    "-": -1.0, "negative": -1.0, "minus": -1.0, "\N{MINUS SIGN}": -1.0,
    "0": 0.0, "none": 0.0, "zero": 0.0,
}  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True)
class Elicited:
    """The prior that a model's answers come to, and how much of it is the model's.

    Parameters
    ----------
    prior : Prior
        In sample-standardised units. What the model said nothing usable of is not named: it keeps
        the flat prior, mean 0 and the default standard deviation of ``PriorModel``.
    counts : dict of str to int
        ``asked``, the coefficients asked for, and what became of them: ``said``; ``unsure``, a near
        guess (see :func:`belief`); ``missing``; ``repeated``, with more than one answer;
        ``unreadable``. Beside them ``invented``, answers to nothing that was asked; ``unasked``,
        coefficients of levels beyond 12; ``questions``, of which ``failed`` had no answer and
        ``truncated`` one that was cut off.
    tokens_in, tokens_out : int
    """

    prior: Prior
    counts: dict[str, int]
    tokens_in: int
    tokens_out: int


@dataclasses.dataclass(frozen=True, slots=True)
class Elicitation:
    """Requests whose answers give the prior of one dataset; nothing is sent by making them.

    Parameters
    ----------
    requests : tuple of Request
    read : callable
        Takes an answer, or the reason why there is none, per request; returns :class:`Elicited`.
    """

    requests: tuple[Request, ...]
    read: Callable[[Sequence[Outcome]], Elicited]


def requests_of(
    dataset: Dataset,
    *,
    variant: str = "documented",
    seed: int = 0,
    parameters: Mapping[str, Any] = PARAMETERS,
) -> Elicitation:
    """Put into words what a prior is elicited by; arguments as of :func:`elicit_prior`."""
    check_variant(variant)
    context = context_of(dataset)
    wanted, unasked = coefficients_of(dataset, generator_of(seed, prior_key(context)))
    requests, batches = [], []
    for start in range(0, len(wanted), BATCH):
        batch = {f"c{i}": one for i, one in enumerate(wanted[start : start + BATCH], start=1)}
        messages = write_prior_prompt(context, batch, variant)
        requests.append(Request(messages, answer_schema(list(batch)), parameters))
        batches.append(batch)

    def read(outcomes: Sequence[Outcome]) -> Elicited:
        beliefs: dict[Wanted, Term] = {}
        counts: Counter[str] = Counter(unasked=unasked)
        for batch, outcome in zip(batches, outcomes, strict=True):
            counts["failed"] += isinstance(outcome, ModelError)
            text = outcome.text if isinstance(outcome, Answer) else ""
            beliefs |= _read_batch(text, batch, scale_of(context.task), counts)
        return prior_of(beliefs, counts, outcomes)

    return Elicitation(tuple(requests), read)


def elicit_prior(
    dataset: Dataset,
    client: Client,
    *,
    variant: str = "documented",
    seed: int = 0,
    parameters: Mapping[str, Any] = PARAMETERS,
) -> Elicited:
    """Ask a model for the sign and the size of each coefficient, with its confidence.

    Parameters
    ----------
    dataset : Dataset
        Only what is public of it is told: documentation, names, kinds and sets of levels (at most
        12 a feature); no row, no count, no coefficient.
    client : Client
    variant : {"documented", "masked"}
        With names and documentation, or with neither: what the sheer question gives away.
    seed : int
        Of the order of the features.
    parameters : mapping
        Settings of the model, for the client.

    Returns
    -------
    Elicited

    Raises
    ------
    InputError
        If there is no such variant.
    ModelError
        If the model is not there; see :func:`~inconvenient.llm.run.ask_all`.
    NotAvailableError
        In a replay, if an answer is not kept.

    Notes
    -----
    The list is read as that of a ranking is, see :func:`~inconvenient.llm.answers.read_ranking`:
    an entry that was cut off is none. An entry is an object with ``id`` as asked, ``sign``,
    ``size`` (a word, or a number from 0 on in the units of the question) and ``confidence``, a
    number of percent from 0 to 100. An id with two entries has no answer, even if they agree; so
    has one whose sign, size or confidence is none of these. A sign of "0" and a size of "none" are
    the same answer, whatever the other is. See :func:`belief` for what is made of it.

    An answer about a level, or a class, is of it against all others, while the model has a
    coefficient for each of K: mean and standard deviation are times 1 - 1 / K, which is exact for
    levels of equal frequency.
    """
    elicitation = requests_of(dataset, variant=variant, seed=seed, parameters=parameters)
    return elicitation.read(ask_all(elicitation.requests, client))


def belief(sign: float, size: float, confidence: float) -> Term | None:
    """Return mean and standard deviation of what was said of a standardised coefficient.

    Parameters
    ----------
    sign : float
        1, -1, or 0 for no relation.
    size : float
        Absolute value, in standard deviations of the target for one of the column.
    confidence : float
        Percent, that the sign is right.

    Returns
    -------
    (mean, sd) or None
        None for a guess, which says nothing: a confidence of at most 50, or an sd above 3.

    Notes
    -----
    The belief is normal with mean sign * size, and puts the stated probability c on that sign, so
    that sd = size / Phi^-1(c). Without a sign the mean is 0, and c is the probability of less than
    a small coefficient, so that sd = 0.1 / Phi^-1((1 + c) / 2). The sd is at least 0.1, and no
    confidence counts for more than 99 %. Nothing here was chosen by a score.

    References
    ----------
    Cohen (1988), Statistical Power Analysis for the Behavioral Sciences (0.1, 0.3, 0.5). Peterson
    and Brown (2005), On the use of beta coefficients in meta-analysis (standardised coefficients
    are near correlations). O'Hagan et al. (2006), Uncertain Judgements: Eliciting Experts'
    Probabilities (a normal distribution fitted to a stated probability).
    """
    if confidence <= 50.0:
        return None
    c = min(confidence, MOST_SURE) / 100.0
    if sign == 0.0 or size == 0.0:
        return 0.0, max(LEAST_SD, SIZES["small"] / NormalDist().inv_cdf((1.0 + c) / 2.0))
    sure = NormalDist().inv_cdf(c)
    if size > MOST_SD * sure:
        return None
    return sign * size, max(LEAST_SD, size / sure)


def prior_of(
    beliefs: Mapping[Wanted, Term], counts: Mapping[str, int], outcomes: Sequence[Outcome]
) -> Elicited:
    """Return beliefs, in the units of the task, as the prior of a linear model.

    Parameters
    ----------
    beliefs : mapping of Wanted to (mean, sd)
    counts : mapping
        Those of :class:`Elicited`, as far as they are above 0.
    outcomes : sequence of Answer or ModelError
        Whose tokens are counted.
    """
    terms: dict[Key, Any] = {}
    for one, (mean, sd) in beliefs.items():
        key: Key = one.feature if one.level is None else (one.feature, one.level)
        term = mean * one.share, sd * one.share
        if one.class_ is not None:
            terms.setdefault(key, {})[one.class_] = term
        else:
            terms[key] = term
    answers = [outcome for outcome in outcomes if isinstance(outcome, Answer)]
    names = ("asked", *COUNTS, "invented", "unasked", "questions", "failed", "truncated")
    asked = sum(counts.get(name, 0) for name in COUNTS)
    known = {**counts, "asked": asked, "questions": len(outcomes)}
    return Elicited(
        Prior(terms),
        {name: known.get(name, 0) for name in names},
        sum(answer.tokens_in for answer in answers),
        sum(answer.tokens_out for answer in answers),
    )


def _read_batch(
    text: str, batch: Mapping[str, Wanted], scale: float, counts: Counter[str]
) -> dict[Wanted, Term]:
    """Return the beliefs in one answer, in the units of the task; no text makes it raise."""
    entries, truncated = list_in(text, "coefficients")
    counts["truncated"] += truncated
    found: dict[str, list[Any]] = {id_: [] for id_ in batch}
    for entry in entries:
        id_ = entry.get("id") if isinstance(entry, dict) else None
        id_ = id_.strip().lower() if isinstance(id_, str) else ""
        if id_ in found:
            found[id_].append(entry)
        else:
            counts["invented"] += 1
    beliefs: dict[Wanted, Term] = {}
    for id_, own in found.items():
        if len(own) != 1:
            counts["repeated" if own else "missing"] += 1
            continue
        said = _said(own[0], scale)
        if said is None:
            counts["unreadable"] += 1
            continue
        term = belief(*said)
        counts["unsure" if term is None else "said"] += 1
        if term is not None:
            beliefs[batch[id_]] = term[0] * scale, term[1] * scale
    return beliefs


def _said(entry: Mapping[str, Any], scale: float) -> tuple[float, float, float] | None:
    """Return sign, size in units of a regression and confidence, or None if one is unreadable."""
    sign, size = entry.get("sign"), entry.get("size")
    if isinstance(sign, str):
        sign = _SIGNS.get(sign.strip().lower())
    else:
        sign = 0.0 if _number(sign) == 0.0 else None
    value = SIZES.get(size.strip().lower()) if isinstance(size, str) else None
    if value is None:
        number = _number(size)
        value = None if number is None else number / scale
    confidence = _number(entry.get("confidence"))
    if confidence is None or not 0.0 <= confidence <= 100.0:
        return None
    if sign == 0.0 or value == 0.0:
        return 0.0, 0.0, confidence
    if sign is None or value is None or not 0.0 < value <= LARGEST:
        return None
    return sign, value, confidence


def _number(value: Any) -> float | None:
    """Return a number, or one written as text with or without "%"; None for all else."""
    if isinstance(value, str):
        try:
            value = float(value.strip().removesuffix("%"))
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None
