"""What robust methods minimise, the weights they give, and a solver, for inapplicable_methods.py.

Every objective takes the scores (logits) of the training rows and their classes, and returns its
value and the gradient in the scores.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, logsumexp

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Objective = Callable[[Floats, Floats], tuple[float, Floats]]

PENALTY = 100.0  # of IRM and V-REx
SHARPNESS = 100.0  # of the soft maximum over groups
RADIUS = 1.0  # of the chi-square ball
LARGEST_WEIGHT = 20.0


def losses(scores: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return the log loss of every row and its derivative in the score."""
    return np.logaddexp(0.0, scores) - y * scores, expit(scores) - y


def weighted(weights: Floats | None = None) -> Objective:
    """Return the weighted mean loss; without weights, empirical risk minimisation (ERM)."""

    def objective(scores: Floats, y: Floats) -> tuple[float, Floats]:
        loss, slope = losses(scores, y)
        share = np.full(y.size, 1.0) if weights is None else weights
        share = share / share.sum()
        return float(share @ loss), share * slope

    return objective


def _risks(groups: Ints, loss: Floats) -> tuple[Floats, Floats]:
    """Return each group's mean loss, and how many rows it has."""
    counts = np.bincount(groups).astype(np.float64)
    return np.bincount(groups, weights=loss) / counts, counts


def v_rex(groups: Ints, penalty: float = PENALTY) -> Objective:
    """Return mean risk plus a penalty on its variance over environments (Krueger et al. 2021)."""

    def objective(scores: Floats, y: Floats) -> tuple[float, Floats]:
        loss, slope = losses(scores, y)
        risk, counts = _risks(groups, loss)
        share = (1.0 + 2.0 * penalty * (risk - risk.mean())) / risk.size
        return float(risk.mean() + penalty * risk.var()), (share / counts)[groups] * slope

    return objective


def irm(groups: Ints, penalty: float = PENALTY) -> Objective:
    """Return mean risk plus a penalty on the gradient in a scale (IRMv1, Arjovsky et al. 2019)."""

    def objective(scores: Floats, y: Floats) -> tuple[float, Floats]:
        loss, slope = losses(scores, y)
        risk, counts = _risks(groups, loss)
        scale, _ = _risks(groups, slope * scores)
        probability = expit(scores)
        inner = probability * (1 - probability) * scores + slope
        gradient = slope + 2.0 * penalty * scale[groups] * inner
        value = risk.mean() + penalty * (scale**2).mean()
        return float(value), gradient / (risk.size * counts[groups])

    return objective


def group_dro(groups: Ints) -> Objective:
    """Return the largest group's risk, as a soft maximum (Sagawa et al. 2020)."""

    def objective(scores: Floats, y: Floats) -> tuple[float, Floats]:
        loss, slope = losses(scores, y)
        risk, counts = _risks(groups, loss)
        total = float(logsumexp(SHARPNESS * risk))
        share = np.exp(SHARPNESS * risk - total)
        value = (total - np.log(risk.size)) / SHARPNESS
        return value, (share / counts)[groups] * slope

    return objective


def chi_square_dro(scores: Floats, y: Floats) -> tuple[float, Floats]:
    """Return the largest risk in a chi-square ball around the sample (Duchi and Namkoong 2021)."""
    loss, slope = losses(scores, y)
    factor = np.sqrt(1.0 + 2.0 * RADIUS)

    def dual(eta: float) -> float:
        above = np.maximum(loss - eta, 0.0)
        return float(factor * np.sqrt(np.mean(above**2)) + eta)

    bounds = (float(loss.min() - 10.0 * (np.ptp(loss) + 1.0)), float(loss.max()))
    eta = float(minimize_scalar(dual, bounds=bounds, method="bounded", options={"xatol": 1e-10}).x)
    above = np.maximum(loss - eta, 0.0)
    size = max(float(np.sqrt(np.mean(above**2))), 1e-12)
    return dual(eta), factor * above / (size * y.size) * slope


def fit(X: Floats, y: Floats, objective: Objective, *, ridge: float) -> Floats:
    """Minimise an objective of the scores plus the penalty; column 0 of X is the free intercept."""
    free = np.ones(X.shape[1])
    free[0] = 0.0

    def value(b: Floats) -> tuple[float, Floats]:
        risk, slope = objective(X @ b, y)
        return risk + ridge / 2 * float(free @ b**2), X.T @ slope + ridge * free * b

    start = np.zeros(X.shape[1])
    if objective is not ERM:
        start = fit(X, y, ERM, ridge=ridge)
    found = minimize(
        value,
        start,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 5000, "maxfun": 20000, "gtol": 1e-8, "ftol": 1e-14},
    )
    b: Floats = found.x
    return b


ERM = weighted()


def density_ratio(rows: Floats, others: Floats, *, ridge: float) -> Floats:
    """Return p(others) / p(rows) at each of `rows`, by a classifier between the two."""
    X = np.vstack([rows, others])
    side = np.r_[np.zeros(len(rows)), np.ones(len(others))]
    odds = np.exp(rows @ fit(X, side, ERM, ridge=ridge)) * len(rows) / len(others)
    return np.minimum(odds, LARGEST_WEIGHT)


def kernel_mean_matching(rows: Floats, others: Floats) -> Floats:
    """Return weights that match means under a Gaussian kernel (KMM, Huang et al. 2007)."""

    def squared(a: Floats, b: Floats) -> Floats:
        out: Floats = (a**2).sum(1)[:, None] + (b**2).sum(1) - 2 * a @ b.T
        return np.maximum(out, 0.0)

    distance = squared(rows, rows)
    width = float(np.median(distance[distance > 0]))
    K = np.exp(-distance / width)
    k = np.exp(-squared(rows, others) / width).mean(1) * len(rows)

    def value(w: Floats) -> tuple[float, Floats]:
        Kw = K @ w
        return float(0.5 * w @ Kw - k @ w) / len(rows), (Kw - k) / len(rows)

    bounds = [(0.0, LARGEST_WEIGHT)] * len(rows)
    found = minimize(value, np.ones(len(rows)), jac=True, method="L-BFGS-B", bounds=bounds)
    w: Floats = found.x
    return w


def black_box_share(predicted: Floats, y: Floats, elsewhere: Floats) -> float:
    """Return the share of class 1 elsewhere by BBSE (Lipton et al. 2018), soft predictions."""
    means = np.array([predicted[y == 0].mean(), predicted[y == 1].mean()])
    return float(np.clip((elsewhere.mean() - means[0]) / (means[1] - means[0]), 0.0, 1.0))


def maximum_likelihood_share(y: Floats, elsewhere: Floats) -> float:
    """Return the share of class 1 elsewhere by EM (Saerens et al. 2002; MLLS)."""
    before = share = float(y.mean())
    for _ in range(10_000):
        one = elsewhere * share / before
        zero = (1 - elsewhere) * (1 - share) / (1 - before)
        after = float(np.mean(one / (one + zero)))
        if abs(after - share) < 1e-12:
            break
        share = after
    return share


def label_weights(y: Floats, share: float) -> Floats:
    """Return the weights that give class 1 a share among the weighted rows."""
    own = float(y.mean())
    return np.where(y == 1, share / own, (1 - share) / (1 - own))
