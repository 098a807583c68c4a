"""The table of published shifts, joined from what the stages found out about each."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from inconvenient.errors import InputError
from inconvenient.shifts.schema import PUBLISHED_COLUMNS, SHIFT_COLUMNS, validate

__all__ = ["publish"]

#: Columns of the filter table that are no scores.
_FLAGS = ("retained", "retained_paper", "gap", "gap_paper")
_PARTS = {
    "id": "score_id",
    "control": "score_control",
    "control_sd": "control_sd",
    "ood": "score_ood",
}


def publish(
    shifts: pd.DataFrame,
    filtered: pd.DataFrame,
    scores: pd.DataFrame,
    collateral: pd.DataFrame,
    hashes: Mapping[str, str],
) -> pd.DataFrame:
    """Join what is known of each published shift.

    Parameters
    ----------
    shifts : DataFrame
        Verified shifts.
    filtered : DataFrame
        Stage ``filter``: flags and scores of the filter models, on the filter half.
    scores : DataFrame
        Stage ``evaluate``: default-setting scores on the report half, a row per shift and baseline.
    collateral : DataFrame
        Stage ``collateral``.
    hashes : mapping of str to str
        Hash of each dataset.

    Returns
    -------
    DataFrame
        Table "published" of the schema, sorted by shift id. A score is NaN where the baseline
        failed on one of the training sets behind it.

    Raises
    ------
    InputError
        If a published shift is absent from one of the tables, or twice in it, or none is
        published.
    """
    chosen = filtered.loc[filtered["published"].astype(bool), "shift_id"]
    if chosen.empty:
        raise InputError(
            f"published shifts were needed, but none of {len(filtered)} is retained; "
            "widen the grid or the datasets of the profile in params.yaml"
        )
    ids = pd.Index(sorted(chosen))
    own = _rows(shifts, ids, "shifts")[[c for c in SHIFT_COLUMNS if c != "shift_id"]]
    found = _rows(filtered, ids, "filter")
    beside = _rows(collateral, ids, "collateral")[["collateral", "collateral_control"]]
    models = [c.removesuffix("_ood") for c in map(str, found) if c.endswith("_ood")]
    tried = [f"{model}_{part}" for model in models for part in ("id", "control", "ood")]
    out = pd.concat(
        [
            own.assign(data_hash=own["dataset"].map(dict(hashes))),
            found[list(_FLAGS)],
            beside,
            _scores(scores, ids),
            found[[*tried, "control_sd"]].add_prefix("filter_"),
        ],
        axis=1,
    )
    out = out.rename_axis("shift_id").reset_index()
    front = list(PUBLISHED_COLUMNS)
    return validate(out[[*front, *(c for c in out if c not in front)]], "published")


def _rows(frame: pd.DataFrame, ids: pd.Index, name: str) -> pd.DataFrame:
    """Return the rows of the given shifts, in their order."""
    table = frame.set_index("shift_id")
    twice = table.index[table.index.duplicated()]
    if len(twice):
        raise InputError(f"table {name} holds {twice[0]!r} more than once; make it again")
    absent = ids.difference(table.index)
    if len(absent):
        raise InputError(
            f"table {name} lacks {len(absent)} of {len(ids)} published shifts, the first of them "
            f"{absent[0]!r}; the stages are not of one version, run `dvc repro`"
        )
    return table.loc[ids]


def _scores(scores: pd.DataFrame, ids: pd.Index) -> pd.DataFrame:
    """Return one row per shift, four columns per baseline."""
    parts = []
    for baseline, rows in scores.groupby("baseline", sort=True):
        own = _rows(rows, ids, f"evaluate ({baseline})")
        parts.append(
            pd.DataFrame({f"{baseline}_{part}": own[c] for part, c in _PARTS.items()}, index=ids)
        )
    return pd.concat(parts, axis=1) if parts else pd.DataFrame(index=ids)
