"""Designs from plain matrices, for tests and timings of what works on designs."""

from __future__ import annotations

import numpy as np

from inconvenient.selection.design import Design

__all__ = ["design_from"]


def design_from(X: np.ndarray, y: np.ndarray, task: str, n_classes: int | None = None) -> Design:
    """Take a matrix, its first column all ones, as a design with one feature per column."""
    p = X.shape[1]
    names = tuple(f"x{j:03d}" for j in range(1, p))
    if n_classes is None:
        n_classes = {"regression": 0, "binary": 2}[task]
    return Design(
        X=np.ascontiguousarray(X),
        y=np.ascontiguousarray(y, dtype=np.float64),
        task=task,
        n_classes=n_classes,
        columns=("(intercept)", *names),
        features=names,
        feature_of=np.arange(-1, p - 1),
        removed=(),
        dependencies=(),
        encoding=(),
        y_mean=0.0,
        y_scale=1.0,
    )
