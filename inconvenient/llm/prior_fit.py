"""Linear and logistic regression with a Gaussian prior of given means and precisions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inconvenient.errors import InconvenientError

__all__ = ["fit_gaussian", "fit_logistic", "objective"]

FloatArray = NDArray[np.float64]

#: Gradient per row, in units of the prior's standard deviations, at which Newton's method stops.
TOLERANCE = 1e-10
MAX_STEPS = 100
#: Systems up to this size are factorised, larger ones solved by conjugate gradients.
DIRECT = 1000


def fit_gaussian(
    Z: FloatArray, y: FloatArray, mean: FloatArray, precision: FloatArray
) -> tuple[float, FloatArray]:
    """Minimise ||y - a - Zb||^2 / 2 + sum_j precision_j (b_j - mean_j)^2 / 2; a is free.

    Parameters
    ----------
    Z : float64 (n, q)
    y : float64 (n,)
    mean, precision : float64 (q,)
        Precisions above 0.

    Returns
    -------
    a : float
    b : float64 (q,)

    Notes
    -----
    One Cholesky factorisation in units of the prior's standard deviations, in which a strong prior
    makes the system better conditioned, not worse. O(n q^2 + q^3).
    """
    from scipy.linalg import cho_factor, cho_solve

    centre, level = Z.mean(axis=0), float(y.mean())
    sd = 1.0 / np.sqrt(precision)
    scaled = (Z - centre) * sd
    b = mean.copy()
    if sd.size:
        gram = scaled.T @ scaled
        gram[np.diag_indices_from(gram)] += 1.0
        residual = (y - level) - (Z - centre) @ mean
        b += sd * cho_solve(cho_factor(gram), scaled.T @ residual)
    return level - float(centre @ b), b


def fit_logistic(
    Z: FloatArray, codes: NDArray[np.int64], K: int, mean: FloatArray, precision: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Minimise sum of log losses + sum_cj precision_cj (b_cj - mean_cj)^2 / 2; intercepts are free.

    Parameters
    ----------
    Z : float64 (n, q)
    codes : int64 (n,)
        Classes 0..K-1, each of which occurs.
    K : int
        At least 2.
    mean, precision : float64 (C, q)
        C = 1 for two classes given as one logit (of class 1), else C = K.

    Returns
    -------
    a : float64 (C,)
    b : float64 (C, q)

    Raises
    ------
    InconvenientError
        If Newton's method does not converge.

    Notes
    -----
    With C = K every class has a coefficient, as in scikit-learn: the softmax leaves their common
    part to the prior, so that means that sum to zero over the classes and equal precisions give
    coefficients that do. Damped Newton steps on b = mean + sd u; the first class's intercept is 0
    within, and intercepts are centred at the end. O(n q^2 C^2 + q^3 C^3) a step, by conjugate
    gradients where that system has more than 1000 unknowns.
    """
    problem = _Softmax(Z, codes, K, mean, precision)
    theta = np.zeros(problem.free.sum())
    shares = np.bincount(codes, minlength=K) / codes.size
    problem.intercepts(theta)[:] = np.log(shares[1:] / shares[0])
    loss, P = problem.loss(theta)
    bound = TOLERANCE * max(1, codes.size)
    polished = False
    for _ in range(MAX_STEPS):
        gradient = problem.gradient(theta, P)
        near = bool(np.abs(gradient).max(initial=0.0) <= bound)
        if near and polished:
            return problem.coefficients(theta)
        step = problem.step(P, gradient)
        slope, scale = float(gradient @ step), 1.0
        for _ in range(40):
            trial = theta - scale * step
            trial_loss, trial_P = problem.loss(trial)
            # near the solution the loss changes by less than its rounding
            if trial_loss <= loss - 1e-4 * scale * slope + 1e-12 * (1.0 + abs(loss)):
                break
            scale *= 0.5
        theta, loss, P = trial, trial_loss, trial_P
        polished = near  # the step that follows squares the error that is left
    raise InconvenientError(
        f"a logistic fit with a prior did not converge in {MAX_STEPS} Newton steps; "
        "give larger precisions (smaller standard deviations)"
    )


def objective(
    Z: FloatArray, codes: NDArray[np.int64], K: int, mean: FloatArray, precision: FloatArray
) -> _Softmax:
    """Return the objective of :func:`fit_logistic`, for checks of its derivatives."""
    return _Softmax(Z, codes, K, mean, precision)


class _Softmax:
    """Loss, gradient and Newton steps in theta = (u and intercept of each class, what is free)."""

    def __init__(
        self,
        Z: FloatArray,
        codes: NDArray[np.int64],
        K: int,
        mean: FloatArray,
        precision: FloatArray,
    ) -> None:
        self.n, self.q = Z.shape
        self.C, self.K = mean.shape[0], K
        self.mean, self.sd = mean, 1.0 / np.sqrt(precision)
        self.Z1 = np.column_stack([Z, np.ones(self.n)])
        self.offset = Z @ mean.T
        self.own = np.zeros((self.n, K))
        self.own[np.arange(self.n), codes] = 1.0
        self.scale = np.column_stack([self.sd, np.ones(self.C)])
        free = np.ones((self.C, self.q + 1), dtype=bool)
        free[0, -1] = self.C == 1
        self.free = free.ravel()

    def intercepts(self, theta: FloatArray) -> FloatArray:
        """Return the intercepts of all classes but the first, as a view."""
        first = 0 if self.C == 1 else self.q
        return theta[first:].reshape(-1, self.q + 1)[:, -1]

    def _whole(self, theta: FloatArray) -> FloatArray:
        whole = np.zeros(self.free.size)
        whole[self.free] = theta
        return whole.reshape(self.C, self.q + 1)

    def loss(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the objective and the class probabilities, (n, K)."""
        whole = self._whole(theta)
        eta = np.zeros((self.n, self.K))
        eta[:, self.K - self.C :] = self.offset + self.Z1 @ (whole * self.scale).T
        eta -= eta.max(axis=1, keepdims=True)
        P = np.exp(eta)
        total = P.sum(axis=1, keepdims=True)
        loss = float(np.log(total).sum() - (eta * self.own).sum())
        P /= total
        return loss + 0.5 * float((whole[:, :-1] ** 2).sum()), P

    def gradient(self, theta: FloatArray, P: FloatArray) -> FloatArray:
        """Return the gradient of the objective."""
        whole = self._whole(theta)
        residual = (P - self.own)[:, self.K - self.C :]
        whole[:, -1] = 0.0
        found: FloatArray = (residual.T @ self.Z1) * self.scale + whole
        return found.ravel()[self.free]

    def step(self, P: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return the Newton step, H^-1 g."""
        from scipy.linalg import cho_factor, cho_solve

        if gradient.size > DIRECT:
            return self._step_by_products(P, gradient)
        step: FloatArray = cho_solve(cho_factor(self.hessian(P)), gradient)
        return step

    def hessian(self, P: FloatArray) -> FloatArray:
        """Return the Hessian of the objective at given probabilities."""
        width = self.q + 1
        H = np.empty((self.C, width, self.C, width))
        P = P[:, self.K - self.C :]
        for k in range(self.C):
            for m in range(k + 1):
                weight = P[:, k] * (float(k == m) - P[:, m])
                block = self.Z1.T @ (self.Z1 * weight[:, None])
                block *= self.scale[k][:, None] * self.scale[m]
                H[k, :, m, :] = block
                H[m, :, k, :] = block.T
        whole = H.reshape(self.C * width, self.C * width)
        whole[np.diag_indices_from(whole)] += self._ridge()
        free: FloatArray = whole[np.ix_(self.free, self.free)]
        return free

    def _ridge(self) -> FloatArray:
        ridge = np.ones((self.C, self.q + 1))
        ridge[:, -1] = 0.0
        return ridge.ravel()

    def _step_by_products(self, P: FloatArray, gradient: FloatArray) -> FloatArray:
        from scipy.sparse.linalg import LinearOperator, cg

        P = P[:, self.K - self.C :]
        ridge = self._ridge()[self.free]

        def product(v: FloatArray) -> FloatArray:
            v = np.asarray(v, dtype=np.float64).ravel()
            moved = self.Z1 @ (self._whole(v) * self.scale).T
            moved = P * (moved - (P * moved).sum(axis=1, keepdims=True))
            back: FloatArray = ((moved.T @ self.Z1) * self.scale).ravel()[self.free] + ridge * v
            return back

        size = gradient.size
        system = LinearOperator((size, size), matvec=product, dtype=np.float64)
        close = min(1e-2, float(np.abs(gradient).max()) / max(1, self.n))
        step, _ = cg(system, gradient, rtol=max(close, 1e-8), atol=0.0, maxiter=10 * size)
        return np.asarray(step, dtype=np.float64)

    def coefficients(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return intercepts, centred over more than one logit, and coefficients."""
        whole = self._whole(theta) * self.scale
        a = whole[:, -1]
        return (a - a.mean() if self.C > 1 else a), self.mean + whole[:, :-1]
