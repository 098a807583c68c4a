"""The shifts that models are asked about: datasets with many features, operations alike."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from inconvenient.errors import InputError

__all__ = ["MIN_FEATURES", "PER_OPERATION", "draw_shifts"]

#: Features that a dataset of the primary set has at least.
MIN_FEATURES = 15

#: Shifts of each operation in the primary set.
PER_OPERATION = 100


def draw_shifts(
    shifts: pd.DataFrame,
    features: Mapping[str, int],
    *,
    per_operation: int = PER_OPERATION,
    min_features: int = MIN_FEATURES,
    seed: int,
) -> pd.DataFrame:
    """Draw shifts of each operation, spread over the datasets.

    Parameters
    ----------
    shifts : DataFrame
        As :func:`inconvenient.list_shifts` gives them.
    features : mapping of str to int
        Number of features of each dataset.
    per_operation : int
        Shifts to draw of each operation.
    min_features : int
        Datasets with fewer are left out.
    seed : int

    Returns
    -------
    DataFrame
        Rows of ``shifts``, sorted by ``shift_id``.

    Raises
    ------
    InputError
        If there are not that many shifts of an operation.

    Notes
    -----
    Per operation the datasets are put in random order and give one random shift each in turn,
    until enough are drawn: none gives two more than another that still has some. With a larger
    number drawn from the same shifts, those of a smaller one are among them.
    """
    wide = shifts[shifts["dataset"].map(features).fillna(0) >= min_features].reset_index(drop=True)
    chosen = []
    for operation, own in wide.groupby("operation"):
        if len(own) < per_operation:
            raise InputError(
                f"{per_operation} shifts of operation {operation!r} were asked for, but datasets "
                f"with at least {min_features} features have {len(own)}; ask for fewer, or for "
                "those of the profile full"
            )
        salt = [ord(letter) for letter in str(operation)]
        rng = np.random.default_rng([seed, *salt])
        # Shuffled rows, numbered within their dataset: a turn is all those of one number.
        order = own.sort_values("shift_id").iloc[rng.permutation(len(own))]
        turn = order.groupby("dataset").cumcount()
        names = sorted(own["dataset"].unique())
        place = dict(zip((names[i] for i in rng.permutation(len(names))), range(len(names))))
        key = turn * len(names) + order["dataset"].map(place)
        chosen.append(order.loc[key.sort_values().index[:per_operation]])
    if not chosen:
        raise InputError(
            f"no shift belongs to a dataset with at least {min_features} features; "
            "lower min_features or list shifts of the profile full"
        )
    return pd.concat(chosen).sort_values("shift_id").reset_index(drop=True)
