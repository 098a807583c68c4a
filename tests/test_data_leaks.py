"""The leak check: planted leaks are found under their keys, and an honest table has none."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from inconvenient.data.leaks import Finding, find_leaks, unanswered

N = 600


def table() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, N),
            "income": rng.gamma(2.0, 1000.0, N),
            "region": rng.choice(["N", "S", "W"], N),
            "member": rng.random(N) < 0.3,
            "score": np.where(rng.random(N) < 0.2, np.nan, rng.normal(size=N)),
        }
    )


def targets(X: pd.DataFrame) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(8)
    signal = (X["age"] - 50) / 20 + (X["region"] == "N") + rng.normal(size=N)
    multiclass = pd.cut(signal, [-np.inf, -0.7, 0.7, np.inf], labels=["a", "b", "c"])
    return {
        "regression": signal.to_numpy(),
        "binary": np.where(signal > 0, "yes", "no"),
        "multiclass": multiclass.astype(str).to_numpy(),
    }


TASKS = ["regression", "binary", "multiclass"]


def keys(X: pd.DataFrame, y: np.ndarray, task: str, groups: np.ndarray | None = None) -> list[str]:
    return [finding.key for finding in find_leaks(X, y, task=task, groups=groups)]


@pytest.mark.parametrize("task", TASKS)
def test_an_honest_table_has_no_finding(task: str) -> None:
    X = table()
    before = X.copy()
    assert find_leaks(X, targets(X)[task], task=task) == []
    pd.testing.assert_frame_equal(X, before)


@pytest.mark.parametrize("task", TASKS)
def test_a_copy_of_the_target_under_noise(task: str) -> None:
    X = table()
    y = targets(X)[task]
    rng = np.random.default_rng(9)
    codes = y if task == "regression" else pd.factorize(y, sort=True)[0]
    leak = codes + rng.normal(scale=0.15 * codes.std(), size=N)
    assert "leak" in keys(X.assign(leak=leak), y, task)
    # As text, too: deciles of it.
    levels = "bin " + pd.Series(pd.qcut(leak, 10, labels=False)).astype(str)
    assert "leak" in keys(X.assign(leak=levels), y, task)


def test_a_copy_is_found_behind_extreme_values() -> None:
    X = table()
    y = np.exp(3 * targets(X)["regression"])
    leak = np.log(y) + np.random.default_rng(1).normal(scale=0.1, size=N)
    assert "leak" in keys(X.assign(leak=leak), y, "regression")


def test_a_column_that_is_as_good_as_all() -> None:
    X = table()
    rng = np.random.default_rng(2)
    y = rng.normal(size=N)
    found = find_leaks(X.assign(leak=y + rng.normal(scale=0.5, size=N)), y, task="regression")
    assert [finding.key for finding in found] == ["leak"]
    assert "all together" in found[0].text


def test_one_class_that_is_given_away() -> None:
    X = table()
    y = targets(X)["multiclass"]
    assert "leak" in keys(X.assign(leak=(y == "b").astype(int)), y, "multiclass")


@pytest.mark.parametrize("task", TASKS)
def test_gaps_that_tell_of_the_target(task: str) -> None:
    X = table()
    y = targets(X)[task]
    rng = np.random.default_rng(3)
    high = y > np.median(y) if task == "regression" else y == np.unique(y)[-1]
    X["score"] = X["score"].fillna(0.0).where(~(high & (rng.random(N) < 0.5)))
    assert "score (missing)" in keys(X, y, task)


def test_gaps_that_tell_of_it_together() -> None:
    X = table()[["age", "income"]].astype(float)
    rng = np.random.default_rng(4)
    first, second = rng.random(N) < 0.5, rng.random(N) < 0.5
    X.loc[first, "age"] = np.nan
    X.loc[second, "income"] = np.nan
    found = keys(X, np.where(first == second, "yes", "no"), "binary")
    assert "(missing)" in found
    assert not {"age (missing)", "income (missing)"} & set(found)


@pytest.mark.parametrize(
    "column",
    [
        np.arange(N)[::-1],
        np.arange(N) * 2.0 + 7,
        np.random.default_rng(5).permutation(90000)[:N] + 10000,
        [f"name {k % 400}" for k in range(N)],
    ],
)
def test_identifiers(column) -> None:
    X = table()
    assert keys(X.assign(id=column), targets(X)["regression"], "regression") == ["id (id)"]


def test_amounts_are_no_identifiers() -> None:
    X = table()
    X["income"] = X["income"].round().astype(int)
    assert keys(X, targets(X)["regression"], "regression") == []


def test_copies_of_columns() -> None:
    X = table()
    y = targets(X)["regression"]
    renamed = X["region"].map({"N": 1, "S": 2, "W": 3})
    assert keys(X.assign(code=renamed), y, "regression") == ["region = code"]
    assert keys(X.assign(square=X["income"] ** 2), y, "regression") == ["income = square"]
    assert "age = birth" in keys(X.assign(birth=2000 - X["age"]), y, "regression")


def test_sums_and_complete_sets_of_indicators() -> None:
    X = table()
    y = targets(X)["regression"]
    extra = np.random.default_rng(6).gamma(2.0, 1000.0, N)
    total = X.assign(extra=extra, total=X["income"] + extra)
    found = find_leaks(total, y, task="regression")
    assert [finding.key for finding in found] == ["linear"]
    assert found[0].text.endswith("income, extra, total")
    dummies = pd.get_dummies(X["region"]).astype(int)
    assert keys(pd.concat([X.drop(columns="region"), dummies], axis=1), y, "regression") == [
        "linear"
    ]


def test_copied_rows() -> None:
    X = table()
    y = targets(X)["regression"]
    rows = np.r_[np.arange(N), np.arange(20)]
    twice, target = X.iloc[rows].reset_index(drop=True), y[rows]
    assert keys(twice, target, "regression") == ["duplicates"]
    # Within one cluster no split puts a copy on the other side.
    assert keys(twice, target, "regression", groups=rows) == []


def test_coarse_columns_give_copies_by_themselves() -> None:
    X = table()[["region", "member"]].assign(age=table()["age"] // 20)
    found = find_leaks(X, targets(table())["binary"], task="binary")
    assert [finding.key for finding in found] == ["duplicates"]


def test_an_identity() -> None:
    X = table().drop(columns="score")
    y = 2.0 * X["age"] + X["income"] / 100 + 10 * X["member"]
    assert "all columns" in keys(X, y.to_numpy(), "regression")


def test_clusters_stay_on_one_side() -> None:
    # The person's own column gives the target away only between rows of one person.
    rng = np.random.default_rng(10)
    person = np.repeat(np.arange(N // 6), 6)
    value = rng.normal(size=N // 6)
    X = table().assign(mark=[f"person {k}" for k in person])
    y = value[person] + rng.normal(scale=0.1, size=N)
    assert "mark" in keys(X, y, "regression")
    assert keys(X, y, "regression", groups=person) == []


def test_large_tables_are_sampled_the_same_way() -> None:
    X = pd.concat([table()] * 8, ignore_index=True)
    X["income"] += np.arange(len(X))
    y = np.random.default_rng(11).normal(size=len(X))
    X["leak"] = y
    assert find_leaks(X, y, task="regression") == find_leaks(X, y, task="regression")
    assert "leak" in keys(X, y, "regression")


def test_answers() -> None:
    findings = [Finding("a", "text"), Finding("b (missing)", "text")]
    assert unanswered(findings, {"a": "asked first"}) == findings[1:]
