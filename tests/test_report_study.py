from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from report_material import hand_material
from scipy import stats

from inconvenient.config import Params, load_params
from inconvenient.report.doses import dose_table, row_sets_table, study_statements
from inconvenient.report.study import knobs_table, levels_table, paired_table, spearman


@pytest.fixture(scope="module")
def params(root: Path) -> Params:
    return load_params(root / "params.yaml")


def doses(losses: list[float], **more: Any) -> list[dict[str, Any]]:
    """Return amplifications by 1.5, 2, 3, ... that cost the losses; equal ones share their rows."""
    feature, dataset = more.get("feature", "x"), more.get("dataset", "a")
    return [
        {
            "factor": factor,
            "achieved": factor * 1.05,
            "ood": 0.8 - loss,
            "control": 0.7,
            "rows_hash": f"{dataset}/{feature}/{more.get('mode')}/{loss}",
            **more,
        }
        for factor, loss in zip((1.5, 2.0, 3.0, 5.0), losses)
    ]


def find(rows: list[dict[str, Any]], **asked: Any) -> dict[str, Any]:
    (row,) = [r for r in rows if all(r[k] == v for k, v in asked.items())]
    return row


def test_levels_by_hand(params: Params) -> None:
    rows = doses([0.1, 0.3]) + doses([0.2, 0.4], dataset="b", published=False)
    rows += doses([0.9], dataset="weak")
    found = levels_table(hand_material(rows, params, score={"weak": 0.05}))
    row = find(found, mode="at_least", task_family="regression", level="amplify x2")
    assert row["dimension"] == "factor"
    assert (row["verified"]["shifts"], row["verified"]["datasets"]) == (2, 2)
    assert row["verified"]["degradation"] == pytest.approx(0.35)
    assert row["verified"]["size"] == pytest.approx(0.1)
    assert row["verified"]["bias"] == pytest.approx(0.25)
    assert math.isnan(row["verified"]["degradation_low"])
    assert (row["published"]["shifts"], row["published"]["degradation"]) == (1, pytest.approx(0.3))
    whole = find(found, mode="at_least", task_family="regression", level="0.5")
    # Medians 0.2 and 0.3; a dataset under its floor is no part of the study.
    assert whole["verified"]["degradation"] == pytest.approx(0.25)


def test_intervals_are_those_of_the_datasets(params: Params) -> None:
    rows = [row for name in "abcd" for row in doses([ord(name) / 1000], dataset=name)]
    material = hand_material(rows, params)
    row = find(levels_table(material), dimension="factor")
    medians = pd.Series({name: ord(name) / 1000 for name in "abcd"})
    ends = (row["verified"]["degradation_low"], row["verified"]["degradation_high"])
    assert ends == pytest.approx(material.bootstrap.interval(medians))


def test_pairs_by_hand(params: Params) -> None:
    # a: +0.2 at x2 and +0.1 at x3; b has no x1.5 to compare with; c: -0.1 at x2.
    rows = doses([0.1, 0.3, 0.2])
    rows += doses([0.1, 0.3], dataset="b")[1:]
    rows += doses([0.5, 0.4], dataset="c")
    found = paired_table(hand_material(rows, params))
    row = find(found, dimension="factor", level="amplify x2")
    assert (row["reference"], row["pairs"], row["datasets"]) == ("amplify x1.5", 2, 2)
    assert row["degradation"] == pytest.approx((0.2 - 0.1) / 2)
    assert row["bias"] == pytest.approx(0.05)
    assert row["size"] == pytest.approx(0.0)
    assert row["more"] == 0.5
    assert find(found, level="amplify x3")["degradation"] == pytest.approx(0.1)


def test_pairs_of_fractions_and_bins_by_hand(params: Params) -> None:
    rows: list[dict[str, Any]] = [
        {"min_fraction": 0.5, "ood": 0.6},
        {"min_fraction": 0.1, "ood": 0.1, "control": 0.5},
        {"min_fraction": 0.5, "ood": 0.5, "feature": "y", "importance_bin": "bottom"},
        {"min_fraction": 0.5, "ood": 0.7, "feature": "z", "importance_bin": "bottom"},
    ]
    found = paired_table(hand_material(rows, params))
    row = find(found, dimension="min_fraction", level="0.1")
    assert (row["reference"], row["pairs"]) == ("0.5", 1)
    assert row["degradation"] == pytest.approx(0.5)
    assert row["size"] == pytest.approx(0.2)
    top = find(found, dimension="importance_bin", level="top")
    # 0.2 against the median of 0.3 and 0.1.
    assert (top["reference"], top["pairs"]) == ("bottom", 1)
    assert top["degradation"] == pytest.approx(0.0)


def test_spearman_is_that_of_scipy() -> None:
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "cell": np.repeat(list("abcdef"), 7),
            "severity": rng.integers(0, 5, 42).astype(float),
            "loss": rng.integers(0, 4, 42).astype(float),
        }
    )
    table.loc[table["cell"] == "f", "loss"] = 1.0
    found = spearman(table, ["cell"])
    for name, own in table[table["cell"] != "f"].groupby("cell"):
        expected = stats.spearmanr(own["severity"], own["loss"]).statistic
        assert found[name] == pytest.approx(expected)
    assert found["f"] == 0


def test_knobs_by_hand(params: Params) -> None:
    # a: features with rho 1 and 0 (constant); b: -1, and a cell of two levels that does not count.
    rows = doses([0.1, 0.2, 0.3]) + doses([0.2, 0.2, 0.2], feature="y")
    rows += doses([0.3, 0.2, 0.1], dataset="b") + doses([0.1, 0.2], dataset="b", feature="y")
    rows += doses([0.1, 0.2, 0.3], mode="band")
    # A group is no feature.
    rows += doses([0.1, 0.2, 0.3], kind="group", feature="")
    found = knobs_table(hand_material(rows, params))
    row = find(found, mode="at_least", knob="factor", operation="both", task_family="regression")
    assert (row["cells"], row["constant"], row["features"], row["datasets"]) == (3, 1, 3, 2)
    assert row["positive"] == pytest.approx(1 / 3)
    assert row["rho"] == pytest.approx((0.5 - 1.0) / 2)
    band = find(found, mode="band", knob="factor", operation="amplify", task_family="regression")
    assert (band["cells"], band["rho"]) == (1, pytest.approx(1.0))
    none = find(found, mode="band", knob="factor", operation="attenuate", task_family="regression")
    assert (none["cells"], none["features"]) == (0, 0)
    assert math.isnan(none["rho"])


def test_a_stronger_attenuation_and_a_smaller_fraction_are_more_severe(params: Params) -> None:
    rows: list[dict[str, Any]] = [
        {"operation": "attenuate", "factor": f, "achieved": f, "ood": 0.8 - loss}
        for f, loss in ((0.9, 0.1), (0.5, 0.2), (0.2, 0.3))
    ]
    rows += [
        {"operation": "flip", "min_fraction": f, "ood": 0.8 - loss}
        for f, loss in ((0.5, 0.1), (0.3, 0.2), (0.1, 0.3))
    ]
    found = knobs_table(hand_material(rows, params))
    for knob, operation in (("factor", "attenuate"), ("achieved", "attenuate")):
        row = find(found, mode="at_least", knob=knob, operation=operation, task_family="regression")
        assert row["rho"] == pytest.approx(1.0)
    row = find(found, mode="at_least", knob="min_fraction", task_family="regression")
    assert (row["cells"], row["rho"]) == (1, pytest.approx(1.0))


def test_row_sets_by_hand(params: Params) -> None:
    # One set for all three factors; two of three; a single factor is no cell; band: apart.
    rows = doses([0.1, 0.1, 0.1]) + doses([0.1, 0.1, 0.2], feature="y") + doses([0.1], feature="z")
    rows += doses([0.1, 0.2], mode="band")
    found = row_sets_table(hand_material(rows, params))
    row = find(found, mode="at_least", task_family="regression", operation="amplify")
    assert (row["cells"], row["one"], row["share_one"]) == (2, 1, 0.5)
    assert (row["shifts"], row["row_sets"]) == (6, 3)
    assert row["share_shared"] == pytest.approx(5 / 6)
    band = find(found, mode="band", task_family="regression", operation="amplify")
    assert (band["cells"], band["one"], band["share_shared"]) == (1, 0, 0)


def test_what_leaves_the_band_or_its_size_is_counted(params: Params) -> None:
    rows: list[dict[str, Any]] = [
        {"mode": "band", "achieved": 2.0, "size": 50},
        {"mode": "band", "achieved": 2.2, "size": 52},
        {"mode": "band", "achieved": 2.21, "size": 50},
        {"mode": "band", "achieved": 2.1, "size": 53},
        {"mode": "band", "achieved": 2.1, "size": 49},
        {"mode": "band", "operation": "attenuate", "factor": 0.5, "achieved": 0.45},
        {"mode": "band", "operation": "attenuate", "factor": 0.5, "achieved": 0.51},
        {"mode": "at_least", "achieved": 9.0},
    ]
    material = hand_material(rows, params)
    found = {r["operation"]: r for r in dose_table(material)}
    amplify = found["amplify"]
    assert (amplify["shifts"], amplify["within"], amplify["sized"], amplify["both"]) == (5, 4, 3, 2)
    assert (amplify["least"], amplify["greatest"], amplify["median"]) == (2.0, 2.21, 2.1)
    assert (found["attenuate"]["within"], found["attenuate"]["both"]) == (1, 1)
    said = study_statements([], [], dose_table(material), material)
    assert said == [
        "3 of 7 shifts of mode band have an achieved factor within the band at the stated size; "
        "4 have not."
    ]


def test_statements_follow_the_intervals(params: Params) -> None:
    rows = []
    for name in "abcde":
        rows += doses([0.1, 0.1, 0.1], dataset=name)
        rows += doses([0.1, 0.2, 0.3], dataset=name, mode="band")
    material = hand_material(rows, params)
    said = study_statements(
        knobs_table(material), row_sets_table(material), dose_table(material), material
    )
    assert said[0] == (
        "In mode at_least one row set serves all factors in 5 of 5 cells (100 %), and 15 shifts "
        "are 5 row sets; in mode band one row set serves all factors in 0 of 5 cells (0 %), and "
        "15 shifts are 15 row sets."
    )
    assert said[2].startswith("The paper finds the factor to be no reliable knob. Here, in mode")
    assert "at_least its rank correlation with the degradation is 0.00 on average" in said[2]
    assert "the factor changes nothing in 100 % of cells; in mode band its rank" in said[2]
    assert said[3] == (
        "Regression, linear: the factor's rank correlation is 0.00 [0.00, 0.00] in mode at_least "
        "(no direction is established), 1.00 [1.00, 1.00] in mode band (a stronger dose costs "
        "more)."
    )
    assert study_statements([], [], [], material) == []
