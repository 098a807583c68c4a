"""What went wrong between a request and its answer, in the words of ``ModelError.reason``."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from inconvenient.llm.cache import Answer
from inconvenient.llm.prompts import shorten
from inconvenient.llm.redaction import hide_words

__all__ = ["Failure", "outcome_of"]

#: Longest text of a server that is read and that is quoted, in characters.
READ, QUOTED = 5000, 200

#: How servers say that messages are too long, where their library does not tell.
_TOO_LONG = re.compile(r"context[ _](length|size|window)|prompt is too long", re.IGNORECASE)


@dataclasses.dataclass(frozen=True, slots=True)
class Failure:
    """A try that brought no answer.

    Parameters
    ----------
    reason : str
        As in :class:`~inconvenient.errors.ModelError`.
    what : str
        What came, without keys.
    again : bool
        Whether another try may help.
    fatal : bool
        Whether every other question would fail alike.
    retry_after : float
        Seconds that the server asks to wait; 0 if it does not.
    """

    reason: str
    what: str
    again: bool = False
    fatal: bool = False
    retry_after: float = 0.0


def outcome_of(error: Exception) -> Answer | Failure:
    """Return what an error of pydantic-ai, or one of a library below it, means for a question.

    Messages that a model's context cannot hold are an answer, for they would be with every try.
    """
    from pydantic_ai import exceptions as own

    status = getattr(error, "status_code", None)
    said = hide_words(" ".join(_said(error)[:READ].split()))
    if (
        isinstance(error, own.ModelContextWindowExceededError)
        or status == 413
        or (status == 400 and _TOO_LONG.search(said))
    ):
        return Answer("", stop="too long")
    what = f"status {status}" if status else ""
    if isinstance(error, own.ModelAuthenticationError):
        # What was sent may be all that such a text holds.
        return Failure("not allowed", f"{what}, the key is refused", fatal=True)
    what += f"{': ' if what else ''}{shorten(said, QUOTED)}"
    if isinstance(error, own.ModelNotFoundError):
        return Failure("unknown model", what, fatal=True)
    if isinstance(error, own.ModelQuotaExceededError):
        return Failure("not allowed", f"{what} (quota or credit is used up)", fatal=True)
    retry_after = float(getattr(error, "retry_after", None) or 0.0)
    for kinds, reason in (
        (own.ModelRateLimitError, "rate limit"),
        ((own.ModelServerError, own.ModelUnavailableError), "server error"),
        ((own.ModelTimeoutError, own.ModelRequestTimeout), "timeout"),
        (own.ModelConnectionError, "connection"),
    ):
        if isinstance(error, kinds):
            return Failure(reason, what, again=True, retry_after=retry_after)
    if status in (408, 409, 425):
        reason = "timeout" if status == 408 else "server error"
        return Failure(reason, what, again=True, retry_after=retry_after)
    if isinstance(error, own.ModelHTTPError | own.ModelRequestRejectedError | own.UserError):
        return Failure("refused request", what)
    return Failure("no answer", f"{type(error).__name__}: {what}", again=True)


def _said(error: Exception) -> str:
    """Return the text of an error: of its body's ``message`` where there is one."""
    body: Any = getattr(error, "body", None)
    if isinstance(body, dict):
        inner = body.get("error", body)
        if isinstance(inner, dict) and inner.get("message"):
            return str(inner["message"])
    if body is not None and getattr(error, "status_code", None):
        return str(body)
    return str(error)
