"""The grid of candidate shifts of a dataset, and the search that turns candidates into shifts."""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import softmax

from inconvenient.config import GridParams, Params
from inconvenient.data import Dataset, Split
from inconvenient.evaluation.scores import auc, macro_auc, r2
from inconvenient.selection.chance import UniformFits
from inconvenient.selection.composition import Comparison
from inconvenient.selection.criterion import Criterion
from inconvenient.selection.design import Design, build_design
from inconvenient.selection.engine import Engine
from inconvenient.selection.finding import Finder, Found, achieved
from inconvenient.selection.importance import importance, importance_bins
from inconvenient.selection.reference import ZERO, Aim, ReferenceModel, aim_at, fit_reference
from inconvenient.shifts.rows import pack_rows, rows_hash

__all__ = ["Bend", "criteria", "make_shifts", "pool_design", "reference_frames"]

IntArray = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True, slots=True)
class Bend:
    """What a shift bends: one feature, or the features of an importance bin as a group.

    Parameters
    ----------
    label : str
        Feature name, or "bin:top" and so on; part of the shift id.
    features : tuple of str
    importance_bin : str
    aim : Aim
    """

    label: str
    features: tuple[str, ...]
    importance_bin: str
    aim: Aim

    @property
    def kind(self) -> str:
        """Either "single" or "group"."""
        return "group" if self.label.startswith("bin:") and len(self.features) > 1 else "single"


def pool_design(dataset: Dataset, pool: IntArray, params: Params) -> Design:
    """Build the design of a dataset's pool; row i of it is row id ``pool[i]``."""
    return build_design(
        dataset.X.iloc[pool],
        dataset.y[pool],
        task=dataset.task,
        n_classes=len(dataset.classes),
        rare_level_share=params.reference.rare_level_share,
    )


def _pool_importance(dataset: Dataset, pool: IntArray) -> pd.Series:
    return importance(dataset.X.iloc[pool], dataset.y[pool], task=dataset.task)


def reference_frames(
    dataset: Dataset, split: Split, params: Params
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Fit the reference model of a dataset and describe it.

    Parameters
    ----------
    dataset : Dataset
    split : Split
    params : Params

    Returns
    -------
    facts : DataFrame, one row
        dataset, task, n_pool, m, p, ridge, separable, score (R2 or AUC of the reference model on
        the filter half), removed.
    coefficients : DataFrame, one row per design column and class
        dataset, column, feature, class_, coefficient, t, importance, importance_bin.
    """
    design = pool_design(dataset, split.pool, params)
    reference = fit_reference(Engine(design), ridge=params.reference.ridge)
    weights = _pool_importance(dataset, split.pool)
    bins = importance_bins(weights)
    facts = pd.DataFrame(
        {
            "dataset": [dataset.name],
            "task": [dataset.task],
            "n_pool": [len(split.pool)],
            "m": [len(design.features)],
            "p": [len(design.columns)],
            "ridge": [reference.ridge],
            "separable": [reference.separable],
            "score": [_reference_score(dataset, split.filter, design, reference)],
            "removed": [list(design.removed)],
        }
    )
    multiclass = dataset.task == "multiclass"
    classes = dataset.classes if multiclass else ("",)
    rows = [
        {
            "dataset": dataset.name,
            "column": column,
            "feature": "" if j == 0 else design.features[design.feature_of[j]],
            "class_": class_,
            "coefficient": reference.coefficients[j, c],
            "t": reference.t_values[j, c],
            "importance": math.nan if j == 0 else weights[design.features[design.feature_of[j]]],
            "importance_bin": "" if j == 0 else bins[design.features[design.feature_of[j]]],
        }
        for j, column in enumerate(design.columns)
        for c, class_ in enumerate(classes)
    ]
    return facts, pd.DataFrame(rows)


def _reference_score(
    dataset: Dataset, rows: IntArray, design: Design, reference: ReferenceModel
) -> float:
    """Return the R2 or AUC of the reference model on other rows of its dataset."""
    linear = design.transform(dataset.X.iloc[rows]) @ reference.coefficients
    target = dataset.y[rows]
    if dataset.task == "regression":
        values = target.astype(np.float64)
        return r2(values, linear[:, 0] * design.y_scale + design.y_mean)
    if dataset.task == "binary":
        return auc(target == 1, linear[:, 0])
    return macro_auc(target.astype(np.int64), softmax(linear, axis=1))


def criteria(grid: GridParams) -> tuple[Criterion, ...]:
    """Return the criteria of a grid, at_least before band."""
    factors = [("amplify", f) for f in grid.amplify] + [("attenuate", f) for f in grid.attenuate]
    found = []
    for mode in grid.modes:
        found += [Criterion(operation, factor, mode) for operation, factor in factors]
        if mode == "at_least":
            found.append(Criterion("flip"))
    return tuple(found)


def _bends(
    design: Design, reference: ReferenceModel, weights: pd.Series, n_single: int
) -> list[Bend]:
    """Return the single features, by falling |b| within a bin, and the bins of at least two."""
    bins = importance_bins(weights)
    present = [f for f in design.features if design.columns_of(f).size]
    single = {f: aim_at(reference, [design.columns_of(f)]) for f in present}
    present = [f for f in present if abs(float(single[f].reference[0])) > ZERO]
    bends = []
    for name in ("top", "middle", "bottom"):
        members = [f for f in present if bins[f] == name]
        ranked = sorted(members, key=lambda f: (-abs(float(single[f].reference[0])), f))
        bends += [Bend(f, (f,), name, single[f]) for f in ranked[:n_single]]
        if len(members) >= 2:
            aim = aim_at(reference, [design.columns_of(f) for f in members])
            bends.append(Bend(f"bin:{name}", tuple(members), name, aim))
    return bends


def _feasible(design: Design, size: int, params: Params) -> bool:
    """Tell whether a size leaves enough rows per coefficient and expected rows per class."""
    if size < params.shifts.rows_per_coefficient * design.free_coefficients:
        return False
    if not design.n_classes:
        return True
    counts = np.bincount(design.y.astype(np.int64), minlength=design.n_classes)
    return bool(counts.min() * size >= params.shifts.expected_per_class * len(design.y))


def _shift_id(dataset: str, bend: Bend, criterion: Criterion, fraction: float) -> str:
    operation = criterion.operation
    if criterion.factor is not None:
        operation += f"-x{criterion.factor:g}"
    return f"{dataset}/{bend.label}/{operation}/{fraction:g}/{criterion.mode}"


def make_shifts(
    dataset: Dataset, split: Split, params: Params, grid: GridParams
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Search every cell of the grid on one dataset.

    Parameters
    ----------
    dataset : Dataset
    split : Split
    params : Params
    grid : GridParams

    Returns
    -------
    candidates : DataFrame
        One row per cell, with its outcome.
    shifts : DataFrame
        One row per verified cell, with rows, coefficients, chance and composition.

    Notes
    -----
    Both are sorted by shift id. A cell is infeasible by size under 5 rows per free coefficient or
    10 expected rows of a class (params.shifts).
    """
    design = pool_design(dataset, split.pool, params)
    engine = Engine(design)
    reference = fit_reference(engine, ridge=params.reference.ridge)
    n = engine.n
    sizes = {f: math.ceil(f * n - 1e-9) for f in grid.min_fractions}
    feasible = [f for f in grid.min_fractions if _feasible(design, sizes[f], params)]
    wanted = criteria(grid)
    weights = _pool_importance(dataset, split.pool)
    bends = _bends(design, reference, weights, grid.n_single)
    cells = [
        (bend, criterion, fraction)
        for bend in bends
        for criterion in wanted
        if bend.kind == "single" or criterion.mode == "at_least"
        for fraction in grid.min_fractions
    ]
    candidates, shifts = [], []
    if feasible:
        pool = _Pool(dataset, split.pool, design, reference, Comparison(design))
        finder = Finder(
            engine,
            reference,
            sizes=tuple(sizes[f] for f in feasible),
            criteria=wanted,
            seed=params.shifts.seed,
            min_class=params.shifts.min_class,
        )
        uniform = UniformFits(
            engine,
            reference,
            samples=params.shifts.uniform_samples,
            seed=params.shifts.seed,
            name=dataset.name,
        )
    for bend, criterion, fraction in cells:
        cell = {
            "shift_id": _shift_id(dataset.name, bend, criterion, fraction),
            "dataset": dataset.name,
            "task": dataset.task,
            "kind": bend.kind,
            "feature": bend.features[0] if bend.kind == "single" else "",
            "importance_bin": bend.importance_bin,
            "operation": criterion.operation,
            "factor": math.nan if criterion.factor is None else criterion.factor,
            "mode": criterion.mode,
            "min_fraction": fraction,
        }
        if fraction not in feasible:
            candidates.append({**cell, "outcome": "infeasible_size"})
            continue
        found = finder.find(bend.aim, criterion, sizes[fraction])
        candidates.append({**cell, "outcome": found.outcome})
        if found.outcome == "verified":
            assert found.rows is not None
            p_uniform = uniform.share_meeting(bend.aim, criterion, len(found.rows))
            facts = _shift_facts(pool, bend, criterion, found)
            shifts.append({**cell, "outcome": "verified", **facts, "p_uniform": p_uniform})
    return _sorted(candidates), _sorted(shifts)


def _sorted(rows: list[dict[str, object]]) -> pd.DataFrame:
    frame = pd.DataFrame(rows)
    if rows:
        frame = frame.sort_values("shift_id", kind="stable", ignore_index=True)
    return frame


class _Pool(NamedTuple):
    """What all shifts of a dataset share."""

    dataset: Dataset
    row_ids: IntArray
    design: Design
    reference: ReferenceModel
    comparison: Comparison


def _shift_facts(pool: _Pool, bend: Bend, criterion: Criterion, found: Found) -> dict[str, object]:
    """Return the columns of a verified shift beyond those of its candidate."""
    assert found.rows is not None
    assert found.sample is not None
    dataset, design, reference = pool.dataset, pool.design, pool.reference
    aim = bend.aim
    row_ids = pool.row_ids[found.rows]
    label_tv, smd_mean, smd_max = pool.comparison.of(found.rows)
    multiclass = dataset.task == "multiclass"
    return {
        "features": list(bend.features),
        "columns": [design.columns[j] for j in aim.columns],
        "classes": [dataset.classes[c] if multiclass else "" for c in aim.classes],
        "b_reference": aim.reference.tolist(),
        "b_sample": found.sample.tolist(),
        "achieved": achieved(criterion.operation, aim.reference, found.sample),
        "t_pool": reference.t_values[aim.columns, aim.classes].tolist(),
        "pool_rows": len(pool.row_ids),
        "size": len(row_ids),
        "fraction": len(row_ids) / len(pool.row_ids),
        "strategy": found.strategy,
        "rows": pack_rows(row_ids),
        "rows_hash": rows_hash(row_ids),
        "label_tv": label_tv,
        "smd_mean": smd_mean,
        "smd_max": smd_max,
        "ridge": reference.ridge,
        "separable": reference.separable,
    }
