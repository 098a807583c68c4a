"""Models of users in a file of their own, and published shifts to score them on."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

ROOT = Path(__file__).parents[1]

#: Small datasets of the quick profile, one per task.
SMALL = {"regression": "birthweight_ucb", "binary": "recidivism_nc", "multiclass": "kakadu_wtp"}

# A plain checkout has no artefacts; `make test`, and CI with it, pulls these first.
needs_publication = pytest.mark.skipif(
    not (ROOT / "artefacts" / "quick" / "publish" / "shifts.parquet").is_file(),
    reason="the quick profile is not here; run `dvc pull publish@quick split@quick`",
)

MODELS = '''
import zlib

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC


def numbers(X):
    return X.select_dtypes("number").fillna(0.0).to_numpy(dtype=float) / 100.0


class Linear(BaseEstimator):
    """Ridge or logistic regression on the numeric columns; keeps what it predicted in a folder."""

    def __init__(self, alpha=1.0, folder=None):
        self.alpha = alpha
        self.folder = folder

    def fit(self, X, y, context=None):
        assert list(X.index) == list(range(len(X)))
        self.context_ = context
        if context.task == "regression":
            self.model_ = Ridge(alpha=self.alpha).fit(numbers(X), y)
        else:
            self.model_ = LogisticRegression(C=1 / self.alpha).fit(numbers(X), y)
            self.classes_ = self.model_.classes_
        return self

    def kept(self, values):
        if self.folder is not None:
            labels = np.array(getattr(self, "classes_", ()), dtype=str)
            name = zlib.crc32(values.tobytes())
            np.savez(f"{self.folder}/{name}.npz", values=values, labels=labels)
        return values

    def predict(self, X):
        return self.kept(self.model_.predict(numbers(X)))

    def predict_proba(self, X):
        return self.kept(self.model_.predict_proba(numbers(X)))


class Plain:
    """No scikit-learn about it: constructed, fitted, and asked for labels or values."""

    def fit(self, X, y):
        self.mean = y.mean() if pd.api.types.is_numeric_dtype(y) else y.mode()[0]
        self.first = numbers(X)[:, 0].mean()
        self.number = pd.api.types.is_numeric_dtype(y)
        self.other = None if self.number else sorted(set(y))[0]

    def predict(self, X):
        above = numbers(X)[:, 0] > self.first
        if self.number:
            return self.mean + above
        return np.where(above, self.mean, self.other)


class Fails(Linear):
    """Cannot do two classes."""

    def fit(self, X, y, context=None):
        if context.task == "binary":
            raise RuntimeError("two classes are\\ntoo few")
        return super().fit(X, y, context)


class Grows(Linear):
    """Takes more and more memory on what is no full pool."""

    def fit(self, X, y, context=None):
        import time
        held = []
        while len(X) < 250 and len(held) < 20:
            held.append(np.ones(12_500_000))
            time.sleep(0.2)
        return super().fit(X, y, context)


class Ends(Linear):
    """Takes its process down."""

    def fit(self, X, y, context=None):
        import os
        os._exit(3)


class Draws(BaseEstimator):
    """Predicts by generators of its own and global ones."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y):
        import random
        self.weights_ = np.random.default_rng(self.random_state).normal(size=numbers(X).shape[1])
        self.weights_ += np.random.normal() + random.random()
        return self

    def predict(self, X):
        return numbers(X) @ self.weights_ + np.random.normal(size=len(X))


class Margin(LinearSVC):
    """Has a decision function and no probabilities."""

    def fit(self, X, y):
        return super().fit(numbers(X), y)

    def decision_function(self, X):
        return super().decision_function(numbers(X))


def labels(X_train, y_train, X_test):
    model = LogisticRegression().fit(numbers(X_train), y_train)
    return model.predict(numbers(X_test))


def frame(X_train, y_train, X_test, context):
    model = LogisticRegression().fit(numbers(X_train), y_train)
    proba = model.predict_proba(numbers(X_test))
    return pd.DataFrame(proba, columns=model.classes_)[list(reversed(model.classes_))]
'''


def written(folder: Path, name: str, text: str = MODELS) -> ModuleType:
    """Write and import a module, anew if there was one of that name."""
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def some(*tasks: str, k: int = 1) -> list[str]:
    """Return ids of published shifts of the small datasets, the first k of each task."""
    from inconvenient.shifts import list_shifts

    found: list[str] = []
    for task in tasks or tuple(SMALL):
        shifts: pd.DataFrame = list_shifts(SMALL[task], "quick")
        found += shifts.sort_values("size")["shift_id"].tolist()[:k]
    return sorted(found)
