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
from inconvenient.shifts.records import Context, context_of

if TYPE_CHECKING:
    from inconvenient.data import Dataset

__all__ = ["Labels", "OwnModel", "bound", "class_scores", "own_model"]

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


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """The target of a dataset as its table holds it.

    Parameters
    ----------
    name : str
        Of the target.
    kind : dtype
        Of the target's column.
    classes : tuple of str
        Sorted; empty for regression.
    values : array
        The value of each class, of the column's dtype; empty for regression.
    """

    name: str
    kind: Any
    classes: tuple[str, ...]
    values: Any

    @classmethod
    def of(cls, dataset: Dataset) -> Labels:
        """Return the labels of a dataset."""
        column = dataset.frame[dataset.target]
        first: list[int] = []
        if dataset.task != "regression":
            codes = dataset.y
            first = [int(np.argmax(codes == k)) for k in range(len(dataset.classes))]
        values = column.iloc[first].array.copy()
        return cls(dataset.target, column.dtype, tuple(dataset.classes), values)

    def raw(self, y: NDArray[Any]) -> pd.Series:
        """Return targets as the table holds them, of floats or class codes."""
        if not self.classes:
            return pd.Series(y, name=self.name).astype(self.kind)
        return pd.Series(self.values.take(y), name=self.name)

    def codes(self, labels: Any) -> NDArray[np.int64]:
        """Return the class codes of labels, int64; -1 where one is no class."""
        known: dict[Any, int] = {name: k for k, name in enumerate(self.classes)}
        known |= {value: k for k, value in enumerate(self.values)}  # 1 and 1.0 are one label
        found = [known.get(label, known.get(str(label), -1)) for label in labels]
        return np.array(found, dtype=np.int64)


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


def class_scores(
    values: Any, labels: Labels, *, n: int, present: Any = None, seen: Sequence[int] | Any = ()
) -> NDArray[np.float64]:
    """Return what a classifier gave as one column per class of the dataset.

    Parameters
    ----------
    values : array-like or DataFrame
        Scores, a column per class; or labels, or for two classes one score, a value per row.
    labels : Labels
    n : int
        Number of rows.
    present : sequence, optional
        The classifier's ``classes_``: the labels of the columns.
    seen : sequence of int
        Codes of the classes in the training sample.

    Returns
    -------
    float64 (n, K)
        Never renormalised; 0 for a class without a column. Labels give 1 and 0.

    Raises
    ------
    InputError
        If the columns cannot be told to be classes.

    Notes
    -----
    A DataFrame is read by its column names, an array by ``present``, else as the dataset's classes
    in sorted order, else as those of the training sample. Of one value per row, labels are those
    that all are classes; other numbers are scores of the second class.
    """
    k = len(labels.classes)
    if isinstance(values, pd.DataFrame):
        values, present = values.to_numpy(), list(values.columns)
    array = np.asarray(values)
    if array.ndim == 0 or len(array) != n or array.ndim > 2:
        raise InputError(
            f"predictions must have one row per row to predict, {n}, got {array.shape}"
        )
    out = np.zeros((n, k))
    if array.ndim == 1:
        codes = labels.codes(array.tolist())
        if present is None and (codes >= 0).all():
            out[np.arange(n), codes] = 1.0
            return out
        second = _columns_of(labels, present) if present is not None else np.arange(k)
        if second.size != 2 or array.dtype.kind not in "fiub":
            strange = array[codes < 0][:1].tolist()
            raise InputError(
                "predictions of one value a row must be labels of the dataset's classes, or for "
                f"two classes scores of the second, got {strange}"
            )
        out[:, second] = np.column_stack([-array.astype(np.float64), array])
        return out
    if present is not None:
        columns = _columns_of(labels, present)
    else:
        columns = np.arange(k) if array.shape[1] == k else np.asarray(seen, dtype=np.int64)
    if columns.size != array.shape[1]:
        raise InputError(
            f"predictions must have a column for each of {columns.size} classes, got "
            f"{array.shape[1]}; set classes_ or return a DataFrame with the classes as columns"
        )
    out[:, columns] = array
    return out


def _columns_of(labels: Labels, present: Any) -> NDArray[np.int64]:
    names = list(present)
    codes = labels.codes(names)
    if (codes < 0).any() or np.unique(codes).size != codes.size:
        raise InputError(
            f"the columns of predictions must be distinct classes of {', '.join(labels.classes)}, "
            f"got {', '.join(map(str, names))}"
        )
    return codes


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed the global generators that a model may draw from, and put them back after it.

    Those of ``random`` and NumPy, and of PyTorch where it is imported: a user's model need not be
    written for reproduction, and its score must not depend on the process that it was fitted in.
    """
    torch = sys.modules.get("torch")
    states = random.getstate(), np.random.get_state()  # noqa: NPY002  (theirs, not ours)
    weights = torch.get_rng_state() if torch is not None else None
    try:
        random.seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002
        if torch is not None:
            torch.manual_seed(seed)
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
        if torch is not None:
            torch.set_rng_state(weights)
