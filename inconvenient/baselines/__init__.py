"""Baselines: the predictive model families that are evaluated, in a registry."""

from inconvenient.baselines.lightgbm import LIGHTGBM
from inconvenient.baselines.linear import LINEAR
from inconvenient.baselines.registry import (
    BASELINES,
    Baseline,
    Estimator,
    Setting,
    get_baseline,
    register,
    require,
)

__all__ = [
    "BASELINES",
    "LIGHTGBM",
    "LINEAR",
    "Baseline",
    "Estimator",
    "Setting",
    "get_baseline",
    "register",
    "require",
]
