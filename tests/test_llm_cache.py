"""An answer is kept once and replayed alone; scripted models score what arithmetic says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scoring import SMALL, needs_publication
from scripted_llm import Scripted, by_order, saying

import inconvenient as ic
from inconvenient.errors import InputError, NotAvailableError
from inconvenient.llm.asking import ask_ranking
from inconvenient.llm.cache import Answer, CachedClient, Client, Request, answer_key
from inconvenient.llm.prompts import ANSWER_SCHEMA
from inconvenient.llm.recall import recall_at
from inconvenient.llm.tasks import Question, ask_about, truth_of
from inconvenient.shifts.records import Context, Shift

ASK = ([{"role": "user", "content": "who?"}], {"type": "object"}, {"temperature": 0})


def files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file())


def test_an_answer_is_asked_for_once_and_replayed(tmp_path: Path) -> None:
    client = saying('{"odd": "\ud800 \u2028 é"}')
    first = CachedClient(tmp_path, client).ask(Request(*ASK))
    assert CachedClient(tmp_path, client).ask(Request(*ASK)) == first
    assert len(client.asked) == 1
    assert CachedClient(tmp_path, model=client.model).ask(Request(*ASK)) == first
    (path,) = files(tmp_path)
    key = answer_key(client.model, Request(*ASK))
    assert path.relative_to(tmp_path).as_posix() == f"{key[:2]}/{key[2:]}.json"
    kept = json.loads(path.read_bytes())
    assert kept["request"] == {
        "model": "scripted:one",
        "messages": ASK[0],
        "schema": ASK[1],
        "parameters": ASK[2],
    }
    assert Answer(**kept["answer"]) == first


def test_the_same_run_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        CachedClient(tmp_path / name, saying("yes")).ask(Request(*ASK))
    one, two = (files(tmp_path / name)[0].read_bytes() for name in ("one", "two"))
    assert one == two


@pytest.mark.parametrize("place", range(4))
def test_every_part_of_the_request_is_in_the_key(place: int, tmp_path: Path) -> None:
    asked = ["scripted:one", *ASK]
    other = [*asked]
    other[place] = [
        "scripted:two",
        [{"role": "user", "content": "who? "}],
        {"type": "array"},
        {"temperature": 0.5},
    ][place]
    assert answer_key(asked[0], Request(*asked[1:])) != answer_key(other[0], Request(*other[1:]))
    CachedClient(tmp_path, saying("yes")).ask(Request(*ASK))
    with pytest.raises(NotAvailableError, match="does not hold it"):
        CachedClient(tmp_path, model=other[0]).ask(Request(*other[1:]))


def test_the_order_of_settings_is_not_in_the_key() -> None:
    a, b = {"top_p": 1, "temperature": 0}, {"temperature": 0, "top_p": 1}
    one, two = (Request(ASK[0], ASK[1], settings) for settings in (a, b))
    assert answer_key("m", one) == answer_key("m", two)


def test_a_replay_fails_on_a_miss_and_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(NotAvailableError, match="of provider:name was needed, but .* or run with"):
        CachedClient(tmp_path, model="provider:name").ask(Request(*ASK))
    assert files(tmp_path) == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda value: value[: len(value) // 2],
        lambda value: b"",
        lambda value: b"\xff\xfe",
        lambda value: b"[]",
        lambda value: value.replace(b"who?", b"whom"),
        lambda value: value.replace(b'"text"', b'"words"'),
        lambda value: value.replace(b'"yes"', b"null"),
        lambda value: b"[" * 100_000,
        lambda value: value.replace(b'"stop":"end"', b'"stop":["end"]'),
        lambda value: value.replace(b'"tokens_in":4', b'"tokens_in":"many"'),
        lambda value: value.replace(b'"tokens_in":4', b'"tokens_in":-5'),
        lambda value: value.replace(b'"tokens_out":3', b'"tokens_out":NaN'),
        lambda value: value.replace(b'"tokens_out":3', b'"tokens_out":null'),
        lambda value: value.replace(b'"logprobs":{}', b'"logprobs":["a"]'),
        lambda value: value.replace(b'"logprobs":{}', b'"logprobs":{"a":"b"}'),
        lambda value: value.replace(b'"logprobs":{}', b'"logprobs":{"a":NaN}'),
    ],
)
def test_a_damaged_file_is_no_answer(tmp_path: Path, damage) -> None:
    client = saying("yes")
    CachedClient(tmp_path, client).ask(Request(*ASK))
    (path,) = files(tmp_path)
    whole = path.read_bytes()
    assert damage(whole) != whole
    path.write_bytes(damage(whole))
    with pytest.raises(NotAvailableError):
        CachedClient(tmp_path, model=client.model).ask(Request(*ASK))
    assert CachedClient(tmp_path, client).ask(Request(*ASK)).text == "yes"
    assert path.read_bytes() == whole


def test_a_run_that_broke_off_asks_for_the_rest_alone(tmp_path: Path) -> None:
    def script(messages: list[dict[str, str]]) -> str:
        if len(flaky.asked) == 3:
            raise ConnectionError("gone")
        return messages[0]["content"]

    flaky = Scripted(script)
    questions = [[{"role": "user", "content": f"{i}?"}] for i in range(5)]
    for messages in questions[:2]:
        CachedClient(tmp_path, flaky).ask(Request(messages, {}, {}))
    with pytest.raises(ConnectionError):
        CachedClient(tmp_path, flaky).ask(Request(questions[2], {}, {}))
    assert len(files(tmp_path)) == 2
    for messages in questions:
        CachedClient(tmp_path, flaky).ask(Request(messages, {}, {}))
    asked = [entry.messages[0]["content"] for entry in flaky.asked]
    assert asked == ["0?", "1?", "2?", "2?", "3?", "4?"]


def test_who_answers_must_be_clear(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="got neither"):
        CachedClient(tmp_path)
    with pytest.raises(InputError, match="got both"):
        CachedClient(tmp_path, saying("yes"), model="other")


def posed(task: str, operation: str) -> tuple[Shift, Question]:
    table = ic.list_shifts(SMALL[task], "quick", operation=operation)
    shift = ic.load_shift(table["shift_id"].iloc[0], "quick")
    return shift, ask_about(*shift.train(), shift.context)


def ranking_of(shift: Shift, question: Question, client: Client, variant: str):
    return ask_ranking(
        question, client, name=shift.shift_id, variant=variant, seed=7, parameters={}
    ).ranking


@needs_publication
@pytest.mark.usefixtures("data_folder")
@pytest.mark.parametrize("operation", ["amplify", "attenuate", "flip"])
@pytest.mark.parametrize("task", sorted(SMALL))
def test_the_truth_scores_one_and_its_reverse_what_arithmetic_says(
    task: str, operation: str, tmp_path: Path
) -> None:
    shift, question = posed(task, operation)
    truth = truth_of(shift).order
    m = len(truth)
    assert m > 10
    for variant in ("documented", "names"):
        told = ranking_of(shift, question, CachedClient(tmp_path, by_order(truth)), variant)
        client = CachedClient(tmp_path / "reverse", by_order(truth[::-1]))
        reverse = ranking_of(shift, question, client, variant)
        assert told.status == reverse.status == "complete"
        for k in (1, 3, 5, 10):
            assert recall_at(told.features, truth, k) == 1.0
            assert recall_at(reverse.features, truth, k) == max(0, 2 * k - m) / k
        again = ranking_of(shift, question, CachedClient(tmp_path, model="scripted:one"), variant)
        assert again == told


@needs_publication
@pytest.mark.usefixtures("data_folder")
def test_a_model_is_told_nothing_about_the_shift() -> None:
    shift, question = posed("binary", "flip")
    client = saying("I would rather not.")
    reply = ask_ranking(
        question,
        client,
        name=shift.shift_id,
        variant="documented",
        seed=7,
        parameters={"temperature": 0},
    )
    assert reply.ranking.status == "unusable"
    assert (reply.answer.text, reply.answer.stop) == ("I would rather not.", "end")
    (asked,) = client.asked
    assert asked.schema == ANSWER_SCHEMA
    assert asked.parameters == {"temperature": 0}
    sent = json.dumps(asked.messages)
    for word in (shift.shift_id, shift.dataset, shift.rows_hash, shift.data_hash, "at_least"):
        assert word not in sent
    table = json.loads(asked.messages[1]["content"].splitlines()[-1])
    assert set(table) == {
        "target", "classes", "description", "target_documentation", "features",
    }  # fmt: skip
    assert {key for feature in table["features"] for key in feature} == {
        "id", "name", "documentation", "coefficients",
    }  # fmt: skip


def test_variants_share_the_order_of_features() -> None:
    context = Context("regression", (), "y", "", "", dict.fromkeys("abcdefgh", ""))
    question = Question(context, tuple("abcdefgh"), 50, (), False)
    client = saying('{"ranking": ["f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8"]}')
    ask = {"name": "one", "seed": 3, "parameters": {}}
    orders = {
        ask_ranking(question, client, variant=variant, **ask).ranking.features
        for variant in ("documented", "masked", "names")
    }
    assert len(orders) == 1
    other = ask_ranking(question, client, variant="names", **{**ask, "name": "two"})
    assert other.ranking.features not in orders
