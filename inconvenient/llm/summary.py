"""The tables that say what came of asking about many shifts, beside the paper's figures."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from inconvenient.llm.anomalies import Anomalies
from inconvenient.llm.answers import COUNTS
from inconvenient.llm.prompts import VARIANTS
from inconvenient.llm.recall import OVERALL, corrected

__all__ = [
    "PAPER",
    "PAPER_RANDOM",
    "answer_counts",
    "paired_differences",
    "recall_by_operation",
    "recall_overall",
]

#: Recall@5 of the paper's best model (section 4.4), means over 300 shifts.
PAPER: Mapping[str, float] = {"amplify": 0.427, "attenuate": 0.327, "flip": 0.367, OVERALL: 0.374}

#: Recall@5 of random ranking on the paper's shifts: its datasets have more features than ours.
PAPER_RANDOM = 0.168

_AT = 5


def recall_overall(result: Anomalies) -> pd.DataFrame:
    """Return Recall@K over all operations.

    Parameters
    ----------
    result : Anomalies

    Returns
    -------
    DataFrame
        A row per ranking and K: ``recall``, mean over datasets, with its 95 % interval ``low``,
        ``high``; ``chance``; ``corrected`` for chance, with ``corrected_low``, ``corrected_high``;
        ``recall_shifts``, mean over shifts.
    """
    own = result.summary[result.summary["operation"] == OVERALL]
    names = {"k": "K", "recall_low": "low", "recall_high": "high"}
    columns = ["ranking", "K", "recall", "low", "high", "chance"]
    columns += ["corrected", "corrected_low", "corrected_high", "recall_shifts"]
    return own.rename(columns=names)[columns].reset_index(drop=True)


def recall_by_operation(result: Anomalies, k: int = _AT) -> pd.DataFrame:
    """Return Recall@K per operation, the paper's figures below at K = 5.

    Parameters
    ----------
    result : Anomalies
    k : int
        1, 3, 5 or 10.

    Returns
    -------
    DataFrame
        A row per ranking and operation: ``shifts``, ``datasets``; ``recall``, ``low``, ``high``,
        ``chance``, ``corrected`` as of :func:`recall_overall`, and ``recall_shifts``, to compare
        with the paper's means over shifts. In its rows ``chance`` is its random ranking, and
        ``corrected`` follows from the two means.
    """
    own = result.summary[result.summary["k"] == k]
    names = {"recall_low": "low", "recall_high": "high"}
    columns = ["ranking", "operation", "shifts", "datasets", "recall", "low", "high"]
    columns += ["chance", "corrected", "recall_shifts"]
    table = own.rename(columns=names)[columns].reset_index(drop=True)
    if k != _AT:
        return table
    paper = pd.DataFrame(
        {
            "ranking": "paper's best model",
            "operation": list(PAPER),
            "chance": PAPER_RANDOM,
            "corrected": [corrected(value, PAPER_RANDOM) for value in PAPER.values()],
            "recall_shifts": list(PAPER.values()),
        }
    )
    return pd.concat([table, paper.reindex(columns=columns)], ignore_index=True)


def paired_differences(result: Anomalies, k: int = _AT) -> pd.DataFrame:
    """Return how much more each variant finds than the rankings behind it, shift by shift.

    Parameters
    ----------
    result : Anomalies
    k : int
        1, 3, 5 or 10.

    Returns
    -------
    DataFrame
        A row per pair: ``ranking``, ``other``, ``shifts``, ``datasets``, ``difference`` of
        Recall@K, its 95 % interval ``low``, ``high``. Empty if nothing was asked.
    """
    table = result.differences
    if table.empty:
        return table
    return table[table["k"] == k].drop(columns="k").reset_index(drop=True)


def answer_counts(result: Anomalies) -> pd.DataFrame:
    """Return what became of the questions.

    Parameters
    ----------
    result : Anomalies

    Returns
    -------
    DataFrame
        A row per variant: ``questions``; ``complete``, ``partial``, ``unusable``, ``failed``; of
        all places asked for the shares ``named``, ``missing``, ``repeated``, ``invented``,
        ``numbers``, which sum to 1; answers ``cut_off`` and ``refused``, messages ``too_long``;
        ``tokens_in``, ``tokens_out``. Empty if nothing was asked.
    """
    rows = []
    asked = result.questions
    for variant in [name for name in VARIANTS if len(asked) and name in set(asked["variant"])]:
        own = asked[asked["variant"] == variant]
        row: dict[str, object] = {"variant": variant, "questions": len(own)}
        for status in ("complete", "partial", "unusable", "failed"):
            row[status] = int((own["status"] == status).sum())
        places = own[list(COUNTS)].to_numpy().sum(axis=0)
        row |= dict(zip(COUNTS, np.asarray(places / places.sum()).tolist()))
        stops = {"cut_off": "length", "refused": "refusal", "too_long": "too long"}
        row |= {name: int((own["stop"] == stop).sum()) for name, stop in stops.items()}
        row |= {name: int(own[name].sum()) for name in ("tokens_in", "tokens_out")}
        rows.append(row)
    return pd.DataFrame(rows)
