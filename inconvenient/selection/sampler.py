"""Selection as a sampler of imbalanced-learn's contract, for pipelines and grid searches."""

from __future__ import annotations

import dataclasses
import numbers
import warnings
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, OneToOneFeatureMixin
from sklearn.utils import InputTags, Tags, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from inconvenient.data import prepare_table
from inconvenient.data.columns import clean_column
from inconvenient.data.dataset import TASKS
from inconvenient.errors import InputError, UnmetError
from inconvenient.selection.containers import labels_of, table_of, take_rows
from inconvenient.selection.criterion import MODES, OPERATIONS
from inconvenient.selection.finding import STRATEGIES
from inconvenient.selection.problem import BINS
from inconvenient.selection.select import Selection, select

__all__ = ["ConvenienceSampler"]

_FACTORS = {"amplify": 2.0, "attenuate": 0.5}
# Samples may be too small for a fit; larger ones are tried, step by step.
_TOO_SMALL = ("small_class", "rank_loss", "constant_column", "separation")
_GROWTH = 1.5


class ConvenienceSampler(OneToOneFeatureMixin, BaseEstimator):
    """Keep rows on which a coefficient is amplified, attenuated or sign-flipped.

    A sampler by imbalanced-learn's contract, which need not be installed: it can be a step of
    ``imblearn.pipeline.Pipeline``. For one selection with all its numbers, ``select`` is shorter.

    Parameters
    ----------
    operation : {"flip", "amplify", "attenuate"}, default="flip"
    feature : str, int or (str, str), optional
        The feature to bend, or one level of a categorical one; the most important by default.
        Columns of an array are called by their position, counted from 0.
    bin : {"top", "middle", "bottom"}, optional
        Bend all features of an importance bin together instead.
    factor : float, optional
        In [1.15, 5] for amplify, by default 2; in [0.2, 0.9] for attenuate, by default 0.5; flip
        takes none.
    min_fraction : float, default=0.2
        Least share of the rows to keep, in (0, 1].
    mode : {"at_least", "band"}, default="at_least"
        Whether the factor is a bound, or a dose: |b' / b| in [f, 1.1 f] for amplify and in
        [0.9 f, f] for attenuate, on at most 5 % more rows than the least.
    class_ : label, optional
        Multiclass: the class whose coefficient is bent; the largest by default.
    task : {"regression", "binary", "multiclass"}, optional
        Inferred from y by default: whole numbers with 2 to 10 distinct values are classes, as are
        strings, booleans, categories and one-hot columns.
    strategy : {"auto", "push", "steer", "exchange"}, default="auto"
        "auto" takes the one that meets most, then the next.
    on_unmet : {"best", "raise"}, default="best"
        Return the nearest sample with a warning that states the coefficient it reached, or raise
        ``UnmetError``.
    random_state : int, RandomState or None, default=0
        Of the seed sample. None draws another one at every call.

    Attributes
    ----------
    sample_indices_ : int64 (k,)
        Positions in the input, in selection order, which is the order of the output.
    selection_ : Selection
        Coefficients on all and on the selected rows, whether verified; ``p_uniform`` is NaN.
    sampling_strategy_ : dict
        Selected rows of each class; empty for regression, and after ``fit`` alone.
    n_features_in_ : int
    feature_names_in_ : object (n_features_in_,)
        Column names; only if all are strings.

    See Also
    --------
    inconvenient.select : The function behind it.

    Notes
    -----
    Cost and method are those of ``select``. Where samples of ``min_fraction`` are too small for a
    fit (a class would keep under five rows, say), larger ones are tried, in steps of one half.

    Examples
    --------
    >>> import inconvenient as ic
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> sampler = ic.ConvenienceSampler(operation="flip", feature="bmi", min_fraction=0.3)
    >>> X_bent, y_bent = sampler.fit_resample(X, y)
    >>> sampler.selection_.verified, bool((sampler.selection_.table["ratio"] < 0).all())
    (True, True)
    >>> list(X_bent.index) == list(sampler.sample_indices_)
    True
    """

    _estimator_type = "sampler"
    # How many rows of which class are kept follows from the criterion, not from a strategy.
    _sampling_type = "bypass"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "operation": [StrOptions(set(OPERATIONS))],
        "feature": [str, tuple, numbers.Integral, None],
        "bin": [StrOptions(set(BINS)), None],
        "factor": [Interval(numbers.Real, 0, None, closed="neither"), None],
        "min_fraction": [Interval(numbers.Real, 0, 1, closed="right")],
        "mode": [StrOptions(set(MODES))],
        "class_": "no_validation",
        "task": [StrOptions(set(TASKS)), None],
        "strategy": [StrOptions({"auto", *STRATEGIES})],
        "on_unmet": [StrOptions({"best", "raise"})],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        operation: str = "flip",
        *,
        feature: Any = None,
        bin: str | None = None,
        factor: float | None = None,
        min_fraction: float = 0.2,
        mode: str = "at_least",
        class_: Any = None,
        task: str | None = None,
        strategy: str = "auto",
        on_unmet: str = "best",
        random_state: Any = 0,
    ) -> None:
        self.operation = operation
        self.feature = feature
        self.bin = bin
        self.factor = factor
        self.min_fraction = min_fraction
        self.mode = mode
        self.class_ = class_
        self.task = task
        self.strategy = strategy
        self.on_unmet = on_unmet
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> ConvenienceSampler:
        """Check parameters and shapes; only :meth:`fit_resample` selects.

        Parameters
        ----------
        X : DataFrame, array, SciPy sparse matrix or list (n, m)
        y : Series, DataFrame, array or list (n,), (n, 1) or one-hot (n, K)

        Returns
        -------
        ConvenienceSampler

        Raises
        ------
        InputError
            If X is no table, or y does not go with it.
        """
        self._check(X, y)
        return self

    def fit_resample(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Select rows and return them.

        Parameters
        ----------
        X : DataFrame, array, SciPy sparse matrix or list (n, m)
            Features: numbers, booleans, strings, categories; gaps are fine. Never changed.
        y : Series, DataFrame, array or list (n,), (n, 1) or one-hot (n, K)
            Target: numbers for a regression, labels for classes.

        Returns
        -------
        X_resampled, y_resampled : as X and y (k rows)
            The same types, dtypes, names and row labels.

        Raises
        ------
        InputError
            If the table or a parameter cannot be used; the message says why and the way out.
        UnmetError
            If no sample met the criterion and ``on_unmet`` is "raise"; ``best`` holds the nearest.
            Under "best", too, if no sample of any size has a fit.
        """
        frame, labels = self._check(X, y)
        if labels.nunique() == 1:
            raise InputError(
                f"y must have at least two values or classes, got one ({labels.iloc[0]!s:.40}); "
                "pass another target or more rows"
            )
        selection, unmet = self._search(frame, labels)
        if unmet is not None:
            if self.on_unmet == "raise":
                raise unmet
            warnings.warn(str(unmet), UserWarning, stacklevel=2)
        self.selection_ = selection
        self.sample_indices_ = selection.indices
        chosen = labels.iloc[selection.indices]
        # The features have no say in what kind of target it is.
        alone = prepare_table(
            pd.DataFrame({"x": np.zeros(len(labels)), "y": labels}), target="y", task=self.task
        )
        if alone.task != "regression":
            self.sampling_strategy_ = chosen.value_counts().to_dict()
        return take_rows(X, selection.indices), take_rows(y, selection.indices)

    def _check(self, X: Any, y: Any) -> tuple[pd.DataFrame, pd.Series]:
        """Check the shapes, set what describes the input, and return X and one label per row."""
        self._validate_params()
        frame, names = table_of(X)
        labels = labels_of(y)
        if len(labels) != len(frame):
            raise InputError(
                f"X and y must have equally many rows, got {len(frame)} and {len(labels)}"
            )
        missing = labels.isna().to_numpy()
        if missing.any():
            raise InputError(
                f"y must be known in every row, but {int(missing.sum())} of {len(labels)} are "
                f"missing, first in row {int(missing.argmax())} (counted from 0); leave them out"
            )
        clean_column(labels, name="y", role="target")  # refuses infinite numbers, dates and such
        self.n_features_in_ = frame.shape[1]
        if names and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.asarray(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.sampling_strategy_ = {}
        return frame, labels

    def _search(
        self, frame: pd.DataFrame, labels: pd.Series
    ) -> tuple[Selection, UnmetError | None]:
        """Return the selection, and unless it is verified the error that says so."""
        state = self.random_state
        whole = isinstance(state, numbers.Integral)
        seed = int(state if whole else check_random_state(state).randint(2**31 - 1))
        factor = _FACTORS.get(self.operation) if self.factor is None else self.factor
        share = self.min_fraction
        nearest: tuple[Selection, float] | None = None
        while True:
            try:
                # By position, as samplers and estimators pair rows.
                selection = select(
                    frame,
                    labels.set_axis(frame.index),
                    operation=self.operation,
                    feature=self.feature,
                    bin=self.bin,
                    factor=factor,
                    min_fraction=share,
                    mode=self.mode,
                    class_=self.class_,
                    task=self.task,
                    strategy=self.strategy,
                    uniform_samples=0,
                    seed=seed,
                )
            except UnmetError as error:
                best = error.best
                if nearest is None and best is not None:
                    nearest = best, share
                too_small = best is None or best.outcome in _TOO_SMALL
                if nearest is not None and (self.mode == "band" or share >= 1.0 or not too_small):
                    return nearest[0], self._unmet(*nearest)
                if share >= 1.0:
                    raise
                share = min(1.0, _GROWTH * share)
                continue
            # A band bounds the size from above, too.
            asked = self.mode == "at_least" or share == self.min_fraction
            return selection, None if asked else self._unmet(selection, share)

    def _unmet(self, nearest: Selection, share: float) -> UnmetError:
        text = nearest.message
        if share > self.min_fraction:
            text = f"no sample of min_fraction {self.min_fraction:g} has a fit; larger: {text}"
        table = nearest.table
        reached = "; ".join(
            f"{column}{f' ({label})' if label else ''} is {here:.4g}, on all rows {there:.4g}"
            for column, label, there, here in table.iloc[:5, :4].itertuples(index=False)
        )
        more = "; ..." if len(table) > 5 else ""
        return UnmetError(f"{text}. Standardised coefficients: {reached}{more}", nearest)

    def __sklearn_is_fitted__(self) -> bool:
        """Tell whether the input is known; the parameter ``class_`` looks like a fitted one."""
        return hasattr(self, "n_features_in_")

    def __sklearn_tags__(self) -> Any:
        """Return what checks need to know, with the two entries that imbalanced-learn adds."""
        return _tags(super().__sklearn_tags__())


@dataclasses.dataclass(slots=True)
class _SamplerTags:
    sample_indices: bool = True


@dataclasses.dataclass(slots=True)
class _InputTags(InputTags):
    dataframe: bool = True


@dataclasses.dataclass(slots=True)
class _Tags(Tags):
    sampler_tags: _SamplerTags = dataclasses.field(default_factory=_SamplerTags)


def _tags(base: Any) -> Any:
    values = {field.name: getattr(base, field.name) for field in dataclasses.fields(base)}
    tags = _Tags(**values)
    tags.estimator_type = "sampler"
    tags.target_tags.required = True
    tags.input_tags = _InputTags(sparse=True, categorical=True, string=True, allow_nan=True)
    return tags
