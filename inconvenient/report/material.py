"""The frames of a profile joined into what the tables count and average."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from inconvenient.config import Params
from inconvenient.data.bootstrap import Bootstrap
from inconvenient.errors import InputError

__all__ = [
    "FRAMES",
    "OPERATIONS",
    "PARTS",
    "POPULATIONS",
    "TASKS",
    "TASK_FAMILIES",
    "Material",
    "join",
]

TASKS = ("regression", "binary", "multiclass")
#: Tasks that share a score, R2 or AUC.
TASK_FAMILIES = {"regression": ("regression",), "classification": ("binary", "multiclass")}
OPERATIONS = ("amplify", "attenuate", "flip")

#: The sets of shifts that stand side by side, and the column that marks each.
POPULATIONS = {
    "verified": "verified",
    "retained": "retained",
    "retained_paper": "retained_paper",
}

#: Score columns of the joined frames; degradation = size + bias.
PARTS = ("id", "control", "ood", "degradation", "size", "bias")

#: The frames that a report reads, by the name of their artefact.
FRAMES = (
    "split/datasets",
    "reference/datasets",
    "shifts/candidates",
    "shifts/shifts",
    "filter/filter",
    "evaluate/default",
    "evaluate/tuned",
    "collateral/collateral",
)

#: Columns of shifts that tables of scores group by.
_GROUPING = (
    "shift_id",
    "dataset",
    "task",
    "task_family",
    "kind",
    "label",
    "direction",
    "operation",
    "factor",
    "achieved",
    "mode",
    "min_fraction",
    "importance_bin",
    "strategy",
    "rows_hash",
    "p_uniform",
    "verified",
    "retained",
    "retained_paper",
    "published",
    "useful",
    "main",
)

#: The flags of the filters.
_FLAGS = ("retained", "retained_paper", "published")

_DIRECTION = {"amplify": 1, "attenuate": -1, "flip": -1}


@dataclasses.dataclass(frozen=True, slots=True)
class Material:
    """The joined frames.

    Parameters
    ----------
    datasets : DataFrame
        One row per dataset of the profile, by name: task ("" where unknown), status, family,
        rows, pool, score of the reference model, ``useful`` (whether that passes its floor).
    candidates : DataFrame
        As in the artefact.
    shifts : DataFrame
        Verified shifts with flags, collateral effect, ``task_family``, ``label`` (the feature, or
        "bin:" and its bin), ``direction``, ``useful`` (of the dataset) and ``main`` (chance alone
        would rarely meet the criterion, and the dataset is useful).
    default, tuned : DataFrame
        One row per shift and baseline, with what tables group by and ``PARTS``.
    filters : DataFrame
        As in the artefact.
    params : Params
    bootstrap : Bootstrap
        Intervals over the families of ``datasets``.
    """

    datasets: pd.DataFrame
    candidates: pd.DataFrame
    shifts: pd.DataFrame
    default: pd.DataFrame
    tuned: pd.DataFrame
    filters: pd.DataFrame
    params: Params
    bootstrap: Bootstrap


def join(frames: Mapping[str, pd.DataFrame], params: Params, facts: Mapping[str, Any]) -> Material:
    """Join the frames of a profile.

    Parameters
    ----------
    frames : mapping of str to DataFrame
        At least FRAMES.
    params : Params
    facts : mapping
        ``families``, a mapping of dataset to family, is used where the frame of datasets has no
        column ``family``.

    Raises
    ------
    InputError
        If a frame is absent.
    """
    missing = [name for name in FRAMES if name not in frames]
    if missing:
        raise InputError(f"a report needs {', '.join(FRAMES)}; missing: {', '.join(missing)}")
    datasets = _datasets(frames, params, facts.get("families") or {})
    shifts = _shifts(frames, params, datasets)
    return Material(
        datasets=datasets,
        candidates=_filled(frames["shifts/candidates"], ("shift_id", "dataset", "outcome")),
        shifts=shifts,
        default=_scores(frames["evaluate/default"], shifts),
        tuned=_scores(frames["evaluate/tuned"], shifts),
        filters=_filled(frames["filter/filter"], ("shift_id", "reason")),
        params=params,
        bootstrap=Bootstrap(
            dict(zip(datasets["dataset"], datasets["family"])), seed=params.report.seed
        ),
    )


def _filled(frame: pd.DataFrame, columns: tuple[str, ...]) -> pd.DataFrame:
    """Return the frame; one without columns gets empty ones."""
    if len(frame.columns):
        return frame
    return pd.DataFrame({name: pd.Series([], dtype="str") for name in columns})


def _datasets(
    frames: Mapping[str, pd.DataFrame], params: Params, families: Mapping[str, str]
) -> pd.DataFrame:
    out = frames["split/datasets"].sort_values("dataset", ignore_index=True)
    reference = _filled(frames["reference/datasets"], ("dataset", "task")).set_index("dataset")
    tasks = {**dict(reference["task"]), **_tasks(frames["shifts/candidates"])}
    own = out["task"] if "task" in out else pd.Series("", index=out.index)
    out["task"] = [tasks.get(name, known) for name, known in zip(out["dataset"], own)]
    surveys = out["family"] if "family" in out else out["dataset"].map(families)
    out["family"] = surveys.where(surveys.notna() & surveys.ne(""), out["dataset"])
    score = reference["score"] if "score" in reference else pd.Series(dtype="float64")
    out["score"] = out["dataset"].map(score).astype("float64")
    floor = np.where(
        out["task"] == "regression", params.report.min_reference_r2, params.report.min_reference_auc
    )
    out["useful"] = out["score"] >= floor
    return out


def _tasks(candidates: pd.DataFrame) -> dict[str, str]:
    return dict(zip(candidates["dataset"], candidates["task"])) if len(candidates) else {}


def _shifts(
    frames: Mapping[str, pd.DataFrame], params: Params, datasets: pd.DataFrame
) -> pd.DataFrame:
    from inconvenient.shifts.schema import empty_frame

    found = frames["shifts/shifts"]
    out = (found if len(found.columns) else empty_frame("shifts")).drop(columns="rows")
    flags = _filled(frames["filter/filter"], ("shift_id", "reason"))
    marked: list[str]
    for name in _FLAGS:
        marked = flags.loc[flags[name].astype(bool), "shift_id"].tolist() if name in flags else []
        out[name] = out["shift_id"].isin(marked)
    out["verified"] = np.ones(len(out), dtype=bool)
    effect = frames["collateral/collateral"]
    effect = effect.set_index("shift_id") if len(effect.columns) else effect
    for name in ("collateral", "collateral_control"):
        values = effect[name] if name in effect else pd.Series(dtype="float64")
        out[name] = out["shift_id"].map(values).astype("float64")
    out["label"] = out["feature"].where(out["kind"] == "single", "bin:" + out["importance_bin"])
    out["direction"] = out["operation"].map(_DIRECTION).astype("float64")
    families = {task: name for name, tasks in TASK_FAMILIES.items() for task in tasks}
    out["task_family"] = out["task"].map(families).astype("str")
    out["useful"] = out["dataset"].isin(datasets.loc[datasets["useful"], "dataset"])
    out["main"] = (out["p_uniform"] <= params.report.p_uniform_max) & out["useful"]
    out["weak_t"] = [bool(np.min(np.abs(t)) < 2) for t in out["t_pool"]]
    return out


def _scores(frame: pd.DataFrame, shifts: pd.DataFrame) -> pd.DataFrame:
    """Return one row per shift and baseline; parts are NaN where a fit failed."""
    names = ["score_id", "score_control", "score_ood"]
    if not len(frame.columns):
        kinds = {"shift_id": "str", "baseline": "str", "status": "str"}
        kinds |= dict.fromkeys(names, "float64")
        frame = pd.DataFrame({name: pd.Series([], dtype=kind) for name, kind in kinds.items()})
    scores = frame[["shift_id", "baseline", "status", *names]]
    out = scores.merge(shifts[list(_GROUPING)], on="shift_id", how="inner")
    failed = out["status"].ne("ok")
    for name in names:
        out[name.removeprefix("score_")] = out.pop(name).mask(failed)
    out["degradation"] = out["id"] - out["ood"]
    out["size"] = out["id"] - out["control"]
    out["bias"] = out["control"] - out["ood"]
    return out.sort_values(["shift_id", "baseline"], ignore_index=True)
