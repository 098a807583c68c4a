"""Keys stay in the environment: out of error messages, kept answers and other libraries' logs."""

from __future__ import annotations

import base64
import logging
import os
import re

__all__ = ["guard_logs", "hide_keys", "hide_words"]

#: Variables whose values are taken for secrets.
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CUSTOM_HEADERS", re.IGNORECASE)

#: User and password in an address.
_USER = re.compile(r"://([^/@\s]+)@")

#: Shortest secret, and shortest piece of one, that is hidden: shorter values are placeholders.
_PIECE = 8

#: Shortest secret that is looked for in answers.
_WHOLE = 12

_WORD = re.compile(r"[^\s\"'`,;:=(){}\[\]<>\\]+")

_MARK = "[hidden]"

#: Libraries that may log what is sent and received.
_LIBRARIES = ("anthropic", "httpcore", "httpx", "openai", "pydantic_ai")


def _secrets() -> set[str]:
    """Return what no text may hold."""
    found: set[str] = set()
    for name, value in os.environ.items():
        if _SECRET.search(name):
            found.add(value)
        for user in _USER.findall(value):
            # As it stands in the address, and as it is sent.
            found |= {user, user.partition(":")[2], base64.b64encode(user.encode()).decode()}
    return {value for value in found if len(value) >= _PIECE}


def hide_keys(text: str) -> str:
    """Return a text without the secrets that stand in it whole; short ones may be words, and stay.

    For answers, which nothing else may change.
    """
    for secret in sorted(_secrets(), key=len, reverse=True):
        if len(secret) >= _WHOLE:
            text = text.replace(secret, _MARK)
    return text


def hide_words(text: str) -> str:
    """Return a text without the words that hold eight or more characters of a secret.

    For texts that servers write: they may quote a key cut off, or in capitals.
    """
    pieces = {
        word[i : i + _PIECE].lower()
        for secret in _secrets()
        for word in _WORD.findall(secret)
        for i in range(len(word) - _PIECE + 1)
    }

    def shown(match: re.Match[str]) -> str:
        word = match[0].lower()
        windows = (word[i : i + _PIECE] for i in range(len(word) - _PIECE + 1))
        return _MARK if any(window in pieces for window in windows) else match[0]

    return _WORD.sub(shown, hide_keys(text))


class _Hiding(logging.Filter):
    """Takes secrets out of a record before a handler sees it."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record pass, with another text."""
        record.msg, record.args = hide_words(record.getMessage()), ()
        if record.exc_info:
            record.exc_text = hide_words(logging.Formatter().formatException(record.exc_info))
            record.exc_info = None
        return True


_HIDING = _Hiding()


def guard_logs() -> None:
    """Keep secrets out of what the libraries log that talk to servers.

    At level DEBUG they log the headers of answers, where a server may quote those it was sent, and
    at INFO the address. A filter works for its own logger alone, so each that exists gets it.
    """
    for name in list(logging.root.manager.loggerDict):
        if name.startswith(_LIBRARIES):
            logging.getLogger(name).addFilter(_HIDING)
