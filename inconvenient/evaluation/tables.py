"""Tables of scores per shift, made of the records of training sets."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from inconvenient.config import Params, TuningParams
from inconvenient.evaluation.plan import Plan, drawn_shifts, plans
from inconvenient.selection.chance import shared_size

if TYPE_CHECKING:
    from inconvenient.data import Split

__all__ = ["assemble_default", "assemble_tuned", "score_table"]

Splits = Mapping[str, "Split"]


def assemble_default(
    splits: Splits, shifts: pd.DataFrame, params: Params, frames: Sequence[pd.DataFrame]
) -> pd.DataFrame:
    """Make the table of default-setting scores from the results of :func:`default_units`.

    Returns
    -------
    DataFrame
        One row per shift and baseline, sorted by both: ``shift_id``, ``baseline``, ``status``
        ("ok", or the last line of the first failure), ``score_id``, ``score_control`` and
        ``control_sd`` (over the control samples; NaN if one failed), ``score_ood``, ``setting``.
    """
    todo = plans(splits, shifts, controls=params.evaluate.controls, seed=params.shifts.seed)
    return score_table(todo, shifts, params.evaluate.baselines, frames).drop(columns="trials")


def assemble_tuned(
    splits: Splits,
    shifts: pd.DataFrame,
    params: Params,
    tuning: TuningParams,
    frames: Sequence[pd.DataFrame],
) -> pd.DataFrame:
    """Make the table of tuned scores from the results of :func:`tuned_units`.

    Returns
    -------
    DataFrame
        As :func:`assemble_default`, for the drawn shifts, and ``trials``. ``setting`` and
        ``trials`` are JSON objects with entries "id", "control" and "ood".
    """
    drawn = drawn_shifts(shifts, tuning, seed=params.evaluate.seed)
    todo = plans(splits, drawn, controls=params.evaluate.controls, seed=params.shifts.seed)
    return score_table(todo, drawn, params.evaluate.baselines, frames, by_role=True)


def score_table(
    todo: Mapping[str, Plan],
    shifts: pd.DataFrame,
    models: Sequence[str],
    frames: Sequence[pd.DataFrame],
    *,
    by_role: bool = False,
    draws: bool = False,
) -> pd.DataFrame:
    """Join records of training sets to shifts; one row per shift and model, sorted by both.

    Parameters
    ----------
    todo : mapping of str to Plan
    shifts : DataFrame
    models : sequence of str
    frames : sequence of DataFrame
        Results of units.
    by_role : bool
        Report setting and trials of full pool, control and convenience sample, not of the last.
    draws : bool
        Add the column ``draws``: the scores of the control samples, in order of draw.
    """
    records: dict[tuple[str, ...], Any] = {}
    for frame in frames:
        for row in frame.itertuples(index=False):
            key = (str(row.dataset), str(row.model), str(row.role), str(row.rows_hash))
            records[key] = row
    rows: list[tuple[Any, ...]] = []
    scores: list[NDArray[np.float64]] = []
    ordered = shifts.sort_values("shift_id")
    columns = ("shift_id", "dataset", "size", "rows_hash")
    for shift_id, name, size, digest in zip(*(ordered[c] for c in columns), strict=True):
        plan = todo[name]
        for model in sorted(models):
            full = records[name, model, "id", plan.full.digest]
            controls = [
                records[name, model, "control", item.digest]
                for item in plan.controls[shared_size(int(size))]
            ]
            ood = records[name, model, "ood", digest]
            failures = [r.status for r in (full, *controls, ood) if r.status != "ok"]
            values = np.array([r.score for r in controls])
            scores.append(values)
            setting, trials = ood.setting, ood.trials
            if by_role:
                parts = {"id": full, "control": controls[0], "ood": ood}
                setting, trials = (
                    json.dumps({k: json.loads(getattr(r, field)) for k, r in parts.items()})
                    for field in ("setting", "trials")
                )
            rows.append(
                (
                    shift_id,
                    model,
                    failures[0] if failures else "ok",
                    full.score,
                    float(values.mean()),
                    float(values.std(ddof=1)) if values.size > 1 else float("nan"),
                    ood.score,
                    setting,
                    trials,
                )
            )
    table = _typed(rows)
    if draws:
        table["draws"] = pd.Series(scores, dtype=object)
    return table


def _typed(rows: list[tuple[Any, ...]]) -> pd.DataFrame:
    text, number = "str", "float64"
    kinds = {
        "shift_id": text,
        "baseline": text,
        "status": text,
        "score_id": number,
        "score_control": number,
        "control_sd": number,
        "score_ood": number,
        "setting": text,
        "trials": text,
    }
    return pd.DataFrame(rows, columns=list(kinds)).astype(kinds)
