"""Clients that answer by a script, for tests of what is done with answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from inconvenient.llm.cache import Answer, Request
from inconvenient.llm.prompts import Message


@dataclass
class Scripted:
    """Answers by a function of the messages, and keeps what it was asked."""

    script: Callable[[Sequence[Message]], str]
    model: str = "scripted:one"
    at_once: int = 1
    asked: list[Request] = field(default_factory=list)

    def ask(self, request: Request) -> Answer:
        self.asked.append(request)
        text = self.script(request.messages)
        return Answer(text, sum(len(m["content"]) for m in request.messages), len(text), "end")


def by_order(order: Sequence[str], places: int = 10) -> Scripted:
    """Return a client that ranks features in an order of their names, by the ids of the prompt."""

    def script(messages: Sequence[Message]) -> str:
        table = json.loads(messages[-1]["content"].splitlines()[-1])
        ids = {feature["name"]: feature["id"] for feature in table["features"]}
        chosen = [name for name in order if name in ids][:places]
        return json.dumps(
            {"ranking": [{"feature": ids[name], "reason": "scripted"} for name in chosen]}
        )

    return Scripted(script)


def saying(text: str) -> Scripted:
    """Return a client that says the same to everything."""
    return Scripted(lambda messages: text)
