from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from report_material import hand_frames, hand_material

from inconvenient.config import Params, load_params
from inconvenient.report.counts import counts_table, operations_table, publication_table
from inconvenient.report.material import join
from inconvenient.report.tables import composition_table


@pytest.fixture(scope="module")
def params(root: Path) -> Params:
    return load_params(root / "params.yaml")


ROWS: list[dict[str, Any]] = [
    {"dataset": "a"},
    {"dataset": "a", "operation": "flip", "mode": "at_least", "retained": False},
    {"dataset": "b", "mode": "band", "published": False, "retained": False},
    {"dataset": "c", "task": "binary", "mode": "band", "retained_paper": False},
    {"dataset": "d", "task": "multiclass", "rows_hash": "same"},
    {"dataset": "d", "task": "multiclass", "rows_hash": "same", "published": False},
]


def test_published_by_operation_and_task_family(params: Params) -> None:
    rows = {r["operation"]: r for r in operations_table(hand_material(ROWS, params))}
    amplify = rows["amplify"]
    assert (amplify["regression"], amplify["classification"], amplify["both"]) == (1, 2, 3)
    assert (amplify["classification_band"], amplify["classification_at_least"]) == (1, 1)
    assert amplify["classification_datasets"] == 2
    assert rows["flip"]["regression"] == 1
    assert rows["flip"]["regression_retained"] == 0
    assert rows["attenuate"]["both"] == 0
    assert (rows["all"]["both"], rows["all"]["regression_retained"]) == (4, 1)


def test_what_is_published_beside_its_aims(params: Params) -> None:
    rows = {r["name"]: r for r in publication_table(hand_material(ROWS, params))}
    found = {name: row["found"] for name, row in rows.items()}
    assert found == {
        "published": 4,
        "published_retained": 3,
        "regression": 2,
        "classification": 2,
        "least_cell": 0,
        "datasets": 3,
        "largest_share": 0.5,
    }
    assert not any(row["met"] for row in rows.values())
    assert rows["largest_share"]["note"] == "a, 2 shifts"


def test_aims_are_met_by_enough_shifts_over_enough_datasets(params: Params) -> None:
    rows: list[dict[str, Any]] = [
        {"dataset": f"{i % 240:03d}", "task": "binary" if i % 240 >= 130 else "regression"}
        | {"operation": ("amplify", "attenuate", "flip")[i % 17 % 3]}
        for i in range(15_600)
    ]
    table = {r["name"]: r for r in publication_table(hand_material(rows, params))}
    assert all(row["met"] for row in table.values())
    assert table["largest_share"]["found"] == pytest.approx(65 / 15_600)


def test_nothing_published_meets_no_aim(params: Params) -> None:
    rows = [{"published": False}]
    assert not any(r["met"] for r in publication_table(hand_material(rows, params)))


def test_counts_add_up(params: Params) -> None:
    frames = hand_frames(ROWS)
    more = frames["shifts/candidates"].assign(outcome="unmet", shift_id="b/9")[2:3]
    frames["shifts/candidates"] = pd.concat([frames["shifts/candidates"], more])
    rows = counts_table(join(frames, params, {}))
    own = {(r["dataset"], r["task"]): r for r in rows}
    assert [r["dataset"] for r in rows] == ["a", "b", "c", "d", "", "", "", ""]
    b = own["b", "regression"]
    assert (b["candidates"], b["unmet"], b["verified"], b["published"]) == (2, 1, 1, 0)
    d = own["d", "multiclass"]
    assert (d["verified"], d["row_sets"], d["triples"]) == (2, 1, 1)
    # Amplification and flip of one feature are two directions.
    assert own["a", "regression"]["triples"] == 2
    total = own["", "all"]
    assert (total["datasets"], own["", "regression"]["datasets"]) == (4, 2)
    for name in ("candidates", "verified", "row_sets", "triples", "retained", "published", "main"):
        assert total[name] == sum(r[name] for r in rows if r["dataset"])
        assert total[name] == sum(own["", t][name] for t in ("regression", "binary", "multiclass"))


def test_composition_by_hand(params: Params) -> None:
    rows: list[dict[str, Any]] = [
        {"label_tv": value, "smd_mean": 2 * value, "published": value > 0.15}
        for value in (0.1, 0.2, 0.3, 0.4, 0.5)
    ]
    table = composition_table(hand_material(rows, params))
    (row,) = [r for r in table if (r["task"], r["operation"]) == ("regression", "amplify")]
    assert (row["verified"]["shifts"], row["published"]["shifts"]) == (5, 4)
    assert row["verified"]["label_tv"] == pytest.approx(
        {"low_quartile": 0.2, "median": 0.3, "high_quartile": 0.4}
    )
    assert row["published"]["smd_mean"]["median"] == pytest.approx(0.7)
