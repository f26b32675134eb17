"""Label marginals: what softmax outputs would be if the classes were differently frequent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray
from leadline.numeric import Array, softmax_with_total, top_two, top_two_of_weights

_NEWTON_CLASSES = 150  # above, the c x c Hessian costs more than a few more fixed-point passes
_LEAST_SHARE = 1e-6  # an absent class would need a bias of minus infinity
_FEW_CLASSES = 32  # below, NumPy takes longer for exponentials than to multiply those that are known
_LEAST_WEIGHT = 1e-290  # nearer to zero, digits are lost
_FAR = 30.0  # nats between biases: what single precision lost at the one is still negligible at the other


@dataclass(frozen=True, eq=False)
class Exponentials:
    """Rows whose exponentials were taken at one bias: another one multiplies their columns.

    Attributes
    ----------
    logits
        Shape (n, c).
    origin
        Shape (c,): the bias.
    shares
        Shape (n, c): softmax(logits + origin).
    mean_log
        The mean logarithm of its denominators.
    """

    logits: FloatArray
    origin: Array
    shares: FloatArray
    mean_log: float

    @classmethod
    def of(cls, logits: FloatArray, origin: Array) -> Self:
        """Take the exponentials of rows, shape (n, c)."""
        shares, log_total = softmax_with_total(logits, origin)
        return cls(logits, origin, shares, float(log_total.mean(dtype=np.float64)))

    def top_two(self, bias: Array) -> tuple[NDArray[np.intp], NDArray[np.intp], FloatArray]:
        """Return the top class of each row with a bias, the runner-up and the log-odds, shapes (n,)."""
        if 2 < len(bias) < _FEW_CLASSES:
            moved = bias - self.origin
            weights = self.shares * np.exp(moved - moved.max())
            if weights.min() > _LEAST_WEIGHT:
                return top_two_of_weights(weights)
        return top_two(self.logits + bias.astype(self.logits.dtype))


def restoring_bias(
    rows: FloatArray | Exponentials,
    marginal: Array,
    *,
    iterations: int = 40,
    tolerance: float = 1e-6,
    start: Array | None = None,
) -> Array:
    """Return the bias b, shape (c,), with ``mean softmax(logits + b) = marginal``.

    Minimises the convex ``mean logsumexp(logits + b) - marginal . b`` by damped Newton steps; with many classes by the
    fixed point ``b += log(marginal / mean softmax)``, which is entropic transport and falls monotonically.

    Parameters
    ----------
    rows
        Shape (n, c): logits, or such with their exponentials.
    marginal
        Shape (c,): the class shares wanted.
    iterations, tolerance
        When to stop: after so many steps, or when no class share is off by more.
    start
        Shape (c,): where to begin; zeros by default.
    """
    c = len(marginal)
    wanted = np.maximum(marginal, _LEAST_SHARE)
    wanted = wanted / wanted.sum()
    bias = np.zeros(c) if start is None else start.copy()
    biased = _Biased(rows if isinstance(rows, Exponentials) else Exponentials.of(rows, bias), bias)
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
    """softmax(logits + bias) at one bias after the other: sums over rows and columns are products with vectors.

    Parameters
    ----------
    rows
        The logits with their exponentials.
    bias
        Shape (c,): the first one.
    """

    def __init__(self, rows: Exponentials, bias: Array) -> None:
        self._rows = rows
        self._scratch = np.empty_like(rows.shares)
        self.move_to(bias)

    def move_to(self, bias: Array) -> None:
        """Take another bias."""
        moved = bias - self._rows.origin
        if moved.max() - moved.min() > _FAR:
            self._rows = Exponentials.of(self._rows.logits, bias)
            moved = np.zeros_like(bias)
        self._highest = float(moved.max())
        self._factors = np.exp(moved - self._highest).astype(self._rows.shares.dtype)
        self._total = self._rows.shares @ self._factors

    def mean_log_total(self) -> float:
        """Return the mean logarithm of the denominators."""
        return float(np.log(self._total).mean(dtype=np.float64)) + self._rows.mean_log + self._highest

    def mean_shares(self) -> Array:
        """Return the mean of the softmax, shape (c,)."""
        return np.asarray(self._factors * (self._rows.shares.T @ (1.0 / self._total)) / len(self._total), np.float64)

    def mean_products(self) -> Array:
        """Return the mean of the products of the softmax of two classes, shape (c, c)."""
        shares = np.divide(self._rows.shares, self._total[:, None], out=self._scratch)
        products = shares.T @ shares / len(shares)
        return np.asarray(self._factors[:, None] * products * self._factors, np.float64)
