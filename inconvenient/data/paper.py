"""The 200 slots of the paper's suite, each with the dataset proposed for it and the evidence."""

from __future__ import annotations

import functools
import importlib.resources
import io

import pandas as pd

__all__ = ["read_paper", "read_slot"]

_NUMBERS = ("rows", "features", "classes")


def read_paper() -> pd.DataFrame:
    """Return the slots of the paper's suite.

    Returns
    -------
    DataFrame
        One row per slot: slot, id (what :func:`inconvenient.load_dataset` takes), name, target,
        task, rows, features, classes, evidence (the suites and files that name the dataset),
        confidence, status, notes. Text is "" and a number is missing where no source says it.

    Notes
    -----
    The paper states how many datasets of each task and source it has, and its list is not public
    here: every slot is a proposal, and its status says so.
    """
    return _slots().copy()


def read_slot(name: str) -> dict[str, str] | None:
    """Return target and task of the slot of a dataset, None if it has none."""
    slots = _slots()
    found = slots[slots["id"] == name]
    if found.empty:
        return None
    row = found.iloc[0]
    return {"slot": str(row["slot"]), "target": str(row["target"]), "task": str(row["task"])}


@functools.cache
def _slots() -> pd.DataFrame:
    text = importlib.resources.files("inconvenient.data").joinpath("paper.csv")
    frame = pd.read_csv(
        io.StringIO(text.read_text(encoding="utf-8")), dtype=str, keep_default_na=False
    )
    numbers = {name: pd.to_numeric(frame[name]).astype("Int64") for name in _NUMBERS}
    return frame.assign(**numbers)
