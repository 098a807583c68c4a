"""Recall@K of rankings, raw and corrected for chance, per operation and overall."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from inconvenient.data.bootstrap import Bootstrap
from inconvenient.errors import InputError

__all__ = [
    "KS",
    "OVERALL",
    "corrected",
    "recall_at",
    "recall_differences",
    "recall_table",
    "summarise_recall",
]

#: Places at which a ranking is read.
KS = (1, 3, 5, 10)

#: What stands for all operations together.
OVERALL = "overall"


def recall_at(ranking: Sequence[str], truth: Sequence[str], k: int) -> float:
    """Return the share of the k features that moved most among the first k of a ranking.

    Parameters
    ----------
    ranking, truth : sequence of str
        The same m features, each once; most suspicious, or most moved, first.
    k : int
        1 to m.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    InputError
        If the two are not permutations of each other, or k is out of range.
    """
    m = len(truth)
    if len(ranking) != m or set(ranking) != set(truth) or len(set(truth)) != m:
        raise InputError(
            f"a ranking must hold each of the {m} features once, got {len(ranking)} places and "
            f"{len(set(ranking) & set(truth))} of the features"
        )
    if not 1 <= k <= m:
        raise InputError(f"k must be between 1 and the {m} features, got {k}")
    return len(set(ranking[:k]) & set(truth[:k])) / k


def corrected(recall: float, chance: float) -> float:
    """Return (R - chance) / (1 - chance): 0 for random ranking, 1 for the truth.

    NaN where chance is 1, as for K = m.
    """
    return (recall - chance) / (1.0 - chance) if chance < 1.0 else math.nan


def recall_table(
    rankings: Mapping[str, Sequence[str]],
    truths: Mapping[str, Sequence[str]],
    shifts: pd.DataFrame,
    *,
    ks: Sequence[int] = KS,
) -> pd.DataFrame:
    """Score one ranking per shift.

    Parameters
    ----------
    rankings, truths : mapping of shift id to features
        See :func:`recall_at`; both hold the same shifts.
    shifts : DataFrame
        Columns ``shift_id``, ``dataset`` and ``operation``; others are ignored.
    ks : sequence of int
        Places at which a ranking is read. Those of m or more are left out: any ranking is right.

    Returns
    -------
    DataFrame
        One row per shift and k, sorted: ``shift_id``, ``dataset``, ``operation``, ``k``,
        ``recall``, ``chance`` (K / m, the expectation of random ranking), ``corrected``.

    Raises
    ------
    InputError
        If a shift lacks its ranking, its truth or its row.
    """
    facts = shifts.set_index("shift_id")
    if set(rankings) != set(truths) or not set(rankings) <= set(facts.index):
        odd = sorted((set(rankings) ^ set(truths)) | (set(rankings) - set(facts.index)))
        raise InputError(f"every shift needs a ranking, a truth and a row, {odd[0]!r} does not")
    rows = []
    for shift_id in sorted(rankings):
        truth, m = truths[shift_id], len(truths[shift_id])
        for k in sorted(set(ks)):
            if k < m:
                recall = recall_at(rankings[shift_id], truth, k)
                rows.append(
                    {
                        "shift_id": shift_id,
                        "dataset": str(facts.at[shift_id, "dataset"]),
                        "operation": str(facts.at[shift_id, "operation"]),
                        "k": k,
                        "recall": recall,
                        "chance": k / m,
                        "corrected": corrected(recall, k / m),
                    }
                )
    names = ["shift_id", "dataset", "operation", "k", "recall", "chance", "corrected"]
    return pd.DataFrame(rows, columns=names)


def summarise_recall(table: pd.DataFrame, bootstrap: Bootstrap) -> pd.DataFrame:
    """Average a table of recalls per operation and overall.

    Parameters
    ----------
    table : DataFrame
        Of :func:`recall_table`.
    bootstrap : Bootstrap
        With the survey family of each dataset.

    Returns
    -------
    DataFrame
        One row per operation, "overall" last, and k: ``shifts``, ``datasets``; ``recall``,
        ``chance`` and ``corrected``, each the mean over datasets of a dataset's mean, with 95 %
        intervals ``recall_low``, ``recall_high``, ``corrected_low`` and ``corrected_high`` over
        datasets (NaN with fewer than three families); ``recall_shifts``, ``chance_shifts`` and
        ``corrected_shifts``, the means over shifts, as the paper states them.
    """
    rows = []
    operations = [*sorted(table["operation"].unique()), OVERALL] if len(table) else []
    for operation in operations:
        part = table if operation == OVERALL else table[table["operation"] == operation]
        for k, own in part.groupby("k"):
            row = {
                "operation": operation,
                "k": k,
                "shifts": own["shift_id"].nunique(),
                "datasets": own["dataset"].nunique(),
            }
            for name in ("recall", "chance", "corrected"):
                by_dataset = own.groupby("dataset")[name].mean()
                row[name] = by_dataset.mean()
                if name != "chance":
                    row[f"{name}_low"], row[f"{name}_high"] = bootstrap.interval(by_dataset)
                row[f"{name}_shifts"] = own[name].mean()
            rows.append(row)
    return pd.DataFrame(rows)


def recall_differences(
    table: pd.DataFrame, other: pd.DataFrame, bootstrap: Bootstrap
) -> pd.DataFrame:
    """Compare two rankings of the same shifts, shift by shift.

    Parameters
    ----------
    table, other : DataFrame
        Of :func:`recall_table`.
    bootstrap : Bootstrap
        With the survey family of each dataset.

    Returns
    -------
    DataFrame
        One row per k: ``k``, ``shifts``, ``datasets``; ``difference``, the mean over datasets of
        the mean recall of the first less that of the second, over the shifts that both have, with
        its 95 % interval ``low``, ``high`` over datasets (NaN with fewer than three families).
    """
    both = table.merge(other[["shift_id", "k", "recall"]], on=["shift_id", "k"])
    rows = []
    for k, own in both.groupby("k"):
        by_dataset = (own["recall_x"] - own["recall_y"]).groupby(own["dataset"]).mean()
        low, high = bootstrap.interval(by_dataset)
        rows.append(
            {
                "k": k,
                "shifts": len(own),
                "datasets": len(by_dataset),
                "difference": by_dataset.mean(),
                "low": low,
                "high": high,
            }
        )
    return pd.DataFrame(rows)
