"""A model behind a network: asked until it answers, so often at most; its answer as it came."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import random
import re
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from inconvenient.errors import InputError, MissingDependencyError, ModelError
from inconvenient.llm.cache import Answer, Request
from inconvenient.llm.failures import Failure, outcome_of
from inconvenient.llm.redaction import guard_logs, hide_words
from inconvenient.llm.run import pause
from inconvenient.llm.translation import to_answer, to_form, to_messages, to_settings

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.settings import ModelSettings

__all__ = ["LOCAL_KEY", "RemoteClient"]

#: The variable with the key of a server that is given by its address; most need none.
LOCAL_KEY = "INCONVENIENT_LOCAL_KEY"

#: Longest wait between two tries in seconds, also where a server asks for more.
LONGEST_WAIT = 60.0

_VARIABLE = re.compile(r"`([A-Z][A-Z0-9_]+)`")


class RemoteClient:
    """A client of a provider, or of a server given by its address; see :class:`Client`.

    Parameters
    ----------
    model : str
        "provider:name" as pydantic-ai names it, such as "anthropic:claude-haiku-4-5"; "openai:" is
        OpenAI's interface "responses", which takes no ``seed`` and no ``max_tokens`` below 16,
        "openai-chat:" the one that takes both. With ``url``, "local:name".
    url : str, optional
        Of a server that speaks as OpenAI's chat completions do (Ollama, vLLM, llama.cpp), such as
        "http://localhost:11434/v1". No part of the model's name: where a model runs does not change
        its answers.
    timeout : float
        Seconds after which a try is given up.
    retries : int
        Further tries after the first.
    at_once : int
        Requests that may be under way at a time.
    wait : float
        Seconds to wait at most before the second try.

    Attributes
    ----------
    before_retry : callable or None
        Called before another try with the request and the reason why the last one brought no
        answer (as in :class:`~inconvenient.errors.ModelError`); what it raises ends the question.

    Raises
    ------
    InputError
        If the model's name has no provider that is known, or the address cannot be used.
    MissingDependencyError
        If a library is not installed.
    ModelError
        If there is no key: fatal.

    Notes
    -----
    A schema is sent the way that suits the model, as the form of the answer or as a tool whose
    arguments are the answer; what comes back is not validated and no second question is asked,
    which would flatter the model and cost twice: whoever reads the text counts what is wrong in it.

    Rate limits, errors of the server, lost connections, timeouts and replies without an answer are
    tried again after a random wait between 0 and ``wait`` times 1, 2, 4, ... seconds, at least as
    long as the server asks for, at most a minute. The libraries' own retries are off.

    Keys come from the environment, of the provider or ``$INCONVENIENT_LOCAL_KEY``, and stay there:
    an OpenAI key is not sent to ``url``, and no key that a server quotes reaches a message, an
    answer or a log. Each try has an HTTP client and an event loop of its own (30 ms), so that any
    number of threads may ask, also in a notebook, and nothing has to be closed.
    """

    def __init__(
        self,
        model: str,
        *,
        url: str | None = None,
        timeout: float = 120.0,
        retries: int = 5,
        at_once: int = 4,
        wait: float = 1.0,
    ) -> None:
        if not (timeout > 0 and retries >= 0 and at_once >= 1 and wait >= 0):
            raise InputError(
                "timeout must be above 0, retries and wait at least 0 and at_once at least 1, got "
                f"{timeout}, {retries}, {wait} and {at_once}"
            )
        if importlib.util.find_spec("pydantic_ai") is None:
            raise MissingDependencyError(
                f"pydantic-ai-slim is needed for {model} and is not installed; "
                "run `pip install 'inconvenient[llm]'`"
            )
        self.model, self.at_once = model, at_once
        self.timeout, self.retries, self.wait = timeout, retries, wait
        self.before_retry: Callable[[Request, str], None] | None = None
        self._url = url
        _check_name(model, url)
        self._check_key()
        guard_logs()

    def ask(self, request: Request) -> Answer:
        """Return the model's answer, or why it has none; see :class:`Client`.

        Raises
        ------
        InputError
            If the request has a parameter or a role that is not known.
        ModelError
            If there is no answer after all tries, or another try would be of no use.
        """
        question = to_messages(request), to_settings(request), to_form(request.schema)
        rng = random.Random(request.of(self.model))
        tries, outcome = 1, self._try(*question)
        while isinstance(outcome, Failure):
            last = not outcome.again or tries > self.retries
            if last or not pause(self._pause(tries, outcome, rng)):
                raise self._error(outcome, tries)
            if self.before_retry is not None:
                self.before_retry(request, outcome.reason)
            tries, outcome = tries + 1, self._try(*question)
        return outcome

    def _try(
        self, messages: list[ModelMessage], settings: ModelSettings, wanted: ModelRequestParameters
    ) -> Answer | Failure:
        """Return what came of one try.

        Whatever was raised ends here, and with it what the libraries noted: a ModelError raised
        while another error is handled would carry that along, request, headers and all.
        """
        from pydantic_ai.direct import model_request

        async def send() -> ModelResponse:
            async with self._build() as model:
                own = settings.copy()
                own["request_timeout"] = self.timeout
                if self._url is None and "max_retries" not in model.unsupported_settings:
                    own["max_retries"] = 0
                return await model_request(
                    model,
                    messages,
                    model_settings=own,
                    model_request_parameters=wanted,
                    instrument=False,
                )

        try:
            answer = to_answer(_run(send))
        except Exception as error:  # a reply of any shape may break a library in any way
            return outcome_of(error)
        if answer.text.strip() or answer.logprobs or answer.stop in ("length", "refusal"):
            return answer
        return Failure("no answer", "an empty answer", again=True)

    def _build(self) -> Model[Any]:
        """Return the model as pydantic-ai knows it, with an HTTP client of its own."""
        from pydantic_ai.models import infer_model

        if self._url is None:
            return infer_model(self.model)
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.profiles.openai import OpenAIModelProfile
        from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

        # These servers hold a model to a schema, many cannot call tools; all know `max_tokens`.
        profile = OpenAIModelProfile(
            default_structured_output_mode="native",
            supports_json_schema_output=True,
            openai_chat_supports_max_completion_tokens=False,
        )
        provider = OpenAICompatibleProvider(
            "local", base_url=self._url, api_key=os.environ.get(LOCAL_KEY) or None, profile=profile
        )
        provider.client.max_retries = 0
        # From variables that are meant for OpenAI; a copy of the client, as the setting
        # `max_retries` makes one, would read them again.
        provider.client.organization = provider.client.project = None
        return OpenAIChatModel(self.model.partition(":")[2], provider=provider)

    def _check_key(self) -> None:
        """Build the model once, which fails without a key."""
        said = ""
        try:
            self._build()
        except Exception as error:  # providers raise what they like
            said = str(error) or type(error).__name__
        if not said:
            return
        names = list(dict.fromkeys(_VARIABLE.findall(said)))
        needed = f"the environment variable {' or '.join(names)}, which is not set" if names else ""
        raise ModelError(
            f"{self.model} needs {needed or 'credentials: ' + hide_words(said)}; nothing was sent",
            reason="not allowed",
            fatal=True,
        )

    def _pause(self, tries: int, failure: Failure, rng: random.Random) -> float:
        """Return the seconds to wait before the next try."""
        most = min(LONGEST_WAIT, self.wait * 2.0 ** min(tries - 1, 30))
        return max(rng.uniform(0.0, most), min(LONGEST_WAIT, failure.retry_after))

    def _error(self, failure: Failure, tries: int) -> ModelError:
        provider = self.model.partition(":")[0]
        key = LOCAL_KEY if self._url else f"{provider.partition('-')[0].upper()}_API_KEY"
        path = f", and that {self._url} is right (most end in /v1)" if self._url else ""
        advice = {
            "rate limit": "wait, or let fewer requests run at once",
            "timeout": "allow more seconds, or ask for fewer tokens",
            "server error": "run again later",
            "connection": "check the network" + path,
            "no answer": "look at what the server sends, or ask another model",
            "refused request": "change the request, or ask another model",
            "not allowed": f"check the environment variable {key} and what the account may do",
            "unknown model": "check the model's name" + path,
        }[failure.reason]
        often = f" in {tries} tries" if tries > 1 else ""
        return ModelError(
            f"{self.model} gave no answer{often}: {failure.what}; {advice}",
            reason=failure.reason,
            fatal=failure.fatal,
        )


def _check_name(model: str, url: str | None) -> None:
    """Refuse a name without a provider that is known here, and an address that cannot be used."""
    provider, colon, name = model.partition(":")
    if not (provider and colon and name):
        raise InputError(f"a model is named 'provider:name', got {model!r}")
    if (provider == "local") != (url is not None):
        raise InputError(
            f"'local:name' and the url of its server belong together, got {model!r} "
            f"{'without' if url is None else 'with'} a url"
        )
    if url is not None:
        parts = urlsplit(url)
        if parts.username or parts.password or parts.query:
            # It stands in logs and messages.
            raise InputError(
                f"a url must hold no user, password or query; put the key into ${LOCAL_KEY}"
            )
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(f"a url such as http://localhost:11434/v1 is needed, got {url!r}")
        provider = "openai"
    from pydantic_ai.providers import infer_provider_class

    try:
        infer_provider_class(provider)
    except ValueError:
        raise InputError(
            f"{provider!r} is no provider that pydantic-ai knows, got {model!r}; "
            "name one, such as anthropic or openai"
        ) from None
    except ImportError:
        ours = provider.partition("-")[0] in ("anthropic", "openai")
        package = "inconvenient[llm]" if ours else f"pydantic-ai-slim[{provider}]"
        raise MissingDependencyError(
            f"{model} needs a library that is not installed; run `pip install '{package}'`"
        ) from None


def _run(call: Callable[[], Coroutine[Any, Any, ModelResponse]]) -> ModelResponse:
    """Run to its end; in a thread of its own where this one runs a loop, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(call())
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(call())).result()
