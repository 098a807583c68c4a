"""Priors from log-probabilities: which of two opposite statements a model finds likelier."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from inconvenient.errors import ModelError
from inconvenient.llm.cache import Answer, Client, Request
from inconvenient.llm.elicitation import Elicitation, Elicited, Outcome, belief, prior_of
from inconvenient.llm.elicitation_prompt import (
    SIZES,
    Wanted,
    check_variant,
    coefficients_of,
    scale_of,
)
from inconvenient.llm.prior_records import Term, prior_key
from inconvenient.llm.prompts import (
    DOCUMENTATION,
    LEVEL,
    NAME,
    QUOTED,
    Message,
    json_line,
    shorten,
    told_of_table,
)
from inconvenient.llm.rankings import generator_of
from inconvenient.llm.run import ask_all
from inconvenient.shifts.records import Context, context_of

if TYPE_CHECKING:
    from inconvenient.data import Dataset

__all__ = [
    "PHRASINGS",
    "LikelihoodClient",
    "elicit_by_likelihood",
    "probability_of",
    "statements_of",
]

#: Ways to say that one thing goes with another; each is asked in both orders.
PHRASINGS = (
    "{one} goes with {other}.",
    "All else equal, {one} comes with {other}.",
    "From {one} one should expect {other}.",
    "Given {one}, {other} is more plausible.",
)

#: Size that is taken for every coefficient, as the statements are about signs.
SIZE = SIZES["medium"]

#: Alternatives of the first token that are asked for, the most that providers give.
PLACES = 20

_SYSTEM = (
    """\
You know what is known of many subjects. You say which of two opposite statements about a \
population is the likelier one, before any data are seen.
"""
    + QUOTED
)

_USER = """\
The JSON in the last line tells of a table and makes two opposite statements, "1" and "2", on the \
population it describes. Which of the two is likelier to be true? Answer with its number alone.
"""


class LikelihoodClient:
    """A client that stops a run at the first answer without the log-probabilities asked for.

    Parameters
    ----------
    client : Client
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self.model, self.at_once = client.model, client.at_once

    def ask(self, request: Request) -> Answer:
        """Return the client's answer.

        Raises
        ------
        ModelError
            If it has no log-probabilities though there is a text; no other request would differ.
        """
        answer = self._client.ask(request)
        if request.parameters.get("logprobs") and answer.text and not answer.logprobs:
            raise ModelError(
                f"log-probabilities of the first token were asked of {self.model}, but its answer "
                "has none; elicit the prior by words, without --likelihood, or use another client",
                reason="no log-probabilities",
                fatal=True,
            )
        return answer


def statements_of(
    dataset: Dataset,
    *,
    variant: str = "documented",
    seed: int = 0,
    parameters: Mapping[str, Any] | None = None,
) -> Elicitation:
    """Put into words what :func:`elicit_by_likelihood` asks: 8 requests for each coefficient."""
    check_variant(variant)
    context = context_of(dataset)
    wanted, unasked = coefficients_of(dataset, generator_of(seed, prior_key(context)))
    own = {"temperature": 0.0, **(parameters or {}), "max_tokens": 1, "logprobs": PLACES}
    requests = [
        Request(_messages(context, one, phrasing, variant, up_first=up_first), {}, own)
        for one in wanted
        for phrasing in PHRASINGS
        for up_first in (True, False)
    ]

    def read(outcomes: Sequence[Outcome]) -> Elicited:
        beliefs: dict[Wanted, Term] = {}
        counts: Counter[str] = Counter(unasked=unasked)
        scale, each = scale_of(context.task), 2 * len(PHRASINGS)
        for i, one in enumerate(wanted):
            answers = outcomes[i * each : (i + 1) * each]
            up = _probability_up(answers, counts)
            term = None if up is None else belief(math.copysign(1.0, up - 0.5), SIZE, _sure(up))
            counts["missing" if up is None else "unsure" if term is None else "said"] += 1
            if term is not None:
                beliefs[one] = term[0] * scale, term[1] * scale
        return prior_of(beliefs, counts, outcomes)

    return Elicitation(tuple(requests), read)


def elicit_by_likelihood(
    dataset: Dataset,
    client: Client,
    *,
    variant: str = "documented",
    seed: int = 0,
    parameters: Mapping[str, Any] | None = None,
) -> Elicited:
    """Ask a model which of two opposite statements on each coefficient it finds likelier.

    Parameters
    ----------
    dataset, client, variant, seed, parameters
        As of :func:`~inconvenient.llm.elicitation.elicit_prior`. Of the parameters
        ``max_tokens`` and ``logprobs`` are set here.

    Returns
    -------
    Elicited
        Its count ``invented`` is of answers that give neither number a probability.

    Raises
    ------
    InputError
        If there is no such variant.
    ModelError
        If the client gives no log-probabilities, or the model is not there.
    NotAvailableError
        In a replay, if an answer is not kept.

    Notes
    -----
    The statements say that a higher value (or a level) goes with a higher, or a lower, target; of
    classes, with more, or less, of a class: of two the last. Each pair is asked in four phrasings
    and both orders, so that a liking for "1" or for the first statement cancels: with p(k) the
    probability of the tokens that are "k" without the blanks around them, the probability of a
    positive sign is the mean of p(up) / (p(up) + p(down)) over the eight. One without an answer,
    or with neither number, counts as 1/2. Mean and standard deviation are those of
    :func:`~inconvenient.llm.elicitation.belief` for a medium size and this probability.

    That is 8 requests of one token for each coefficient. Without names all coefficients are asked
    about in the same words.
    """
    elicitation = statements_of(dataset, variant=variant, seed=seed, parameters=parameters)
    return elicitation.read(ask_all(elicitation.requests, LikelihoodClient(client)))


def probability_of(logprobs: Mapping[str, float], text: str) -> float:
    """Return the summed probability of the tokens that are a text but for blanks around it."""
    return sum(math.exp(value) for token, value in logprobs.items() if token.strip() == text)


def _probability_up(outcomes: Sequence[Outcome], counts: Counter[str]) -> float | None:
    """Return the probability of a positive sign, or None if no answer tells of it."""
    shares = []
    for i, outcome in enumerate(outcomes):
        counts["failed"] += isinstance(outcome, ModelError)
        logprobs = outcome.logprobs if isinstance(outcome, Answer) else {}
        first, second = (probability_of(logprobs, text) for text in ("1", "2"))
        up, both = (second if i % 2 else first), first + second
        if both > 0.0:
            shares.append(up / both)
        else:
            counts["invented"] += isinstance(outcome, Answer)
    if not shares:
        return None
    silent = len(outcomes) - len(shares)
    return (sum(shares) + 0.5 * silent) / len(outcomes)


def _sure(up: float) -> float:
    return 100.0 * max(up, 1.0 - up)


def _messages(
    context: Context, one: Wanted, phrasing: str, variant: str, *, up_first: bool
) -> tuple[Message, ...]:
    """Return the messages of one question; names stand in the last line alone."""
    ends = [
        _statement(context, one, phrasing, variant, higher=up) for up in (up_first, not up_first)
    ]
    table = told_of_table(context, variant)
    documentation = context.feature_descriptions.get(one.feature, "")
    if variant == "documented" and documentation:
        table["feature_documentation"] = shorten(documentation, DOCUMENTATION)
    return (
        {"role": "system", "content": _SYSTEM},
        {"role": "user", "content": _USER + json_line({**table, **dict(zip("12", ends))})},
    )


def _statement(context: Context, one: Wanted, phrasing: str, variant: str, *, higher: bool) -> str:
    """Return one statement; names are no part of the phrasing, so that braces in them stay."""

    def shown(name: str, length: int, otherwise: str) -> str:
        return otherwise if variant == "masked" else f'"{shorten(name, length)}"'

    feature = shown(one.feature, NAME, "the feature")
    target = shown(context.target_name, NAME, "the target")
    subject = f"a higher value of {feature}"
    if one.level is not None:
        subject = f"{feature} being {shown(one.level, LEVEL, 'one of its levels')}"
    outcome = f"a {'higher' if higher else 'lower'} value of {target}"
    if context.task != "regression":
        name = context.classes[-1] if one.class_ is None else one.class_
        class_ = shown(name, LEVEL, "one of its classes")
        outcome = f"a {'higher' if higher else 'lower'} probability that {target} is {class_}"
    text = phrasing.format(one=subject, other=outcome)
    return text[:1].upper() + text[1:]
