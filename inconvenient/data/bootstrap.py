"""Bootstrap intervals of means over datasets: survey families are drawn, datasets within them."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd

__all__ = ["RESAMPLES", "Bootstrap"]

RESAMPLES = 1000


class Bootstrap:
    """Resamples of datasets.

    Parameters
    ----------
    family : mapping of str to str
        Survey family of a dataset; one that is absent or has "" is a family of its own.
    seed : int

    Notes
    -----
    A resample draws as many families as there are, with replacement, and within each drawn family
    as many datasets as it has, with replacement. The draws depend on the seed and on the names of
    the datasets alone: numbers over the same datasets see the same resamples, so that what differs
    between their intervals is not the draw.
    """

    def __init__(self, family: Mapping[str, str], *, seed: int) -> None:
        self.family = {name: own or name for name, own in family.items()}
        self.seed = seed
        self._weights: dict[tuple[str, ...], npt.NDArray[np.int64] | None] = {}

    def interval(self, values: pd.Series) -> tuple[float, float]:
        """Return the 95 % interval of the mean of one value per dataset.

        Parameters
        ----------
        values : Series
            Finite; the index holds the names of the datasets.

        Returns
        -------
        low, high : float
            NaN with fewer than three families.

        Notes
        -----
        O(resamples x datasets).
        """
        values = values.sort_index()
        names = tuple(str(name) for name in values.index)
        if names not in self._weights:
            self._weights[names] = self._draw(names)
        weights = self._weights[names]
        if weights is None:
            return math.nan, math.nan
        numbers = values.to_numpy(dtype=np.float64)
        means = (weights * numbers).sum(axis=1) / weights.sum(axis=1)
        low, high = np.quantile(means, [0.025, 0.975])
        return float(low), float(high)

    def _draw(self, names: tuple[str, ...]) -> npt.NDArray[np.int64] | None:
        """Return how often each resample holds each dataset, int64 (resamples, datasets)."""
        members: dict[str, list[int]] = {}
        for place, name in enumerate(names):
            members.setdefault(self.family.get(name, name), []).append(place)
        if len(members) < 3:
            return None
        key = zlib.crc32("\n".join(names).encode("utf-8"))
        rng = np.random.default_rng([self.seed, key])
        groups = [members[name] for name in sorted(members)]
        share = np.full(len(groups), 1 / len(groups))
        drawn = rng.multinomial(len(groups), share, size=RESAMPLES)
        weights = np.zeros((RESAMPLES, len(names)), dtype=np.int64)
        for times, places in zip(drawn.T, groups):
            k = len(places)
            if k == 1:
                weights[:, places[0]] = times
            else:
                weights[:, places] = rng.multinomial(times * k, np.full(k, 1 / k))
        return weights
