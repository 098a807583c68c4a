"""Rankings of features by suspicion without a language model: random, size, bootstrap."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from inconvenient.llm.tasks import Question, sample_design
from inconvenient.selection.design import Design, round_significant
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
    b = _penalised(design, np.ones(n))
    share = np.full(n, 1 / n)
    drawn = (rng.multinomial(n, share).astype(np.float64) for _ in range(resamples))
    s = np.array([_penalised(design, weights) for weights in drawn]).std(axis=0, ddof=1)
    rows = []
    for feature in design.features:
        own = design.columns_of(feature) - 1  # without the intercept
        size, spread = float(np.linalg.norm(b[own])), float(np.linalg.norm(s[own]))
        ratio = spread / size if size > 0.0 else (np.inf if spread > 0.0 else 0.0)
        rows.append(round_significant([size, spread, ratio]))
    names = pd.Index(design.features, name="feature")
    return pd.DataFrame(rows, index=names, columns=["size", "spread", "instability"])


def _penalised(design: Design, weights: FloatArray) -> FloatArray:
    """Return coefficients without intercept, (p - 1, C), of rows that count ``weights`` times."""
    X, y = design.X[:, 1:], design.y
    total = weights.sum()
    if design.task == "regression":
        mean = weights @ X / total
        centred = X - mean
        gram = (centred * weights[:, None]).T @ centred
        gram[np.diag_indices_from(gram)] += total * RIDGE
        solved: FloatArray = np.linalg.solve(gram, centred.T @ (weights * y))
        return solved[:, None]
    from sklearn.linear_model import LogisticRegression

    drawn = weights > 0.0
    present = np.unique(y[drawn]).astype(np.int64)
    out = np.zeros((X.shape[1], 1 if design.n_classes == 2 else design.n_classes))
    if present.size == 1:
        return out
    model = LogisticRegression(
        C=1.0 / (total * RIDGE), solver="newton-cholesky", tol=1e-6, max_iter=200
    ).fit(X[drawn], y[drawn], sample_weight=weights[drawn])
    if design.n_classes == 2:
        out[:, 0] = model.coef_[0]
    elif present.size == 2:  # the symmetric form of one contrast
        out[:, present] = np.column_stack([-model.coef_[0], model.coef_[0]]) / 2
    else:
        out[:, present] = model.coef_.T
    return out
