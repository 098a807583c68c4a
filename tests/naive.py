"""Slow, obvious versions of what the kernels compute; imports nothing of ours.

Coefficients of K classes are held as (p, K - 1) contrasts against the last class, penalties leave
column 0 free, and a ridge parameter is per row: the objective is the sum of losses plus
n * ridge / 2 times the squared coefficients.
"""

from __future__ import annotations

import itertools

import numpy as np


def penalty_matrix(p, n, ridge):
    """n * ridge * diag(0, 1, ..., 1)."""
    D = n * ridge * np.eye(p)
    D[0, 0] = 0.0
    return D


def ols(X, y, ridge=0.0):
    """Minimise half the squared error plus the penalty."""
    n, p = X.shape
    if ridge == 0.0:
        return np.linalg.lstsq(X, y, rcond=None)[0]
    return np.linalg.solve(X.T @ X + penalty_matrix(p, n, ridge), X.T @ y)


def hat_values(X):
    """The diagonal of X (X'X)^+ X'."""
    return np.diag(X @ np.linalg.pinv(X))


def ols_influence(X, y, sample, rows):
    """Change of all coefficients were each row to join, by the closed form: (len(rows), p)."""
    H_inverse = np.linalg.inv(X[sample].T @ X[sample])
    b = H_inverse @ (X[sample].T @ y[sample])
    out = []
    for i in rows:
        h = X[i] @ H_inverse @ X[i]
        out.append(H_inverse @ X[i] * (y[i] - X[i] @ b) / (1.0 + h))
    return np.array(out)


def refit_influence(fit, sample, rows):
    """Change of ``fit(sample)`` were each row to join, by refitting: (len(rows), ...)."""
    before = fit(np.asarray(sample))
    return np.array([fit(np.append(sample, i)) - before for i in rows])


def probabilities(X, B):
    """Class probabilities (n, K) from (p, K - 1) contrasts."""
    eta = np.column_stack([X @ B, np.zeros(len(X))])
    eta = eta - eta.max(axis=1, keepdims=True)
    e = np.exp(eta)
    return e / e.sum(axis=1, keepdims=True)


def multinomial_hessian(X, P):
    """Sum over rows of (diag(p) - p p') kron x x', contrasts as the outer index."""
    p, free = X.shape[1], P.shape[1] - 1
    H = np.zeros((free * p, free * p))
    for x, prob in zip(X, P[:, :-1]):
        H += np.kron(np.diag(prob) - np.outer(prob, prob), np.outer(x, x))
    return H


def multinomial(X, codes, n_classes, ridge=0.0, steps=60):
    """Contrasts (p, K - 1) by Newton's method with step halving."""
    n, p = X.shape
    free = n_classes - 1
    Y = np.eye(n_classes)[codes][:, :-1]
    D = np.kron(np.eye(free), penalty_matrix(p, n, ridge))
    B = np.zeros((p, free))

    def loss(B):
        b = B.T.ravel()
        eta = np.column_stack([X @ B, np.zeros(n)])
        top = eta.max(axis=1)
        log_total = top + np.log(np.exp(eta - top[:, None]).sum(axis=1))
        return np.sum(log_total - eta[np.arange(n), codes]) + 0.5 * b @ D @ b

    for _ in range(steps):
        P = probabilities(X, B)
        g = (X.T @ (P[:, :-1] - Y)).T.ravel() + D @ B.T.ravel()
        step = np.linalg.solve(multinomial_hessian(X, P) + D, -g).reshape(free, p).T
        length = 1.0
        while loss(B + length * step) > loss(B) * (1.0 + 1e-14) and length > 1e-6:
            length /= 2.0
        B = B + length * step
        if np.abs(step).max() < 1e-12 * (1.0 + np.abs(B).max()):
            break
    return B


def logistic(X, y, ridge=0.0):
    """Coefficients (p,) of the log odds of y = 1."""
    return multinomial(X, 1 - np.asarray(y, dtype=int), 2, ridge)[:, 0]


def one_step_influence(X, codes, n_classes, sample, rows, B, ridge=0.0):
    """Change of all contrasts by one Newton step on sample + row, from the fit B on the sample.

    The Hessian is that of the sample, its penalty |sample| * ridge held, plus that of the row,
    solved densely; returns (len(rows), p, K - 1).
    """
    p, free = B.shape
    D = np.kron(np.eye(free), penalty_matrix(p, len(sample), ridge))
    H = multinomial_hessian(X[sample], probabilities(X[sample], B)) + D
    out = []
    for i in rows:
        P = probabilities(X[[i]], B)
        g = np.kron(np.eye(n_classes)[codes[i], :-1] - P[0, :-1], X[i])
        step = np.linalg.solve(H + multinomial_hessian(X[[i]], P), g)
        out.append(step.reshape(free, p).T)
    return np.array(out)


def logistic_influence(X, y, sample, rows, b, ridge=0.0):
    """The same for two classes and the log odds of y = 1: (len(rows), p)."""
    codes = 1 - np.asarray(y, dtype=int)
    return one_step_influence(X, codes, 2, sample, rows, b[:, None], ridge)[:, :, 0]


def sum_to_zero(B):
    """Coefficients (..., p, K) that sum to zero over classes, from contrasts (..., p, K - 1)."""
    full = np.concatenate([B, np.zeros((*B.shape[:-1], 1))], axis=-1)
    return full - full.mean(axis=-1, keepdims=True)


def independent_columns(X, tolerance=1e-8):
    """Greedy choice of columns by the share of their norm outside the span of those chosen."""
    chosen = []
    norms = np.linalg.norm(X, axis=0)
    while len(chosen) < X.shape[1]:
        Q = np.linalg.qr(X[:, chosen])[0] if chosen else np.zeros((len(X), 0))
        rest = X - Q @ (Q.T @ X)
        rest = rest - Q @ (Q.T @ rest)
        share = np.linalg.norm(rest, axis=0) / np.where(norms > 0, norms, 1.0)
        share[chosen] = -1.0
        best = share.max()
        if best <= tolerance:
            break
        chosen.append(int(np.flatnonzero(share >= best - 1e-8)[0]))
    return chosen


def top_rows(score, taken, k):
    """Rows of highest score that are not taken, ties to the smaller row."""
    free = [i for i in range(len(score)) if not taken[i]]
    return sorted(free, key=lambda i: (-score[i], i))[:k]


def greedy(influence_of, start, n, size, batch):
    """Grow a sample: score all rows outside, add the best, rescore.

    ``influence_of(sample, rows)`` returns one number per row, ``batch(sample size)`` how many
    join at once.
    """
    sample = list(start)
    while len(sample) < size:
        outside = [i for i in range(n) if i not in set(sample)]
        score = influence_of(np.array(sample), outside)
        order = sorted(range(len(outside)), key=lambda k: (-score[k], outside[k]))
        take = min(batch(len(sample)), size - len(sample), len(outside))
        sample += [outside[k] for k in order[:take]]
    return np.array(sample)


def best_subset(value_of, n, size):
    """The subset of this size with the highest value, by trying all."""
    return max(itertools.combinations(range(n), size), key=lambda rows: value_of(np.array(rows)))


def separable(X, codes, n_classes):
    """Albert and Anderson's condition by one dense linear programme over all pairs."""
    from scipy.optimize import linprog

    p = X.shape[1]
    X = X / np.abs(X).max(axis=0)
    pairs = []
    for x, own in zip(X, codes):
        for other in range(n_classes):
            if other != own:
                a = np.zeros((n_classes, p))
                a[own] += x
                a[other] -= x
                pairs.append(a[:-1].ravel())
    A = np.array(pairs)
    result = linprog(-A.sum(axis=0), A_ub=-A, b_ub=np.zeros(len(A)), bounds=(-1, 1))
    return bool(-result.fun > 1e-6)


def ols_extended(X, y):
    """Coefficients, their classical standard errors and hat values in extended precision.

    Modified Gram-Schmidt, each column twice, in 64-bit mantissas where the machine has them.
    """
    X, y = np.asarray(X, dtype=np.longdouble), np.asarray(y, dtype=np.longdouble)
    n, p = X.shape
    Q, R = np.empty((n, p), dtype=np.longdouble), np.zeros((p, p), dtype=np.longdouble)
    for j in range(p):
        v = X[:, j].copy()
        for _ in range(2):
            for k in range(j):
                part = (Q[:, k] * v).sum()
                R[k, j] += part
                v -= part * Q[:, k]
        R[j, j] = np.sqrt((v * v).sum())
        Q[:, j] = v / R[j, j]

    def back(c):
        x = np.zeros(p, dtype=np.longdouble)
        for i in range(p - 1, -1, -1):
            x[i] = (c[i] - (R[i, i + 1 :] * x[i + 1 :]).sum()) / R[i, i]
        return x

    residual = y.copy()
    b = np.zeros(p, dtype=np.longdouble)
    for _ in range(2):
        c = np.array([(Q[:, j] * residual).sum() for j in range(p)])
        b += back(c)
        residual = y - (X * b).sum(axis=1)
    inverse = np.column_stack([back(e) for e in np.eye(p, dtype=np.longdouble)])
    spread = (inverse**2).sum(axis=1)
    rss = (residual * residual).sum()
    return b, np.sqrt(spread * rss / (n - p)), (Q * Q).sum(axis=1)


def ols_errors(X, y):
    """Classical and HC1 standard errors of all coefficients."""
    n, p = X.shape
    pinv = np.linalg.pinv(X)
    r = y - X @ (pinv @ y)
    classical = np.sqrt(np.sum(pinv**2, axis=1) * np.sum(r**2) / (n - p))
    return classical, np.sqrt(n / (n - p) * np.sum((pinv * r) ** 2, axis=1))


def leave_one_out(X, y):
    """Coefficients of all rows less those without each row, by the closed form: (n, p)."""
    pinv = np.linalg.pinv(X)
    r = y - X @ (pinv @ y)
    h = np.einsum("ij,ji->i", X, pinv)
    return (pinv * (r / (1.0 - h))).T


def leverages(X):
    """The diagonal of X (X'X)^+ X' without an n x n matrix."""
    return np.einsum("ij,ji->i", X, np.linalg.pinv(X))


def logistic_extended(X, y, steps=30):
    """Coefficients and inverse-information errors of two classes in extended precision.

    Newton's method as least squares of the working response, from the fit in doubles.
    """
    X, y = np.asarray(X, dtype=np.longdouble), np.asarray(y, dtype=np.longdouble)
    n, p = X.shape
    b = logistic(X.astype(float), y.astype(float)).astype(np.longdouble)
    for _ in range(steps):
        eta = (X * b).sum(axis=1)
        share, rest = 1 / (1 + np.exp(-eta)), 1 / (1 + np.exp(eta))
        root = np.sqrt(share * rest)
        surprise = np.where(y > 0, rest, -share) / root
        step, error, _ = ols_extended(root[:, None] * X, surprise)
        b = b + step
        if np.abs(step / b).max() < 1e-15:
            break
    working = surprise - root * (X * step).sum(axis=1)
    # Least squares reports errors for the spread of its residuals; the information has 1.
    return b, error / np.sqrt((working * working).sum() / (n - p))
