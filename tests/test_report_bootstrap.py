from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from report_material import hand_frames

from inconvenient.config import load_params
from inconvenient.data.bootstrap import RESAMPLES, Bootstrap
from inconvenient.report.material import join

VALUES = pd.Series({"a": 0.0, "b": 1.0, "c": 2.0, "d": 2.0})


def test_intervals_do_not_depend_on_the_order_or_on_earlier_calls() -> None:
    first = Bootstrap({}, seed=1)
    alone = first.interval(VALUES)
    first.interval(VALUES[:3])
    assert alone == first.interval(VALUES.iloc[::-1]) == Bootstrap({}, seed=1).interval(VALUES)
    assert alone != Bootstrap({}, seed=2).interval(VALUES * 1.0 + [0.0, 0.1, 0.2, 0.3])
    assert 0.0 <= alone[0] < 1.25 < alone[1] <= 2.0


def test_there_is_none_with_fewer_than_three_families() -> None:
    low, high = Bootstrap({"a": "s", "b": "s", "c": "s"}, seed=1).interval(VALUES)
    assert math.isnan(low)
    assert math.isnan(high)
    assert math.isnan(Bootstrap({}, seed=1).interval(VALUES[:0])[0])


def test_a_resample_holds_whole_families() -> None:
    # d and e are one survey: drawn k times, it brings 2 k datasets, and each of them equally often.
    boot = Bootstrap({"d": "s", "e": "s"}, seed=3)
    weights = boot._draw(("a", "b", "c", "d", "e"))
    assert weights is not None
    assert weights.shape == (RESAMPLES, 5)
    both = weights[:, 3:].sum(axis=1)
    assert set(both) <= {0, 2, 4, 6, 8}
    np.testing.assert_array_equal(weights[:, :3].sum(axis=1) + both // 2, 4)
    assert weights[:, 3].mean() == pytest.approx(1.0, abs=0.1)
    assert weights[:, 4].mean() == pytest.approx(1.0, abs=0.1)


def test_datasets_of_one_survey_widen_the_interval() -> None:
    values = pd.Series({name: float(name < "e") for name in "abcdefgh"})
    alone = Bootstrap({}, seed=1).interval(values)
    family = {name: str(name < "e") if name not in "dh" else name for name in "abcdefgh"}
    low, high = Bootstrap(family, seed=1).interval(values)
    assert high - low > alone[1] - alone[0]


def test_the_interval_is_that_of_the_normal_law_for_many_datasets() -> None:
    values = pd.Series({f"{i:03d}": float(i % 2) for i in range(400)})
    low, high = Bootstrap({}, seed=1).interval(values)
    # A mean of 400 with standard deviation 1 / 2: 0.5 -+ 1.96 x 0.025; 1,000 resamples know the
    # ends to about a fifth of 0.025.
    assert low == pytest.approx(0.451, abs=0.005)
    assert high == pytest.approx(0.549, abs=0.005)


def test_families_come_from_the_split(root: object) -> None:
    frames = hand_frames([{"dataset": name} for name in "abcd"])
    frames["split/datasets"]["family"] = ["s", "s", "", ""]
    params = load_params(f"{root}/params.yaml")
    family = join(frames, params, {"families": {"c": "s"}}).bootstrap.family
    assert family == {"a": "s", "b": "s", "c": "c", "d": "d"}
    del frames["split/datasets"]["family"]
    family = join(frames, params, {"families": {"c": "t"}}).bootstrap.family
    assert family == {"a": "a", "b": "b", "c": "t", "d": "d"}


def test_a_dataset_without_a_family_is_one_of_its_own() -> None:
    values = pd.Series([1.0, 2.0, 4.0, 8.0], index=list("abcd"))
    blank = Bootstrap({"a": "s", "b": "s", "c": "", "d": ""}, seed=1)
    assert blank.interval(values) == Bootstrap({"a": "s", "b": "s"}, seed=1).interval(values)
