"""Poses one question to one model: prompt and ranking follow from a seed and a name alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from inconvenient.llm.answers import Ranking, read_ranking
from inconvenient.llm.cache import Answer, Client, Request
from inconvenient.llm.prompts import ANSWER_SCHEMA, Prompt, write_prompt
from inconvenient.llm.rankings import generator_of
from inconvenient.llm.tasks import Question

__all__ = ["PARAMETERS", "Posed", "Reply", "ask_ranking", "pose"]

#: What a model is asked for besides the messages: ten entries and their reasons take 600 tokens.
PARAMETERS: Mapping[str, Any] = {"max_tokens": 1000, "temperature": 0.0}


@dataclasses.dataclass(frozen=True, slots=True)
class Posed:
    """A question in words, ready to be sent.

    Parameters
    ----------
    name : str
        Of the question, such as the id of its shift.
    variant : str
    seed : int
    prompt : Prompt
    request : Request
    """

    name: str
    variant: str
    seed: int
    prompt: Prompt
    request: Request

    def read(self, text: str) -> Ranking:
        """Return the ranking that an answer gives; "" stands for none, and chance ranks all."""
        return read_ranking(text, self.prompt, generator_of(self.seed, f"{self.name} filled"))


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


def pose(
    question: Question,
    *,
    name: str,
    variant: str,
    seed: int,
    parameters: Mapping[str, Any] = PARAMETERS,
) -> Posed:
    """Put a question into words.

    Parameters
    ----------
    question : Question
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
    Posed

    Raises
    ------
    InputError
        If there is no such variant.
    """
    prompt = write_prompt(question, variant, generator_of(seed, name))
    return Posed(name, variant, seed, prompt, Request(prompt.messages, ANSWER_SCHEMA, parameters))


def ask_ranking(
    question: Question,
    client: Client,
    *,
    name: str,
    variant: str,
    seed: int,
    parameters: Mapping[str, Any] = PARAMETERS,
) -> Reply:
    """Ask a model which features are suspicious; arguments as of :func:`pose`.

    Raises
    ------
    InputError
        If there is no such variant.
    ModelError
        If the model gives no answer.
    NotAvailableError
        In a replay, if the answer is not kept.
    """
    posed = pose(question, name=name, variant=variant, seed=seed, parameters=parameters)
    answer = client.ask(posed.request)
    return Reply(posed.read(answer.text), answer)
