"""The question what a table's coefficients are like before any data: ids and names as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from inconvenient.baselines.coding import LevelCodes, code_table
from inconvenient.errors import InputError
from inconvenient.llm.prompts import (
    DOCUMENTATION,
    LEVEL,
    MODELS,
    NAME,
    QUOTED,
    Message,
    json_line,
    numbered,
    shorten,
    told_of_table,
)
from inconvenient.shifts.records import Context

if TYPE_CHECKING:
    from inconvenient.data import Dataset

__all__ = [
    "BATCH",
    "LEVELS",
    "SIZES",
    "VARIANTS",
    "Wanted",
    "answer_schema",
    "check_variant",
    "coefficients_of",
    "scale_of",
    "write_prior_prompt",
]

#: What is told: names and documentation; neither, for what the sheer question gives away.
VARIANTS = ("documented", "masked")

#: Coefficients asked for in one question, so that it fits a small context.
BATCH = 15

#: Levels of a feature that are asked for.
LEVELS = 12

#: What the words for a size stand for: standardised coefficients of a regression (Cohen 1988).
SIZES: Mapping[str, float] = {"none": 0.0, "small": 0.1, "medium": 0.3, "large": 0.5}

_SYSTEM = (
    """\
You know what is known of many subjects, and how statistical models of them usually turn out. You \
say what the coefficients of a model are like in a population, before any data are seen.
"""
    + QUOTED
)

_USER = """\
The JSON in the last line describes a table and names coefficients of a {model} of its target on \
all its features, as fitted to the whole population. {units} The column of a level is 1 where the \
feature has that level and 0 elsewhere. You are shown no data: answer from what you know.
Say of each coefficient, by its id: its "sign", which is "+", "-", or "0" if there is next to no \
relation; its "size", which is "none", "small", "medium" or "large" (about {sizes} in absolute \
value); and your "confidence" that the sign is right, in percent, from 50 for a guess to 100 for \
certainty. Answer with JSON alone: an object with the key "coefficients", an array of {count} \
objects, one per id, with the keys "id", "sign", "size" and "confidence".
"""

_UNITS = {
    "regression": (
        "A coefficient is the change of the target, in its standard deviations, for one standard "
        "deviation of the column, all other features held equal."
    ),
    "binary": (
        "A coefficient is the change of the log odds of the last class for one standard deviation "
        "of the column, all other features held equal."
    ),
    "multiclass": (
        "A coefficient is the change of the log odds of the class it names, against all other "
        "classes, for one standard deviation of the column, all other features held equal."
    ),
}


@dataclasses.dataclass(frozen=True, slots=True)
class Wanted:
    """One coefficient that a model is asked for.

    Parameters
    ----------
    feature : str
        The raw column.
    level : str or None
        Of a categorical feature; None of a number.
    class_ : str or None
        Of a multiclass target; None otherwise.
    share : float
        What the answer, of one level (or class) against all others, is times to be the
        coefficient where each of K has one: 1 - 1 / K, were all alike in rows; 1 without levels.
    """

    feature: str
    level: str | None
    class_: str | None
    share: float


def check_variant(variant: str) -> None:
    """Raise InputError unless there is such a variant."""
    if variant not in VARIANTS:
        raise InputError(f"variant must be one of {', '.join(VARIANTS)}, got {variant!r}")


def scale_of(task: str) -> float:
    """Return what a standardised coefficient of a regression is times to be one of a task.

    Log odds are in units of the logistic distribution, whose standard deviation is pi / sqrt(3);
    see Chinn (2000), A simple method for converting an odds ratio to effect size.
    """
    return 1.0 if task == "regression" else float(np.pi / np.sqrt(3.0))


def coefficients_of(dataset: Dataset, rng: np.random.Generator) -> tuple[tuple[Wanted, ...], int]:
    """Return the coefficients to ask for, and how many levels times classes are not asked for.

    Parameters
    ----------
    dataset : Dataset
        Of its columns the names, kinds and sets of levels are used, which a documentation would
        list; never a count, a row or the target, so that one prior serves every sample.
    rng : Generator
        Of the order of the features, and of the levels of one that has more than 12: 12 are drawn.

    Returns
    -------
    wanted : tuple of Wanted
        Features in random order; levels sorted; each for every class of a multiclass target.
    unasked : int
    """
    classes = tuple(dataset.classes) if dataset.task == "multiclass" else (None,)
    of_class = 1.0 - 1.0 / len(classes) if len(classes) > 1 else 1.0
    columns = code_table(dataset.X).columns
    names = list(columns)
    wanted: list[Wanted] = []
    unasked = 0
    for i in rng.permutation(len(names)).tolist():
        column, feature = columns[names[i]], str(names[i])
        if not isinstance(column, LevelCodes):
            wanted += [Wanted(feature, None, class_, of_class) for class_ in classes]
            continue
        levels = _levels(dataset.X[names[i]])
        if len(levels) < 2:
            continue
        kept = levels
        if len(levels) > LEVELS:
            drawn = np.sort(rng.choice(len(levels), size=LEVELS, replace=False)).tolist()
            kept = [levels[k] for k in drawn]
            unasked += (len(levels) - LEVELS) * len(classes)
        share = of_class * (1.0 - 1.0 / len(levels))
        wanted += [Wanted(feature, level, class_, share) for level in kept for class_ in classes]
    return tuple(wanted), unasked


def _levels(column: pd.Series) -> list[str]:
    return sorted({str(level) for level in column.dropna().unique()})


def answer_schema(ids: Sequence[str]) -> dict[str, Any]:
    """Return the JSON schema of an answer about some ids."""
    properties = {
        "id": {"type": "string", "enum": list(ids)},
        "sign": {"type": "string", "enum": ["+", "-", "0"]},
        "size": {"type": "string", "enum": list(SIZES)},
        "confidence": {"type": "integer", "minimum": 50, "maximum": 100},
    }
    entry = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    entries = {"type": "array", "maxItems": len(ids), "items": entry}
    return {
        "type": "object",
        "properties": {"coefficients": entries},
        "required": ["coefficients"],
        "additionalProperties": False,
    }


def write_prior_prompt(
    context: Context, wanted: Mapping[str, Wanted], variant: str
) -> tuple[Message, ...]:
    """Write the messages that ask for some coefficients.

    Parameters
    ----------
    context : Context
    wanted : mapping of id to Wanted
    variant : {"documented", "masked"}

    Returns
    -------
    tuple of dict
        ``role`` ("system", then "user") and ``content``; pure ASCII. The last line of the user's
        is one JSON object, which alone holds anything of the table.

    Notes
    -----
    Texts are cut as in :func:`~inconvenient.llm.prompts.write_prompt`.
    """
    sizes = [f"{value * scale_of(context.task):.1g}" for value in SIZES.values()]
    text = _USER.format(
        model=MODELS[context.task],
        units=_UNITS[context.task],
        sizes=f"{', '.join(sizes[:-1])} and {sizes[-1]}",
        count=len(wanted),
    )
    table = {**told_of_table(context, variant), "features": _features(context, wanted, variant)}
    return (
        {"role": "system", "content": _SYSTEM},
        {"role": "user", "content": text + json_line(table)},
    )


def _features(context: Context, wanted: Mapping[str, Wanted], variant: str) -> list[dict[str, Any]]:
    """Return what is told of each feature, with the ids of its coefficients."""
    masked = variant == "masked"
    classes: Mapping[str, str] = {name: shorten(name, LEVEL) for name in context.classes}
    if masked:
        classes = numbered("class", context.classes)
    features = []
    for name in dict.fromkeys(one.feature for one in wanted.values()):
        own = {id_: one for id_, one in wanted.items() if one.feature == name}
        levels = tuple(dict.fromkeys(one.level for one in own.values() if one.level is not None))
        shown = numbered("level", levels) if masked else {x: shorten(x, LEVEL) for x in levels}
        feature: dict[str, Any] = {} if masked else {"name": shorten(name, NAME)}
        documentation = context.feature_descriptions.get(name, "")
        if documentation and not masked:
            feature["documentation"] = shorten(documentation, DOCUMENTATION)
        feature["coefficients"] = [
            {"id": id_}
            | ({"level": shown[one.level]} if one.level is not None else {})
            | ({"class": classes[one.class_]} if one.class_ is not None else {})
            for id_, one in own.items()
        ]
        features.append(feature)
    return features
