"""Asking about many shifts: what is scored, what a failure costs, and that nothing is lost."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scoring import needs_publication
from scripted_llm import Scripted, by_order, saying

import inconvenient as ic
from inconvenient.data.bootstrap import Bootstrap
from inconvenient.errors import InputError, ModelError, NotAvailableError
from inconvenient.llm.anomalies import Anomalies, drawn_shifts, find_anomalies, pose_all
from inconvenient.llm.asking import Posed
from inconvenient.llm.cache import Answer, CachedClient, Client, Request
from inconvenient.llm.known import KNOWN, known_rankings
from inconvenient.llm.run import IN_A_ROW, ask_all
from inconvenient.llm.summary import (
    PAPER,
    answer_counts,
    paired_differences,
    recall_by_operation,
    recall_overall,
)
from inconvenient.llm.tasks import truth_of
from inconvenient.store import Store

pytestmark = [needs_publication, pytest.mark.usefixtures("data_folder"), pytest.mark.jit]

VARIANTS = ("documented", "masked")


def find(
    client: Client | None,
    shifts: pd.DataFrame,
    store: Store,
    variants: Sequence[str] = VARIANTS,
) -> Anomalies:
    posed = [] if client is None else pose_all(shifts, profile="quick", seed=1, variants=variants)
    return find_anomalies(posed, shifts, client, profile="quick", seed=1, store=store, workers=1)


@pytest.fixture(scope="module")
def shifts(data_folder: Path) -> pd.DataFrame:
    return drawn_shifts(6, profile="quick", seed=1)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("known"))


@pytest.fixture(scope="module")
def truths(shifts: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    return {name: truth_of(ic.load_shift(name, "quick")).order for name in shifts["shift_id"]}


class Knowing:
    """Answers each question from the truth of its shift, found by the features' names."""

    model, at_once = "scripted:truth", 1

    def __init__(
        self, posed: Sequence[Posed], truths: dict[str, tuple[str, ...]], reverse: bool
    ) -> None:
        self.orders = {
            one.request.messages[-1]["content"]: truths[one.name][:: -1 if reverse else 1]
            for one in posed
        }

    def ask(self, request: Request) -> Answer:
        order = self.orders[request.messages[-1]["content"]]
        return by_order(order).ask(request)


def test_the_draw_is_of_wide_datasets_and_operations_alike(shifts: pd.DataFrame) -> None:
    assert shifts["operation"].value_counts().to_dict() == {"amplify": 2, "attenuate": 2, "flip": 2}
    features = ic.list_datasets().set_index("name")["features"]
    assert (features[shifts["dataset"]] >= 15).all()
    assert len(drawn_shifts(7, profile="quick", seed=1)) == 9  # a third of 7, rounded up, of each
    with pytest.raises(InputError, match="100 shifts of operation 'attenuate' were asked for"):
        drawn_shifts(300, profile="quick", seed=1)


def test_the_truth_scores_one_and_its_reverse_what_arithmetic_says(
    shifts: pd.DataFrame, store: Store, truths: dict[str, tuple[str, ...]]
) -> None:
    posed = pose_all(shifts, profile="quick", seed=1, variants=["documented"])
    for reverse in (False, True):
        client = Knowing(posed, truths, reverse)
        result = find(client, shifts, store, ["documented"])
        own = result.recalls[result.recalls["ranking"] == "documented"]
        assert set(own["k"]) == {1, 3, 5, 10}
        for row in own.itertuples():
            m = len(truths[row.shift_id])
            # of the last k of m, those among the first k; the ten that are named, then chance
            expected = max(0, 2 * row.k - m) / row.k if reverse else 1.0
            assert row.recall == expected
        assert set(result.questions["status"]) == {"complete"}
        assert set(result.questions["named"]) == {10}


def test_what_stands_beside_needs_no_model(
    shifts: pd.DataFrame, store: Store, truths: dict[str, tuple[str, ...]]
) -> None:
    alone = find(None, shifts, store)
    assert list(alone.summary["ranking"].unique()) == list(KNOWN)
    assert alone.questions.empty
    assert answer_counts(alone).empty
    assert paired_differences(alone).empty
    beside = find(saying(""), shifts, store)
    known = beside.recalls[beside.recalls["ranking"].isin(KNOWN)]
    pd.testing.assert_frame_equal(known.reset_index(drop=True), alone.recalls)
    found, rankings = known_rankings(shifts, profile="quick", seed=1, store=store, workers=1)
    assert found == truths
    assert all(sorted(rankings["random"][name]) == sorted(truths[name]) for name in truths)


def test_an_empty_answer_is_chance_in_every_variant(shifts: pd.DataFrame, store: Store) -> None:
    result = find(saying("I cannot help with that."), shifts, store)
    assert set(result.questions["status"]) == {"unusable"}
    assert set(result.questions["missing"]) == {10}
    counts = answer_counts(result)
    assert counts["variant"].tolist() == list(VARIANTS)
    assert counts["unusable"].tolist() == [6, 6]
    assert counts["missing"].tolist() == [1.0, 1.0]
    # The same places are filled alike in each variant, by a seed that knows nothing of the answer.
    tables = [
        result.recalls[result.recalls["ranking"] == variant]["recall"].to_numpy()
        for variant in VARIANTS
    ]
    np.testing.assert_array_equal(*tables)
    pairs = paired_differences(result).set_index(["ranking", "other"])["difference"]
    beside = [("documented", "masked"), *((one, other) for one in VARIANTS for other in KNOWN)]
    assert sorted(pairs.index) == sorted(beside)
    assert pairs["documented", "masked"] == 0.0


def test_summaries_are_means_over_datasets(shifts: pd.DataFrame, store: Store) -> None:
    result = find(saying('{"ranking": []}'), shifts, store, ["documented"])
    table = recall_overall(result)
    row = table[(table["ranking"] == "documented") & (table["K"] == 5)].iloc[0]
    own = result.recalls[(result.recalls["ranking"] == "documented") & (result.recalls["k"] == 5)]
    by_dataset = own.groupby("dataset")["recall"].mean()
    assert row["recall"] == pytest.approx(by_dataset.mean(), rel=1e-12)
    assert row["recall_shifts"] == pytest.approx(own["recall"].mean(), rel=1e-12)
    catalogue = ic.list_datasets().set_index("name")["family"]
    family = {name: value or name for name, value in catalogue.items()}
    interval = Bootstrap(family, seed=1).interval(by_dataset)
    np.testing.assert_array_equal([row["low"], row["high"]], interval)


def test_the_paper_stands_below_at_five(shifts: pd.DataFrame, store: Store) -> None:
    result = find(None, shifts, store)
    table = recall_by_operation(result)
    paper = table[table["ranking"] == "paper's best model"].set_index("operation")
    assert paper["recall_shifts"].to_dict() == dict(PAPER)
    assert paper.loc["overall", "corrected"] == pytest.approx((0.374 - 0.168) / (1 - 0.168))
    assert paper["recall"].isna().all()  # it states no mean over datasets
    assert "paper's best model" not in set(recall_by_operation(result, 3)["ranking"])


class Failing:
    """Fails at the calls of given numbers, else answers."""

    model, at_once = "scripted:failing", 1

    def __init__(self, *at: int, fatal: bool = False) -> None:
        self.at, self.fatal, self.calls = at, fatal, 0

    def ask(self, request: Request) -> Answer:
        self.calls += 1
        if self.calls in self.at:
            raise ModelError("the model was asked and was busy", reason="busy", fatal=self.fatal)
        return Answer('{"ranking": [{"feature": "f1", "reason": ""}]}', 7, 3, "end")


def test_a_failure_is_counted_as_no_answer_and_asked_again(
    shifts: pd.DataFrame, store: Store, tmp_path: Path
) -> None:
    first = find(CachedClient(tmp_path, Failing(2, 5)), shifts, store)
    assert first.questions["status"].value_counts().to_dict() == {"partial": 10, "failed": 2}
    failed = first.questions[first.questions["status"] == "failed"]
    assert set(failed["failure"]) == {"busy"}
    assert set(failed["missing"]) == {10}
    assert len(first.recalls[first.recalls["ranking"] == "documented"]) == 6 * 4
    with pytest.raises(NotAvailableError, match="was needed"):
        find(CachedClient(tmp_path, model="scripted:failing"), shifts, store)
    again = Failing()
    second = find(CachedClient(tmp_path, again), shifts, store)
    assert again.calls == 2
    assert set(second.questions["status"]) == {"partial"}
    replayed = find(CachedClient(tmp_path, model="scripted:failing"), shifts, store)
    pd.testing.assert_frame_equal(replayed.summary, second.summary)
    pd.testing.assert_frame_equal(replayed.questions, second.questions)


def requests(count: int) -> list[Request]:
    return [Request([{"role": "user", "content": str(i)}], {}, {}) for i in range(count)]


def test_a_fatal_failure_stops_at_once_and_keeps_what_came(tmp_path: Path) -> None:
    client = Failing(4, fatal=True)
    with pytest.raises(ModelError, match="was busy"):
        ask_all(requests(40), CachedClient(tmp_path, client))
    assert client.calls < 40
    again = Failing()
    assert all(
        isinstance(one, Answer) for one in ask_all(requests(40), CachedClient(tmp_path, again))
    )
    assert again.calls <= 37


def test_ten_failures_in_a_row_stop_a_run() -> None:
    outcomes = ask_all(requests(30), Failing(*range(5, 5 + IN_A_ROW - 1)))
    assert sum(isinstance(one, ModelError) for one in outcomes) == IN_A_ROW - 1
    with pytest.raises(ModelError):
        ask_all(requests(30), Failing(*range(5, 5 + IN_A_ROW)))


def test_answers_are_in_order_whatever_the_number_at_a_time() -> None:
    lock, at_work, most = threading.Lock(), 0, 0

    class Slow(Scripted):
        def ask(self, request: Request) -> Answer:
            nonlocal at_work, most
            with lock:
                at_work += 1
                most = max(most, at_work)
            barrier = threading.Event()
            barrier.wait(0.01 * (1 + int(request.messages[0]["content"]) % 3))
            with lock:
                at_work -= 1
            return super().ask(request)

    told: list[tuple[int, int]] = []
    client = Slow(lambda messages: messages[0]["content"], at_once=4)
    outcomes = ask_all(requests(24), client, done=lambda a, b: told.append((a, b)))
    assert [one.text for one in outcomes if isinstance(one, Answer)] == [str(i) for i in range(24)]
    assert most == 4
    assert told == [(i, 24) for i in range(1, 25)]


def test_questions_hold_nothing_of_the_shift(shifts: pd.DataFrame) -> None:
    for one in pose_all(shifts, profile="quick", seed=1):
        text = json.dumps([dict(message) for message in one.request.messages])
        assert one.name not in text
        assert one.name.split("/", 1)[1] not in text
