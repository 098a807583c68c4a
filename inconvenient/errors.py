"""Exceptions of the package: each message says what was needed, what came, and the way out."""

from __future__ import annotations

from typing import Any

__all__ = [
    "BudgetError",
    "ClusterError",
    "ConfigError",
    "DesignError",
    "InconvenientError",
    "InputError",
    "MissingDependencyError",
    "MissingWeightsError",
    "ModelError",
    "NotAvailableError",
    "SplitError",
    "StoreError",
    "UnitError",
    "UnmetError",
]


class InconvenientError(Exception):
    """Base class of every error that the package raises on purpose."""


class InputError(InconvenientError, ValueError):
    """A table, column or argument that cannot be used as it came."""


class DesignError(InputError):
    """A table from which no reference model can be fitted."""


class SplitError(InputError):
    """A dataset that cannot be split into pool and population test set as required."""


class ConfigError(InconvenientError, ValueError):
    """A parameter file with a missing, unknown or unusable entry."""


class NotAvailableError(InconvenientError, FileNotFoundError):
    """Data or shifts that are not on this machine; the message says what to run."""


class MissingDependencyError(InconvenientError, ImportError):
    """An optional library that is not installed; the message names the extra."""


class MissingWeightsError(MissingDependencyError):
    """Pretrained weights that are not on this machine; the message says how to get them."""


class StoreError(InconvenientError, OSError):
    """The record store or an output folder cannot be written."""


class UnitError(InconvenientError, RuntimeError):
    """Units of work that raised an error or were ended; the records of all others are kept."""


class ClusterError(InconvenientError, ConnectionError):
    """A cluster that cannot be reached, was lost, or has other packages than this process."""


class ModelError(InconvenientError, RuntimeError):
    """A language model that gave no answer.

    Parameters
    ----------
    message : str
        What was asked of whom, what came, and what to try; no key is in it.
    reason : str
        In a word or two, for counts: "rate limit", "timeout", "server error", "connection",
        "no answer", "refused request", "not allowed", "unknown model", "budget".
    fatal : bool
        Whether every other question to the model would fail alike, as without a key.
    """

    def __init__(self, message: str, *, reason: str, fatal: bool = False) -> None:
        super().__init__(message)
        self.reason, self.fatal = reason, fatal


class BudgetError(ModelError):
    """A question that was not sent since its answer might have cost more than is left; fatal.

    Parameters
    ----------
    message : str
        What was spent, what the question may cost, and what to try.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message, reason="budget", fatal=True)


class UnmetError(InconvenientError, RuntimeError):
    """A criterion that no selection met; ``best`` holds the nearest selection, or None.

    Parameters
    ----------
    message : str
        Which criterion, what was reached, and what to try.
    best : Selection or None
        The nearest selection that was found.
    """

    def __init__(self, message: str, best: Any = None) -> None:
        super().__init__(message)
        self.best = best
