"""The shifts that models are asked about are drawn by seed and spread over datasets."""

from __future__ import annotations

import pandas as pd
import pytest
from scoring import needs_publication

import inconvenient as ic
from inconvenient.errors import InputError
from inconvenient.llm.primary import draw_shifts

FEATURES = {"many": 20, "few": 15, "one": 30, "narrow": 14}


@pytest.fixture
def shifts() -> pd.DataFrame:
    rows = [
        {"shift_id": f"{dataset}/{operation}/{i:03d}", "dataset": dataset, "operation": operation}
        for dataset, n in [("many", 80), ("few", 4), ("one", 1), ("narrow", 50)]
        for operation in ("amplify", "attenuate", "flip")
        for i in range(n)
    ]
    return pd.DataFrame(rows).sort_values("shift_id")


def drawn(shifts: pd.DataFrame, n: int, seed: int = 1) -> pd.DataFrame:
    return draw_shifts(shifts, FEATURES, per_operation=n, seed=seed)


def test_datasets_give_in_turn(shifts: pd.DataFrame) -> None:
    for n, expected in [(1, [1]), (3, [1, 1, 1]), (6, [1, 2, 3]), (20, [1, 4, 15])]:
        out = drawn(shifts, n)
        assert out["operation"].value_counts().to_dict() == dict.fromkeys(
            ("amplify", "attenuate", "flip"), n
        )
        for _, own in out.groupby("operation"):
            counts = sorted(own["dataset"].value_counts())
            assert counts == expected
        assert out["shift_id"].is_monotonic_increasing
        assert not out["shift_id"].duplicated().any()
        assert "narrow" not in set(out["dataset"])


def test_the_draw_depends_on_seed_and_shifts_alone(shifts: pd.DataFrame) -> None:
    first = drawn(shifts, 6)
    pd.testing.assert_frame_equal(first, drawn(shifts.sample(frac=1, random_state=3), 6))
    assert set(first["shift_id"]) < set(drawn(shifts, 12)["shift_id"])
    assert set(first["shift_id"]) != set(drawn(shifts, 6, seed=2)["shift_id"])
    places = first["shift_id"].str.split("/")
    by_operation = {o: [p[2] for p in places if p[1] == o] for o in ("amplify", "flip")}
    assert by_operation["amplify"] != by_operation["flip"]


def test_too_few_shifts_are_refused(shifts: pd.DataFrame) -> None:
    with pytest.raises(InputError, match="100 shifts of operation 'amplify' .* have 85"):
        drawn(shifts, 100)
    with pytest.raises(InputError, match="at least 31 features"):
        draw_shifts(shifts, FEATURES, min_features=31, seed=1)


@needs_publication
@pytest.mark.usefixtures("data_folder")
def test_of_published_shifts() -> None:
    features = ic.list_datasets().set_index("name")["features"].to_dict()
    out = draw_shifts(ic.list_shifts(profile="quick"), features, per_operation=8, seed=1)
    assert len(out) == 24
    assert min(features[name] for name in out["dataset"]) >= 15
    assert out.groupby("operation")["dataset"].nunique().min() >= 4
