"""Priors of a linear model's coefficients: the record, and the ones that need no language model."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from inconvenient.selection.design import Design, build_design
from inconvenient.selection.engine import Engine
from inconvenient.selection.levels import MISSING_LEVEL, Levels, raw_values
from inconvenient.selection.problem import RARE_LEVEL_SHARE, RIDGE
from inconvenient.selection.reference import fit_reference
from inconvenient.shifts.records import Context, context_of

if TYPE_CHECKING:
    from inconvenient.data import Dataset

__all__ = [
    "MISSING",
    "Key",
    "Prior",
    "Term",
    "flat_prior",
    "oracle_prior",
    "prior_key",
    "reversed_prior",
]

FloatArray = NDArray[np.float64]
Term = tuple[float, float]
Key = str | tuple[str, str]

#: The level that stands for a missing value, of numbers and of categories.
MISSING = MISSING_LEVEL


class Prior(NamedTuple):
    """What is believed of a linear model's coefficients before a sample is seen.

    Parameters
    ----------
    terms : mapping
        For a numeric column its name, for a level of a categorical one ``(name, level)`` (levels
        as ``str`` writes them, "(missing)" for gaps, of numbers too): ``(mean, sd)``, sd above 0.
        Two classes: of the logit of the last in sorted order. More: a mapping of class to
        ``(mean, sd)``; only differences between classes count.
    raw : bool
        Units of means and sds. False: per standard deviation of the column in the training sample
        (of a regression's target, too). True: per unit of the column and of the target, which are
        the same in every sample.
    """

    terms: Mapping[Key, Term | Mapping[str, Term]]
    raw: bool = False


def prior_key(of: Context | Dataset) -> str:
    """Return the key of a dataset's prior in the mapping that ``PriorModel`` is given.

    A digest of what an estimator is told about its dataset, for it is not told the name.
    """
    context = of if isinstance(of, Context) else context_of(of)
    text = json.dumps(dataclasses.asdict(context), sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def flat_prior() -> Prior:
    """Return the prior that says nothing: all coefficients have mean 0 and the default sd."""
    return Prior({})


def reversed_prior(prior: Prior) -> Prior:
    """Return a prior with the signs of all means flipped and the same standard deviations."""
    terms: dict[Key, Term | Mapping[str, Term]] = {}
    for key, term in prior.terms.items():
        if isinstance(term, Mapping):
            terms[key] = {name: (-mean, sd) for name, (mean, sd) in term.items()}
        else:
            terms[key] = (-term[0], term[1])
    return Prior(terms, prior.raw)


def oracle_prior(dataset: Dataset, pool: NDArray[np.int64]) -> Prior:
    """Return the prior of one who knows the pool: an upper bound of what a prior can do.

    Parameters
    ----------
    dataset : Dataset
    pool : int64 (n,)
        Row ids.

    Returns
    -------
    Prior
        In raw units, so that its mapping to any sample's standardisation is exact. Means are the
        reference model's coefficients: a level has that of the column it belongs to in the design,
        0 if it is in the base or its column was removed. So has an indicator of gaps, which a
        sample fills with its own median. A standard deviation is 1 / sqrt(H), H being what the
        pool's rows tell of the one coefficient: at strength 1 the oracle counts as much as they.

    Notes
    -----
    H is the diagonal entry of the Hessian of ``PriorModel``'s loss on the pool: the column's sum
    of squares about its mean, each row weighted by 1 over the target's variance, or by p (1 - p).
    Level by level, since levels that are rare in the pool need not be so in a sample.
    """
    X, y = dataset.X.iloc[pool].reset_index(drop=True), dataset.y[pool]
    classes = list(dataset.classes)
    design = build_design(
        X, y, task=dataset.task, n_classes=len(classes), rare_level_share=RARE_LEVEL_SHARE
    )
    b = fit_reference(Engine(design), ridge=RIDGE).coefficients
    weights = _weights(design, b)
    slopes = _raw_slopes(design, b * design.y_scale)
    nothing = np.zeros(b.shape[1])
    terms: dict[Key, Term | Mapping[str, Term]] = {}
    for feature in map(str, X.columns):
        for key, values, minus in _columns(feature, X[feature]):
            spread = values - values.mean()
            information = spread**2 @ weights
            if not (information > 0).all():
                continue
            mean = slopes.get(key, nothing) - (slopes.get(minus, nothing) if minus else 0.0)
            own: Key = feature if minus else key
            pairs = [(float(m), float(s)) for m, s in zip(mean, information**-0.5)]
            terms[own] = dict(zip(classes, pairs)) if len(pairs) > 1 else pairs[0]
    return Prior(terms, raw=True)


def _weights(design: Design, b: FloatArray) -> FloatArray:
    """Return each row's weight in the Hessian, float64 (n, C)."""
    from scipy.special import expit, softmax

    if design.task == "regression":
        return np.full((len(design.X), 1), design.y_scale**-2)
    eta = design.X @ b
    p: FloatArray = expit(eta) if b.shape[1] == 1 else softmax(eta, axis=1)
    return p * (1.0 - p)


def _raw_slopes(design: Design, b: FloatArray) -> dict[Key, FloatArray]:
    """Return coefficients per unit of a column, (C,) each, by feature or (feature, level)."""
    slopes: dict[Key, FloatArray] = {}
    for column, own in zip(design.encoding, b[1:]):
        if column.levels is None:
            slopes[column.feature] = own / column.scale
            continue
        for level in column.levels:
            slopes[column.feature, level] = own / column.scale
    return slopes


def _columns(feature: str, series: pd.Series) -> list[tuple[Key, FloatArray, Key | None]]:
    """Return key and values of a feature's columns, and of booleans, 0 and 1, what is 0."""
    raw = raw_values(series)
    if isinstance(raw, Levels):
        names = raw.names
        if pd.api.types.is_bool_dtype(series):  # levels in the design, a number in baselines
            return [((feature, "True"), raw.among(("True",)), (feature, "False"))]
        return [((feature, name), raw.among((name,)), None) for name in names]
    gap = np.isnan(raw)
    if gap.all():
        return []
    filled = np.where(gap, np.median(raw[~gap]), raw)
    own: list[tuple[Key, FloatArray, Key | None]] = [(feature, filled, None)]
    if gap.any():
        own.append(((feature, MISSING), gap.astype(np.float64), None))
    return own
