"""The reference model: the fit on the whole pool whose coefficients the operations bend."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from inconvenient.errors import DesignError
from inconvenient.selection.design import round_significant
from inconvenient.selection.engine import Engine, State
from inconvenient.selection.separation import is_separable
from inconvenient.selection.verification import next_to_separated, t_values

__all__ = ["ZERO", "Aim", "ReferenceModel", "aim_at", "fit_reference"]

#: Standardised coefficients up to this are zero but for rounding, as where other features
#: determine the target exactly: they have no sign to flip and no size to bend.
ZERO = 1e-9

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True, slots=True)
class ReferenceModel:
    """Coefficients of the pool.

    Parameters
    ----------
    coefficients : float64 (p, C)
        In pool-standardised units, 10 significant digits; C = 1 for a regression or two classes,
        else the K classes, sum-to-zero over them.
    t_values : float64 (p, C)
        Coefficient over its classical standard error.
    ridge : float
        Lambda of the penalised fit; 0 where unregularised.
    separable : bool
        Whether the pool has no finite maximum-likelihood fit.
    state : State
        The fit as the engine holds it.
    """

    coefficients: FloatArray
    t_values: FloatArray
    ridge: float
    separable: bool
    state: State


def fit_reference(engine: Engine, *, ridge: float) -> ReferenceModel:
    """Fit the reference model, unregularised where a finite fit exists.

    Parameters
    ----------
    engine : Engine
        Of the pool.
    ridge : float
        Lambda of the penalised fit that stands in where the pool is separable, > 0.

    Returns
    -------
    ReferenceModel

    Raises
    ------
    DesignError
        If the design has no unique fit.
    """
    design = engine.design
    rows = np.arange(engine.n, dtype=np.int64)
    state = engine.fit(rows)
    used, separable = 0.0, False
    if design.task != "regression" and (
        state is None or next_to_separated(design.X, state.contrasts)
    ):
        separable = is_separable(design.X, design.y, n_classes=design.n_classes)
        used = ridge
        state = engine.fit(rows, ridge=ridge)
    if state is None:
        raise DesignError(
            "the reference model has no unique fit on these rows; "
            "drop columns that nearly repeat each other, or use more rows"
        )
    coefficients = round_significant(state.coefficients)
    t = t_values(
        design.X,
        design.y,
        task=design.task,
        n_classes=design.n_classes,
        coefficients=state.coefficients,
        ridge=used,
    )
    for array in (coefficients, t):
        array.setflags(write=False)
    return ReferenceModel(coefficients, t, used, separable, state)


@dataclasses.dataclass(frozen=True, slots=True)
class Aim:
    """The coefficients that a shift bends: one, or one for each feature of a group.

    Parameters
    ----------
    columns, classes : int64 (L,)
        Entries of the coefficient matrix (p, C).
    reference : float64 (L,)
        Their values on the pool.
    """

    columns: IntArray
    classes: IntArray
    reference: FloatArray

    def of(self, coefficients: FloatArray) -> FloatArray:
        """Return the bent entries of a coefficient matrix (p, C), float64 (L,)."""
        return coefficients[self.columns, self.classes]

    def functional(self, weights: FloatArray, shape: tuple[int, ...]) -> FloatArray:
        """Return a matrix (p, C) with ``weights`` at the bent entries and zero elsewhere."""
        t = np.zeros(shape)
        t[self.columns, self.classes] = weights
        return t


def aim_at(reference: ReferenceModel, columns: list[IntArray], class_: int | None = None) -> Aim:
    """Choose for each feature its entry of largest absolute reference value.

    Parameters
    ----------
    reference : ReferenceModel
    columns : list of int64 arrays
        The design columns of each feature; none of them empty.
    class_ : int, optional
        Only this column of the coefficient matrix.

    Returns
    -------
    Aim
        Ties go to the smaller column, then to the smaller class.
    """
    rows, classes = [], []
    for index in columns:
        block = np.abs(reference.coefficients[index])
        if class_ is not None:
            block = block[:, class_ : class_ + 1]
        j, c = divmod(int(np.argmax(block)), block.shape[1])
        rows.append(int(index[j]))
        classes.append(c if class_ is None else class_)
    picked = np.array(rows, dtype=np.int64), np.array(classes, dtype=np.int64)
    return Aim(*picked, reference.coefficients[picked])
