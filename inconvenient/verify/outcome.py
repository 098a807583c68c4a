"""What a shift does, recomputed: collateral effect, scores on both halves, and the two flags."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from inconvenient.verify.chance import draw_rows, shared
from inconvenient.verify.collateral import penalised, relative_change
from inconvenient.verify.pool import Pool
from inconvenient.verify.scores import Scorer, models_of

if TYPE_CHECKING:
    from inconvenient.data import Dataset, Split
    from inconvenient.verify.checks import Findings
    from inconvenient.verify.settings import Settings

__all__ = ["Outcomes"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Gaps this near to a threshold may lie on either side of it.
_HAIR = 1e-9


@dataclasses.dataclass(frozen=True, slots=True)
class Outcomes:
    """Penalised fits and scores of one dataset, each computed once.

    Parameters
    ----------
    pool : Pool
    params : Settings
    wanted : frozenset of str
        "collateral", "scores" and "filter" where they are not skipped.
    name : str
        Of the dataset.
    scorer : Scorer
    """

    pool: Pool
    params: Settings
    wanted: frozenset[str]
    name: str
    scorer: Scorer
    _fits: dict[str, Floats] = dataclasses.field(default_factory=dict)
    _controls: dict[int, dict[tuple[str, str], Floats]] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(
        cls, dataset: Dataset, split: Split, pool: Pool, params: Settings, wanted: frozenset[str]
    ) -> Outcomes:
        """Make ready for a dataset."""
        scorer = Scorer(dataset, split, models_of(dataset.task, params, wanted))
        return cls(pool, params, wanted, dataset.name, scorer)

    def check(
        self, name: str, row: dict[str, Any], digest: str, at: Ints, findings: Findings
    ) -> None:
        """Compare the outcome of a shift whose rows stand at some positions of the pool."""
        if "collateral" in self.wanted:
            self._check_collateral(name, row, digest, at, findings)
        if not self.scorer.models:
            return
        scores = self._scores(at)
        for (half, model), own in scores.items():
            start = model if half == "report" else f"filter_{model}"
            values = {"id": own.full, "control": own.control, "ood": own.ood}
            if half == "report":
                values["control_sd"] = _spread(own.draws)
            failed = self.scorer.failures.get((half, model), "")
            for part, value in values.items():
                column = f"{start}_{part}"
                findings.number(name, column, row.get(column), value, failed)
        if "filter" in self.wanted:
            tried = [own for (half, _), own in scores.items() if half == "filter"]
            self._check_flags(name, row, tried, findings)

    def _drawn(self, size: int, count: int) -> list[Ints]:
        seed = self.params.shifts.seed
        return [
            draw_rows(self.pool.rows, shared(size), draw, seed=seed, name=self.name)
            for draw in range(count)
        ]

    def _fit(self, key: str, at: Ints) -> Floats:
        if key not in self._fits:
            self._fits[key] = penalised(self.pool, at, self.params.collateral.ridge)
        return self._fits[key]

    def _check_collateral(
        self, name: str, row: dict[str, Any], digest: str, at: Ints, findings: Findings
    ) -> None:
        bent = {str(f) for f in row["features"]}
        rest = np.array([f not in bent for f in self.pool.feature_of[1:]])
        whole = self._fit("pool", np.arange(len(self.pool.rows), dtype=np.int64))
        effect = relative_change(self._fit(digest, at), whole, rest)
        size = shared(len(at))
        count = self.params.evaluate.controls
        if f"{size}/{count - 1}" not in self._fits:
            for draw, rows in enumerate(self._drawn(size, count)):
                self._fit(f"{size}/{draw}", self.pool.positions(rows))
        beside = [
            relative_change(self._fits[f"{size}/{draw}"], whole, rest) for draw in range(count)
        ]
        findings.number(name, "collateral", row["collateral"], effect)
        control = float(np.mean(beside))
        findings.number(name, "collateral_control", row["collateral_control"], control)

    def _scores(self, at: Ints) -> dict[tuple[str, str], _Scores]:
        """Return the scores of a sample, by half and model."""
        full, ood = self.scorer.of("pool", self.pool.rows), self.scorer.of("", self.pool.rows[at])
        size = shared(len(at))
        counts = {"report": self.params.evaluate.controls, "filter": self.params.filter.controls}
        if size not in self._controls:
            drawn = enumerate(self._drawn(size, max(counts.values())))
            scored = [self.scorer.of(f"{size}/{draw}", rows) for draw, rows in drawn]
            self._controls[size] = {key: np.array([one[key] for one in scored]) for key in full}
        controls = self._controls[size]
        return {key: _Scores(full[key], controls[key][: counts[key[0]]], ood[key]) for key in full}

    def _check_flags(
        self, name: str, row: dict[str, Any], tried: list[_Scores], findings: Findings
    ) -> None:
        """Compare gaps and flags, as far as one row decides them.

        A published shift is retained if and only if it meets the conditions: one that is subsumed
        by a retained shift is not published. ``retained_paper`` may be False by subsumption.
        """
        filters = self.params.filter
        gap = float(np.mean([own.control - own.ood for own in tried]))
        gap_paper = float(np.mean([own.full - own.ood for own in tried]))
        spread = _spread(np.mean([own.draws for own in tried], axis=0))
        findings.number(name, "gap", row["gap"], gap)
        findings.number(name, "gap_paper", row["gap_paper"], gap_paper)
        findings.number(name, "filter_control_sd", row.get("filter_control_sd"), spread)
        regression = self.pool.task == "regression"
        least = filters.min_gap_r2 if regression else filters.min_gap_auc
        low = filters.r2_lower_bound if regression else 0.0
        chance = 2.0 * spread / math.sqrt(filters.controls)

        def decided(slack: float) -> tuple[bool, bool]:
            """Return both flags but for subsumption, conditions widened by a slack."""
            inside = all(low - slack <= v <= 1.0 + slack for o in tried for v in (o.full, o.ood))
            paper = inside and gap_paper >= least - slack
            inside = inside and all(low - slack <= o.control <= 1.0 + slack for o in tried)
            # NaN, of a single control sample, is never exceeded.
            return inside and gap >= least - slack and gap > chance - slack, paper

        strict, lenient = decided(-_HAIR), decided(_HAIR)
        retained, paper = bool(row["retained"]), bool(row["retained_paper"])
        values = f"gap {gap:.6g}, least {least:g}, chance {chance:.6g}"
        if strict[0] == lenient[0]:
            findings.equal(name, "retained", retained, strict[0])
        possible = not paper or lenient[1]
        findings.holds(name, "retained_paper", possible, paper, f"{gap_paper:.6g} under {least:g}")
        findings.holds(name, "retained", retained or paper, values, "one of the two flags")


@dataclasses.dataclass(frozen=True, slots=True)
class _Scores:
    """Scores of one model: trained on the full pool, on each control sample, on the sample."""

    full: float
    draws: Floats
    ood: float

    @property
    def control(self) -> float:
        return float(self.draws.mean())


def _spread(values: Floats) -> float:
    return float(values.std(ddof=1)) if values.size > 1 else math.nan
