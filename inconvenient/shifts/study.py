"""The tuned study as published: scores of tuned baselines on some of the published shifts."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from inconvenient.config import checkouts, user_folder
from inconvenient.errors import NotAvailableError
from inconvenient.shifts.loading import open_table

__all__ = ["read_study"]

_TUNED = Path("study") / "tuned.parquet"


def read_study() -> pd.DataFrame:
    """Return the scores of the tuned study, from a checkout or the user's folder.

    Returns
    -------
    DataFrame
        A row per shift and baseline: ``shift_id``, ``baseline``, ``status``, ``score_id``,
        ``score_control``, ``control_sd``, ``score_ood``, and the JSON columns ``setting`` and
        ``trials``.

    Raises
    ------
    NotAvailableError
        If it is not on this machine, or damaged.
    """
    for root in (*checkouts(), user_folder()):
        path = root / _TUNED
        if path.is_file():
            with open_table(path) as file:
                frame: pd.DataFrame = file.read().to_pandas()
            return frame
    raise NotAvailableError(
        "the tuned study is not on this machine; bring it with `inconvenient fetch`, in a checkout "
        "with `dvc pull study.dvc`"
    )
