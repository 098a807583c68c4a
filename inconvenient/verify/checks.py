"""Published against recomputed values: what is compared how closely, and what was found."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

__all__ = ["TOLERANCES", "Findings", "Report", "Tolerance"]


@dataclasses.dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a published number may lie from the recomputed one.

    Parameters
    ----------
    limit : float
        Of |published - recomputed| / max(|recomputed|, floor).
    floor : float
        1 for quantities with a natural scale, whose absolute deviation counts.
    reason : str
    """

    limit: float
    floor: float
    reason: str


_EXACT = Tolerance(0.0, 1.0, "counts, names and hashes are equal or wrong")
_FITS = "two methods of linear algebra on columns rounded to 10 digits"

#: By column; those of scores and of the filter by the end of their names. Others must be equal.
TOLERANCES: dict[str, Tolerance] = {
    "fraction": Tolerance(1e-14, 1.0, "one division"),
    "b_reference": Tolerance(1e-8, 1e-3, _FITS),
    "b_sample": Tolerance(1e-8, 1e-3, _FITS),
    "achieved": Tolerance(2e-8, 1e-3, "a ratio of two coefficients"),
    "t_pool": Tolerance(1e-7, 1e-3, "a coefficient over the root of an inverse's diagonal"),
    "label_tv": Tolerance(1e-12, 1.0, "sums of shares"),
    "smd_mean": Tolerance(1e-9, 1.0, "means of columns rounded to 10 digits"),
    "smd_max": Tolerance(1e-9, 1.0, "means of columns rounded to 10 digits"),
    "p_uniform": Tolerance(0.0, 1.0, "a count; samples within 1e-7 of a bound may go either way"),
    "collateral": Tolerance(1e-6, 1e-3, "iterative penalised fits, stopped at a gradient of 1e-11"),
    "collateral_control": Tolerance(1e-6, 1e-3, "mean of the above over the control samples"),
    "score": Tolerance(1e-9, 1.0, "the same libraries; sums may be in another order"),
}


def tolerance_of(column: str) -> Tolerance:
    """Return the tolerance of a column."""
    if column in TOLERANCES:
        return TOLERANCES[column]
    score = column.endswith(("_id", "_control", "_ood", "_sd")) and column != "shift_id"
    return TOLERANCES["score"] if score or column in ("gap", "gap_paper") else _EXACT


@dataclasses.dataclass(slots=True)
class Findings:
    """What comparisons of one dataset have shown so far.

    Parameters
    ----------
    wrong : list of (shift id, column, published, recomputed)
    largest : dict of str to (number compared, largest deviation)
    """

    wrong: list[tuple[str, str, str, str]] = dataclasses.field(default_factory=list)
    largest: dict[str, tuple[int, float]] = dataclasses.field(default_factory=dict)

    def add(self, name: str, column: str, published: Any, recomputed: Any) -> None:
        """Note a difference."""
        self.wrong.append((name, column, _text(published), _text(recomputed)))

    def equal(self, name: str, column: str, published: Any, recomputed: Any) -> None:
        """Compare values that are equal or wrong."""
        self._count(column, 0.0)
        if published != recomputed:
            self.add(name, column, published, recomputed)

    def holds(self, name: str, column: str, condition: bool, found: Any, wanted: str) -> None:
        """Note a row that breaks a rule."""
        self._count(column, 0.0)
        if not condition:
            self.add(name, column, found, wanted)

    def number(
        self, name: str, column: str, published: Any, recomputed: float, failure: str = ""
    ) -> None:
        """Compare a number within the tolerance of its column; two missing ones are equal.

        ``failure`` says why the recomputed one is missing, if it is.
        """
        try:
            value = math.nan if published is None else float(published)
        except (TypeError, ValueError):
            self.add(name, column, published, recomputed)
            return
        if math.isnan(value) and math.isnan(recomputed):
            self._count(column, 0.0)
            return
        tolerance = tolerance_of(column)
        deviation = abs(value - recomputed) / max(abs(recomputed), tolerance.floor)
        if not deviation <= tolerance.limit:
            missing = math.isnan(recomputed)
            self.add(name, column, value, failure if missing and failure else recomputed)
        else:
            self._count(column, deviation)

    def numbers(
        self, name: str, column: str, published: Sequence[float], recomputed: Sequence[float]
    ) -> None:
        """Compare lists of numbers, entry by entry."""
        if len(published) != len(recomputed):
            self.add(name, column, list(published), list(recomputed))
            return
        for value, other in zip(published, recomputed, strict=True):
            self.number(name, column, value, float(other))

    def _count(self, column: str, deviation: float) -> None:
        compared, top = self.largest.get(column, (0, 0.0))
        self.largest[column] = compared + 1, max(top, deviation)


def _text(value: Any) -> str:
    return f"{value:.17g}" if isinstance(value, float) else str(value)


@dataclasses.dataclass(frozen=True, slots=True)
class Report:
    """Outcome of a verification.

    Parameters
    ----------
    shifts, datasets : int
        How many were recomputed.
    wrong : DataFrame
        Columns ``shift_id`` (a dataset's name where its split or data differ), ``column``,
        ``published``, ``recomputed``; empty where all is well.
    deviations : DataFrame
        Per column: ``compared``, ``largest`` deviation among those that pass, ``limit``,
        ``reason``.
    unchecked : tuple of str
        Columns of the published table that were compared with nothing.
    """

    shifts: int
    datasets: int
    wrong: pd.DataFrame
    deviations: pd.DataFrame
    unchecked: tuple[str, ...]


def summarise(found: Sequence[Findings], published: pd.DataFrame) -> Report:
    """Put the findings of datasets together."""
    wrong = sorted({line for one in found for line in one.wrong})
    together = Findings()
    for one in found:
        for column, (compared, top) in one.largest.items():
            before, largest = together.largest.get(column, (0, 0.0))
            together.largest[column] = before + compared, max(largest, top)
    checked = {*together.largest, *(line[1] for line in wrong), "rows"}
    rows = []
    for column, (compared, top) in together.largest.items():
        tolerance = tolerance_of(column)
        rows.append((column, compared, top, tolerance.limit, tolerance.reason))
    return Report(
        shifts=len(published),
        datasets=len(found),
        wrong=pd.DataFrame(wrong, columns=["shift_id", "column", "published", "recomputed"]),
        deviations=pd.DataFrame(rows, columns=["column", "compared", "largest", "limit", "reason"]),
        unchecked=tuple(name for name in map(str, published.columns) if name not in checked),
    )
