"""Made-up published shifts and a made-up dataset: a fixture for tests of listing and loading."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import pandas as pd
from synthetic import profile_frames

from inconvenient.shifts.publication import publish

HASH = "f" * 64


class Table(SimpleNamespace):
    """What a shift reads of a dataset."""


def table(name: str = "binary_a", rows: int = 800) -> Table:
    """Return a dataset of three features; the target tells the sign of the first."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(rows, 3)), columns=["x1", "x2", "x3"])
    frame["y"] = np.where(frame["x1"] > 0, "yes", "no")
    return Table(
        name=name,
        frame=frame,
        target="y",
        task="binary",
        classes=("no", "yes"),
        groups=np.arange(rows) // 4,
        description="Made up.",
        target_description="Whether x1 is positive.",
        feature_descriptions={"x1": "first"},
        features=["x1", "x2", "x3"],
        hash=HASH,
    )


def split_frame(names: Sequence[str], rows: int = 800) -> pd.DataFrame:
    """Return a split: even rows are the pool, the others the two halves by turns."""
    ids = np.arange(rows)
    part = np.where(ids % 2 == 0, "pool", np.where(ids % 4 == 1, "filter", "report"))
    return pd.concat(
        [pd.DataFrame({"dataset": name, "row_id": ids, "part": part}) for name in sorted(names)],
        ignore_index=True,
    )


def publication_frames(datasets: Sequence[tuple[str, str]]) -> dict[str, pd.DataFrame]:
    """Return the frames that are joined; in the first row a baseline failed."""
    frames = profile_frames(datasets)
    filters = frames["filter/filter"].drop(columns="published", errors="ignore")
    filters["published"] = filters["retained"] | filters["retained_paper"]
    filters.loc[0, ["retained_paper", "published"]] = True
    return {**frames, "filter/filter": filters}


def published_frame(datasets: Sequence[tuple[str, str]]) -> pd.DataFrame:
    """Return the table of published shifts."""
    frames = publication_frames(datasets)
    names = ("shifts/shifts", "filter/filter", "evaluate/default", "collateral/collateral")
    return publish(*(frames[name] for name in names), {name: HASH for name, _ in datasets})
