"""The question which features are suspicious, from a sample alone, and the truth about it."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import numpy.typing as npt
import pandas as pd

from inconvenient.data import Dataset, load_dataset
from inconvenient.errors import InputError
from inconvenient.selection.design import Design, build_design, round_significant
from inconvenient.selection.problem import RARE_LEVEL_SHARE, RIDGE
from inconvenient.selection.verification import fit_design
from inconvenient.shifts.records import Context, Shift

__all__ = ["Coefficient", "Question", "Truth", "ask_about", "sample_design", "truth_of"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True, slots=True)
class Coefficient:
    """One coefficient that a model is shown.

    Parameters
    ----------
    feature : str
        The raw column.
    level : str
        Of a categorical feature; "" for a number.
    class_ : str
        Of a multiclass target; "" otherwise.
    value : float
        Standardised by the sample: change of the target in its standard deviations (regression)
        or of the log odds (classes) for one standard deviation of the column.
    """

    feature: str
    level: str
    class_: str
    value: float


@dataclasses.dataclass(frozen=True, slots=True)
class Question:
    """What a model may know when it ranks features by suspicion.

    Parameters
    ----------
    context : Context
        Task, classes, target, documentation.
    features : tuple of str
        All raw columns, in the order of the table.
    rows : int
        Of the sample.
    coefficients : tuple of Coefficient
        In the order of ``features``; a column that is constant or collinear in the sample has none.
    penalised : bool
        Whether the sample has no finite maximum-likelihood fit.
    """

    context: Context
    features: tuple[str, ...]
    rows: int
    coefficients: tuple[Coefficient, ...]
    penalised: bool

    def sizes(self) -> dict[str, float]:
        """Return the L2 norm of each feature's coefficients over its columns and classes."""
        squares = dict.fromkeys(self.features, 0.0)
        for coefficient in self.coefficients:
            squares[coefficient.feature] += coefficient.value**2
        return {feature: float(np.sqrt(square)) for feature, square in squares.items()}


@dataclasses.dataclass(frozen=True, slots=True)
class Truth:
    """Which features' coefficients moved most.

    Parameters
    ----------
    order : tuple of str
        All raw columns by falling distance, ties by name.
    distances : dict of str to float
        ||b'_c - b_c||_2 over a feature's design columns and classes, pool-standardised; 0 for one
        without a column.
    """

    order: tuple[str, ...]
    distances: dict[str, float]

    def top(self, k: int) -> tuple[str, ...]:
        """Return the k features that moved most."""
        return self.order[:k]


def sample_design(X: pd.DataFrame, y: pd.Series, context: Context) -> Design:
    """Return the design of a sample, in whose making nothing but the sample has a part.

    Parameters
    ----------
    X : DataFrame (n, m)
        Raw features.
    y : Series (n,)
        Raw target.
    context : Context
        Of its dataset.

    Returns
    -------
    Design
        Levels, fills, means and standard deviations are the sample's own.

    Raises
    ------
    InputError
        If the target holds something that is no class.
    DesignError
        If the sample allows no fit.
    """
    target: FloatArray | IntArray
    if context.task == "regression":
        target = y.to_numpy(dtype=np.float64)
    else:
        labels = y.astype(str)
        target = pd.Index(context.classes).get_indexer(pd.Index(labels)).astype(np.int64)
        if (target < 0).any():
            strange = labels.iloc[int(np.argmax(target < 0))]
            raise InputError(
                f"the target must hold the classes {', '.join(context.classes)}, got {strange!r}"
            )
    return build_design(
        X.reset_index(drop=True),
        target,
        task=context.task,
        n_classes=len(context.classes),
        rare_level_share=RARE_LEVEL_SHARE,
    )


def ask_about(X: pd.DataFrame, y: pd.Series, context: Context) -> Question:
    """Pose the question of a sample, from what a method may know and nothing else.

    Parameters
    ----------
    X : DataFrame (n, m)
        Raw features of the sample, as ``shift.train()`` gives them.
    y : Series (n,)
        Its raw target.
    context : Context
        As ``shift.context``.

    Returns
    -------
    Question

    Raises
    ------
    InputError
        If the sample has no fit even with the penalty, as where a class has no row.

    Notes
    -----
    Units and levels are the sample's, since the pool's would tell of the population. The fit is
    that of the reference model: unregularised, and with its penalty where no finite fit exists.
    """
    design = sample_design(X, y, context)
    coefficients, penalised = _fitted(design)
    classes = context.classes if context.task == "multiclass" else ("",)
    shown = []
    places = {name: i for i, name in enumerate(map(str, X.columns))}
    columns = enumerate(design.encoding, start=1)
    for j, column in sorted(columns, key=lambda pair: places[pair[1].feature]):
        level = "" if column.levels is None else column.name[len(column.feature) + 1 :]
        shown += [
            Coefficient(column.feature, level, class_, float(value))
            for class_, value in zip(classes, coefficients[j], strict=True)
        ]
    return Question(context, tuple(places), len(X), tuple(shown), penalised)


def _fitted(design: Design) -> tuple[FloatArray, bool]:
    """Return the coefficients (p, C) of a sample and whether they are penalised."""
    for ridge in (0.0, RIDGE):
        fit = fit_design(design, ridge=ridge, min_class=1)
        if fit.status == "ok":
            return round_significant(fit.coefficients), ridge > 0.0
    raise InputError(
        f"the sample must allow a fit of the reference model, but has none ({fit.status}); "
        "use more rows or drop columns"
    )


def truth_of(shift: Shift) -> Truth:
    """Return which features a shift moved most, in pool-standardised units.

    Parameters
    ----------
    shift : Shift

    Returns
    -------
    Truth

    Raises
    ------
    InputError
        If shift and dataset are not of one version: the bent coefficients are not the published.
    NotAvailableError
        If the dataset is not on this machine.

    Notes
    -----
    Pool and sample are fitted from scratch with the shift's penalty. Distances are rounded to 10
    significant digits, so that the last bits decide no tie.
    """
    dataset = load_dataset(shift.dataset)
    halves = [shift.test(half)[0].index.to_numpy() for half in ("filter", "report")]
    test = np.concatenate(halves)
    pool = np.setdiff1d(np.arange(len(dataset), dtype=np.int64), test, assume_unique=True)
    design, reference = _pool_fit(shift.dataset, dataset.hash, pool.tobytes(), shift.ridge)
    rows = np.searchsorted(pool, np.sort(shift.rows))
    sample = fit_design(design, rows, ridge=shift.ridge, min_class=1).coefficients
    _check(shift, dataset, design, reference, sample)
    moved = np.sqrt(((sample - reference) ** 2).sum(axis=1))
    distances = {}
    for feature in design.features:
        own = moved[design.columns_of(feature)]
        distances[feature] = float(round_significant(np.linalg.norm(own)))
    order = sorted(distances, key=lambda feature: (-distances[feature], feature))
    return Truth(tuple(order), distances)


@functools.lru_cache(maxsize=4)
def _pool_fit(name: str, _hash: str, pool: bytes, ridge: float) -> tuple[Design, FloatArray]:
    """Return the design of a pool and its coefficients; the shifts of a dataset share them."""
    dataset, rows = load_dataset(name), np.frombuffer(pool, dtype=np.int64)
    design = build_design(
        dataset.X.iloc[rows],
        dataset.y[rows],
        task=dataset.task,
        n_classes=len(dataset.classes),
        rare_level_share=RARE_LEVEL_SHARE,
    )
    return design, fit_design(design, ridge=ridge, min_class=1).coefficients


def _check(
    shift: Shift, dataset: Dataset, design: Design, reference: FloatArray, sample: FloatArray
) -> None:
    """Raise InputError unless the bent coefficients are those that the shift states."""
    known = set(shift.columns) <= set(design.columns)
    if known:
        at = [design.columns.index(column) for column in shift.columns]
        of = [dataset.classes.index(c) if c else 0 for c in shift.classes]
        found = np.concatenate([reference[at, of], sample[at, of]])
        stated = np.concatenate([shift.b_reference, shift.b_sample])
        known = np.allclose(found, stated, rtol=1e-5, atol=1e-8)
    if not known:
        raise InputError(
            f"the coefficients of {shift.shift_id!r} cannot be found again in dataset "
            f"{shift.dataset!r}; fetch data and shifts of one version"
        )
