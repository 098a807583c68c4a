"""Baselines: the predictive model families that are evaluated, in a registry."""

from inconvenient.baselines.catboost import CATBOOST
from inconvenient.baselines.lightgbm import LIGHTGBM
from inconvenient.baselines.linear import LINEAR
from inconvenient.baselines.mlp import MLP
from inconvenient.baselines.random_forest import RANDOM_FOREST
from inconvenient.baselines.registry import (
    BASELINES,
    Baseline,
    Estimator,
    Setting,
    get_baseline,
    register,
    require,
)
from inconvenient.baselines.tabpfn import TABPFN
from inconvenient.baselines.xgboost import XGBOOST

__all__ = [
    "BASELINES",
    "CATBOOST",
    "LIGHTGBM",
    "LINEAR",
    "MLP",
    "RANDOM_FOREST",
    "TABPFN",
    "XGBOOST",
    "Baseline",
    "Estimator",
    "Setting",
    "get_baseline",
    "register",
    "require",
]
