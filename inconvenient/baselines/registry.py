"""The registry of baselines: a model family is one record, adding one is one file and one line."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from inconvenient.baselines.coding import Table
from inconvenient.errors import InputError, MissingDependencyError

__all__ = ["BASELINES", "Baseline", "Estimator", "Setting", "get_baseline", "register", "require"]

Setting = dict[str, Any]


class Estimator(Protocol):
    """What a baseline's ``make`` returns; classification estimators have ``predict_proba`` too.

    ``X`` is a DataFrame of raw columns; a :class:`~inconvenient.baselines.coding.CodedTable` comes
    only where the baseline says that it takes one.
    """

    def fit(self, X: Table, y: NDArray[Any]) -> object:
        """Fit encoders and model on the training sample alone."""

    def predict(self, X: Table) -> NDArray[Any]:
        """Return predictions, shape (n,): float64 values or int64 class codes."""

    def predict_proba(self, X: Table) -> NDArray[np.float64]:
        """Return class probabilities, shape (n, K); a class the sample lacks has probability 0."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """A predictive model family that is evaluated.

    Parameters
    ----------
    name : str
        Name in ``params.yaml`` and in every record.
    default : callable
        ``default(task)`` returns the setting used without tuning, a JSON-able dict.
    suggest : callable
        ``suggest(trial, task, n_rows)`` draws a setting with an Optuna trial.
    make : callable
        ``make(setting, *, task, n_classes, seed)`` returns an unfitted :class:`Estimator` that
        works on one thread and gives the same result for the same seed. ``task`` is
        "regression", "binary" or "multiclass"; targets are floats or codes 0..``n_classes``-1.
    requires : tuple of str
        Modules of the extra that fitting needs.
    takes_codes : bool
        Estimators take coded tables as well as DataFrames, with equal results. Coded rows are
        taken far faster, which counts where thousands of small samples are scored.
    extra : str
        The extra of the package that brings the modules.
    revision : int
        Raised when an edit of ``make`` or ``suggest`` changes scores: it is part of the keys of
        records, and one that another revision made must not stand in a table with new ones.
    available : callable, optional
        ``available()`` raises what keeps the baseline from being used besides a missing library:
        :class:`~inconvenient.errors.MissingWeightsError`, say. It must answer at once, offline.
        What else the scores depend on (the weights) has to stand in the default setting, which is
        part of the keys of records.
    """

    name: str
    default: Callable[[str], Setting]
    suggest: Callable[[Any, str, int], Setting]
    make: Callable[..., Estimator]
    requires: tuple[str, ...] = ()
    takes_codes: bool = False
    extra: str = "baselines"
    revision: int = 1
    available: Callable[[], None] | None = None


BASELINES: dict[str, Baseline] = {}


def register(baseline: Baseline) -> Baseline:
    """Add a baseline under its name and return it.

    Raises
    ------
    InputError
        If another baseline has that name.
    """
    known = BASELINES.get(baseline.name)
    if known is not None and known != baseline:
        raise InputError(
            f"a baseline named {baseline.name!r} is registered already; choose another name"
        )
    BASELINES[baseline.name] = baseline
    return baseline


def get_baseline(name: str) -> Baseline:
    """Return the baseline of a name.

    Raises
    ------
    InputError
        If there is none.
    """
    try:
        return BASELINES[name]
    except KeyError:
        raise InputError(
            f"the baseline must be one of {', '.join(sorted(BASELINES))}, got {name!r}; "
            "register it or correct the name"
        ) from None


def require(baseline: Baseline) -> None:
    """Check that a baseline can be used here, before any work: its libraries, then its weights.

    Raises
    ------
    MissingDependencyError
        If a library is not installed, or weights are missing. No library is imported for a
        baseline without weights.
    """
    for module in baseline.requires:
        require_module(module, needed_by=f"the baseline {baseline.name!r}", extra=baseline.extra)
    if baseline.available is not None:
        baseline.available()


def require_module(module: str, *, needed_by: str, extra: str = "baselines") -> None:
    """Raise MissingDependencyError unless a module of an extra is installed."""
    if importlib.util.find_spec(module) is None:
        raise MissingDependencyError(
            f"{needed_by} needs the library {module}, which is not installed; "
            f"run pip install 'inconvenient[{extra}]'"
        )
