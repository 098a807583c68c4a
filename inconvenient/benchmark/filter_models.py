"""The two fixed-setting models behind the filters: linear, and a small LightGBM."""

from __future__ import annotations

from typing import Any

from inconvenient.baselines import LIGHTGBM, LINEAR, Baseline, Setting

__all__ = ["FILTER_MODELS"]


def _small(task: str) -> Setting:
    return {**LIGHTGBM.default(task), "n_trees": 50, "num_leaves": 15}


def _fixed(trial: Any, task: str, n_rows: int) -> Setting:
    return _small(task)


#: Fixed-setting ridge or logistic regression (penalty 1), and LightGBM with 50 trees of 15 leaves,
#: else its defaults: samples of a few hundred rows fill no more, and the filter fits thousands.
FILTER_MODELS: tuple[Baseline, ...] = (
    LINEAR,
    Baseline(
        "lightgbm50",
        _small,
        _fixed,
        LIGHTGBM.make,
        requires=LIGHTGBM.requires,
        takes_codes=True,
    ),
)
