"""Rankings of features by suspicion without a language model: random, size, bootstrap."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from inconvenient.llm.tasks import Question, sample_design
from inconvenient.selection.design import Design, round_significant
from inconvenient.selection.penalised import penalised_coefficients
from inconvenient.selection.problem import RIDGE
from inconvenient.shifts.records import Context

__all__ = [
    "RESAMPLES",
    "bootstrap_table",
    "generator_of",
    "rank_by_instability",
    "rank_by_size",
    "rank_by_spread",
    "rank_randomly",
    "ranked",
]

FloatArray = npt.NDArray[np.float64]

#: Bootstrap samples behind the instability of coefficients.
RESAMPLES = 30


def generator_of(seed: int, name: str) -> np.random.Generator:
    """Return the generator for one shift, the same whichever others are ranked beside it."""
    return np.random.default_rng([seed, zlib.crc32(name.encode("utf-8", "backslashreplace"))])


def ranked(scores: Mapping[str, float]) -> tuple[str, ...]:
    """Return features by falling score, ties by name."""
    return tuple(sorted(scores, key=lambda feature: (-scores[feature], feature)))


def rank_randomly(features: Sequence[str], rng: np.random.Generator) -> tuple[str, ...]:
    """Rank features in random order; Recall@K is K / m in expectation."""
    return tuple(features[i] for i in rng.permutation(len(features)))


def rank_by_size(question: Question) -> tuple[str, ...]:
    """Rank features by the L2 norm of the coefficients that a model is shown, largest first."""
    return ranked(question.sizes())


def rank_by_instability(table: pd.DataFrame) -> tuple[str, ...]:
    """Rank features by spread relative to size, of :func:`bootstrap_table`, largest first."""
    return ranked(dict(zip(map(str, table.index), table["instability"].tolist())))


def rank_by_spread(table: pd.DataFrame) -> tuple[str, ...]:
    """Rank features by spread, of :func:`bootstrap_table`, largest first."""
    return ranked(dict(zip(map(str, table.index), table["spread"].tolist())))


def bootstrap_table(
    X: pd.DataFrame,
    y: pd.Series,
    context: Context,
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """Return how far the coefficients of each feature move under the bootstrap.

    Parameters
    ----------
    X : DataFrame (n, m)
        Raw features of the sample.
    y : Series (n,)
        Its raw target.
    context : Context
    rng : Generator
        Of the resamples.
    resamples : int
        At least 2.

    Returns
    -------
    DataFrame
        One row per feature, sorted by name, which is the index. ``size``, ||b||_2 over its design
        columns and classes, b being the coefficients on the sample; ``spread``, ||s||_2, s being
        the standard deviation (divisor resamples - 1) of each coefficient over resamples of n rows
        with replacement; ``instability``, spread over size. All 0 for a feature without a column.

    Notes
    -----
    Design and units are the sample's and stay fixed. All fits, that on the sample included, have
    the reference model's penalty, with which a resample without a class, with a constant column or
    separated still has a fit. Resamples times a fit; rounded to 10 significant digits.
    """
    design = sample_design(X, y, context)
    n = len(design.X)
    b = _penalised(design)
    share = np.full(n, 1 / n)
    drawn = (rng.multinomial(n, share).astype(np.float64) for _ in range(resamples))
    s = np.array([_penalised(design, counts) for counts in drawn]).std(axis=0, ddof=1)
    rows = []
    for feature in design.features:
        own = design.columns_of(feature) - 1  # without the intercept
        size, spread = float(np.linalg.norm(b[own])), float(np.linalg.norm(s[own]))
        ratio = spread / size if size > 0.0 else (np.inf if spread > 0.0 else 0.0)
        rows.append(round_significant([size, spread, ratio]))
    names = pd.Index(design.features, name="feature")
    return pd.DataFrame(rows, index=names, columns=["size", "spread", "instability"])


def _penalised(design: Design, counts: FloatArray | None = None) -> FloatArray:
    """Return coefficients without intercept, (p - 1, C), of rows that count so many times."""
    X = design.X[:, 1:]
    return penalised_coefficients(
        X, design.y, n_classes=design.n_classes, ridge=RIDGE, counts=counts
    )
