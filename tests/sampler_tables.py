"""A table with a column of every kind, and its target in every form, for tests of the sampler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes


def mixed() -> tuple[pd.DataFrame, pd.Series]:
    """Return real data with a column of every kind, gaps, and labels that repeat."""
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    X = X[["bmi", "bp", "s5", "age", "sex", "s4"]].copy()
    X["smoker"] = pd.Series(X["sex"] > 1)
    X["maybe"] = pd.Series(X["s4"] > 4).astype("boolean").mask(X.index % 11 == 0)
    X["sex"] = np.where(X["sex"] > 1, "male", "female")
    X["town"] = pd.Series(np.where(X.index % 2, "east", "west"), dtype="string[python]")
    X["town"] = X["town"].mask(X.index % 17 == 0)
    X["ward"] = pd.Categorical.from_codes(X.index % 4 - 1, ["north", "south", "nowhere", "hills"])
    X["name"] = pd.Series(X["sex"], dtype=object).mask(X.index % 13 == 0)
    X["name"] = X["name"].where(X.index % 3 != 0, "other")
    X["band"] = pd.cut(X["age"], [0, 35, 50, 65, 90], labels=["d", "c", "b", "a"])
    X.loc[::9, ["band", "bp"]] = None
    X["age"] = X["age"].astype("Int64").mask(X.index % 7 == 0)
    X["s5"] = X["s5"].astype("float32")
    X["s4"] = X["s4"].astype("Float64")
    X.index = pd.Index([f"row {i % 300}" for i in range(len(X))], name="patient")
    return X, y.set_axis(X.index)


TARGETS: dict[str, Callable[[pd.Series], Any]] = {
    "numbers": lambda y: y,
    "nullable numbers": lambda y: y.astype("Float64"),
    "frame": lambda y: y.to_frame(),
    "array": lambda y: y.to_numpy(),
    "column": lambda y: y.to_numpy()[:, None],
    "strings": lambda y: pd.Series(np.where(y > 140, "high", "low"), index=y.index, name="y"),
    "nullable strings": lambda y: (y > 140).map({True: "high", False: "low"}).astype("string"),
    "objects": lambda y: (y > 140).map({True: "high", False: "low"}).astype(object),
    "category": lambda y: pd.cut(y, [0, 90, 180, 400], labels=["low", "mid", "high"]),
    "boolean": lambda y: (y > 140).astype("boolean"),
    "integers": lambda y: (y > 140).astype("Int8"),
    "one-hot frame": lambda y: pd.get_dummies(pd.cut(y, [0, 90, 180, 400], labels=list("abc"))),
    "nullable integers": lambda y: pd.cut(y, [0, 90, 180, 400], labels=[1, 2, 3]).astype("Int64"),
    "list": lambda y: y.tolist(),
}

REGRESSION = {"numbers", "nullable numbers", "frame", "array", "column", "list"}
