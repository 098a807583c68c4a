"""Rankings without a language model: seeded, and each by the number it names."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scoring import SMALL, needs_publication

import inconvenient as ic
from inconvenient.llm.rankings import (
    bootstrap_table,
    generator_of,
    rank_by_instability,
    rank_by_size,
    rank_by_spread,
    rank_randomly,
    ranked,
)
from inconvenient.llm.recall import recall_at
from inconvenient.llm.tasks import ask_about, truth_of
from inconvenient.shifts.records import Context


def context(names: list[str], task: str = "regression", classes: tuple[str, ...] = ()) -> Context:
    return Context(task, classes, "target", "", "", dict.fromkeys(names, ""))


def test_random_rankings_depend_on_seed_and_shift_alone() -> None:
    names = [f"x{i}" for i in range(12)]
    first = rank_randomly(names, generator_of(1, "a/b"))
    assert sorted(first) == sorted(names)
    assert first == rank_randomly(names, generator_of(1, "a/b"))
    assert first != rank_randomly(names, generator_of(2, "a/b"))
    assert first != rank_randomly(names, generator_of(1, "a/c"))


def test_random_ranking_comes_out_at_chance() -> None:
    names = [f"x{i}" for i in range(15)]
    drawn = [
        recall_at(rank_randomly(names, generator_of(3, str(i))), names, 5) for i in range(2000)
    ]
    assert abs(np.mean(drawn) - 5 / 15) < 4 * np.std(drawn) / np.sqrt(2000)


def test_ties_go_by_name() -> None:
    assert ranked({"b": 1.0, "a": 1.0, "c": 2.0, "d": float("inf")}) == ("d", "c", "a", "b")


def test_size_is_the_norm_of_what_is_shown(diabetes: pd.DataFrame) -> None:
    X, y = diabetes.drop(columns="progression"), diabetes["progression"]
    Z = sm.add_constant((X - X.mean()) / X.std(ddof=0))
    expected = sm.OLS(y, Z).fit().params.drop("const").abs().sort_values(ascending=False)
    assert rank_by_size(ask_about(X, y, context(list(X)))) == tuple(expected.index)


def test_spread_comes_near_the_standard_error(diabetes: pd.DataFrame) -> None:
    X, y = diabetes.drop(columns="progression"), diabetes["progression"]
    X = X[["sex", "bmi", "bp", "s5"]].assign(constant=1.0)
    table = bootstrap_table(X, y, context(list(X)), np.random.default_rng(0), resamples=400)
    Z = sm.add_constant((X - X.mean()) / X.std(ddof=0).replace(0.0, 1.0)).drop(columns="constant")
    fit = sm.OLS((y - y.mean()) / y.std(ddof=0), Z).fit(cov_type="HC0")
    for name in ["sex", "bmi", "bp", "s5"]:
        row = table.loc[name]
        assert 0.85 < row["spread"] / fit.bse[name] < 1.15, name  # 400 draws leave some 4 %
        assert 0.98 < row["size"] / abs(fit.params[name]) < 1.02, name  # the penalty is 0.001
        assert np.isclose(row["instability"], row["spread"] / row["size"], rtol=1e-8)
    assert table.loc["constant"].eq(0.0).all()
    assert rank_by_spread(table)[-1] == rank_by_instability(table)[-1] == "constant"
    assert rank_by_spread(table)[0] == table["spread"].idxmax()
    assert rank_by_instability(table)[0] == table["instability"].idxmax()


def test_noise_is_more_unstable_than_signal_for_classes() -> None:
    rng = np.random.default_rng(4)
    n = 300
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["noise", "signal", "more"])
    X["rare"] = np.where(np.arange(n) < 4, "odd", "usual")  # constant in some resamples
    for classes in (("a", "b"), ("a", "b", "c"), ("a", "b", "c", "absent")):
        level = X["signal"] + X["more"] + 0.5 * rng.normal(size=n)
        codes = pd.cut(level, [-np.inf, *([-0.5, 0.5] if len(classes) > 2 else [0.0]), np.inf])
        y = pd.Series(np.array(classes)[codes.cat.codes.to_numpy()])
        if len(classes) == 4:
            y.iloc[:2] = "absent"  # of which many resamples hold no row
        task = "binary" if len(classes) == 2 else "multiclass"
        table = bootstrap_table(X, y, context(list(X), task, classes), rng, resamples=20)
        ranking = rank_by_instability(table)
        assert set(ranking) == set(X)
        assert ranking.index("noise") < min(ranking.index("signal"), ranking.index("more"))


@needs_publication
@pytest.mark.usefixtures("data_folder")
@pytest.mark.parametrize("task", sorted(SMALL))
def test_published_shifts_can_be_ranked(task: str) -> None:
    shift_id = ic.list_shifts(SMALL[task], "quick")["shift_id"].iloc[0]
    shift = ic.load_shift(shift_id, "quick")
    X, y = shift.train()
    truth = truth_of(shift).order
    tables = [
        bootstrap_table(X, y, shift.context, generator_of(1, shift_id), resamples=5)
        for _ in range(2)
    ]
    pd.testing.assert_frame_equal(tables[0], tables[1], check_exact=True)
    by_size = rank_by_size(ask_about(X, y, shift.context))
    for ranking in (by_size, rank_by_spread(tables[0]), rank_by_instability(tables[0])):
        assert 0.0 <= recall_at(ranking, truth, 5) <= 1.0
