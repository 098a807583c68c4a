"""Published shifts of the quick profile: recomputed in part, and refitted independently."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from inconvenient.benchmark.grid import make_shifts, pool_design
from inconvenient.config import Params, load_params
from inconvenient.data import load_dataset, split_dataset
from inconvenient.selection.criterion import Criterion
from inconvenient.selection.verification import fit_independent
from inconvenient.shifts.rows import rows_hash, unpack_rows

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "artefacts" / "quick" / "shifts"

# A plain checkout has no artefacts; `make test`, and CI with it, pulls these first.
pytestmark = [
    pytest.mark.jit,
    pytest.mark.skipif(
        not (FOLDER / "shifts.parquet").is_file(),
        reason="the quick profile is not here; run `dvc pull shifts@quick`",
    ),
]


@pytest.fixture(scope="module")
def params() -> Params:
    return load_params(ROOT / "params.yaml")


@pytest.fixture(scope="module")
def shifts() -> pd.DataFrame:
    return pd.read_parquet(FOLDER / "shifts.parquet")


@pytest.mark.parametrize("name", ["recidivism_nc", "college_graduation_rate"])
def test_recomputed_shifts_are_the_published_ones(
    name: str, params: Params, shifts: pd.DataFrame
) -> None:
    # A difference means that an edit changed what the stage computes: raise ALGORITHM["shifts"]
    # in inconvenient/store/records.py and publish anew.
    dataset = load_dataset(name)
    split = split_dataset(dataset, seed=params.split.seed)
    _, found = make_shifts(dataset, split, params, params.profiles["quick"].grid)
    published = shifts[shifts["dataset"] == name].reset_index(drop=True)
    assert found["shift_id"].tolist() == published["shift_id"].tolist()
    assert found["rows"].tolist() == published["rows"].tolist()
    for column in ("b_reference", "b_sample"):
        np.testing.assert_allclose(
            np.concatenate(found[column]), np.concatenate(published[column]), rtol=1e-8
        )
    np.testing.assert_array_equal(found["p_uniform"], published["p_uniform"])


@pytest.mark.parametrize(
    "name", ["forbes2000_market_value", "anes_turnout_1984", "chile_plebiscite_vote"]
)
def test_refits_from_row_ids_meet_the_criterion(
    name: str, params: Params, shifts: pd.DataFrame
) -> None:
    dataset = load_dataset(name)
    split = split_dataset(dataset, seed=params.split.seed)
    design = pool_design(dataset, split.pool, params)
    published = shifts[shifts["dataset"] == name]
    assert len(published) > 20
    for shift in published.iloc[::5].itertuples(index=False):
        rows = unpack_rows(shift.rows)
        assert rows_hash(rows) == shift.rows_hash
        assert len(rows) == shift.size >= shift.min_fraction * len(split.pool)
        assert np.isin(rows, split.pool).all()
        at = np.searchsorted(split.pool, rows)
        fit = fit_independent(
            design.X[at],
            design.y[at],
            task=dataset.task,
            n_classes=len(dataset.classes),
            ridge=shift.ridge,
        )
        assert fit.status == "ok"
        columns = [design.columns.index(c) for c in shift.columns]
        classes = [dataset.classes.index(c) if c else 0 for c in shift.classes]
        sample = np.asarray(fit.coefficients)[columns, classes]
        np.testing.assert_allclose(sample, shift.b_sample, rtol=1e-8)
        factor = None if np.isnan(shift.factor) else shift.factor
        criterion = Criterion(shift.operation, factor, shift.mode)
        assert criterion.met(np.array(shift.b_reference), sample)
