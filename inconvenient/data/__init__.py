"""Datasets: the catalogue's and the user's own, loading and splitting.

As in the package above, a name is imported when first asked for: a selection needs the gate of a
user's table, and neither the split's scikit-learn nor the loader's pyarrow.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inconvenient.data.dataset import Dataset
    from inconvenient.data.frames import as_frame
    from inconvenient.data.loading import list_datasets, load_dataset
    from inconvenient.data.preparation import check_feature, prepare_table
    from inconvenient.data.reading import read_table
    from inconvenient.data.remote import add_dataset
    from inconvenient.data.split import Split, split_dataset

__all__ = [
    "Dataset",
    "Split",
    "add_dataset",
    "as_frame",
    "check_feature",
    "list_datasets",
    "load_dataset",
    "prepare_table",
    "read_table",
    "split_dataset",
]

_HOME = {
    "Dataset": "inconvenient.data.dataset",
    "Split": "inconvenient.data.split",
    "add_dataset": "inconvenient.data.remote",
    "as_frame": "inconvenient.data.frames",
    "check_feature": "inconvenient.data.preparation",
    "list_datasets": "inconvenient.data.loading",
    "load_dataset": "inconvenient.data.loading",
    "prepare_table": "inconvenient.data.preparation",
    "read_table": "inconvenient.data.reading",
    "split_dataset": "inconvenient.data.split",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _HOME:
        raise AttributeError(f"module 'inconvenient.data' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Name the public surface."""
    return sorted(__all__)
