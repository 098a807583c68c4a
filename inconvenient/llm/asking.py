"""Asks one model one question: prompt, answer and ranking follow from a seed and a name alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from inconvenient.llm.answers import Ranking, read_ranking
from inconvenient.llm.cache import Answer, Client, Request
from inconvenient.llm.prompts import ANSWER_SCHEMA, write_prompt
from inconvenient.llm.rankings import generator_of
from inconvenient.llm.tasks import Question

__all__ = ["Reply", "ask_ranking"]


@dataclasses.dataclass(frozen=True, slots=True)
class Reply:
    """What a model made of a question.

    Parameters
    ----------
    ranking : Ranking
        Of all features, with the counts of what could not be used.
    answer : Answer
        As it came, with its tokens.
    """

    ranking: Ranking
    answer: Answer


def ask_ranking(
    question: Question,
    client: Client,
    *,
    name: str,
    variant: str,
    seed: int,
    parameters: Mapping[str, Any],
) -> Reply:
    """Ask a model which features are suspicious.

    Parameters
    ----------
    question : Question
    client : Client
    name : str
        Of the question, such as the id of its shift: with the seed it fixes the order of the
        features, the same in every variant, and what fills the places without an answer. No part
        of it is told to the model.
    variant : {"documented", "masked", "names"}
        See :func:`~inconvenient.llm.prompts.write_prompt`.
    seed : int
    parameters : mapping
        Settings of the model, for the client.

    Returns
    -------
    Reply

    Raises
    ------
    InputError
        If there is no such variant.
    NotAvailableError
        In a replay, if the answer is not kept.
    """
    rng = generator_of(seed, name)
    prompt = write_prompt(question, variant, rng)
    answer = client.ask(Request(prompt.messages, ANSWER_SCHEMA, parameters))
    return Reply(read_ranking(answer.text, prompt, rng), answer)
