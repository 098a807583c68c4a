"""Retention on tables whose answer is worked out by hand, and subsumption by brute force."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from hostile import diabetes_table, shifts_of, split_of, wine_table
from hypothesis import given, settings
from hypothesis import strategies as st

from inconvenient.benchmark.filter_models import FILTER_MODELS
from inconvenient.benchmark.filters import filter_scores, filter_units
from inconvenient.benchmark.retention import published, retain
from inconvenient.config import FilterParams, load_params
from inconvenient.evaluation import runner
from inconvenient.evaluation.protocol import fit_score, sample_rows
from inconvenient.selection.chance import shared_size, uniform_rows
from inconvenient.shifts.rows import pack_rows
from inconvenient.store import Store, run_units

PARAMS = FilterParams(
    seed=0, controls=10, min_gap_auc=0.02, min_gap_r2=0.05, max_jaccard=0.95, r2_lower_bound=-1.0
)


def tables(rows, *, task="regression", dataset="d"):
    """Make scores and shifts of (id, (id, control, ood) per model, sd, row ids)."""
    scores, shifts = [], []
    for shift_id, linear, boosted, sd, ids in rows:
        parts = [*linear, *boosted, sd]
        scores.append(dict(zip(COLUMNS, [shift_id, *parts], strict=True)))
        packed = pack_rows(np.array(ids, dtype=np.int64))
        shifts.append({"shift_id": shift_id, "dataset": dataset, "task": task, "rows": packed})
    return pd.DataFrame(scores, columns=COLUMNS), pd.DataFrame(shifts)


COLUMNS = [
    "shift_id",
    *(f"{m}_{part}" for m in ("linear", "lightgbm50") for part in ("id", "control", "ood")),
    "control_sd",
]
HUNDRED = list(range(100))


def test_each_condition_by_hand():
    far = [list(range(1000 * i, 1000 * i + 100)) for i in range(9)]
    rows = [
        # mean gap (0.1 + 0.04) / 2 = 0.07, beyond 0.05 and 2 * 0.1 / sqrt(10) = 0.0632
        ("a retained", (0.6, 0.5, 0.4), (0.6, 0.54, 0.5), 0.1, far[0]),
        # the same gap within chance: 2 * 0.12 / sqrt(10) = 0.0759
        ("b chance", (0.6, 0.5, 0.4), (0.6, 0.54, 0.5), 0.12, far[1]),
        # gap 0.04 to control, 0.1 to the full pool
        ("c size alone", (0.6, 0.54, 0.5), (0.6, 0.54, 0.5), 0.0, far[2]),
        ("d no gap", (0.6, 0.6, 0.6), (0.6, 0.6, 0.6), 0.0, far[3]),
        ("e ood below -1", (0.6, 0.5, -1.01), (0.6, 0.5, 0.4), 0.0, far[4]),
        ("f control below -1", (0.6, -1.5, 0.4), (0.6, 4.0, 0.4), 0.0, far[5]),
        ("g bound itself", (0.6, 0.5, -1.0), (0.6, 0.5, 0.4), 0.0, far[6]),
        ("h failed", (0.6, 0.5, np.nan), (0.6, 0.5, 0.4), 0.0, far[7]),
    ]
    scores, shifts = tables(rows)
    scores["failure"] = [""] * 7 + ["ValueError: no"]
    out = retain(scores, shifts, PARAMS).set_index("shift_id")
    assert out["reason"].to_dict() == {
        "a retained": "",
        "b chance": "within_chance",
        "c size alone": "small_gap",
        "d no gap": "small_gap",
        "e ood below -1": "out_of_range",
        "f control below -1": "out_of_range",
        "g bound itself": "",
        "h failed": "failed: ValueError: no",
    }
    kept = ["a retained", "g bound itself"]
    assert out.index[out["retained"]].tolist() == kept
    # the paper's flag knows neither control nor standard error
    assert out.index[out["retained_paper"]].tolist() == [
        "a retained", "b chance", "c size alone", "f control below -1", "g bound itself",
    ]  # fmt: skip
    assert out.loc["a retained", "gap"] == pytest.approx(0.07)
    assert out.loc["a retained", "gap_paper"] == pytest.approx(0.15)
    assert out.loc["a retained", "threshold"] == pytest.approx(0.2 / np.sqrt(10))
    assert out.loc["c size alone", "threshold"] == 0.05
    assert not out.loc["h failed", "in_range"]


def test_auc_has_its_own_threshold():
    rows = [
        ("a", (0.8, 0.80, 0.77), (0.8, 0.80, 0.77), 0.0, HUNDRED),
        ("b", (0.8, 0.80, 0.79), (0.8, 0.80, 0.79), 0.0, range(500, 600)),
    ]
    for task in ("binary", "multiclass"):
        out = retain(*tables(rows, task=task), PARAMS)
        assert out["retained"].tolist() == [True, False]
        assert out["threshold"].tolist() == [0.02, 0.02]


def test_bounds_can_be_tabulated_from_the_result():
    rows = [
        ("a", (0.6, 0.5, 0.1), (0.6, 0.5, 0.1), 0.0, HUNDRED),
        ("b", (0.6, 0.5, -0.5), (0.6, 0.5, 0.1), 0.0, range(200, 300)),
        ("c", (0.6, 0.5, -5.0), (0.6, 0.5, 0.1), 0.0, range(400, 500)),
    ]
    scores, shifts = tables(rows)
    first = retain(scores, shifts, PARAMS)
    counts = {}
    for bound in (0.0, -1.0, -np.inf):
        changed = dataclasses.replace(PARAMS, r2_lower_bound=bound)
        counts[bound] = int(retain(first, shifts, changed)["retained"].sum())
    assert counts == {0.0: 1, -1.0: 2, -np.inf: 3}
    pd.testing.assert_frame_equal(retain(first, shifts, PARAMS), first)


def test_subsumption_by_hand():
    def gap(shift_id, gap, ids, full=0.9):
        scores = (full, 0.5, 0.5 - gap)
        return (shift_id, scores, scores, 0.0, ids)

    rows = [
        gap("a", 0.20, HUNDRED),
        gap("b", 0.30, [*range(98), 200, 201]),  # Jaccard 98 / 102 = 0.961 with a
        gap("c", 0.30, [*range(98), 200, 201]),  # b's row set and gap: the id decides
        gap("d", 0.10, range(3, 100)),  # 0.97 with a, which is gone; 95 / 102 with b
        gap("e", 0.40, [*range(95), *range(300, 305)]),  # 95 / 105 with a and b
        gap("f", 0.01, HUNDRED),  # not eligible: neither drops nor is dropped
    ]
    out = retain(*tables(rows), PARAMS).set_index("shift_id")
    assert out["subsumed_by"].to_dict() == {"a": "b", "b": "", "c": "b", "d": "", "e": "", "f": ""}
    assert out.index[out["retained"]].tolist() == ["b", "d", "e"]
    assert out.loc["c", "reason"] == "subsumed"
    # a gap to the full pool of its own: the paper's order visits a first
    rows[0] = gap("a", 0.25, HUNDRED, full=1.0)
    out = retain(*tables(rows), PARAMS).set_index("shift_id")
    assert out.loc["a", "subsumed_by"] == "b"
    assert out["subsumed_by_paper"].to_dict() == {
        "a": "", "b": "a", "c": "a", "d": "a", "e": "", "f": "a",
    }  # fmt: skip


def test_exactly_the_similarity_is_not_above_it_and_other_datasets_do_not_count():
    def row(shift_id, gap, ids):
        return (shift_id, (0.9, 0.5, 0.5 - gap), (0.9, 0.5, 0.5 - gap), 0.0, ids)

    scores, shifts = tables([row("a", 0.3, range(20)), row("b", 0.2, range(19))])
    assert retain(scores, shifts, PARAMS)["retained"].all()  # 19 / 20
    scores, shifts = tables([row("a", 0.3, range(20)), row("b", 0.2, range(20))])
    assert retain(scores, shifts, PARAMS)["retained"].tolist() == [True, False]
    shifts["dataset"] = ["d", "e"]
    assert retain(scores, shifts, PARAMS)["retained"].all()


@settings(max_examples=60, deadline=None)
@given(
    data=st.lists(
        st.tuples(
            st.sets(st.integers(0, 8), min_size=1),
            st.sampled_from([0.01, 0.1, 0.1, 0.2, 0.3]),
            st.sampled_from(["d", "e"]),
        ),
        min_size=1,
        max_size=14,
    ),
    max_jaccard=st.sampled_from([0.3, 0.5, 0.75, 0.95]),
)
def test_subsumption_equals_brute_force(data, max_jaccard):
    rows = [
        (f"s{i:02}", (0.9, 0.5, 0.5 - gap), (0.9, 0.5, 0.5 - gap), 0.0, sorted(ids))
        for i, (ids, gap, _) in enumerate(data)
    ]
    scores, shifts = tables(rows)
    shifts["dataset"] = [dataset for _, _, dataset in data]
    params = dataclasses.replace(PARAMS, max_jaccard=max_jaccard)
    kept: list[int] = []
    for i in sorted(range(len(data)), key=lambda i: (-(0.5 - (0.5 - data[i][1])), i)):
        ids, gap, dataset = data[i]
        near = [
            j
            for j in kept
            if data[j][2] == dataset and len(ids & data[j][0]) / len(ids | data[j][0]) > max_jaccard
        ]
        if gap >= 0.05 and not near:
            kept.append(i)
    shuffled = scores.sample(frac=1, random_state=0)
    out = retain(shuffled, shifts, params)
    assert out["shift_id"].tolist() == [row[0] for row in rows]
    assert np.flatnonzero(out["retained"]).tolist() == sorted(kept)


def published_by_hand(rows, flags, max_jaccard):
    """Take shifts as the definition says, with sets of Python."""
    taken = [i for i, flag in enumerate(flags["retained"]) if flag]
    gap = flags["gap_paper"].tolist()
    for i in sorted(range(len(rows)), key=lambda i: (-gap[i], i)):
        if i in taken or not flags["retained_paper"].iloc[i]:
            continue
        own, dataset = set(rows[i][0]), rows[i][1]
        others = [set(rows[j][0]) for j in taken if rows[j][1] == dataset]
        if all(len(own & other) / len(own | other) <= max_jaccard for other in others):
            taken.append(i)
    return sorted(taken)


@settings(max_examples=80, deadline=None)
@given(
    data=st.lists(
        st.tuples(
            st.sets(st.integers(0, 140), min_size=1, max_size=6)
            | st.sets(st.integers(60, 66), min_size=1),
            st.sampled_from(["d", "e"]),
            st.sampled_from([-0.1, 0.04, 0.1, 0.1, 0.2]),
            st.sampled_from([0.0, 0.1, 0.2]),
        ),
        min_size=1,
        max_size=14,
    ),
    max_jaccard=st.sampled_from([0.3, 0.5, 0.75, 0.95]),
)
def test_published_equals_brute_force(data, max_jaccard):
    rows = [
        (f"s{i:02}", *[(0.5 + size, 0.5, 0.5 - gap)] * 2, 0.0, sorted(ids))
        for i, (ids, _, gap, size) in enumerate(data)
    ]
    scores, shifts = tables(rows)
    shifts["dataset"] = [dataset for _, dataset, _, _ in data]
    params = dataclasses.replace(PARAMS, max_jaccard=max_jaccard)
    filtered = retain(scores, shifts, params)
    chosen = published(filtered, shifts.iloc[::-1], params)
    expected = published_by_hand([row[:2] for row in data], filtered, max_jaccard)
    assert np.flatnonzero(chosen).tolist() == expected
    assert chosen.dtype == bool


def test_published_by_hand():
    def row(shift_id, full, gap, ids):
        return (shift_id, *[(full, 0.5, 0.5 - gap)] * 2, 0.0, ids)

    far = [list(range(1000 * i, 1000 * i + 100)) for i in range(1, 4)]
    rows = [
        row("a", 0.5, 0.10, HUNDRED),  # retained, and the first of all
        row("b", 0.9, 0.04, HUNDRED),  # by the paper's flag alone: a retained one is as it is
        row("c", 0.9, 0.04, far[0]),
        row("d", 0.9, 0.04, [*far[0][:-1], 7]),  # as far from the pool as c; the id decides
        row("e", 0.95, 0.04, [*far[1]]),
        row("f", 0.8, 0.04, [*far[1][:-1], 7]),  # e has the larger gap
        row("g", 0.5, 0.01, far[2]),  # neither
    ]
    scores, shifts = tables(rows)
    filtered = retain(scores, shifts, PARAMS)
    assert filtered["retained"].tolist() == [True] + [False] * 6
    chosen = published(filtered, shifts, PARAMS)
    assert filtered["shift_id"][chosen].tolist() == ["a", "c", "e"]
    # b subsumes a for the paper, and is none the less not published
    assert filtered.set_index("shift_id").loc["b", "retained_paper"]
    # the flag that a table already has is not carried over to other bounds
    filtered["published"] = chosen
    assert "published" not in retain(filtered, shifts, PARAMS)
    assert len(published(filtered.iloc[:0], shifts, PARAMS)) == 0


def test_no_shifts():
    scores, shifts = tables([("a", (0.6, 0.5, 0.4), (0.6, 0.5, 0.4), 0.0, HUNDRED)])
    out = retain(scores.iloc[:0], shifts.iloc[:0], PARAMS)
    assert len(out) == 0
    assert "retained_paper" in out


def test_scores_of_the_filter_half(root, monkeypatch, tmp_path):
    params = load_params(root / "params.yaml")
    params = dataclasses.replace(params, filter=dataclasses.replace(params.filter, controls=3))
    datasets = {t.name: t for t in (diabetes_table(), wine_table())}
    splits = {name: split_of(len(t.y)) for name, t in datasets.items()}
    monkeypatch.setattr(runner, "_dataset", lambda name, digest: datasets[name])
    shifts = shifts_of(list(datasets.values()), splits)
    units = filter_units(datasets, splits, shifts, params)
    frames = run_units(units, store=Store(tmp_path / "s"), workers=1, label="filter")
    scores = filter_scores(splits, shifts, params, frames)
    assert scores.columns.tolist() == [*COLUMNS, "failure"]
    assert set(scores["failure"]) == {""}
    assert scores["shift_id"].tolist() == sorted(shifts["shift_id"])

    row, dataset, split = scores.iloc[-1], datasets["wine"], splits["wine"]
    shift = shifts.set_index("shift_id").loc[row["shift_id"]]
    scored = sample_rows(dataset, split.filter)
    draws = [
        uniform_rows(
            split.pool, shared_size(int(shift["size"])), i, seed=params.shifts.seed, name="wine"
        )
        for i in range(3)
    ]
    by_hand = np.array(
        [
            [
                fit_score(
                    model, model.default("multiclass"), sample_rows(dataset, rows), scored,
                    task="multiclass", n_classes=3, seed=params.filter.seed,
                )
                for rows in draws
            ]
            for model in FILTER_MODELS
        ]
    )  # fmt: skip
    assert row["lightgbm50_control"] == pytest.approx(by_hand[1].mean(), rel=1e-14)
    assert row["control_sd"] == pytest.approx(by_hand.mean(axis=0).std(ddof=1), rel=1e-12)
    out = retain(scores, shifts, params.filter)
    # the row sets come two by two: at most one of each pair stays
    assert out.groupby(out["shift_id"].str.split("/").str[0])["retained"].sum().max() <= 2
