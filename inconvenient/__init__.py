"""How prediction on tables suffers from convenience samples; importing this loads nothing else."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inconvenient.data import Dataset, add_dataset, list_datasets, load_dataset
    from inconvenient.errors import (
        InconvenientError,
        InputError,
        NotAvailableError,
        UnmetError,
    )
    from inconvenient.evaluation.compare import Comparison, compare
    from inconvenient.evaluation.evaluate import evaluate
    from inconvenient.llm.suspicion import rank_suspicious
    from inconvenient.selection.audit import Audit, audit
    from inconvenient.selection.sampler import ConvenienceSampler
    from inconvenient.selection.select import Selection, select, trajectory
    from inconvenient.selection.strategies import Trajectory
    from inconvenient.shifts import Shift, list_shifts, load_shift

__all__ = [
    "Audit",
    "Comparison",
    "ConvenienceSampler",
    "Dataset",
    "InconvenientError",
    "InputError",
    "NotAvailableError",
    "Selection",
    "Shift",
    "Trajectory",
    "UnmetError",
    "__version__",
    "add_dataset",
    "audit",
    "compare",
    "evaluate",
    "list_datasets",
    "list_shifts",
    "load_dataset",
    "load_shift",
    "rank_suspicious",
    "select",
    "trajectory",
]

__version__ = "0.1.0"

# Where each public name lives; resolved when first asked for, so that the import stays cheap.
_HOME = {
    "Dataset": "inconvenient.data",
    "add_dataset": "inconvenient.data",
    "list_datasets": "inconvenient.data",
    "load_dataset": "inconvenient.data",
    "InconvenientError": "inconvenient.errors",
    "InputError": "inconvenient.errors",
    "NotAvailableError": "inconvenient.errors",
    "UnmetError": "inconvenient.errors",
    "Comparison": "inconvenient.evaluation.compare",
    "compare": "inconvenient.evaluation.compare",
    "evaluate": "inconvenient.evaluation.evaluate",
    "rank_suspicious": "inconvenient.llm.suspicion",
    "ConvenienceSampler": "inconvenient.selection.sampler",
    "Audit": "inconvenient.selection.audit",
    "audit": "inconvenient.selection.audit",
    "Selection": "inconvenient.selection.select",
    "select": "inconvenient.selection.select",
    "trajectory": "inconvenient.selection.select",
    "Trajectory": "inconvenient.selection.strategies",
    "Shift": "inconvenient.shifts",
    "list_shifts": "inconvenient.shifts",
    "load_shift": "inconvenient.shifts",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _HOME:
        raise AttributeError(f"module 'inconvenient' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Name the public surface."""
    return sorted(__all__)
