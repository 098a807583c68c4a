"""The page on inapplicable methods: its tables are what its script prints."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.special import expit
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression

import robust_objectives as ro

ROOT = Path(__file__).resolve().parents[1]

SECONDS = 600  # about fifteen of one core; others may use it

Table = dict[str, list[float]]


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    """Six columns of the breast cancer data, standardised, behind an intercept."""
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, :6]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return np.column_stack([np.ones(len(y)), X]), y.astype(np.float64)


def tables(text: str) -> list[Table]:
    """Return the tables of a page in Markdown: numbers by the first cell of a row."""
    found: list[Table] = [{}]
    for line in [*text.splitlines(), ""]:
        if not line.startswith("|"):
            if found[-1]:
                found.append({})
            continue
        head, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        if all(re.fullmatch(r"-?\d+(\.\d+)?", cell) for cell in cells):
            found[-1][head] = [float(cell) for cell in cells]
    return found[:-1]


@pytest.mark.slow
@pytest.mark.jit
def test_the_page_shows_what_the_script_prints(data_folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "docs" / "inapplicable_methods.py")],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    page = (ROOT / "docs" / "inapplicable_methods.md").read_text(encoding="utf-8")
    shown, printed = tables(page), tables(done.stdout)
    assert len(shown) == len(printed) == 2
    for said, found in zip(shown, printed):
        assert list(said) == list(found)
        for name, values in found.items():
            # Where iterations stop depends on the processor's LAPACK.
            np.testing.assert_allclose(said[name], values, rtol=0.02, atol=0.011, err_msg=name)

    methods, beside = printed
    erm = methods["ERM on the sample"]
    assert methods["BBSE, own shares"] == methods["MLLS, own shares"] == erm
    names = list(methods)
    alone = names[names.index("ERM on the sample") : names.index("MLLS, own shares") + 1]
    control = beside["AUC, ERM on the control"]
    assert len(alone) == 14
    for name in alone:
        bent, *_ = methods[name]
        assert bent < 0.0, f"{name} turned the flipped coefficient"
        assert all(a < c for a, c in zip(methods[name][1::2], control)), name


def groups_of(y: np.ndarray) -> np.ndarray:
    return np.arange(len(y)) % 3


@pytest.mark.parametrize(
    "make",
    [
        lambda y: ro.weighted(),
        lambda y: ro.weighted(1.0 + y),
        lambda y: ro.v_rex(groups_of(y)),
        lambda y: ro.irm(groups_of(y)),
        lambda y: ro.group_dro(groups_of(y)),
        lambda y: ro.chi_square_dro,
    ],
    ids=["erm", "weighted", "v_rex", "irm", "group_dro", "chi_square_dro"],
)
def test_gradients(rows: tuple[np.ndarray, np.ndarray], make) -> None:
    y = rows[1][:60]
    objective = make(y)
    scores = np.random.default_rng(5).normal(size=len(y))
    error = check_grad(lambda s: objective(s, y)[0], lambda s: objective(s, y)[1], scores)
    assert error < 1e-5 * max(1.0, np.linalg.norm(objective(scores, y)[1]))


def test_plain_training_is_logistic_regression(rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = rows
    b = ro.fit(X, y, ro.ERM, ridge=0.01)
    model = LogisticRegression(C=1 / (0.01 * len(y)), tol=1e-10, max_iter=10_000).fit(X[:, 1:], y)
    np.testing.assert_allclose(b, np.r_[model.intercept_, model.coef_[0]], rtol=1e-3, atol=1e-4)


def test_the_worst_risks_are_what_they_say(rows: tuple[np.ndarray, np.ndarray]) -> None:
    y = rows[1]
    scores = np.random.default_rng(6).normal(size=len(y))
    loss = ro.losses(scores, y)[0]
    groups = groups_of(y)
    worst = max(loss[groups == g].mean() for g in range(3))
    value = ro.group_dro(groups)(scores, y)[0]
    assert worst - np.log(3) / ro.SHARPNESS <= value <= worst
    # The dual against one member of the ball: weights linear in the loss, at its radius.
    lean = (loss - loss.mean()) / loss.std()
    weights = 1 + np.sqrt(2 * ro.RADIUS) * lean
    robust = ro.chi_square_dro(scores, y)[0]
    if weights.min() >= 0:
        assert robust == pytest.approx(np.mean(weights * loss), rel=1e-6)
    assert loss.mean() < robust <= np.mean(weights * loss) + 1e-9
    assert robust <= loss.max()


def test_label_shift_is_found_where_it_is_one(rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = rows
    ones, zeros = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    drawn = np.random.default_rng(7).permutation(ones)[: len(zeros) // 4]
    other = np.r_[drawn, zeros]  # a fifth of class 1, of 63 % in the table
    b = ro.fit(X, y, ro.ERM, ridge=0.01)
    own, there = expit(X @ b), expit(X[other] @ b)
    assert y.mean() > 0.6
    assert ro.black_box_share(own, y, there) == pytest.approx(0.2, abs=0.02)
    assert ro.maximum_likelihood_share(y, there) == pytest.approx(0.2, abs=0.06)
    weights = ro.label_weights(y, 0.2)
    assert weights @ y / weights.sum() == pytest.approx(0.2)


@pytest.mark.parametrize("estimate", ["ratio", "kernel"])
def test_covariate_shift_is_mended_where_it_is_one(
    rows: tuple[np.ndarray, np.ndarray], estimate: str
) -> None:
    X, _ = rows
    rng = np.random.default_rng(8)
    keep = rng.random(len(X)) < expit(1.5 * X[:, 1])
    here, there = X[keep], X
    weigh = {
        "ratio": lambda: ro.density_ratio(here, there, ridge=0.001),
        "kernel": lambda: ro.kernel_mean_matching(here, there),
    }[estimate]
    weights = weigh()
    before, wanted = here[:, 1].mean(), there[:, 1].mean()
    after = weights @ here[:, 1] / weights.sum()
    assert abs(before - wanted) > 0.3
    assert abs(after - wanted) < 0.4 * abs(before - wanted)
