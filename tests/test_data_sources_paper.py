"""The paper's slots: as many of each task and source as it states, none twice."""

from __future__ import annotations

import json
import re

import pytest

import inconvenient as ic
from inconvenient.data.paper import read_paper, read_slot
from inconvenient.errors import InputError


def test_counts_by_task_and_source() -> None:
    slots = ic.list_datasets(suite="paper")
    counts = slots.groupby(["task", slots["id"].str.split(":").str[0]]).size().to_dict()
    assert counts == {
        ("regression", "openml"): 72,
        ("regression", "kaggle"): 1,
        ("regression", "talent"): 7,
        ("binary", "openml"): 39,
        ("multiclass", "openml"): 78,
        ("multiclass", "kaggle"): 2,
        ("multiclass", "talent"): 1,
    }


def test_no_slot_repeats() -> None:
    slots = read_paper()
    assert slots["slot"].is_unique
    assert slots["id"].is_unique
    plain = slots["name"].map(lambda name: re.sub(r"[^a-z0-9]", "", name.lower()))
    assert plain.is_unique
    for task, group in slots.groupby("task"):
        assert list(group["slot"]) == [f"{task}-{j:02d}" for j in range(1, len(group) + 1)]


def test_every_slot_says_why() -> None:
    slots = read_paper()
    assert set(slots["status"]) == {"proposed"}
    assert set(slots["confidence"]) == {"high", "medium", "low"}
    assert (slots["evidence"] != "").all()
    assert slots["id"].str.fullmatch(r"openml:\d+|kaggle:[^/]+/[^/]+(/.+)?|talent:\w+").all()
    binary = slots[slots["task"] == "binary"]
    assert (binary["classes"].dropna() == 2).all()
    many = slots[slots["task"] == "multiclass"]["classes"].dropna()
    assert (many > 2).all()
    assert slots[slots["task"] == "regression"]["classes"].isna().all()
    # The Boston housing data stay out.
    assert not {"openml:531", "openml:43465"} & set(slots["id"])
    assert not slots["name"].str.lower().eq("boston").any()


def test_a_slot_by_name() -> None:
    assert read_slot("openml:41021") == {
        "slot": "regression-01", "target": "RS", "task": "regression",
    }  # fmt: skip
    assert read_slot("openml:1") is None


def test_a_copy_is_given() -> None:
    slots = read_paper()
    slots["id"] = "x"
    assert "x" not in set(read_paper()["id"])


def test_the_command(cli) -> None:
    status, out, _ = cli("data", "list", "--suite", "paper")
    assert status == 0
    lines = out.splitlines()
    assert len(lines) == 202
    assert lines[0].split()[:4] == ["slot", "id", "name", "target"]
    assert lines[-1].startswith("200 slots: 72 regression from openml")
    status, out, _ = cli("data", "list", "--suite", "paper", "--task", "binary", "--json")
    rows = json.loads(out)
    assert len(rows) == 39
    assert rows[0]["id"] == "openml:3"
    assert cli("data", "list", "--suite", "paper", "--domain", "health")[0] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["data", "list", "--suite", "tabarena"], "the one suite is paper, got 'tabarena'"),
        (["data", "add"], "nothing to add"),
        (["data", "add", "--suite", "tabarena"], "--suite must be paper, or openml:NUMBER"),
        (["data", "add", "--suite", "paper", "--target", "y"], "are for one dataset"),
        (["data", "add", "openml:1", "openml:2", "--task", "binary"], "for one dataset, got 2"),
    ],
)
def test_wrong_usage(cli, arguments: list[str], message: str) -> None:
    status, _, err = cli(*arguments)
    assert status == 1
    assert message in err


def test_other_names_are_those_of_the_catalogue(data_folder) -> None:
    with pytest.raises(InputError, match=r"no dataset is named 'openm:3'"):
        ic.load_dataset("openm:3")
