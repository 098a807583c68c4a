"""The published split of a dataset: a partition, within its bounds, and the one its seed gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from inconvenient.data import Split, split_dataset
from inconvenient.errors import InputError

if TYPE_CHECKING:
    from inconvenient.data import Dataset
    from inconvenient.verify.checks import Findings
    from inconvenient.verify.settings import Settings

__all__ = ["check_split"]

_SIDE = (0.45, 0.55)
_LEAST_SIDE, _LEAST_HALF = 10, 5


def check_split(
    dataset: Dataset, parts: pd.DataFrame, params: Settings, findings: Findings
) -> Split:
    """Compare a published split with its rules and its seed; return it.

    Raises
    ------
    InputError
        If it is none of this dataset: rows that are not in it, or a part without rows.
    """
    ids = {
        part: np.sort(parts.loc[parts["part"] == part, "row_id"].to_numpy(dtype=np.int64))
        for part in ("pool", "filter", "report")
    }
    n = len(dataset.frame)
    together = np.concatenate(list(ids.values()))
    if min(map(len, ids.values())) == 0 or together.max() >= n or together.min() < 0:
        raise InputError(
            f"the split of {dataset.name} must have pool, filter and report rows among its {n}; "
            "fetch data and shifts of the same version"
        )
    name = dataset.name
    whole = len(together) == n == len(np.unique(together)) == len(parts)
    findings.holds(name, "split", whole, f"{len(together)} row ids", f"each of {n} rows once")
    share = len(ids["pool"]) / n
    findings.holds(name, "split", _SIDE[0] <= share <= _SIDE[1], share, f"a share in {_SIDE}")
    if dataset.classes:
        test = np.concatenate([ids["filter"], ids["report"]])
        sides = {"pool": ids["pool"], "test": test, **{k: ids[k] for k in ("filter", "report")}}
        for side, rows in sides.items():
            least = _LEAST_SIDE if side in ("pool", "test") else _LEAST_HALF
            rarest = int(np.bincount(dataset.y[rows], minlength=len(dataset.classes)).min())
            wanted = f"{least} rows of each class in {side}"
            findings.holds(name, "split", rarest >= least, rarest, wanted)
    if dataset.groups is not None:
        sets = [set(dataset.groups[rows].tolist()) for rows in ids.values()]
        apart = sum(map(len, sets)) == len(set().union(*sets))
        findings.holds(name, "split", apart, "a cluster in two parts", "each cluster in one")
    split = Split(**ids)
    again = split_dataset(dataset, seed=params.split.seed)
    for part in ids:
        same = np.array_equal(getattr(split, part), getattr(again, part))
        findings.holds(name, f"split.{part}", same, "other rows", "those of the seed")
    return split
