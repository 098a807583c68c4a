"""Users' models as baselines: an estimator, a class or a function, bound to a dataset's labels."""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from inconvenient.baselines import Baseline, Setting
from inconvenient.errors import InputError
from inconvenient.evaluation.identity import UnknownSource, identity_of
from inconvenient.evaluation.labels import Labels, class_scores
from inconvenient.shifts.records import Context, context_of

if TYPE_CHECKING:
    from inconvenient.data import Dataset

__all__ = ["OwnModel", "bound", "own_model", "seeded"]

_TASKS = ("regression", "binary", "multiclass")


@dataclass(frozen=True, slots=True, eq=False)
class OwnModel:
    """A user's model.

    Parameters
    ----------
    name : str
        Of its class, or of the function.
    model : object
        An estimator that is never fitted itself, a class, or a function.
    tasks : tuple of str
        What it is for, as far as scikit-learn's tags tell.
    identity : mapping or None
        What its records are stored by; None where its source is unknown.
    unknown : str
        Why ``identity`` is None.
    """

    name: str
    model: Any
    tasks: tuple[str, ...]
    identity: Mapping[str, Any] | None
    unknown: str = ""


def own_model(model: Any) -> OwnModel:
    """Return the record of a user's model.

    Raises
    ------
    InputError
        If it is none: neither an object or class with ``fit`` and a way to predict, nor a function.
    """
    is_class = inspect.isclass(model)
    instance = _constructed(model) if is_class else model
    fits = hasattr(instance, "fit")
    if fits and not any(hasattr(instance, name) for name in _WAYS):
        fits = hasattr(instance, "get_params")  # a search shows its ways once it is fitted
    if not fits and (is_class or not callable(model)):
        raise InputError(
            "an estimator with fit and predict, a class of one, a function "
            f"f(X_train, y_train, X_test) or the name of a baseline was needed, got {model!r}"
        )
    named = model if is_class or inspect.isroutine(model) else type(model)
    identity, unknown = None, ""
    try:
        identity = identity_of(model)
    except UnknownSource as error:
        unknown = str(error)
    return OwnModel(named.__qualname__, model, _tasks_of(instance), identity, unknown)


_WAYS = ("predict_proba", "decision_function", "predict")


def _constructed(kind: type) -> Any:
    try:
        return kind()
    except Exception as error:  # whatever the user's constructor raises
        raise InputError(
            f"the class {kind.__qualname__} must be constructible without arguments, but: "
            f"{type(error).__name__}: {error}; pass an object of it instead"
        ) from error


def _tasks_of(estimator: Any) -> tuple[str, ...]:
    from sklearn.base import is_classifier, is_regressor

    with contextlib.suppress(AttributeError, TypeError):  # no tags: not of scikit-learn's kin
        if is_classifier(estimator):
            return _TASKS[1:]
        if is_regressor(estimator):
            return _TASKS[:1]
    return _TASKS


def bound(own: OwnModel, dataset: Dataset) -> Baseline:
    """Return a user's model as a baseline of one dataset, whose labels and context it is given.

    On a dataset of a task that it is not for, it fails: a classifier would take whole numbers to
    predict for classes without a word.
    """
    make: Any = functools.partial(_make, own.model, Labels.of(dataset), context_of(dataset))
    if dataset.task not in own.tasks:
        make = functools.partial(_refuse, own.name, own.tasks)
    return Baseline(own.name, _default, _suggest, make)


def _default(task: str) -> Setting:
    """Return no setting: a user's model comes with its own."""
    return {}


def _suggest(trial: Any, task: str, n_rows: int) -> Setting:
    return {}


def _make(
    model: Any,
    labels: Labels,
    context: Context,
    setting: Setting,
    *,
    task: str,
    n_classes: int,
    seed: int,
) -> _OwnEstimator:
    return _OwnEstimator(model, labels, context, seed)


def _refuse(name: str, tasks: Sequence[str], setting: Setting, *, task: str, **_: Any) -> Any:
    raise InputError(f"{name} is for {' and '.join(tasks)} targets, got a {task} one")


class _OwnEstimator:
    """A user's model between the protocol's codes and the labels of the table."""

    def __init__(self, model: Any, labels: Labels, context: Context, seed: int) -> None:
        self.model, self.labels, self.context, self.seed = model, labels, context, seed

    def fit(self, X: pd.DataFrame, y: NDArray[Any]) -> _OwnEstimator:
        """Fit a fresh copy; a function is called once the rows to predict are there."""
        target = self.labels.raw(y)
        self.seen_ = np.unique(y) if self.labels.classes else np.empty(0, dtype=np.int64)
        if not inspect.isclass(self.model) and not hasattr(self.model, "fit"):
            self.sample_ = X, target
            return self
        with seeded(self.seed):
            self.fitted_ = _fresh(self.model, self.seed)
            self.fitted_.fit(X, target, **self._told(self.fitted_.fit))
        return self

    def _told(self, function: Any) -> dict[str, Context]:
        try:
            named = inspect.signature(function).parameters
        except (TypeError, ValueError):  # compiled code without a signature
            return {}
        return {"context": self.context} if "context" in named else {}

    def _call(self, X: pd.DataFrame) -> Any:
        return self.model(*self.sample_, X, **self._told(self.model))

    def predict(self, X: pd.DataFrame) -> NDArray[np.float64]:
        """Return predicted values, float64 (n,)."""
        with seeded(self.seed):
            values = self._call(X) if hasattr(self, "sample_") else self.fitted_.predict(X)
        out = np.asarray(values, dtype=np.float64)
        if out.shape not in ((len(X),), (len(X), 1)):
            raise InputError(
                f"predictions must be one value a row, shape ({len(X)},), got {out.shape}"
            )
        return out.reshape(len(X))

    def predict_proba(self, X: pd.DataFrame) -> NDArray[np.float64]:
        """Return a score of each class, float64 (n, K): probabilities as far as there are any."""
        with seeded(self.seed):
            if hasattr(self, "sample_"):
                values, present = self._call(X), None
            else:
                way = next((w for w in _WAYS if hasattr(self.fitted_, w)), "predict")
                values = getattr(self.fitted_, way)(X)
                present = None if way == "predict" else getattr(self.fitted_, "classes_", None)
        return class_scores(values, self.labels, n=len(X), present=present, seen=self.seen_)


def _fresh(model: Any, seed: int) -> Any:
    """Return a copy to fit; what it draws from a ``random_state`` of None, it draws by the seed."""
    from sklearn.base import clone

    if inspect.isclass(model):
        model = model()
    elif not hasattr(model, "get_params"):
        return copy.deepcopy(model)
    if not hasattr(model, "get_params"):
        return model
    fresh = clone(model)
    drawn = {
        name: seed % 2**32
        for name, value in fresh.get_params(deep=True).items()
        if value is None and name.rpartition("__")[2] == "random_state"
    }
    return fresh.set_params(**drawn) if drawn else fresh


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed the global generators that a model may draw from, and put them back after it.

    Those of ``random`` and NumPy, and of PyTorch where it is imported: a user's model need not be
    written for reproduction, and its score must not depend on the process that it was fitted in.
    """
    torch = sys.modules.get("torch")
    states = random.getstate(), np.random.get_state()
    weights = torch.get_rng_state() if torch is not None else None
    try:
        random.seed(seed)
        np.random.seed(seed % 2**32)
        if torch is not None:
            torch.manual_seed(seed)
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
        if torch is not None:
            torch.set_rng_state(weights)
