"""Answers as rankings, by rules that never flatter a model: what is no answer is left to chance."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

import numpy as np

from inconvenient.llm.prompts import Prompt, shorten

__all__ = ["COUNTS", "Ranking", "list_in", "read_ranking"]

#: What became of the places that were asked for; they sum to ``asked``.
COUNTS = ("named", "missing", "repeated", "invented", "numbers")

#: Longest reason that is kept, in characters.
REASON = 300

_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?\.?")
_SPACE = re.compile(r"\s*")


@dataclasses.dataclass(frozen=True, slots=True)
class Ranking:
    """A ranking of all features, and how much of it is the model's.

    Parameters
    ----------
    features : tuple of str
        All m features, most suspicious first.
    reasons : dict of str to str
        Of the features that the model named, in its order; "" where it gave none.
    asked : int
        Length of the ranking that was asked for.
    named : int
        Places with a feature that the model named, each for the first time.
    missing : int
        Places that the answer does not have.
    repeated, invented, numbers : int
        Places with a feature named before, with something that is none, with a bare number.
    surplus : int
        Entries beyond the places that were asked for; they are not read.
    truncated : bool
        Whether the list has no end.
    """

    features: tuple[str, ...]
    reasons: dict[str, str]
    asked: int
    named: int
    missing: int
    repeated: int
    invented: int
    numbers: int
    surplus: int
    truncated: bool

    @property
    def status(self) -> str:
        """Either "complete", "partial", or "unusable" where chance filled every place."""
        if self.named == self.asked:
            return "complete"
        return "partial" if self.named else "unusable"


def read_ranking(text: str, prompt: Prompt, rng: np.random.Generator) -> Ranking:
    """Read what a model answered to a prompt; no text makes it raise.

    Parameters
    ----------
    text : str
        Whatever came.
    prompt : Prompt
        What it answers.
    rng : Generator
        Of the features in places that the model did not fill.

    Returns
    -------
    Ranking

    Notes
    -----
    The list is the last ``"ranking": [``, else the first "[" of the text; without one, as in a
    refusal, every place is missing, and nothing is read out of prose. An entry is an object with
    ``feature`` (or ``id``, or ``name``), or a string. It stands for the feature with that id, else
    with that name (as shown, or whole), blanks around it aside. A number stands for nothing, since
    it may be a position, an id or a coefficient; nor does the last entry of an answer that was cut
    off in it. Entries keep their places: one that stands for no feature, or for one named before,
    is replaced there by a random feature that was not named, as if the model had drawn it, so that
    no later entry moves up. All behind the places asked for is in random order.
    """
    entries, truncated = list_in(text, "ranking")
    places: list[str | None] = []
    reasons: dict[str, str] = {}
    counts = dict.fromkeys(COUNTS, 0)
    for entry in entries[: prompt.asked]:
        kind, feature = _resolve(entry, prompt)
        if feature in reasons:
            kind, feature = "repeated", None
        counts[kind] += 1
        places.append(feature)
        if feature is not None:
            reasons[feature] = _reason(entry)
    counts["missing"] = prompt.asked - len(places)
    places += [None] * (len(prompt.ids) - len(places))
    left = sorted(set(prompt.ids.values()) - set(reasons))
    drawn = iter([left[i] for i in rng.permutation(len(left))])
    features = tuple(next(drawn) if place is None else place for place in places)
    surplus = max(0, len(entries) - prompt.asked)
    return Ranking(features, reasons, prompt.asked, **counts, surplus=surplus, truncated=truncated)


def list_in(text: str, name: str) -> tuple[list[Any], bool]:
    """Return the values of a list in a text that are whole, and whether it has no end.

    The list is the last ``"name": [``, else the first "[" of the text.
    """
    starts = [match.end() for match in re.finditer(rf'"{name}"\s*:\s*\[', text)]
    at = starts[-1] if starts else text.find("[") + 1
    if at == 0:
        return [], False
    decoder = json.JSONDecoder()
    values: list[Any] = []
    while True:
        at = _skip(text, at)
        if text[at : at + 1] == "]":
            return values, False
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return values, True
        at = _skip(text, at)
        # A number at the very end may be the beginning of a longer one.
        if at < len(text) or isinstance(value, str | dict | list):
            values.append(value)
        if text[at : at + 1] == ",":
            at += 1
        elif text[at : at + 1] != "]":
            return values, True


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _resolve(entry: Any, prompt: Prompt) -> tuple[str, str | None]:
    """Return which count an entry goes to, and its feature."""
    if isinstance(entry, dict):
        entry = next((entry[key] for key in ("feature", "id", "name") if key in entry), None)
    if isinstance(entry, int | float) and not isinstance(entry, bool):
        return "numbers", None
    if not isinstance(entry, str):
        return "invented", None
    for known, said in (
        (prompt.ids, entry.strip().lower()),
        (prompt.names, entry),
        (prompt.names, entry.strip()),
    ):
        if said in known:
            return "named", known[said]
    return ("numbers" if _NUMBER.fullmatch(entry.strip()) else "invented"), None


def _reason(entry: Any) -> str:
    reason = entry.get("reason") if isinstance(entry, dict) else None
    return shorten(reason, REASON) if isinstance(reason, str) else ""
