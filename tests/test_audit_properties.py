"""What holds for every table that is audited, and for the kernels below."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import inconvenient as ic
import naive
from inconvenient.errors import InputError
from inconvenient.kernels import linalg, removal, removal_rows
from inconvenient.selection.removal import CLASSICAL, COEFFICIENT, HC1, Table
from inconvenient.selection.removal_models import open_state
from inconvenient.selection.removal_search import greedy

pytestmark = pytest.mark.jit

SEEDS = st.integers(0, 2**32 - 1)
FEW = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
MANY = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def drawn(seed, n, p, task="regression", grid=False):
    """A table whose numbers are on all scales, with a heavy tail, or on a grid of few values."""
    rng = np.random.default_rng(seed)
    X = rng.standard_t(3, size=(n, p)) @ (np.eye(p) + 0.5 * rng.normal(size=(p, p)))
    X = X * 10.0 ** rng.integers(-4, 5, size=p) + rng.choice([0.0, 100.0], size=p)
    if grid:
        X = rng.integers(-2, 3, size=(n, p)).astype(float)
    y = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-300) @ rng.normal(size=p)
    y = y * rng.choice([0.1, 1.0]) + rng.standard_t(3, size=n)
    if task == "binary":
        y = (y > np.median(y) + rng.normal(size=n)).astype(float)
    return X, y


def frame_of(X):
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])


def table_of(X, y, intercept=True, task="regression", column=1):
    A = np.column_stack([np.ones(len(X)), X]) if intercept else X
    return Table(np.ascontiguousarray(A), y.copy(), column, intercept, task)


def audited(*arguments, **options):
    """An audit, or no example where the table cannot be audited."""
    try:
        return ic.audit(*arguments, **options)
    except InputError:
        assume(False)


# ---------------------------------------------------------------- kernels


@given(SEEDS, st.integers(1, 300), st.integers(1, 6))
@MANY
def test_block_kernels_equal_numpy(seed, n, p):
    rng = np.random.default_rng(seed)
    X, v, w = rng.normal(size=(n, p)), rng.normal(size=p), rng.normal(size=n)
    gone = rng.random(n) < 0.3
    gone[0] = False
    inputs = [a.tobytes() for a in (X, v, w, gone)]
    blocks = np.empty((-(-n // linalg.BLOCK), p, linalg.BLOCK))
    mean, scale, size = np.empty(p), np.empty(p), np.empty(p)
    removal_rows.left_moments(X, gone, mean, scale, size)
    np.testing.assert_allclose(mean, X[~gone].mean(axis=0), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(scale, X[~gone].std(axis=0), rtol=1e-11, atol=1e-15)
    np.testing.assert_array_equal(size, np.abs(X[~gone]).max(axis=0))
    ones, zeros = np.ones(p), np.zeros(p)
    gram, again = np.empty((p, p)), np.empty((p, p))
    removal_rows.whitened_blocks(X, zeros, ones, np.eye(p), 1.0, blocks)
    np.testing.assert_array_equal(blocks.transpose(0, 2, 1).reshape(-1, p)[:n], X)
    removal_rows.standard_gram(X, gone, zeros, ones, gram)
    removal_rows.block_gram(blocks, (~gone).astype(float), again)
    np.testing.assert_array_equal(gram, again)
    np.testing.assert_allclose(gram, np.tril(X[~gone].T @ X[~gone]), rtol=1e-11, atol=1e-12)
    products, norms, sums = np.empty(n), np.empty(n), np.empty(p)
    removal.row_products(blocks, v, products)
    np.testing.assert_allclose(products, X @ v, rtol=1e-11, atol=1e-13)
    removal_rows.row_norms(blocks, norms)
    np.testing.assert_allclose(norms, np.linalg.norm(X, axis=1), rtol=1e-12)
    removal.weighted_sum(blocks, w, sums)
    np.testing.assert_allclose(sums, w @ X, rtol=1e-10, atol=1e-12)
    assert removal.square_sum(w, gone) == pytest.approx(np.sum(w[~gone] ** 2), rel=1e-12)
    logs = np.empty(n)
    removal.logarithms(norms + 1e-3, logs)
    np.testing.assert_allclose(logs, np.log(norms + 1e-3), rtol=1e-14, atol=2e-15)
    assert inputs == [a.tobytes() for a in (X, v, w, gone)]


@given(SEEDS, st.integers(8, 200), st.integers(1, 6), st.booleans())
@MANY
def test_hat_values_sum_to_the_rank(seed, n, p, intercept):
    X, y = drawn(seed, n, p)
    table = table_of(X, y, intercept, column=0 + intercept)
    assume(n > p + 2)
    state = open_state(table, COEFFICIENT)
    assume(state.ok)
    rank = p + intercept
    assert state._hat.sum() == pytest.approx(rank, rel=1e-10)
    assert state._hat.min() >= 0.0
    assert state._hat.max() <= 1.0 + 1e-10
    np.testing.assert_allclose(state._hat, naive.hat_values(table.X), rtol=1e-6, atol=1e-9)
    # After removals that leave a fit, over the rows left.
    for i in np.random.default_rng(seed).permutation(n)[: n // 3].tolist():
        state.remove(i)
    assert state._hat[~state.gone].sum() == pytest.approx(rank, rel=1e-9)


@given(SEEDS, st.integers(12, 200), st.sampled_from(["regression", "binary"]))
@FEW
def test_a_state_follows_any_removals_and_returns(seed, n, task):
    X, y = drawn(seed, n, 3, task)
    table = table_of(X, y, task=task, column=2)
    before = table.X.tobytes(), table.y.tobytes()
    for kind in (COEFFICIENT, CLASSICAL, HC1)[: 3 if task == "regression" else 2]:
        state = open_state(table, kind)
        if not state.ok:  # separable
            continue
        start = state.value()
        rng = np.random.default_rng(seed)
        out = []
        for i in rng.permutation(n)[: n // 3].tolist():
            if state.remove(i):
                out.append(i)
        other = open_state(table, kind).without(out)
        assert other is not None
        assert state.polish()
        # Logistic fits stop within 1e-9 of a standard error of the optimum.
        close = {"rel": 1e-9 if task == "regression" else 1e-7, "abs": 1e-9 * abs(start)}
        assert state.value() == pytest.approx(other.value(), **close)
        for i in out:
            assert state.restore(i)
        assert state.polish()
        assert state.value() == pytest.approx(start, rel=close["rel"])
    assert (table.X.tobytes(), table.y.tobytes()) == before


@given(SEEDS, st.integers(15, 60), st.sampled_from([COEFFICIENT, CLASSICAL, HC1]), st.booleans())
@FEW
def test_what_a_removal_does_equals_the_removal(seed, n, kind, grid):
    X, y = drawn(seed, n, 3, grid=grid)
    state = open_state(table_of(X, y), kind)
    assume(state.ok)
    values = state.values_after()
    for i in range(n):
        twin = state.copy()
        if twin.remove(i):
            again = twin.without([i])
            assert values[i] == pytest.approx(again.value(), rel=1e-7, abs=1e-12)
        else:
            assert np.isnan(values[i])


@given(SEEDS, st.sampled_from([1.0, -1.0]), st.sampled_from([COEFFICIENT, CLASSICAL, HC1]))
@FEW
def test_greedy_removal_never_beats_all_subsets(seed, sign, kind):
    X, y = drawn(seed, 10, 2)
    table = table_of(X, y)
    state = open_state(table, kind)
    assume(state.ok)

    def value(rows):
        # In raw units pinv loses digits.
        left = np.setdiff1d(np.arange(10), rows)
        Z = (X[left] - X[left].mean(axis=0)) / X[left].std(axis=0)
        A, unit = np.column_stack([np.ones(len(left)), Z]), X[left, 0].std()
        b = naive.ols(A, y[left])[1]
        if kind == COEFFICIENT:
            return b / unit
        return b / naive.ols_errors(A, y[left])[0 if kind == CLASSICAL else 1][1]

    out = []
    for i, reached in greedy(state, sign, 3):
        out.append(i)
        assert reached == pytest.approx(value(out), rel=1e-8, abs=1e-12)
        best = max(sign * value(s) for s in itertools.combinations(range(10), len(out)))
        assert sign * reached <= best + 1e-8 * abs(best)


# ---------------------------------------------------------------- audits


@given(SEEDS, st.integers(12, 30), st.sampled_from(["regression", "binary"]))
@FEW
def test_more_subsets_never_need_more_rows(seed, n, task):
    X, y = drawn(seed, n, 2, task)
    frame, target = frame_of(X), pd.Series(y)
    kept = frame.copy(), target.copy()
    last = None
    for max_subsets in (0, n, 20 * n, 200 * n):
        found = audited(frame, target, feature="x0", task=task, max_subsets=max_subsets, max_rows=6)
        for entry, before in zip(found.entries, last.entries if last else found.entries):
            if before.reached:
                assert entry.reached
                assert entry.k <= before.k
            assert entry.at_least >= before.at_least
            if entry.reached:
                assert entry.at_least <= entry.k
                # The proof and the rows say the same.
                assert len(set(entry.rows.tolist())) == entry.k
        last = found
    pd.testing.assert_frame_equal(frame, kept[0])
    pd.testing.assert_series_equal(target, kept[1])


def smallest_by_trying_all(X, y, goal, most, fit):
    """The least number of rows without which a goal holds, or None; ``fit`` gives b and t."""
    n = len(y)
    b, t, critical = fit(X, y)
    for k in range(1, most + 1):
        for rows in itertools.combinations(range(n), k):
            left = np.setdiff1d(np.arange(n), rows)
            found = fit(X[left], y[left])
            if found is None:
                continue
            after, t, critical = found
            if {
                "flip": after * b < 0,
                "halve": after / b <= 0.5,
                "double": after / b >= 2.0,
                "insignificant": abs(t) < critical,
            }[goal]:
                return k
    return None


def naive_t(X, y):
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    A = np.column_stack([np.ones(len(y)), Z])
    b = naive.ols(A, y)[1]
    critical = scipy.stats.t.ppf(0.975, len(y) - A.shape[1])
    return b / X[:, 0].std(), b / naive.ols_errors(A, y)[0][1], critical


def naive_logit(X, y):
    if y.min() == y.max():
        return None
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    A = np.column_stack([np.ones(len(y)), Z])
    if naive.separable(A, y.astype(int), 2):
        return None
    b = naive.logistic(A, y)
    share = 1 / (1 + np.exp(-A @ b))
    error = np.sqrt(np.linalg.inv((A.T * share * (1 - share)) @ A)[1, 1])
    return b[1] / X[:, 0].std(), b[1] / error, scipy.stats.norm.ppf(0.975)


@given(SEEDS, st.sampled_from(["flip", "halve", "double", "insignificant"]))
@FEW
def test_what_is_called_exhaustive_is_the_least_of_all_subsets(seed, goal):
    X, y = drawn(seed, 11, 2)
    found = audited(frame_of(X), y, feature="x0", goals=goal, task="regression", max_rows=4)[goal]
    assume(found.proof != "none needed")
    assert found.k == smallest_by_trying_all(X, y, goal, 4, naive_t)
    assert found.at_least == (5 if found.k is None else found.k)


@given(SEEDS, st.sampled_from(["flip", "halve", "double", "insignificant"]))
@settings(FEW, max_examples=10)
def test_the_same_for_two_classes(seed, goal):
    X, y = drawn(seed, 16, 2, "binary")
    found = audited(frame_of(X), y, feature="x0", goals=goal, task="binary", max_rows=2)[goal]
    assume(found.proof != "none needed")
    assert found.k == smallest_by_trying_all(X, y, goal, 2, naive_logit)


@given(SEEDS, st.integers(12, 40), st.sampled_from(["regression", "binary"]))
@FEW
def test_permuted_rows_give_the_same_rows(seed, n, task):
    X, y = drawn(seed, n, 2, task)
    order = np.random.default_rng(seed).permutation(n)
    options = {"feature": "x1", "task": task, "max_subsets": 3 * n**2, "max_rows": 5}
    one = audited(frame_of(X), y, **options)
    two = audited(frame_of(X[order]), y[order], **options)
    assert one.coefficient == pytest.approx(two.coefficient, rel=1e-8)
    for a, b in zip(one.entries, two.entries):
        assert (a.reached, a.k, a.at_least) == (b.reached, b.k, b.at_least)
        if a.k == 1 or a.proof == "exhaustive":
            # Of several sets of the least size the one that goes furthest is named.
            assert sorted(order[b.rows].tolist()) == a.rows.tolist()


@given(SEEDS, st.sampled_from([1e-6, 1e6]), st.sampled_from([0.0, 1e4]))
@FEW
def test_units_do_not_matter(seed, unit, shift):
    X, y = drawn(seed, 25, 2)
    options = {"feature": "x0", "max_subsets": 400, "max_rows": 5, "task": "regression"}
    one = audited(frame_of(X), y, **options)
    spread = X[:, 0].std()
    turned = X.copy()
    turned[:, 0] = unit * (X[:, 0] + shift * spread)
    two = audited(frame_of(turned), 7.0 * y + 3.0, **options)
    # The shift takes four digits.
    assert two.coefficient * unit / 7.0 == pytest.approx(one.coefficient, rel=1e-8)
    for a, b in zip(one.entries, two.entries):
        assert (a.reached, a.k) == (b.reached, b.k)


@given(SEEDS, st.sampled_from(["regression", "binary"]))
@FEW
def test_what_is_reported_is_a_refit_of_full_rank(seed, task):
    X, y = drawn(seed, 40, 3, task, grid=bool(seed % 2))
    found = audited(frame_of(X), y, feature="x2", task=task, max_subsets=50, max_rows=30)
    for entry in found.entries:
        if not entry.reached:
            assert entry.k is None
            assert np.isnan(entry.coefficient_after)
            continue
        left = np.setdiff1d(np.arange(40), entry.rows)
        # In raw units the naive versions lose digits.
        Z = (X[left] - X[left].mean(axis=0)) / X[left].std(axis=0)
        assert np.linalg.matrix_rank(Z) == 3
        fit = naive.ols if task == "regression" else naive.logistic
        b = fit(np.column_stack([np.ones(len(left)), Z]), y[left])[3] / X[left, 2].std()
        assert entry.coefficient_after == pytest.approx(b, rel=1e-6)
        sign = np.sign(found.coefficient)
        ratio = entry.coefficient_after / found.coefficient
        if entry.goal == "flip":
            assert np.sign(entry.coefficient_after) == -sign
        if entry.goal == "halve":
            assert ratio <= 0.5 + 1e-8
        if entry.goal == "double":
            assert ratio >= 2.0 - 1e-8


@given(SEEDS, st.sampled_from(["regression", "binary"]))
@FEW
def test_a_replayed_audit_gives_the_same_coefficients(seed, task):
    X, y = drawn(seed, 60, 3, task)
    found = audited(frame_of(X), y, feature="x1", task=task, max_subsets=100, max_rows=20)
    for entry in found.entries:
        if not entry.reached:
            continue
        kind = COEFFICIENT if entry.goal in ("flip", "halve", "double") else CLASSICAL
        kind = HC1 if entry.goal == "insignificant_hc1" else kind
        state = open_state(table_of(X, y, task=task, column=2), kind)
        for i in np.random.default_rng(seed).permutation(entry.rows.copy()).tolist():
            assert state.remove(i)
        assert state.polish()
        after = entry.coefficient_after if kind == COEFFICIENT else entry.t_after
        assert state.value() == pytest.approx(after, rel=1e-7)


@given(SEEDS, st.sampled_from([1.0, -3.0, 1e7]), st.sampled_from([0.0, 1e6]))
@FEW
def test_a_repeated_or_constant_column_is_refused(seed, factor, shift):
    X, y = drawn(seed, 30, 3)
    frame = frame_of(X).assign(constant=shift)
    spread = frame["x0"].std()
    frame["twin"] = factor * (frame["x0"] + shift * spread)
    for name, other in (("x0", "twin"), ("twin", "x0")):
        # A mean of a million deviations is known to 1e-4 of one: then it is the fit that refuses.
        exact = abs(frame[[name, other]].mean()).max() < 1e4 * frame[[name, other]].std().min()
        reason = f"'{name}' is perfectly collinear with '{other}'" if exact else "collinear|repeat"
        with pytest.raises(InputError, match=reason):
            ic.audit(frame, y, feature=name, task="regression")
    with pytest.raises(InputError, match="'constant' is constant"):
        ic.audit(frame.drop(columns="twin"), y, feature="constant", task="regression")
    if not exact:
        return
    # The others are not affected.
    found = ic.audit(frame, y, feature="x1", task="regression", max_rows=2, max_subsets=0)
    plain = ic.audit(frame_of(X), y, feature="x1", task="regression", max_rows=2, max_subsets=0)
    assert found.coefficient == pytest.approx(plain.coefficient, rel=1e-7)


@given(st.integers(2, 12), SEEDS)
@FEW
def test_halves_that_are_exact_count(k, seed):
    # A difference of two means of whole numbers, which leaving out rows halves exactly.
    rng = np.random.default_rng(seed)
    group = np.repeat([0.0, 1.0], 2 * k)
    y = np.r_[np.zeros(2 * k), np.repeat([4.0, 0.0], k)]
    order = rng.permutation(4 * k)
    found = audited(
        pd.DataFrame({"group": group[order]}), y[order], feature="group", goals="halve",
        task="regression", max_subsets=0,
    )["halve"]  # fmt: skip
    # 4 (k - m) / (2 k - m) <= 1 from m = 2 k / 3 on.
    assert found.proof == "exact"
    assert found.k == -(-2 * k // 3)
