"""A request as pydantic-ai has it, and its reply as an answer that nothing made better."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from inconvenient.errors import InputError
from inconvenient.llm.cache import Answer, Request
from inconvenient.llm.redaction import hide_keys

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.settings import ModelSettings

__all__ = ["to_answer", "to_form", "to_messages", "to_settings"]

#: Most tokens that a message or an answer is believed to have.
MOST_TOKENS = 10**9

_PARAMETERS = {"max_tokens", "temperature", "seed", "logprobs"}
_STOPS = {"stop": "end", "tool_call": "end", "length": "length", "content_filter": "refusal"}


def to_messages(request: Request) -> list[ModelMessage]:
    """Return a request's messages as pydantic-ai has them."""
    from pydantic_ai import messages as own

    found: list[ModelMessage] = []
    for message in request.messages:
        role, content = message["role"], message["content"]
        if role == "assistant":
            found.append(own.ModelResponse(parts=[own.TextPart(content)]))
            continue
        if role not in ("system", "user"):
            raise InputError(f"a role must be system, user or assistant, got {role!r}")
        part = own.SystemPromptPart(content) if role == "system" else own.UserPromptPart(content)
        if found and isinstance(found[-1], own.ModelRequest):
            found[-1] = own.ModelRequest(parts=[*found[-1].parts, part])
        else:
            found.append(own.ModelRequest(parts=[part]))
    return found


def to_settings(request: Request) -> ModelSettings:
    """Return a request's parameters as pydantic-ai has them."""
    own = dict(request.parameters)
    strange = sorted(set(own) - _PARAMETERS)
    if strange:
        raise InputError(
            f"a parameter must be one of {', '.join(sorted(_PARAMETERS))}, got {strange[0]!r}"
        )
    places = own.pop("logprobs", 0)
    if places:
        own |= {"openai_logprobs": True, "openai_top_logprobs": places}
    return cast("ModelSettings", own)


def to_form(schema: Mapping[str, Any]) -> ModelRequestParameters:
    """Return the form of the answer; which of the two ways it goes is the model's profile's."""
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.output import OutputObjectDefinition
    from pydantic_ai.tools import ToolDefinition

    if not schema:
        return ModelRequestParameters()
    own = json.loads(json.dumps(dict(schema)))
    tool = ToolDefinition(
        name="answer", parameters_json_schema=own, description="The answer.", kind="output"
    )
    form = OutputObjectDefinition(json_schema=own, name="answer")
    return ModelRequestParameters(output_mode="auto", output_object=form, output_tools=[tool])


def to_answer(response: ModelResponse) -> Answer:
    """Return an answer as it came, whichever way it took."""
    from pydantic_ai.messages import TextPart, ToolCallPart

    details = response.provider_details or {}
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    for part in response.parts:
        if isinstance(part, ToolCallPart):
            given = part.args
            text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
            break
    stop = _STOPS.get(response.finish_reason or "", "")
    if stop == "refusal":
        text = text or str(details.get("refusal", ""))
    logprobs = details.get("logprobs")
    for part in response.parts:
        if isinstance(part, TextPart):
            logprobs = logprobs or (part.provider_details or {}).get("logprobs")
    usage = response.usage
    # A count beyond any context is a fault of the server; it must fit a table of integers.
    told, said = min(usage.input_tokens, MOST_TOKENS), min(usage.output_tokens, MOST_TOKENS)
    return Answer(hide_keys(text), told, said, stop, _first(logprobs or []))


def _first(tokens: list[dict[str, Any]]) -> dict[str, float]:
    """Return the alternatives of the first token with their log-probabilities."""
    found: dict[str, float] = {}
    for one in tokens[0].get("top_logprobs", []) if tokens else []:
        value = float(one["logprob"])
        # Tokens that differ in bytes alone may read alike; the likeliest comes first.
        if math.isfinite(value):
            found.setdefault(hide_keys(str(one["token"])), value)
    return found
