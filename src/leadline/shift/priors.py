"""Label marginals: what softmax outputs would be if the classes were differently frequent."""

from __future__ import annotations

import numpy as np

from leadline.data.outputs import FloatArray
from leadline.numeric import Array, softmax_with_total

_NEWTON_CLASSES = 150  # above, the c x c Hessian costs more than a few more fixed-point passes
_LEAST_SHARE = 1e-6  # an absent class would need a bias of minus infinity
_FAR = 30.0  # nats between biases: what single precision lost at the one is still negligible at the other


def restoring_bias(
    logits: FloatArray, marginal: Array, *, iterations: int = 40, tolerance: float = 1e-6, start: Array | None = None
) -> Array:
    """Return the bias b, shape (c,), with ``mean softmax(logits + b) = marginal``.

    Minimises the convex ``mean logsumexp(logits + b) - marginal . b`` by damped Newton steps; with many classes by the
    fixed point ``b += log(marginal / mean softmax)``, which is entropic transport and falls monotonically.

    Parameters
    ----------
    logits
        Shape (n, c).
    marginal
        Shape (c,): the class shares wanted.
    iterations, tolerance
        When to stop: after so many steps, or when no class share is off by more.
    start
        Shape (c,): where to begin; zeros by default.
    """
    c = logits.shape[1]
    wanted = np.maximum(marginal, _LEAST_SHARE)
    wanted = wanted / wanted.sum()
    bias = np.zeros(c) if start is None else start.copy()
    biased = _Biased(logits, bias)
    value = biased.mean_log_total() - wanted @ bias
    for _ in range(iterations):
        mean = biased.mean_shares()
        gradient = mean - wanted
        if np.abs(gradient).max() < tolerance:
            break
        if c > _NEWTON_CLASSES:
            bias = bias + np.clip(np.log(wanted / np.maximum(mean, 1e-12)), -4.0, 4.0)
            biased.move_to(bias)
            continue
        # 1e-3/c^2 removes the null direction (adding a constant to b), 1e-7 keeps empty classes invertible.
        hessian = np.diag(mean) - biased.mean_products() + 1e-7 * np.eye(c) + 1e-3 / c**2
        step = np.linalg.solve(hessian, -gradient)
        step *= min(1.0, 4.0 / np.abs(step).max())  # beyond 4 nats at once the quadratic model is useless
        expected, size = float(gradient @ step), 1.0
        while True:
            moved = bias + size * step
            biased.move_to(moved)
            new_value = biased.mean_log_total() - wanted @ moved
            if new_value <= value + 1e-4 * size * expected or size < 1e-4:
                break
            size *= 0.5
        bias, value = moved, new_value
    return np.asarray(bias - bias.mean())


class _Biased:
    """softmax(logits + bias) at one bias after the other.

    Exponentials are taken once: a bias multiplies their columns, so that sums over rows and columns are products with
    vectors.

    Parameters
    ----------
    logits
        Shape (n, c).
    bias
        Shape (c,): the first one.
    """

    def __init__(self, logits: FloatArray, bias: Array) -> None:
        self._logits = logits
        self._begin(bias)

    def _begin(self, bias: Array) -> None:
        self._origin = bias
        self._exponentials, log_total = softmax_with_total(self._logits, bias)
        self._scratch = np.empty_like(self._exponentials)
        self._mean_log = float(log_total.mean(dtype=np.float64))
        self.move_to(bias)

    def move_to(self, bias: Array) -> None:
        """Take another bias."""
        moved = bias - self._origin
        self._highest = float(moved.max())
        if self._highest - moved.min() > _FAR:
            self._begin(bias)
            return
        self._factors = np.exp(moved - self._highest).astype(self._exponentials.dtype)
        self._total = self._exponentials @ self._factors

    def mean_log_total(self) -> float:
        """Return the mean logarithm of the denominators."""
        return float(np.log(self._total).mean(dtype=np.float64)) + self._mean_log + self._highest

    def mean_shares(self) -> Array:
        """Return the mean of the softmax, shape (c,)."""
        return np.asarray(self._factors * (self._exponentials.T @ (1.0 / self._total)) / len(self._total), np.float64)

    def mean_products(self) -> Array:
        """Return the mean of the products of the softmax of two classes, shape (c, c)."""
        shares = np.divide(self._exponentials, self._total[:, None], out=self._scratch)
        products = shares.T @ shares / len(shares)
        return np.asarray(self._factors[:, None] * products * self._factors, np.float64)
