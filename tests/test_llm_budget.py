"""A run says what it may cost before anything is sent, and never spends more than it may."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from model_server import SAID, TOKENS, Step, serving
from scripted_llm import saying

from inconvenient.errors import BudgetError, InputError, MissingDependencyError, ModelError
from inconvenient.llm.budget import (
    BudgetClient,
    Estimate,
    Price,
    estimate,
    most_tokens,
    price_of,
)
from inconvenient.llm.cache import Answer, CachedClient, Client, Request
from inconvenient.llm.clients import client_of
from inconvenient.llm.prompts import ANSWER_SCHEMA
from inconvenient.llm.remote import RemoteClient

#: A dollar for a million tokens of messages, two for one of answers.
PRICE = Price(1.0, 2.0)


def asking(text: str = "who?", most: int = 100) -> Request:
    return Request([{"role": "user", "content": text}], {}, {"max_tokens": most})


#: What a question of ``asking`` may cost: 2 tokens of text, 16 around them, 100 of the answer.
MOST = (18 + 2 * 100) / 1e6


@dataclass
class Counting:
    """Answers with so many tokens, and counts what is asked at a time."""

    tokens: Callable[[], tuple[int, int]] = lambda: (10, 50)
    fail: Exception | None = None
    pause: float = 0.0
    model: str = "scripted:one"
    at_once: int = 4
    asked: int = 0
    paid: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, request: Request) -> Answer:
        answer = Answer("yes", *self.tokens(), "end")
        with self.lock:
            self.asked += 1
            self.paid += PRICE.of(answer.tokens_in, answer.tokens_out)
        time.sleep(self.pause)
        if self.fail is not None:
            raise self.fail
        return answer


# -- prices ---------------------------------------------------------------------------------------


def test_prices_are_those_of_the_list() -> None:
    assert price_of("anthropic:claude-haiku-4-5") == Price(1.0, 5.0)
    assert price_of("openai:gpt-4.1-mini") == price_of("openai-chat:gpt-4.1-mini")
    assert price_of("openai:gpt-4.1-mini") == Price(0.4, 1.6)
    # Twice as much from 200,000 tokens of messages on.
    assert price_of("google:gemini-2.5-pro") == Price(1.25, 10.0)


@pytest.mark.parametrize("model", ["embedded:smollm2", "local:anything"])
def test_what_runs_here_is_free(model: str) -> None:
    assert price_of(model) == Price(0.0, 0.0)


@pytest.mark.parametrize("model", ["anthropic:no-such-model", "nobody:claude-haiku-4-5"])
def test_an_unknown_price_is_no_price(model: str) -> None:
    assert price_of(model) is None
    assert estimate([asking()], model).cost is None
    with pytest.raises(InputError, match=r"is not known; give the dollars per million .* by hand"):
        BudgetClient(saying("yes"), price_of(model), 1.0)


def test_a_list_that_is_not_installed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert price_of("embedded:smollm2") == Price(0.0, 0.0)
    with pytest.raises(MissingDependencyError, match=r"pip install 'inconvenient\[llm\]'"):
        price_of("anthropic:claude-haiku-4-5")


@pytest.mark.parametrize("price", [(-1.0, 2.0), (1.0, float("nan")), (float("inf"), 1.0)])
def test_a_price_is_a_number(price: tuple[float, float]) -> None:
    with pytest.raises(InputError, match="prices must be dollars per million tokens"):
        Price(*price)


# -- bounds and estimates -------------------------------------------------------------------------


def test_tokens_are_counted_on_the_safe_side() -> None:
    assert most_tokens(asking("")) == (16, 100)
    assert most_tokens(asking("abc", 7)) == (18, 7)
    # In bytes: a character may be several tokens.
    assert most_tokens(asking("\N{SNOWMAN}" * 2)) == (19, 100)
    assert most_tokens(asking("\ud800")) == (18, 100)
    two = [{"role": "system", "content": "abcd"}, {"role": "user", "content": "ab"}]
    assert most_tokens(Request(two, {}, {"max_tokens": 1})) == (35, 1)
    form = {"type": "object"}  # 17 bytes
    assert most_tokens(Request(two, form, {"max_tokens": 1})) == (544, 1)


@pytest.mark.parametrize("parameters", [{}, {"max_tokens": None}, {"max_tokens": 0}])
def test_without_max_tokens_there_is_no_bound(parameters: dict[str, object]) -> None:
    client = saying("yes")
    request = Request([{"role": "user", "content": "who?"}], {}, parameters)
    with pytest.raises(InputError, match="max_tokens must be given to bound what an answer costs"):
        estimate([request], "local:tiny")
    with pytest.raises(InputError, match="max_tokens must be given"):
        BudgetClient(client, PRICE, 1.0).ask(request)
    assert client.asked == []


def test_an_estimate_leaves_out_what_is_kept(tmp_path: Path) -> None:
    client = saying("yes")
    requests = [asking(f"question {i}") for i in range(5)]
    kept = CachedClient(tmp_path, client)
    assert not kept.holds(requests[0])
    for request in requests[:2]:
        kept.ask(request)
    replay = CachedClient(tmp_path, model=client.model)
    assert [replay.holds(request) for request in requests] == [True, True, False, False, False]
    assert len(client.asked) == 2
    # The same question twice is asked once.
    told = estimate([*requests, requests[4]], client.model, replay.holds, price=PRICE)
    assert told == Estimate(3, 2, 3 * 21, 300, pytest.approx((3 * 21 + 2 * 300) / 1e6))
    whole = estimate(requests, client.model, price=PRICE)
    assert (whole.calls, whole.kept) == (5, 0)
    assert estimate(requests, "local:tiny").cost == 0.0
    assert estimate([], client.model, price=PRICE) == Estimate(0, 0, 0, 0, 0.0)


# -- keeping to a budget --------------------------------------------------------------------------


def test_nothing_is_sent_that_might_cost_too_much() -> None:
    client = Counting()
    with pytest.raises(
        BudgetError, match=r"may cost \$0.0002, but \$0.0000 of \$0.0002 are"
    ) as caught:
        BudgetClient(client, PRICE, 0.99 * MOST).ask(asking())
    assert (caught.value.reason, caught.value.fatal) == ("budget", True)
    assert client.asked == 0
    assert BudgetClient(client, PRICE, MOST).ask(asking()) == Answer("yes", 10, 50, "end")


def test_real_tokens_are_what_is_spent() -> None:
    client = Counting()
    budget = BudgetClient(client, PRICE, 3 * MOST)
    real = (10 + 2 * 50) / 1e6
    # 3 MOST are 654 millionths, of which 4 answers take 440, and a fifth might take 218.
    for _ in range(4):
        budget.ask(asking())
    with pytest.raises(BudgetError, match=r"\$0.0004 of \$0.0007 are spent .* larger budget"):
        budget.ask(asking())
    assert client.asked == 4
    assert budget.spent == pytest.approx(client.paid) == pytest.approx(4 * real)


@pytest.mark.parametrize(
    ("reason", "paid"),
    [
        ("rate limit", False), ("server error", False), ("refused request", False),
        ("not allowed", False), ("unknown model", False),
        ("timeout", True), ("connection", True), ("no answer", True),
    ],
)  # fmt: skip
def test_a_failure_counts_if_it_may_have_been_paid_for(reason: str, paid: bool) -> None:
    client = Counting(fail=ModelError("no", reason=reason))
    budget = BudgetClient(client, PRICE, 1.5 * MOST)
    with pytest.raises(ModelError, match="no"):
        budget.ask(asking())
    assert budget.spent == (pytest.approx(MOST) if paid else 0.0)
    client.fail = None
    if paid:
        with pytest.raises(BudgetError):
            budget.ask(asking())
    else:
        assert budget.ask(asking()).text == "yes"


@pytest.mark.parametrize("tokens", [(0, 0), (18, 0), (0, 100)])
def test_an_answer_without_tokens_counts_with_the_most(tokens: tuple[int, int]) -> None:
    budget = BudgetClient(Counting(tokens=lambda: tokens), PRICE, 10 * MOST)
    budget.ask(asking())
    assert budget.spent == pytest.approx(MOST)
    free = BudgetClient(Counting(), Price(0.0, 0.0), 0.0)
    assert free.ask(asking()).text == "yes"


@pytest.mark.parametrize("max_cost", [-1.0, float("nan"), float("inf")])
def test_a_budget_is_a_number(max_cost: float) -> None:
    with pytest.raises(InputError, match="max_cost must be dollars, at least 0"):
        BudgetClient(saying("yes"), PRICE, max_cost)


def answers_of(client: Client, requests: list[Request], threads: int = 8) -> int:
    """Ask in threads; return how many were answered, the others being over the budget."""

    def ask(request: Request) -> bool:
        try:
            client.ask(request)
        except BudgetError:
            return False
        return True

    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(ask, requests))


def test_threads_do_not_exceed_a_budget_together() -> None:
    # All at once: each alone could be paid, the eight could not.
    client = Counting(tokens=lambda: (18, 100), pause=0.2)
    budget = BudgetClient(client, PRICE, 3 * MOST)
    assert answers_of(budget, [asking()] * 8) == client.asked == 3
    assert client.paid == pytest.approx(3 * MOST)
    rng = random.Random(0)
    client = Counting(tokens=lambda: (rng.randint(1, 18), rng.randint(1, 100)), pause=0.001)
    budget = BudgetClient(client, PRICE, 20 * MOST)
    answered = answers_of(budget, [asking()] * 300)
    assert 20 < answered == client.asked < 300
    assert 12 * MOST < client.paid <= 20 * MOST
    assert budget.spent == pytest.approx(client.paid)


def test_the_estimate_of_a_run_is_enough_for_it() -> None:
    requests = [asking("x" * i, most=3 + i) for i in range(200)]
    told = estimate(requests, "scripted:one", price=PRICE)
    dearest = Counting(tokens=lambda: (0, 0))  # counts with the most
    assert told.cost is not None
    assert answers_of(BudgetClient(dearest, PRICE, told.cost), requests) == 200


def test_kept_answers_cost_nothing(tmp_path: Path) -> None:
    client = Counting()
    requests = [asking(f"{i:04}") for i in range(10)]
    first = BudgetClient(client, PRICE, 4 * MOST)
    whole = CachedClient(tmp_path, first)
    assert (whole.model, whole.at_once) == ("scripted:one", 4)
    kept = answers_of(whole, requests, threads=1)
    assert 4 <= kept < 10
    again = BudgetClient(client, PRICE, 4 * MOST)
    assert answers_of(CachedClient(tmp_path, again), requests, threads=1) > kept
    assert first.spent + again.spent == pytest.approx(client.paid)


def test_a_budget_of_a_remote_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key-of-a-test")
    model = "anthropic:claude-haiku-4-5"
    requests = [
        Request([{"role": "user", "content": f"{i}?"}], ANSWER_SCHEMA, {"max_tokens": 200})
        for i in range(4)
    ]
    told = estimate(requests[:1], model)
    assert told.cost is not None
    assert TOKENS[0] < told.tokens_in
    with serving() as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        server.script = [Step(status=429, error="slow down")]
        remote = RemoteClient(model, wait=0.01)
        real = (TOKENS[0] + 5 * TOKENS[1]) / 1e6
        budget = BudgetClient(remote, price_of(model), told.cost + 3.5 * real)
        client = CachedClient(tmp_path, budget)
        assert answers_of(client, requests, threads=1) == 4
        assert len(server.asked) == 5
        assert budget.spent == pytest.approx(4 * real)
        dear = Request([{"role": "user", "content": "?"}], {}, {"max_tokens": 20000})
        with pytest.raises(BudgetError):
            client.ask(dear)
        assert len(server.asked) == 5
    assert CachedClient(tmp_path, model=model).ask(requests[3]).text == SAID


def test_tries_that_may_have_been_paid_for_count(monkeypatch: pytest.MonkeyPatch) -> None:
    request = Request([{"role": "user", "content": "?"}], ANSWER_SCHEMA, {"max_tokens": 200})
    most = PRICE.of(*most_tokens(request))
    real = PRICE.of(*TOKENS)
    empty, limited = Step("", plain=True), Step(status=429, error="slow down")
    with serving() as server:

        def budget_of(dollars: float) -> BudgetClient:
            remote = RemoteClient("local:tiny", url=f"{server.url}/v1", wait=0.01)
            return BudgetClient(remote, PRICE, dollars)

        server.script = [empty, limited, empty]
        budget = budget_of(3 * most)
        assert budget.ask(request).text == SAID
        assert len(server.asked) == 4
        assert budget.spent == pytest.approx(2 * most + real)

        # The third try could not be paid, and what the first two may have cost stays counted.
        server.asked.clear()
        server.script = [empty, empty]
        budget = budget_of(2.5 * most)
        with pytest.raises(BudgetError, match=r"are spent and \$0\.0000 under way"):
            budget.ask(request)
        assert len(server.asked) == 2
        assert budget.spent == pytest.approx(2 * most)
        cheap = Request(request.messages, {}, {"max_tokens": 10})
        assert budget.ask(cheap).text == SAID
        assert budget.spent == pytest.approx(2 * most + real)


# -- who answers ----------------------------------------------------------------------------------


def test_the_provider_says_who_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key-of-a-test")
    with serving() as server:
        client = client_of("local:tiny", url=f"{server.url}/v1", timeout=60.0, retries=2)
        assert isinstance(client, RemoteClient)
        assert (client.model, client.timeout, client.retries) == ("local:tiny", 60.0, 2)
        assert client.ask(asking()).text == SAID
    assert client_of("anthropic:claude-haiku-4-5").model == "anthropic:claude-haiku-4-5"


def test_an_embedded_model_is_asked_in_this_process() -> None:
    from inconvenient.llm.embedded import EmbeddedClient

    client = client_of("embedded:smollm2")
    assert isinstance(client, EmbeddedClient)
    assert client.model == "embedded:smollm2"


@pytest.mark.parametrize(
    ("model", "url", "message"),
    [
        ("smollm2", None, "such as embedded:smollm2, .* got 'smollm2'"),
        ("embedded:", None, "named 'provider:name'"),
        ("local:tiny", None, "belong together, got 'local:tiny' without a url"),
        ("embedded:smollm2", "http://localhost/v1", "a url belongs to 'local:name' alone"),
        ("openai:gpt-4.1", "http://localhost/v1", "belong together"),
        ("nobody:tiny", None, "'nobody' is no provider"),
    ],
)
def test_a_model_that_nobody_answers_for(model: str, url: str | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        client_of(model, url=url)
