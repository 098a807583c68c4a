"""Tables of scores per shift, made of the records of training sets."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

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
    records = _Records(frames)
    rows: list[tuple[Any, ...]] = []
    scores: list[NDArray[np.float64]] = []
    ordered = shifts.sort_values("shift_id")
    columns = (ordered[c].tolist() for c in ("shift_id", "dataset", "size", "rows_hash"))
    for shift_id, name, size, digest in zip(*columns, strict=True):
        for model in sorted(models):
            full = records.of(name, model, "id", todo[name].full.name)
            control = records.control(todo[name], model, shared_size(size))
            ood = records.of(name, model, "ood", digest)
            statuses = (s for s in (full.status, control.status, ood.status) if s != "ok")
            setting, trials = ood.setting, ood.trials
            if by_role:
                parts = {"id": full, "control": control.first, "ood": ood}
                setting, trials = (
                    json.dumps({k: json.loads(getattr(r, field)) for k, r in parts.items()})
                    for field in ("setting", "trials")
                )
            status = next(statuses, "ok")
            control_scores = (control.mean, control.sd)
            rows.append(
                (shift_id, model, status, full.score, *control_scores, ood.score, setting, trials)
            )
            scores.append(control.scores)
    table = _typed(rows)
    if draws:
        table["draws"] = pd.Series(scores, dtype=object)
    return table


class _Record(NamedTuple):
    """What is known of one training set and model."""

    status: str
    score: float
    setting: str
    trials: str


class _Control(NamedTuple):
    """What is known of the control samples of one size: the first failure, or "ok"; the scores."""

    status: str
    mean: float
    sd: float
    scores: NDArray[np.float64]
    first: _Record


class _Records:
    """Records of training sets by name; controls of one size are summed up once."""

    def __init__(self, frames: Sequence[pd.DataFrame]) -> None:
        self._records: dict[tuple[str, ...], _Record] = {}
        self._controls: dict[tuple[str, str, int], _Control] = {}
        if frames:
            whole = pd.concat(frames, ignore_index=True)
            names = zip(*(whole[c].tolist() for c in ("dataset", "model", "role", "name")))
            values = zip(*(whole[c].tolist() for c in _Record._fields))
            self._records = {
                name: _Record(*value) for name, value in zip(names, values, strict=True)
            }

    def of(self, *name: str) -> _Record:
        return self._records[name]

    def control(self, plan: Plan, model: str, size: int) -> _Control:
        key = (plan.name, model, size)
        if key not in self._controls:
            own = [self.of(plan.name, model, "control", i.name) for i in plan.controls[size]]
            scores = np.array([record.score for record in own])
            self._controls[key] = _Control(
                next((record.status for record in own if record.status != "ok"), "ok"),
                float(scores.mean()),
                float(scores.std(ddof=1)) if scores.size > 1 else float("nan"),
                scores,
                own[0],
            )
        return self._controls[key]


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
