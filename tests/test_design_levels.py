"""Levels of a categorical column as codes, against the obvious loop over cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hostile import hostile_frame

from inconvenient.selection.levels import levels_of, raw_values

HOSTILE = hostile_frame()

COLUMNS: dict[str, Any] = {
    "text": HOSTILE["text"],
    "category": HOSTILE["category"],
    "flag": HOSTILE["flag"],
    "many": HOSTILE["levels"],
    "empty": HOSTILE["empty text"],
    "mixture": pd.Series([1, 1.0, True, "1", None, np.nan, "x", 2.5] * 5, dtype=object),
    "taken name": pd.Series(["(missing)", None, "a", "(other)"] * 5, dtype=object),
    "equal texts": pd.Categorical([1, "1", None, 2] * 5, categories=[2, "1", 1, 7]),
    "nullable": pd.array([True, None, False] * 5, dtype="boolean"),
    "strings": pd.array(["b", None, "a"] * 5, dtype="string"),
    "intervals": pd.cut(HOSTILE["number"], 4),
    "none": pd.Series([], dtype=object),
}


@pytest.mark.parametrize("case", COLUMNS)
def test_levels(case: str) -> None:
    series = pd.Series(COLUMNS[case])
    names = ["(missing)" if pd.isna(v) else str(v) for v in series.astype(object)]
    levels = levels_of(series)
    assert list(levels.names) == sorted(set(names))
    assert [levels.names[code] for code in levels.codes] == names
    for wanted in ((), tuple(set(names)), tuple(sorted(set(names)))[:1], ("never seen",)):
        expected = [float(name in wanted) for name in names]
        np.testing.assert_array_equal(levels.among(wanted), expected)


def test_numbers_stay_numbers() -> None:
    values = raw_values(HOSTILE["nullable"])
    np.testing.assert_array_equal(values, HOSTILE["nullable"].to_numpy(float, na_value=np.nan))
