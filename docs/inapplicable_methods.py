"""Methods for other kinds of shift, forced onto three published shifts of one dataset.

Run from a checkout with data/: ``python docs/inapplicable_methods.py``. It prints the tables of
docs/inapplicable_methods.md in about twenty seconds. Every model is a logistic regression on the
design of the reference model with the penalty of the collateral fits; only what is minimised
differs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.cluster import KMeans
from sklearn.metrics import roc_auc_score

from inconvenient.benchmark.grid import make_shifts, pool_design
from inconvenient.config import load_params
from inconvenient.data import Dataset, Split, load_dataset, split_dataset
from inconvenient.selection.chance import uniform_rows
from inconvenient.selection.design import Design
from inconvenient.shifts.rows import unpack_rows
from robust_objectives import (
    ERM,
    Floats,
    Ints,
    Objective,
    black_box_share,
    chi_square_dro,
    density_ratio,
    fit,
    group_dro,
    irm,
    kernel_mean_matching,
    label_weights,
    losses,
    maximum_likelihood_share,
    v_rex,
    weighted,
)

DATASET = "email_spam"
SHIFTS = {
    "flip": "email_spam/to_multiple/flip/0.2/at_least",
    "attenuate": "email_spam/sent_email/attenuate-x0.5/0.2/at_least",
    "amplify": "email_spam/sent_email/amplify-x3/0.3/at_least",
}
SEED = 20261201

PENALTIES = (1.0, 10.0, 100.0, 1000.0, 10000.0)  # of IRM and V-REx; the first table has 100


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """One shift as arrays: the sample, and what only an oracle sees."""

    X: Floats
    y: Floats
    feature: Floats  # the bent feature's column, two values
    unlabelled: Floats  # population rows without target (the filter half)
    population_y: Floats  # their targets: for the true shares alone
    population_feature: Floats
    control: tuple[Floats, Floats]  # labelled uniform sample of the pool, of the sample's size


def cells(feature: Floats, y: Floats) -> Ints:
    """Return feature (above its mean or not) x class, four groups."""
    return (2 * (feature > 0) + y).astype(np.int64)


def environments(problem: Problem, *, ridge: float) -> dict[str, Ints]:
    """Return environments made of the sample alone."""
    X, y = problem.X, problem.y
    rng = np.random.default_rng(SEED)
    clusters = KMeans(3, n_init=10, random_state=SEED % 2**32).fit_predict(X[:, 1:])
    scores = X @ fit(X, y, ERM, ridge=ridge)
    part = losses(scores, y)[1] * scores
    return {
        "random halves": rng.permutation(len(y)) % 2,
        "clusters": clusters.astype(np.int64),
        "inferred": (part > np.median(part)).astype(np.int64),
    }


def plain_methods(problem: Problem, *, ridge: float) -> Iterator[tuple[str, Floats]]:
    """Yield name and coefficients of what can be done with the sample alone."""
    X, y = problem.X, problem.y

    def fitted(objective: Objective) -> Floats:
        return fit(X, y, objective, ridge=ridge)

    yield "ERM on the sample", fitted(ERM)
    half = np.random.default_rng(SEED).permutation(len(y)) % 2 == 0
    yield (
        "density ratio, sample to its own half",
        fitted(weighted(density_ratio(X, X[half], ridge=ridge))),
    )
    yield "KMM, sample to its own half", fitted(weighted(kernel_mean_matching(X, X[half])))
    for name, groups in environments(problem, ridge=ridge).items():
        yield f"IRM, {name}", fitted(irm(groups))
        yield f"V-REx, {name}", fitted(v_rex(groups))
        if name == "clusters":
            yield "group DRO, clusters", fitted(group_dro(groups))
    yield "group DRO, classes", fitted(group_dro(y.astype(np.int64)))
    yield "chi-square DRO", fitted(chi_square_dro)
    own = expit(X @ fitted(ERM))
    yield "BBSE, own shares", fitted(weighted(label_weights(y, black_box_share(own, y, own))))
    yield "MLLS, own shares", fitted(weighted(label_weights(y, maximum_likelihood_share(y, own))))


def oracle_methods(problem: Problem, *, ridge: float) -> Iterator[tuple[str, Floats]]:
    """Yield name and coefficients of what would need something of the population."""
    X, y, others = problem.X, problem.y, problem.unlabelled

    def fitted(objective: Objective) -> Floats:
        return fit(X, y, objective, ridge=ridge)

    yield "density ratio, unlabelled rows", fitted(weighted(density_ratio(X, others, ridge=ridge)))
    yield "KMM, unlabelled rows", fitted(weighted(kernel_mean_matching(X, others)))
    own, there = expit(X @ fitted(ERM)), expit(others @ fitted(ERM))
    yield (
        "BBSE, unlabelled rows",
        fitted(weighted(label_weights(y, black_box_share(own, y, there)))),
    )
    yield (
        "MLLS, unlabelled rows",
        fitted(weighted(label_weights(y, maximum_likelihood_share(y, there)))),
    )
    yield "true class shares", fitted(weighted(label_weights(y, problem.population_y.mean())))
    yield "group DRO, bent feature x class", fitted(group_dro(cells(problem.feature, y)))
    here = cells(problem.feature, y)
    truth = cells(problem.population_feature, problem.population_y)
    ratio = np.bincount(truth, minlength=4) / len(truth)
    ratio = ratio / np.maximum(np.bincount(here, minlength=4) / len(here), 1e-12)
    yield "true shares of bent feature x class", fitted(weighted(ratio[here]))
    both = np.vstack([X, problem.control[0]]), np.r_[y, problem.control[1]]
    side = np.repeat([0, 1], [len(y), len(problem.control[1])])
    yield "IRM, second labelled environment", fit(*both, irm(side), ridge=ridge)
    yield "V-REx, second labelled environment", fit(*both, v_rex(side), ridge=ridge)
    yield "ERM on both environments", fit(*both, ERM, ridge=ridge)
    yield "ERM on the second alone (control)", fit(*problem.control, ERM, ridge=ridge)


def make_problem(
    shift: pd.Series, dataset: Dataset, split: Split, design: Design
) -> tuple[Problem, int]:
    """Return a published shift as arrays, and the place of the bent coefficient."""
    (column,) = shift["columns"]
    j = design.columns.index(column)
    rows = np.sort(unpack_rows(shift["rows"]))
    drawn = uniform_rows(split.pool, len(rows), 0, seed=SEED, name=dataset.name)
    at, control = (np.searchsorted(split.pool, ids) for ids in (rows, drawn))
    others = design.transform(dataset.X.iloc[split.filter])
    problem = Problem(
        X=design.X[at],
        y=design.y[at],
        feature=design.X[at, j],
        unlabelled=others,
        population_y=dataset.y[split.filter].astype(np.float64),
        population_feature=others[:, j],
        control=(design.X[control], design.y[control]),
    )
    return problem, j


def facts(problem: Problem, score: Callable[[Floats], float], *, ridge: float) -> dict[str, str]:
    """Return weights, shares, and the best of IRM and V-REx if their score could be looked at."""
    X, y, others = problem.X, problem.y, problem.unlabelled
    half = np.random.default_rng(SEED).permutation(len(y)) % 2 == 0
    out = {"rows of the sample": str(len(y))}
    for name, rows in (("its own half", X[half]), ("unlabelled rows", others)):
        weights = density_ratio(X, rows, ridge=ridge)
        effective = weights.sum() ** 2 / (weights**2).sum() / len(y)
        out[f"effective share of rows, density ratio to {name}"] = f"{effective:.2f}"
    b = fit(X, y, ERM, ridge=ridge)
    own, there = expit(X @ b), expit(others @ b)
    shares = {
        "share of spam, sample": y.mean(),
        "share of spam, population": problem.population_y.mean(),
        "its estimate by BBSE, unlabelled rows": black_box_share(own, y, there),
        "its estimate by MLLS, unlabelled rows": maximum_likelihood_share(y, there),
    }
    out |= {name: f"{float(value):.3f}" for name, value in shares.items()}
    tried = [
        score(fit(X, y, objective(groups, penalty), ridge=ridge))
        for groups in environments(problem, ridge=ridge).values()
        for objective in (irm, v_rex)
        for penalty in PENALTIES
    ]
    out["AUC, ERM on the sample"] = f"{score(b):.3f}"
    out[f"AUC, best of {len(tried)} IRM and V-REx fits, with hindsight"] = f"{max(tried):.3f}"
    out["AUC, ERM on the control"] = f"{score(fit(*problem.control, ERM, ridge=ridge)):.3f}"
    return out


def print_table(head: list[str], cells_of: dict[str, list[str]]) -> None:
    """Print a table in Markdown."""
    rows = [head, ["---"] * len(head), *([name, *values] for name, values in cells_of.items())]
    for row in rows:
        print(f"| {' | '.join(row)} |")


def main() -> None:
    """Print a table of coefficients and scores, and one of weights and shares."""
    params = load_params(Path(__file__).resolve().parents[1] / "params.yaml")
    ridge = params.collateral.ridge
    dataset = load_dataset(DATASET)
    split = split_dataset(dataset, seed=params.split.seed)
    design = pool_design(dataset, split.pool, params)
    _, shifts = make_shifts(dataset, split, params, params.profiles["quick"].grid)
    test = design.transform(dataset.X.iloc[split.report])
    target = dataset.y[split.report]

    def score(b: Floats) -> float:
        return float(roc_auc_score(target, test @ b))

    pool = fit(design.X, design.y, ERM, ridge=ridge)
    methods: dict[str, list[str]] = {}
    beside: dict[str, list[str]] = {}
    for shift_id in SHIFTS.values():
        shift = shifts[shifts["shift_id"] == shift_id].iloc[0]
        problem, j = make_problem(shift, dataset, split, design)
        found = [("ERM on the whole pool (ID)", pool), *plain_methods(problem, ridge=ridge)]
        found += oracle_methods(problem, ridge=ridge)
        for name, b in found:
            methods.setdefault(name, []).extend([f"{b[j] / pool[j]:.2f}", f"{score(b):.3f}"])
        for name, text in facts(problem, score, ridge=ridge).items():
            beside.setdefault(name, []).append(text)
    heads = [text for name in SHIFTS for text in (f"{name}: b'/b", "AUC")]
    print_table(["method", *heads], methods)
    print()
    print_table(["", *SHIFTS], beside)


if __name__ == "__main__":
    main()
