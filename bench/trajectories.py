"""Greedy trajectories beside what a user would write: ``python bench/trajectories.py``.

Baselines add the same batches and choose the same rows (asserted):

- strict: NumPy; X'X and X'y are kept up to date, one ``solve`` a step gives the coefficients and
  the one row of the inverse that matters, and leverages come from the inverse.
- usual: a scikit-learn refit per batch with tolerances that make the rows the same, the inverse
  Hessian from the rows, and the influence of every row on every coefficient.

The clock of the product includes the coding of the columns. Each ratio is of one round, both sides
in turn; the table gives their median.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable

import numpy as np

from designs import design_from
from inconvenient.selection.engine import Engine
from inconvenient.selection.reference import Aim
from inconvenient.selection.strategies import Trajectory, push, uniform_order

HEADER = "| case | n | p | beside | median ratio | least to most | wanted |"


def table(n: int, p: int, n_classes: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return columns with an intercept, correlated as in a moving average, and a target."""
    rng = np.random.default_rng(0)
    raw = rng.normal(size=(n, p))
    X = np.empty((n, p))
    X[:, 0] = 1.0
    X[:, 1:] = (raw[:, 1:] + 0.5 * raw[:, :-1]) / np.sqrt(1.25)
    if n_classes:
        scores = X @ (0.2 * rng.normal(size=(p, n_classes))) + rng.gumbel(size=(n, n_classes))
        return X, np.argmax(scores, axis=1).astype(float)
    y = X @ (0.3 * rng.normal(size=p)) + rng.normal(size=n)
    return X, (y - y.mean()) / y.std()


def pushed(X: np.ndarray, y: np.ndarray, task: str, start: np.ndarray, stop: int) -> Trajectory:
    """Return the product's trajectory for coefficient 1, upwards, to ``stop`` rows."""
    return push(
        Engine(design_from(X, y, task)),
        Aim(np.array([1]), np.array([0]), np.array([1.0])),
        np.array([1.0]),
        start=start,
        free_from=0,
        stops=(stop,),
        ridge=0.0,
        done=lambda sizes, values, usable: sizes[-1] >= stop,
    )


def grown(
    n: int,
    start: np.ndarray,
    batches: np.ndarray,
    scores: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> np.ndarray:
    """Return the rows of a baseline; ``scores`` gets the rows so far and the last batch."""
    taken = np.zeros(n, dtype=bool)
    taken[start] = True
    rows = new = start
    for k in batches:
        score = scores(rows, new)
        score[taken] = -np.inf
        new = np.argpartition(-score, k)[:k]
        new = new[np.lexsort((new, -score[new]))]
        taken[new] = True
        rows = np.concatenate([rows, new])
    return rows


def strict(X: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Return the scores of the strict baseline."""
    p = X.shape[1]
    A, c, unit = np.zeros((p, p)), np.zeros(p), np.eye(p)[1]

    def scores(rows: np.ndarray, new: np.ndarray) -> np.ndarray:
        Z = X[new]
        A[:] += Z.T @ Z
        c[:] += Z.T @ y[new]
        b, a = np.linalg.solve(A, np.column_stack([c, unit])).T
        hat = np.einsum("ij,ij->i", X @ np.linalg.inv(A), X)
        return (X @ a) * (y - X @ b) / (1.0 + hat)

    return scores


def usual_ols(X: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Return the scores of the usual baseline for a regression."""
    from sklearn.linear_model import LinearRegression

    def scores(rows: np.ndarray, new: np.ndarray) -> np.ndarray:
        Z = X[rows]
        fit = LinearRegression(fit_intercept=False).fit(Z, y[rows])
        P = X @ np.linalg.inv(Z.T @ Z)
        hat = np.einsum("ij,ij->i", P, X)
        return (P * ((y - fit.predict(X)) / (1.0 + hat))[:, None])[:, 1]

    return scores


def usual_logistic(X: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Return the scores of the usual baseline for two classes."""
    from sklearn.linear_model import LogisticRegression

    def scores(rows: np.ndarray, new: np.ndarray) -> np.ndarray:
        model = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-9, max_iter=2000)
        fit = model.fit(X[rows], y[rows])
        share = fit.predict_proba(X)[:, 1]
        weight = share * (1.0 - share)
        Z = X[rows]
        P = X @ np.linalg.inv((Z * weight[rows][:, None]).T @ Z)
        hat = np.einsum("ij,ij->i", P, X)
        return (P * ((y - share) / (1.0 + weight * hat))[:, None])[:, 1]

    return scores


def clock(task: Callable[[], object]) -> tuple[float, object]:
    """Return seconds and result."""
    start = time.perf_counter()
    result = task()
    return time.perf_counter() - start, result


def row(
    case: str,
    n: int,
    p: int,
    beside: str,
    ratios: list[float],
    wanted: str,
    digits: int = 1,
) -> str:
    """Return a row of the table."""
    middle, least, most = (
        f"{value:.{digits}f}" for value in (statistics.median(ratios), min(ratios), max(ratios))
    )
    return f"| {case} | {n:,} | {p} | {beside} | {middle} | {least} to {most} | {wanted} |"


def compared(
    task: str, n: int, p: int, baselines: dict[str, tuple[Callable[..., object], str]], rounds: int
) -> list[str]:
    """Return a row per baseline, for a trajectory to 30 % of the pool."""
    X, y = table(n, p, 2 if task == "binary" else 0)
    stop = 3 * n // 10
    start = uniform_order(n, 0)[: 8 * p if task == "binary" else 5 * p]
    batches = np.diff(pushed(X, y, task, start, stop).sizes)
    ratios: dict[str, list[float]] = {name: [] for name in baselines}
    for _ in range(rounds):
        fast = [clock(lambda: pushed(X, y, task, start, stop)) for _ in range(3)]
        seconds = statistics.median(s for s, _ in fast)
        for name, (make, _) in baselines.items():
            slow, rows = clock(lambda make=make: grown(n, start, batches, make(X, y)))
            assert np.array_equal(rows, fast[0][1].rows), f"{name} chose other rows"
            ratios[name].append(slow / seconds)
    case = {"regression": "OLS", "binary": "logistic"}[task] + f", {len(batches)} batches to 30 %"
    return [row(case, n, p, name, ratios[name], wanted) for name, (_, wanted) in baselines.items()]


def multinomial(rounds: int) -> list[str]:
    """Return rows for one step: score the pool, add the best tenth, refit."""
    from sklearn.linear_model import LogisticRegression

    n, p, K = 10_000, 20, 10
    X, y = table(n, p, K)
    engine = Engine(design_from(X, y, "multiclass", K))
    start = uniform_order(n, 0)[:3000]
    state = engine.fit(start)
    functional = np.zeros((p, K))
    functional[1, 0] = 1.0
    taken = np.zeros(n, dtype=bool)
    taken[start] = True

    def step() -> np.ndarray:
        new, _ = engine.best_rows(state, functional, taken, 300)
        return engine.grow(state, new).coefficients

    rows = np.concatenate([start, engine.best_rows(state, functional, taken, 300)[0]])
    table_rows = []
    for tolerance, wanted in ((1e-4, "5"), (1e-8, "")):
        model = LogisticRegression(C=np.inf, fit_intercept=False, tol=tolerance, max_iter=2000)

        def refit(model: LogisticRegression = model) -> np.ndarray:
            return model.fit(X[rows], y[rows]).coef_.T

        ratios = []
        for _ in range(rounds):
            fast = statistics.median(clock(step)[0] for _ in range(3))
            slow = statistics.median(clock(refit)[0] for _ in range(3))
            ratios.append(slow / fast)
        error = np.abs(refit() - step()).max()
        beside = f"one scikit-learn refit, tol={tolerance:g} (coefficients {error:.0e} off)"
        table_rows.append(row("multinomial, K = 10, one step", n, p, beside, ratios, wanted))
    ratios = []
    for _ in range(rounds):
        fast = statistics.median(clock(step)[0] for _ in range(3))
        slow, chosen = clock(lambda: usual_multinomial(X, y, start, taken, functional))
        assert set(chosen) == set(rows[3000:])
        ratios.append(slow / fast)
    beside = "a refit and the influence of every row (NumPy, the same rows)"
    table_rows.append(row("multinomial, K = 10, one step", n, p, beside, ratios, ""))
    return table_rows


def usual_multinomial(
    X: np.ndarray, y: np.ndarray, start: np.ndarray, taken: np.ndarray, functional: np.ndarray
) -> np.ndarray:
    """Return the best 300 rows by a scikit-learn refit and the rank-(K-1) step for every row."""
    from sklearn.linear_model import LogisticRegression

    p = X.shape[1]
    K = functional.shape[1]
    fit = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-9, max_iter=5000)
    P = fit.fit(X[start], y[start]).predict_proba(X)[:, :-1]
    W = P[:, :, None] * (np.eye(K - 1) - P[:, None, :])
    Z = X[start]
    H = np.einsum("ikl,ij,im->kjlm", W[start], Z, Z, optimize=True)
    inverse = np.linalg.inv(H.reshape((K - 1) * p, -1)).reshape(K - 1, p, K - 1, p)
    t = (functional[:, :-1] - functional.mean(axis=1)[:, None]).T
    a = np.einsum("kjlm,lm->kj", inverse, t)
    B = np.einsum("ij,kjlm,im->ikl", X, inverse, X, optimize=True)
    R = np.eye(K)[y.astype(int)][:, :-1] - P
    solved = np.linalg.solve(np.eye(K - 1) + W @ B, R[:, :, None])[:, :, 0]
    score = np.einsum("ij,kj,ik->i", X, a, solved, optimize=True)
    score[taken] = -np.inf
    return np.argsort(-score, kind="stable")[:300]


def rows(rounds: int = 5) -> list[str]:
    """Return the rows of the table."""
    wanted = {10_000: ("12", "40"), 100_000: ("30", "70")}
    found = []
    for n, (of_strict, of_usual) in wanted.items():
        sides = {"strict": (strict, of_strict), "usual": (usual_ols, of_usual)}
        found += compared("regression", n, 50, sides, rounds if n == 10_000 else 3)
    found += compared("binary", 10_000, 50, {"usual": (usual_logistic, "10")}, 3)
    return found + multinomial(rounds)


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    print(f"{HEADER}\n{'| --- ' * 7}|")
    print("\n".join(rows()))


if __name__ == "__main__":
    main()
