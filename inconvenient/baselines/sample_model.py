"""What baselines share: encoder, samples that leave nothing to learn, classes that are absent."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from inconvenient.baselines.coding import Table
from inconvenient.baselines.encoding import NativeEncoder, OneHotEncoder, expand_classes
from inconvenient.baselines.registry import Setting

__all__ = ["SampleModel", "as_single"]


class SampleModel(ABC):
    """A library's model with its encoder, both fitted on the sample.

    Parameters
    ----------
    setting : dict
        What the baseline's ``default`` or ``suggest`` returns.
    task : {"regression", "binary", "multiclass"}
    n_classes : int
        Number of classes of the dataset, 0 for regression.
    seed : int

    Notes
    -----
    The library gets a matrix of numbers and codes and never a column's name; unseen categories
    arrive as missing values. A sample with one class, or with no column that varies, yields a
    constant prediction.
    """

    encoder: ClassVar[type[NativeEncoder] | type[OneHotEncoder]] = NativeEncoder
    #: The library gets a target of mean 0 and standard deviation 1; predictions are mapped back.
    #: Forests and XGBoost split no further where less than a fixed number is to be gained, whatever
    #: the target's unit; CatBoost and networks work in single precision.
    standardises_target: ClassVar[bool] = True

    def __init__(self, setting: Setting, *, task: str, n_classes: int, seed: int) -> None:
        self.setting = setting
        self.task = task
        self.n_classes = n_classes
        self.seed = seed

    @abstractmethod
    def _train(self, Z: NDArray[np.float64], labels: NDArray[Any]) -> Any:
        """Return the library's model, or None if it cannot tell the rows apart.

        ``labels`` are values, or codes 0..k-1 of the k classes that are ``present_``.
        """

    @abstractmethod
    def _outcome(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return values (n,), probabilities of the second of two classes (n,), or of all (n, k)."""

    def fit(self, X: Table, y: NDArray[Any]) -> Self:
        """Fit the encoder and the model on a training sample."""
        self.encoder_: Any  # of the class's kind
        self.encoder_, Z = self.encoder.fit_transform(X)
        self.model_: Any = None
        labels: NDArray[Any]
        if self.task == "regression":
            labels = np.asarray(y, dtype=np.float64)
            self.constant_ = np.array([labels.mean()])
            spread = float(labels.std())
            vary = bool(labels.min() < labels.max()) and spread > 0.0  # which can underflow
            self.centre_, self.scale_ = 0.0, 1.0
            if vary and self.standardises_target:
                self.centre_, self.scale_ = float(labels.mean()), spread
                labels = (labels - self.centre_) / self.scale_
        else:
            self.present_, labels = np.unique(np.asarray(y, dtype=np.int64), return_inverse=True)
            self.constant_ = np.bincount(labels) / labels.size
            vary = self.present_.size > 1
        if vary and Z.shape[1]:
            self.model_ = self._train(Z, labels)
        return self

    def _raw(self, X: Table) -> NDArray[np.float64]:
        if self.model_ is None:
            return np.tile(self.constant_, (len(X), 1))
        raw = self._outcome(self.encoder_.transform(X))
        if self.task == "regression":
            return (raw * self.scale_ + self.centre_).reshape(-1, 1)
        return np.column_stack([1.0 - raw, raw]) if raw.ndim == 1 else raw

    def predict_proba(self, X: Table) -> NDArray[np.float64]:
        """Return class probabilities, shape (n, K)."""
        return expand_classes(self._raw(X), self.present_, self.n_classes)

    def predict(self, X: Table) -> NDArray[Any]:
        """Return predicted values, or the codes of the most probable classes."""
        if self.task == "regression":
            values: NDArray[np.float64] = self._raw(X)[:, 0]
            return values
        codes: NDArray[np.int64] = self.predict_proba(X).argmax(axis=1)
        return codes


def as_single(Z: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return single precision, in which some libraries split, with values up to 1e30 and no more.

    Beyond lies 3.4e38, and scikit-learn adds up all values of a matrix.
    """
    single: NDArray[np.float32] = np.clip(Z, -1e30, 1e30).astype(np.float32)
    return single
