"""Malformed answers are counted, and what they lack is left to chance: no rule flatters."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inconvenient.llm.answers import COUNTS, Ranking, read_ranking
from inconvenient.llm.prompts import Prompt
from inconvenient.llm.recall import recall_at

NAMES = [f"name {i}" for i in range(1, 16)]
IDS = {f"f{i}": name for i, name in enumerate(NAMES, start=1)}
PROMPT = Prompt((), IDS, {name: name for name in NAMES}, 5)
FULL = ["f3", "f1", "f15", "f2", "f9"]


def read(text: str, seed: int = 0, prompt: Prompt = PROMPT) -> Ranking:
    ranking = read_ranking(text, prompt, np.random.default_rng(seed))
    assert sorted(ranking.features) == sorted(prompt.ids.values())
    assert sum(getattr(ranking, count) for count in COUNTS) == ranking.asked == prompt.asked
    assert len(ranking.reasons) == ranking.named
    return ranking


def listed(entries: list[Any]) -> str:
    return json.dumps({"ranking": [{"feature": e, "reason": f"why {e}"} for e in entries]})


def counts(ranking: Ranking) -> dict[str, int]:
    return {name: n for name in COUNTS if (n := getattr(ranking, name))}


@pytest.mark.parametrize(
    "text",
    [
        listed(FULL),
        listed([IDS[e] for e in FULL]),
        listed([f" {e.upper()}\n" for e in FULL]),
        "Here it is:\n```json\n" + json.dumps(json.loads(listed(FULL)), indent=2) + "\n```\nDone.",
        json.dumps(FULL),
        json.dumps([{"id": e} for e in FULL]),
        '{"ranking": ["f4"]} no, rather ' + listed(FULL),
    ],
)
def test_an_answer_in_order_is_taken_as_it_is(text: str) -> None:
    ranking = read(text)
    assert ranking.features[:5] == tuple(IDS[e] for e in FULL)
    assert (ranking.status, ranking.truncated, ranking.surplus) == ("complete", False, 0)
    assert counts(ranking) == {"named": 5}


def test_reasons_are_kept_and_cut() -> None:
    ranking = read('{"ranking": [{"feature": "f2", "reason": "%s"}, "f1"]}' % ("r" * 5000))
    assert ranking.reasons == {"name 2": "r" * 299 + "…", "name 1": ""}
    assert read(listed(FULL)).reasons["name 15"] == "why f15"


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        (["f3", "f1"], {"named": 2, "missing": 3}),
        (["f3", "f3", "name 3", "f1", "f3"], {"named": 2, "repeated": 3}),
        (["f16", "f0", "age", "f3", "f 3"], {"named": 1, "invented": 4}),
        ([3, "3", 3.0, "-1.5", "f3"], {"named": 1, "numbers": 4}),
        ([None, True, [], {"feature": "f1"}, "f3"], {"named": 1, "invented": 4}),
        ([], {"missing": 5}),
    ],
)
def test_what_stands_for_no_feature_is_counted(
    entries: list[Any], expected: dict[str, int]
) -> None:
    ranking = read(listed(entries))
    assert counts(ranking) == expected
    assert ranking.status == ("partial" if "named" in expected else "unusable")


def test_entries_keep_their_places_and_gaps_are_filled_at_random() -> None:
    text = listed(["nonsense", "f3", "f3", 7, "f1"])
    drawn = [read(text, seed).features for seed in range(300)]
    assert all(d[1] == "name 3" and d[4] == "name 1" for d in drawn)
    first = [d[0] for d in drawn]
    assert set(first) == set(NAMES) - {"name 3", "name 1"}
    assert max(first.count(name) for name in set(first)) < 300 / 13 * 2.2
    assert read(text, 1) == read(text, 1)


def test_nothing_behind_the_places_asked_for_is_read() -> None:
    ranking = read(listed([*FULL, "f4", "f5", "nonsense"]))
    assert ranking.surplus == 3
    assert counts(ranking) == {"named": 5}
    behind = {read(listed([*FULL, "f4"]), seed).features[5] for seed in range(40)}
    assert len(behind) > 5


@pytest.mark.parametrize("cut", range(len(listed(FULL))))
def test_cut_off_anywhere_only_whole_entries_count(cut: int) -> None:
    text = listed(FULL)[:cut]
    ranking = read(text)
    whole = text.count("}")
    assert ranking.named == min(whole, 5)
    assert ranking.missing == 5 - ranking.named
    assert ranking.features[: ranking.named] == tuple(IDS[e] for e in FULL[: ranking.named])
    assert ranking.truncated == ('"ranking": [' in text and not text.endswith(("]", "]}")))


def test_a_number_that_was_cut_off_is_not_read() -> None:
    assert counts(read('["f1", 1')) == {"named": 1, "missing": 4}
    assert counts(read('["f1", 1,')) == {"named": 1, "numbers": 1, "missing": 3}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I cannot help with that.",
        "The features f1, f2 and name 3 look suspicious.",
        "1. f1\n2. f2\n3. f3",
        '{"ranking": "f1"}',
        '{"ranking": {"f1": 1}}',
        "null",
        "[" * 100_000,
        '{"ranking": [{"feature": ' + "9" * 10_000,
        "\x00\ud800",
    ],
)
def test_refusals_and_prose_are_unusable(text: str) -> None:
    ranking = read(text)
    assert (ranking.status, ranking.missing) == ("unusable", 5)


def test_an_unusable_answer_scores_what_chance_does() -> None:
    recalls = [recall_at(read("no", seed).features, NAMES, 5) for seed in range(2000)]
    assert abs(np.mean(recalls) - 5 / 15) < 4 * np.std(recalls) / np.sqrt(2000)


def test_ids_come_before_names() -> None:
    prompt = Prompt((), {"f1": "f2", "f2": "3", "f3": "x"}, {"f2": "f2", "3": "3", "x": "x"}, 3)
    ranking = read(listed(["f2", "f1", "x"]), prompt=prompt)
    assert ranking.features == ("3", "f2", "x")
    assert counts(read(listed(["3", 3]), prompt=prompt)) == {
        "named": 1, "numbers": 1, "missing": 1,
    }  # fmt: skip


def test_masked_names_cannot_be_used() -> None:
    masked = dataclasses.replace(PROMPT, names={})
    assert counts(read(listed(["name 1", "f2"]), prompt=masked)) == {
        "named": 1, "invented": 1, "missing": 3,
    }  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(
    st.one_of(
        st.text(),
        st.text(alphabet='[]{}",:f1 \\'),
        st.lists(st.sampled_from([*FULL, 3, None, "zz", ["f1"], {"feature": 2}])).map(listed),
    )
)
def test_no_text_makes_it_raise(text: str) -> None:
    read(text)
