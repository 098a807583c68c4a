"""What questions may cost at most: told before anything is sent, and kept to while they are."""

from __future__ import annotations

import dataclasses
import importlib.util
import threading
from collections.abc import Callable, Iterable

from inconvenient.errors import BudgetError, InputError, MissingDependencyError, ModelError
from inconvenient.llm.cache import Answer, Client, Request, answer_key
from inconvenient.llm.remote import RemoteClient
from inconvenient.store import canonical_json

__all__ = ["BudgetClient", "Estimate", "Price", "estimate", "most_tokens", "price_of"]

#: Providers whose answers cost nothing.
FREE = ("embedded", "local")

#: Bytes that make a token at least, tokens around each message, and those of the words with which
#: a provider asks for a form.
BYTES, AROUND, FORM = 2, 16, 500

#: Reasons why there is no answer although one may have been made, and charged.
_MAYBE_PAID = ("timeout", "connection", "no answer")


@dataclasses.dataclass(frozen=True, slots=True)
class Price:
    """What a model costs.

    Parameters
    ----------
    tokens_in, tokens_out : float
        Dollars per million tokens of messages and of answers, at least 0.

    Raises
    ------
    InputError
        If one is negative or not finite.
    """

    tokens_in: float
    tokens_out: float

    def __post_init__(self) -> None:
        if not (0.0 <= self.tokens_in < float("inf") and 0.0 <= self.tokens_out < float("inf")):
            raise InputError(
                "prices must be dollars per million tokens, at least 0, got "
                f"{self.tokens_in} and {self.tokens_out}"
            )

    def of(self, tokens_in: int, tokens_out: int) -> float:
        """Return the dollars that so many tokens cost."""
        return (self.tokens_in * tokens_in + self.tokens_out * tokens_out) / 1e6


@dataclasses.dataclass(frozen=True, slots=True)
class Estimate:
    """What a run would ask for.

    Parameters
    ----------
    calls : int
        Questions that would be sent; the same one twice counts once.
    kept : int
        Questions whose answers are kept.
    tokens_in, tokens_out : int
        Of all calls, at most; see :func:`most_tokens`.
    cost : float or None
        Dollars, at most; None if the model's price is not known.
    """

    calls: int
    kept: int
    tokens_in: int
    tokens_out: int
    cost: float | None


def price_of(model: str) -> Price | None:
    """Return what a model costs, by the list of prices that comes with ``genai-prices``.

    Parameters
    ----------
    model : str
        "provider:name"; "embedded:" and "local:" are free.

    Returns
    -------
    Price or None
        None if the list does not have the model. Where a price rises with the length of the
        messages it is that of short ones.

    Raises
    ------
    MissingDependencyError
        If the list is not installed.
    """
    provider, _, name = model.partition(":")
    if provider in FREE:
        return Price(0.0, 0.0)
    if importlib.util.find_spec("genai_prices") is None:
        raise MissingDependencyError(
            f"genai-prices is needed for the price of {model} and is not installed; "
            "run `pip install 'inconvenient[llm]'`"
        )
    from genai_prices import Usage, calc_price

    parts = []
    for usage in (Usage(input_tokens=1000), Usage(output_tokens=1000)):
        try:
            parts.append(float(calc_price(usage, name, provider_id=provider).total_price) * 1e3)
        except LookupError:
            return None
    return Price(*parts)


def most_tokens(request: Request) -> tuple[int, int]:
    """Return how many tokens a question and its answer have at most.

    Parameters
    ----------
    request : Request
        With ``max_tokens`` among its parameters.

    Returns
    -------
    tokens_in, tokens_out : int
        A token for every two bytes of messages and schema, 16 for each message and 500 for a
        schema, which is on the safe side: prompts of this package have 2.6 to 3.5 characters a
        token where every digit is one, more elsewhere, and a provider's words around a tool have
        some 350 tokens. An answer has ``max_tokens``.

    Raises
    ------
    InputError
        If ``max_tokens`` is not given, for then there is no bound.
    """
    most = request.parameters.get("max_tokens")
    if not isinstance(most, int) or most < 1:
        raise InputError(f"max_tokens must be given to bound what an answer costs, got {most!r}")
    texts = [message["content"] for message in request.messages]
    if request.schema:
        texts.append(canonical_json(dict(request.schema)))
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    around = AROUND * len(request.messages) + (FORM if request.schema else 0)
    return -(-size // BYTES) + around, most


def estimate(
    requests: Iterable[Request],
    model: str,
    holds: Callable[[Request], bool] | None = None,
    *,
    price: Price | None = None,
) -> Estimate:
    """Add up what requests would cost at most; nothing is sent.

    Parameters
    ----------
    requests : iterable of Request
    model : str
        "provider:name".
    holds : callable, optional
        Whether the answer to a request is kept, such as
        :meth:`~inconvenient.llm.cache.CachedClient.holds`; by default none is.
    price : Price, optional
        By default that of :func:`price_of`.

    Returns
    -------
    Estimate

    Raises
    ------
    InputError
        If a request has no ``max_tokens``.
    """
    price = price_of(model) if price is None else price
    different = {answer_key(model, request): request for request in requests}.values()
    asked = [request for request in different if holds is None or not holds(request)]
    bounds = [most_tokens(request) for request in asked]
    tokens_in, tokens_out = sum(b[0] for b in bounds), sum(b[1] for b in bounds)
    cost = None if price is None else price.of(tokens_in, tokens_out)
    return Estimate(len(asked), len(different) - len(asked), tokens_in, tokens_out, cost)


class BudgetClient:
    """A client that sends no question whose answer might cost more than is left.

    Parameters
    ----------
    client : Client
        Who answers. Kept answers cost nothing, hence a
        :class:`~inconvenient.llm.cache.CachedClient` belongs around this one, not into it.
    price : Price or None
        Of the client's model; None, an unknown price, is refused.
    max_cost : float
        Dollars, at least 0.

    Attributes
    ----------
    spent : float
        Dollars so far, by the tokens that the client counted.

    Raises
    ------
    InputError
        If the price is not known, or ``max_cost`` is negative or not finite.

    Notes
    -----
    A question counts with the most that it may cost (:func:`most_tokens`) until its answer is
    there, so that questions under way at a time cannot exceed the budget together. It keeps
    counting so if the client did not count the tokens of both question and answer, or failed in a
    way that may have been paid for; so does each try of a
    :class:`~inconvenient.llm.remote.RemoteClient` that brought no answer, and none is made that
    cannot be paid. The budget is that of one run of the program.
    """

    def __init__(self, client: Client, price: Price | None, max_cost: float) -> None:
        if price is None:
            raise InputError(
                f"the price of {client.model} is needed to keep to a budget and is not known; give "
                "the dollars per million tokens of messages and answers by hand"
            )
        if not 0.0 <= max_cost < float("inf"):
            raise InputError(f"max_cost must be dollars, at least 0, got {max_cost}")
        self._client, self.price, self.max_cost = client, price, max_cost
        self.model, self.at_once = client.model, client.at_once
        self.spent = self._under_way = 0.0
        self._lock = threading.Lock()
        if isinstance(client, RemoteClient):
            client.before_retry = self._before_retry

    def ask(self, request: Request) -> Answer:
        """Answer a request if it can be paid; see :class:`~inconvenient.llm.cache.Client`.

        Raises
        ------
        BudgetError
            If not; nothing was sent then.
        InputError
            If the request has no ``max_tokens``.
        """
        most = self.price.of(*most_tokens(request))
        with self._lock:
            self._check(most)
            self._under_way += most
        cost = most
        try:
            answer = self._client.ask(request)
            counted = answer.tokens_in and (answer.tokens_out or not answer.text)
            if counted or answer.stop == "too long":
                cost = self.price.of(answer.tokens_in, answer.tokens_out)
        except ModelError as error:
            if error.reason not in _MAYBE_PAID:
                cost = 0.0
            raise
        finally:
            with self._lock:
                self._under_way -= most
                self.spent += cost
        return answer

    def _before_retry(self, request: Request, reason: str) -> None:
        """Count a try that brought no answer, if it may have been paid for."""
        if reason not in _MAYBE_PAID:
            return
        most = self.price.of(*most_tokens(request))
        with self._lock:
            self.spent += most
            # The next try is what is under way for this question.
            self._under_way -= most
            try:
                self._check(most)
            finally:
                self._under_way += most

    def _check(self, most: float) -> None:
        """Refuse a question, or another try of one, that may cost more than is left."""
        # The sum of what questions may cost is enough for them, in whatever order it is added.
        if self.spent + self._under_way + most > self.max_cost * (1 + 1e-9):
            raise BudgetError(
                f"a question to {self.model} may cost ${most:.4f}, but ${self.spent:.4f} of "
                f"${self.max_cost:.4f} are spent and ${self._under_way:.4f} under way; go on "
                "with a larger budget (kept answers cost nothing), or with fewer max_tokens"
            )
