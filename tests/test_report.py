from __future__ import annotations

import builtins
import html
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from synthetic import profile_frames

from inconvenient.config import Params, load_params
from inconvenient.errors import InputError, MissingDependencyError
from inconvenient.report import build as building
from inconvenient.report.build import build_report
from inconvenient.report.counts import counts_table, nothing_table
from inconvenient.report.material import FRAMES, join
from inconvenient.report.seeds import seed_tables
from inconvenient.report.summary import rounded, summarise
from inconvenient.report.tables import (
    chance_table,
    collateral_table,
    degradation_table,
    headline_table,
    severity_table,
)

SMALL = [(f"{task}_{x}", task) for task in ("regression", "binary", "multiclass") for x in "abc"]
FACTS = {"profile": "quick", "package": "0.1.0", "inputs": {"shifts/shifts": "00ff"}}


@pytest.fixture(scope="module")
def params(root: Path) -> Params:
    return load_params(root / "params.yaml")


@pytest.fixture(scope="module")
def built(params: Params) -> tuple[str, dict[str, Any]]:
    return build_report(profile_frames(SMALL), params, FACTS)


@pytest.fixture(scope="module")
def with_seeds(params: Params) -> tuple[str, dict[str, Any]]:
    """Build the page with the tables of two split seeds that find the same."""
    frames = profile_frames(SMALL)
    material = join(frames, params, {})
    seeds = seed_tables({1: material, 2: material}, published=1)
    frames |= {f"seeds/{name}": frame for name, frame in seeds.items()}
    return build_report(frames, params, FACTS)


def tiny() -> dict[str, pd.DataFrame]:
    """Three shifts of binary_a, one of binary_b, scores by hand; one model."""
    frames = profile_frames([("binary_a", "binary"), ("binary_b", "binary")], failing=False)
    shifts = frames["shifts/shifts"]
    ids = [
        *shifts.loc[shifts["dataset"] == "binary_a", "shift_id"].iloc[:3],
        *shifts.loc[shifts["dataset"] == "binary_b", "shift_id"].iloc[:1],
    ]
    keep = {
        n: f[f["shift_id"].isin(ids)].reset_index(drop=True)
        for n, f in frames.items()
        if "shift_id" in f
    }
    frames |= keep
    shifts = frames["shifts/shifts"]
    shifts["operation"] = ["amplify", "amplify", "flip", "amplify"]
    shifts["p_uniform"] = [0.0, 0.05, 0.06, 0.0]
    shifts["rows_hash"] = ["a", "a", "b", "c"]
    shifts["t_pool"] = [[3.0], [1.0], [-3.0], [4.0, -1.9]]
    frames["shifts/candidates"] = frames["shifts/candidates"].assign(outcome="verified")
    frames["reference/datasets"]["score"] = [0.9, 0.6]
    flags = frames["filter/filter"]
    flags["retained"] = [True, True, True, True]
    flags["retained_paper"] = [True, False, False, False]
    flags["reason"] = ""
    scores = frames["evaluate/default"]
    scores = scores[scores["baseline"] == "linear"].reset_index(drop=True)
    scores["status"] = "ok"
    scores["score_id"] = [0.9, 0.9, 0.9, 0.8]
    scores["score_control"] = [0.8, 0.7, 0.6, 0.8]
    scores["score_ood"] = [0.7, 0.4, 0.5, 0.6]
    frames["evaluate/default"] = scores
    frames["collateral/collateral"]["collateral"] = [0.2, 0.4, 0.5, np.nan]
    frames["collateral/collateral"]["collateral_control"] = [0.1, 0.3, 0.2, np.nan]
    return frames


def test_headline_by_hand(params: Params) -> None:
    # In the main tables: shifts 1 and 2 (p <= 0.05) of a, and that of b. Degradation 0.2, 0.5; 0.2.
    rows = headline_table(join(tiny(), params, {}))
    row = next(r for r in rows if r["task"] == "binary")
    assert (row["shifts"], row["row_sets"], row["datasets"], row["failed"]) == (3, 2, 2, 0)
    assert row["median_degradation"] == pytest.approx((0.35 + 0.2) / 2)
    assert row["mean_degradation"] == pytest.approx(0.3)
    assert row["mean_size"] == pytest.approx((0.1 + 0.2 + 0.0) / 3)
    assert row["mean_bias"] == pytest.approx((0.1 + 0.3 + 0.2) / 3)
    assert row["median_size"] == pytest.approx((0.15 + 0.0) / 2)
    assert row["mean_relative"] == pytest.approx(0.3 / (2.6 / 3))
    assert row["median_relative"] == pytest.approx(0.275 / 0.85)
    assert math.isnan(row["degradation_low"])  # two families
    empty = next(r for r in rows if r["task"] == "regression")
    assert empty["shifts"] == 0
    assert rounded(empty)["mean_id"] is None


def test_a_dataset_under_the_floor_leaves_the_headline(params: Params) -> None:
    frames = tiny()
    frames["reference/datasets"]["score"] = [0.9, 0.59]
    rows = headline_table(join(frames, params, {}))
    assert [r["shifts"] for r in rows if r["task"] == "binary"] == [2]


def test_degradation_by_hand(params: Params) -> None:
    rows = degradation_table(join(tiny(), params, {}).default)
    row = next(r for r in rows if (r["task"], r["operation"]) == ("binary", "amplify"))
    assert row["verified"]["shifts"] == 3
    assert row["retained_paper"]["shifts"] == 1
    assert row["retained_paper"]["mean_degradation"] == pytest.approx(0.2)
    everything = next(r for r in rows if (r["task"], r["operation"]) == ("binary", "all"))
    assert everything["verified"]["mean_ood"] == pytest.approx(0.55)


def test_counts_chance_and_collateral_by_hand(params: Params) -> None:
    material = join(tiny(), params, {})
    counts = {(r["dataset"], r["task"]): r for r in counts_table(material)}
    own = counts["binary_a", "binary"]
    assert (own["candidates"], own["verified"], own["row_sets"]) == (3, 3, 2)
    assert (own["retained"], own["retained_paper"], own["main"]) == (3, 1, 2)
    assert (
        own["triples"]
        == material.shifts.query("dataset == 'binary_a'").groupby(["label", "direction"]).ngroups
    )
    assert counts["", "all"]["verified"] == counts["", "binary"]["verified"] == 4
    chance = {(r["task"], r["operation"]): r for r in chance_table(material)}
    assert chance["binary", "all"]["share_rare"] == 0.75
    assert chance["binary", "amplify"]["share_weak_t"] == pytest.approx(2 / 3)
    collateral = {(r["task"], r["operation"]): r for r in collateral_table(material)}
    amplify = collateral["binary", "amplify"]
    assert amplify["verified"]["shifts"] == 2
    assert amplify["verified"]["median"] == pytest.approx(0.3)
    assert amplify["verified"]["control"] == pytest.approx(0.2)
    assert amplify["paper"] == 1.09


def test_severity_levels_of_the_grid_are_listed(params: Params) -> None:
    material = join(tiny(), params, {})
    rows = severity_table(material, "min_fraction", params.profiles["quick"].grid)
    levels = [r["level"] for r in rows if r["task"] == "binary"]
    assert levels == ["0.1", "0.2", "0.3", "0.5"]
    assert sum(r["verified"]["shifts"] for r in rows) == 3


def test_failed_fits_are_counted_and_enter_no_mean() -> None:
    parts = ["id", "control", "ood", "degradation", "size", "bias"]
    scores = pd.DataFrame(
        {"dataset": "a", "rows_hash": ["x", "y"], **{p: [0.5, np.nan] for p in parts}}
    )
    out = summarise(scores)
    assert (out["shifts"], out["failed"], out["mean_id"]) == (2, 1, 0.5)


def test_the_page_is_self_contained_and_the_same_every_time(
    built: tuple[str, dict[str, Any]], params: Params
) -> None:
    page, tables = built
    again, tables_again = build_report(profile_frames(SMALL), params, FACTS)
    assert again == page
    assert tables_again == tables
    for forbidden in ("http:", "https:", "<script", "<link", "@import", "NaN", ">nan", "dc:date"):
        assert forbidden not in page
    assert page.count("<svg") == page.count("</svg>") == 7
    json.dumps(tables, allow_nan=False)


def test_ids_of_figures_do_not_meet(built: tuple[str, dict[str, Any]]) -> None:
    ids = re.findall(r'\bid="([^"]+)"', built[0])
    assert len(ids) == len(set(ids))
    used = set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', built[0]))
    assert {a or b for a, b in used} <= set(ids)


def test_every_number_of_the_page_has_6_digits_in_the_tables(
    built: tuple[str, dict[str, Any]],
) -> None:
    def floats(value: Any) -> list[float]:
        if isinstance(value, dict):
            return [x for v in value.values() for x in floats(v)]
        if isinstance(value, list):
            return [x for v in value for x in floats(v)]
        return [value] if isinstance(value, float) else []

    found = floats(built[1])
    assert found
    assert all(x == float(f"{x:.6g}") for x in found)


def _shown(value: Any) -> set[str]:
    """Return every way in which the page may write a number of the tables."""
    if isinstance(value, dict):
        return {text for v in value.values() for text in _shown(v)}
    if isinstance(value, list):
        return {text for v in value for text in _shown(v)}
    if isinstance(value, str):
        return set(NUMBER.findall(value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return set()
    out = {f"{value:,}", str(value)}
    for digits in range(4):
        for number in (value, 100 * value):
            text = f"{number:.{digits}f}"
            out |= {text, text.lstrip("-")}
    return {text.lstrip("-") for text in out}


#: Not the digit of a word such as R2.
NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?")


def test_every_number_in_a_table_of_the_page_is_one_of_the_tables(
    with_seeds: tuple[str, dict[str, Any]],
) -> None:
    page, tables = with_seeds
    cells = re.findall(r"<td[^>]*>(.*?)</td>", page, flags=re.DOTALL)
    known = _shown(tables)
    assert len(cells) > 3000
    for cell in cells:
        # Names of datasets and levels hold digits, too: text of the tables counts as well.
        for number in NUMBER.findall(re.sub(r"<[^>]*>", " ", html.unescape(cell))):
            assert number in known, cell


def test_split_seeds_are_shown_if_they_are_given(
    built: tuple[str, dict[str, Any]], with_seeds: tuple[str, dict[str, Any]]
) -> None:
    assert "Other seeds of the split are no part of this page" in built[0]
    assert built[1]["seeds"] is None
    page, tables = with_seeds
    assert "1 (published)" in page
    assert "no part of this page" not in page
    seeds = tables["seeds"]
    assert [r["seed"] for r in seeds["summary"][:2]] == [1, 1]
    # Three tasks x two models x the sets of shifts; two equal seeds do not differ.
    assert len(seeds["spread"]) == 3 * 2 * 3
    assert {r["numbers"]["headline"]["between_sd"] for r in seeds["spread"]} == {0.0}
    headline = {(r["task"], r["baseline"]): r["median_degradation"] for r in tables["headline"]}
    for row in seeds["spread"]:
        if row["shift_set"] == "retained":
            found = row["numbers"]["headline"]["published"]
            assert found == headline[row["task"], row["baseline"]]


def test_a_dataset_that_was_not_split_is_explained(built: tuple[str, dict[str, Any]]) -> None:
    rows = {r["dataset"]: r for r in built[1]["nothing"]}
    assert rows["unsplit"]["why"] == (
        "not split: class 'rare' has 3 rows in the pool; 10 were needed"
    )
    assert "class &#39;rare&#39; has 3 rows" in built[0]


def test_datasets_without_shifts_say_where_they_were_lost(params: Params) -> None:
    frames = profile_frames([("binary_a", "binary"), ("binary_b", "binary")], failing=False)
    lost = frames["shifts/candidates"]["dataset"] == "binary_a"
    frames["shifts/candidates"].loc[lost, "outcome"] = "infeasible_size"
    frames["shifts/candidates"].loc[lost.idxmax(), "outcome"] = "unmet"
    for name in ("shifts/shifts", "filter/filter"):
        frames[name] = frames[name][~frames[name]["shift_id"].str.startswith("binary_a/")]
    frames["filter/filter"] = frames["filter/filter"].assign(
        retained=False,
        reason=["failed: ValueError: x", *["small_gap"] * (len(frames["filter/filter"]) - 1)],
    )
    _, tables = build_report(frames, params, FACTS)
    rows = {r["dataset"]: r["why"] for r in tables["nothing"]}
    total = int(lost.sum())
    assert rows["binary_a"] == (
        f"of {total} candidates, {total - 1} infeasible by size, 1 criterion not met"
    )
    assert rows["binary_b"].startswith("none of")
    assert rows["binary_b"].endswith("1 a fit failed, " + rows["binary_b"].rpartition(", ")[2])
    assert [r["degradation_low"] for r in tables["headline"]] == [None] * 6


@pytest.mark.parametrize("bare", [True, False])
def test_an_empty_profile_still_gives_a_report(params: Params, bare: bool) -> None:
    frames = {n: f.iloc[:0] for n, f in profile_frames(failing=False).items()}
    if bare:
        frames |= {n: pd.DataFrame() for n in FRAMES if n != "split/datasets"}
    page, tables = build_report(frames, params, {})
    assert "no shifts" in page
    assert "nan" not in page.replace("nance", "").lower()
    assert tables["counts"][-1]["candidates"] == 0


def test_hostile_names_are_escaped(params: Params) -> None:
    evil = "<script>alert('x')</script>"
    frames = profile_frames([("binary_a", "binary")])
    for name, frame in frames.items():
        if "dataset" in frame:
            frames[name] = frame.assign(
                dataset=frame["dataset"].astype(object).replace("binary_a", evil).astype("str")
            )
    frames["evaluate/default"]["status"] = f"ValueError: {evil}"
    page, tables = build_report(frames, params, {**FACTS, "more": evil, "profile": evil})
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert evil in {r["dataset"] for r in tables["counts"]}


def test_what_is_missing_is_named(params: Params, monkeypatch: pytest.MonkeyPatch) -> None:
    frames = profile_frames([("binary_a", "binary")])
    del frames["filter/filter"]
    with pytest.raises(InputError, match="missing: filter/filter"):
        build_report(frames, params, FACTS)

    def refuse(name: str, *rest: Any) -> Any:
        if name == "jinja2":
            raise ImportError(name)
        return builtins.__import__(name)

    monkeypatch.setattr(building.importlib, "import_module", refuse)
    with pytest.raises(MissingDependencyError, match=r"jinja2.*inconvenient\[report\]"):
        build_report(frames, params, FACTS)


def test_retained_shifts_outside_the_headline_say_why(params: Params) -> None:
    frames = tiny()
    frames["reference/datasets"]["score"] = [0.9, 0.59]
    frames["shifts/shifts"].loc[:2, "p_uniform"] = 0.4
    rows = {r["dataset"]: r["why"] for r in nothing_table(join(frames, params, {}))}
    assert rows == {
        "binary_a": "3 retained, but chance alone often meets each (p_uniform above 0.05)",
        "binary_b": "1 retained, but its reference model scores 0.59, under the floor",
    }
