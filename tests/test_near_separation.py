"""Samples next to separation: one verdict, whatever the order of the rows and the method."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from inconvenient.benchmark.grid import pool_design
from inconvenient.config import load_params
from inconvenient.data import load_dataset, split_dataset
from inconvenient.selection.chance import UniformFits, uniform_rows
from inconvenient.selection.engine import Engine
from inconvenient.selection.reference import fit_reference
from inconvenient.selection.separation import is_separable, separated_by_a_column
from inconvenient.selection.softmax import newton, probabilities
from inconvenient.selection.verification import (
    CURVATURE_TOLERANCE,
    fit_independent,
    next_to_separated,
)
from inconvenient.verify.chance import Uniform
from inconvenient.verify.fits import Family, fit
from inconvenient.verify.pool import pool_matrix

ORDERS = 6
GAPS = [0.5, 0.1, 0.03, 0.01, 0.004, 0.002, 0.001, 1e-4, 1e-6, 1e-9, 1e-12]


def nearly_separated(gap, k, rows=120):
    """Classes in a row along a line, but for one row each that lies ``gap`` beyond the border."""
    rng = np.random.default_rng(3)
    y = np.arange(rows) % k
    x = y + rng.uniform(0.05, 0.95, rows)
    for c in range(k - 1):
        x[np.flatnonzero(y == c)[0]] = c + 1 + gap
        x[np.flatnonzero(y == c + 1)[1]] = c + 1
    return np.column_stack([np.ones(rows), x]), y.astype(np.float64)


def verdicts(X, y, k):
    """Return the status of the verification in several orders, and of the independent verifier."""
    task = "binary" if k == 2 else "multiclass"
    rng = np.random.default_rng(0)
    found = set()
    for _ in range(ORDERS):
        order = rng.permutation(len(y))
        own = fit_independent(X[order], y[order], task=task, n_classes=k, ridge=0.0)
        other = fit(X[order], y[order], Family(k))
        assert (other is None) == (own.status == "separation")
        if other is not None:
            reported = Family(k).reported(other)
            np.testing.assert_allclose(own.coefficients, reported, rtol=1e-8, atol=1e-8)
        found.add(own.status)
    return found


@pytest.mark.parametrize("k", [2, 3])
def test_one_verdict_in_every_order(k):
    """From clear overlap to a gap that rounding swallows, the verdict changes once."""
    statuses = []
    for gap in GAPS:
        found = verdicts(*nearly_separated(gap, k), k)
        assert len(found) == 1, gap
        statuses += found
    last_ok = max(i for i, status in enumerate(statuses) if status == "ok")
    assert 1 < last_ok < len(GAPS) - 2
    assert statuses == ["ok"] * (last_ok + 1) + ["separation"] * (len(GAPS) - 1 - last_ok)


@pytest.mark.parametrize("k", [2, 3])
def test_the_curvature_is_what_decides(k):
    """The least eigenvalue of the information on an orthonormal basis, counted by hand."""
    task = "binary" if k == 2 else "multiclass"
    seen = set()
    for gap in GAPS[:9]:
        X, y = nearly_separated(gap, k)
        status = fit_independent(X, y, task=task, n_classes=k, ridge=0.0).status
        Z = np.linalg.qr(X)[0] * np.sqrt(len(X))
        found = newton(Z, y.astype(np.int64), k, np.zeros(2), max_steps=300).coefficients
        share = probabilities(found @ Z.T)[0][:-1]
        blocks = [
            [(Z.T * (share[a] * ((a == b) - share[b]))) @ Z / len(X) for b in range(len(share))]
            for a in range(len(share))
        ]
        least = np.linalg.eigvalsh(np.block(blocks))[0]
        if not 0.3 < least / CURVATURE_TOLERANCE < 3.0:
            assert (status == "ok") == (least > CURVATURE_TOLERANCE), (gap, least)
            seen.add(status)
        back = np.linalg.lstsq(X, Z, rcond=None)[0]
        assert next_to_separated(X, found @ back.T) == (status == "separation"), gap
    assert seen == {"ok", "separation"}


@pytest.mark.parametrize("k", [2, 4])
def test_a_column_that_separates_is_separation(k):
    """What one column proves, the linear programme confirms; most of its cases are found so."""
    rng = np.random.default_rng(11)
    found = missed = 0
    for _ in range(300):
        n = int(rng.integers(3 * k, 30))
        X = np.column_stack([np.ones(n), rng.integers(0, 3, (n, 3)).astype(np.float64)])
        y = rng.permutation(np.arange(n) % k)
        by_column = separated_by_a_column(X, y, k)
        separable = is_separable(X, y, n_classes=k)
        if (X[:, 1:].max(axis=0) == X[:, 1:].min(axis=0)).any():
            continue
        assert separable or not by_column
        found += by_column
        missed += separable and not by_column
    assert found > 20
    assert missed > 0


@pytest.mark.jit
@pytest.mark.usefixtures("data_folder")
@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("us_aid_recipient", 166),
        ("hmda_mortgage_denial", 172),
        ("cps91_wife_labor_force", 283),
        ("house_vote_aca_2009", 67),
        ("uk_smoking", 306),
    ],
)
def test_uniform_samples_have_a_fit_or_none_in_both_implementations(
    root: Path, name: str, size: int
) -> None:
    """Of 100 samples next to separation or rank loss, both find the same to have a fit."""
    params = load_params(root / "params.yaml")
    dataset = load_dataset(name)
    pool = split_dataset(dataset, seed=params.split.seed).pool
    design = pool_design(dataset, pool, params)
    engine = Engine(design)
    reference = fit_reference(engine, ridge=params.reference.ridge)
    ours = UniformFits(engine, reference, samples=100, seed=params.shifts.seed, name=name)
    matrix = pool_matrix(dataset, pool, rare_share=params.reference.rare_level_share)
    start = fit(matrix.X, matrix.y, Family(2))
    assert start is not None
    theirs = Uniform(matrix, Family(2), start, 100, params.shifts.seed, name)
    has_fit = np.isfinite(ours.coefficients(size)).all(axis=(1, 2))
    np.testing.assert_array_equal(has_fit, np.isfinite(theirs.coefficients(size)).all(axis=(1, 2)))
    for draw in range(100):
        rows = uniform_rows(np.arange(engine.n), size, draw, seed=params.shifts.seed, name=name)
        own = fit_independent(
            design.X[rows], design.y[rows], task="binary", n_classes=2, ridge=0.0, min_class=1
        )
        assert has_fit[draw] == (own.status == "ok"), draw
