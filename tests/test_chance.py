"""How often uniform samples meet a criterion, counted one by one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from inconvenient.config import load_params
from inconvenient.data import load_dataset, split_dataset
from inconvenient.selection.chance import UniformFits, shared_size, uniform_rows
from inconvenient.selection.criterion import Criterion
from inconvenient.selection.engine import Engine
from inconvenient.selection.reference import aim_at, fit_reference

pytestmark = [pytest.mark.jit, pytest.mark.usefixtures("data_folder")]

SAMPLES, SIZE = 60, 34


@pytest.mark.parametrize(
    "name", ["alzheimer_biomarkers", "mroz_labor_participation", "nhefs_death"]
)
def test_shares_are_those_of_single_samples(root: Path, name: str) -> None:
    """On penalised pools a column that a sample lacks has coefficient 0, which flips nothing."""
    from inconvenient.benchmark.grid import pool_design

    params = load_params(root / "params.yaml")
    dataset = load_dataset(name)
    pool = split_dataset(dataset, seed=params.split.seed).pool
    design = pool_design(dataset, pool, params)
    engine = Engine(design)
    reference = fit_reference(engine, ridge=params.reference.ridge)
    chance = UniformFits(engine, reference, samples=SAMPLES, seed=5, name=name)
    fits = chance.coefficients(SIZE)
    lacking = 0
    for feature in design.features:
        aim = aim_at(reference, [design.columns_of(feature)])
        column = design.X[:, aim.columns[0]]
        counts = dict.fromkeys(("flip", "attenuate"), 0)
        for draw in range(SAMPLES):
            rows = uniform_rows(np.arange(engine.n), shared_size(SIZE), draw, seed=5, name=name)
            ratio = fits[draw][aim.columns[0], aim.classes[0]] / aim.reference[0]
            if np.ptp(column[rows]) == 0.0 and np.isfinite(ratio):
                lacking += 1
                assert abs(ratio) < 1e-9
                ratio = 0.0
            counts["flip"] += bool(ratio < 0.0)
            counts["attenuate"] += bool(0.0 <= ratio <= 0.5)
        assert chance.share_meeting(aim, Criterion("flip"), SIZE) == counts["flip"] / SAMPLES
        half = chance.share_meeting(aim, Criterion("attenuate", 0.5), SIZE)
        assert half == counts["attenuate"] / SAMPLES
    assert (lacking > 0) == (reference.ridge > 0.0)
