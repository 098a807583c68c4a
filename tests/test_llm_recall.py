"""Recall@K is a count; random ranking comes out at K / m, and at 0 once corrected."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest

from inconvenient.data.bootstrap import Bootstrap
from inconvenient.errors import InputError
from inconvenient.llm.recall import (
    corrected,
    recall_at,
    recall_differences,
    recall_table,
    summarise_recall,
)

FEATURES = tuple("abcde")


def test_recall_is_a_count_over_every_ranking() -> None:
    for k in range(1, 6):
        counts = []
        for ranking in itertools.permutations(FEATURES):
            hits = 0
            for i in range(k):
                for j in range(k):
                    hits += ranking[i] == FEATURES[j]
            assert recall_at(ranking, FEATURES, k) == hits / k
            counts.append(hits / k)
        # All rankings being equally likely, the mean is the exact expectation.
        assert math.isclose(np.mean(counts), k / 5, rel_tol=1e-12)


def test_simulated_random_rankings_agree_with_the_expectation() -> None:
    names = [f"x{i}" for i in range(23)]
    rng = np.random.default_rng(5)
    drawn = [recall_at(list(rng.permutation(names)), names, 5) for _ in range(4000)]
    error = np.std(drawn) / np.sqrt(len(drawn))
    assert abs(np.mean(drawn) - 5 / 23) < 4 * error
    assert error < 0.005


def test_reversed_order_has_what_arithmetic_says() -> None:
    for m, k in [(15, 10), (15, 5), (20, 10), (11, 10), (12, 10)]:
        names = [f"x{i:02d}" for i in range(m)]
        assert recall_at(names[::-1], names, k) == max(0, 2 * k - m) / k


def test_correction_fixes_chance_at_zero_and_truth_at_one() -> None:
    assert corrected(0.25, 0.25) == 0.0
    assert corrected(1.0, 0.25) == 1.0
    assert math.isclose(corrected(0.0, 0.25), -1 / 3)
    assert math.isnan(corrected(1.0, 1.0))


@pytest.mark.parametrize(
    ("ranking", "k", "message"),
    [
        (("a", "b", "c", "d"), 1, "each of the 5 features once, got 4 places"),
        (("a", "b", "c", "d", "d"), 1, "got 5 places and 4 of the features"),
        (("a", "b", "c", "d", "z"), 1, "got 5 places and 4 of the features"),
        (FEATURES, 0, "k must be between 1 and the 5 features, got 0"),
        (FEATURES, 6, "k must be between 1 and the 5 features, got 6"),
    ],
)
def test_what_is_no_ranking_is_refused(ranking: tuple[str, ...], k: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        recall_at(ranking, FEATURES, k)


@pytest.fixture
def shifts() -> pd.DataFrame:
    rows = [
        {"shift_id": f"{d}/{o}/{i}", "dataset": d, "operation": o}
        for d, n in [("one", 4), ("two", 1), ("three", 1), ("four", 2)]
        for o in ("amplify", "flip")
        for i in range(n)
    ]
    return pd.DataFrame(rows)


def test_means_over_datasets_and_over_shifts(shifts: pd.DataFrame) -> None:
    truths = dict.fromkeys(shifts["shift_id"], FEATURES)
    rankings = {s: FEATURES if s.startswith("one") else FEATURES[::-1] for s in truths}
    table = recall_table(rankings, truths, shifts, ks=(3, 1))
    assert len(table) == 2 * len(shifts)
    out = summarise_recall(table, Bootstrap({}, seed=1)).set_index(["operation", "k"])
    assert list(out.index) == [(o, k) for o in ("amplify", "flip", "overall") for k in (1, 3)]
    row = out.loc["overall", 3]
    assert (row["shifts"], row["datasets"]) == (16, 4)
    assert math.isclose(row["recall"], (1 + 3 * (1 / 3)) / 4)
    assert math.isclose(row["recall_shifts"], (8 + 8 / 3) / 16)
    assert row["chance"] == row["chance_shifts"] == 3 / 5
    assert math.isclose(row["corrected"], (1 + 3 * (1 / 3 - 3 / 5) / (2 / 5)) / 4)
    assert row["recall_low"] < row["recall"] < row["recall_high"]
    assert out.loc[("flip", 3), "shifts"] == 8
    low, high = Bootstrap({}, seed=1).interval(
        pd.Series({"one": 1.0, "two": 1 / 3, "three": 1 / 3, "four": 1 / 3})
    )
    assert (row["recall_low"], row["recall_high"]) == (low, high)


def test_differences_are_of_the_same_shifts(shifts: pd.DataFrame) -> None:
    truths = dict.fromkeys(shifts["shift_id"], FEATURES)
    right = recall_table(truths, truths, shifts)
    some = {s: FEATURES[::-1] for s in truths if s != "four/flip/1"}
    wrong = recall_table(some, {s: truths[s] for s in some}, shifts)
    bootstrap = Bootstrap({}, seed=1)
    out = recall_differences(right, wrong, bootstrap).set_index("k")
    assert list(out.index) == [1, 3]
    assert out["shifts"].tolist() == [15, 15]
    assert out["datasets"].tolist() == [4, 4]
    assert out["difference"].to_dict() == {1: 1.0, 3: pytest.approx(2 / 3)}
    # Means of shifts of a dataset, then of datasets; the interval is that of the latter.
    first = {s: FEATURES if s.startswith("one/flip") else FEATURES[::-1] for s in truths}
    half = recall_differences(recall_table(first, truths, shifts), wrong, bootstrap)
    assert half["difference"].iloc[0] == 0.5 / 4
    by_dataset = pd.Series({"one": 0.5, "two": 0.0, "three": 0.0, "four": 0.0})
    assert (half["low"].iloc[0], half["high"].iloc[0]) == bootstrap.interval(by_dataset)
    back = recall_differences(wrong, right, bootstrap)
    assert back["difference"].tolist() == (-out["difference"]).tolist()
    same = recall_differences(right, right, bootstrap)
    assert same[["difference", "low", "high"]].eq(0.0).all(axis=None)


def test_places_that_any_ranking_gets_right_are_left_out(shifts: pd.DataFrame) -> None:
    truths = dict.fromkeys(shifts["shift_id"], FEATURES)
    assert set(recall_table(truths, truths, shifts)["k"]) == {1, 3}  # of 1, 3, 5 and 10 for m = 5
    assert (
        summarise_recall(recall_table(truths, truths, shifts), Bootstrap({}, seed=1))[
            ["recall", "corrected"]
        ]
        .eq(1.0)
        .all(axis=None)
    )


def test_a_shift_without_its_truth_is_named(shifts: pd.DataFrame) -> None:
    truths = dict.fromkeys(shifts["shift_id"], FEATURES)
    with pytest.raises(InputError, match="'two/flip/0' does not"):
        recall_table({s: v for s, v in truths.items() if s != "two/flip/0"}, truths, shifts)


def test_nothing_gives_an_empty_table(shifts: pd.DataFrame) -> None:
    assert summarise_recall(recall_table({}, {}, shifts), Bootstrap({}, seed=1)).empty
