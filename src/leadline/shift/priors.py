"""Label marginals: what softmax outputs would be if the classes were differently frequent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray
from leadline.numeric import Array, limited, softmax_with_total, top_two, top_two_of_weights

_NEWTON_CLASSES = 150  # above, the c x c Hessian costs more than a few more fixed-point passes
_LEAST_SHARE = 1e-6  # an absent class would need a bias of minus infinity
_FEW_CLASSES = 32  # below, NumPy takes longer for exponentials than to multiply those that are known
_LEAST_WEIGHT = 1e-290  # nearer to zero, digits are lost
_FAR = 30.0  # nats between biases: what single precision lost at the one is still negligible at the other
_MOST_ODDS = 350.0  # nats: beyond, a row is certain whatever the bias, and products with its odds would overflow
_MOST_STEP = 4.0  # nats: beyond, the quadratic model is useless
_LEAST_CURVATURE = 1e-7  # keeps empty classes invertible
_FALL, _LEAST_SIZE = 1e-4, 1e-4  # the share of the expected fall that a step must bring, and the shortest one tried
# Nats between the classes: up to here a Newton step always falls so far. Along it, the third derivative of logsumexp is
# at most D times the second (Bach, 2010), so that it brings 1 - (e^D - D - 1) / D^2 of what its slope says, or more.
_SURE_STEP = 1.75


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

    @cached_property
    def odds_against(self) -> Array:
        """Shape (n,): of two classes, the odds of the first against the second without a bias."""
        return _odds_against(self.logits)

    @cached_property
    def _least_share(self) -> float:
        return float(self.shares.min())

    def top_two(self, bias: Array) -> tuple[NDArray[np.intp], NDArray[np.intp], FloatArray]:
        """Return the top class of each row with a bias, the runner-up and the log-odds, shapes (n,)."""
        if 2 < len(bias) < _FEW_CLASSES:
            moved = bias - self.origin
            factors = np.exp(moved - moved.max())
            if self._least_share * factors.min() > _LEAST_WEIGHT:
                return top_two_of_weights(self.shares * factors)
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

    Minimises the convex ``mean logsumexp(logits + b) - marginal . b`` by damped Newton steps, of two classes along the
    one direction there is; with many classes by the fixed point ``b += log(marginal / mean softmax)``, which is
    entropic transport and falls monotonically.

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
    if c == 2:
        against = rows.odds_against if isinstance(rows, Exponentials) else _odds_against(rows)
        half = _restoring_half(against, float(wanted[1]), iterations, tolerance, float(bias[1] - bias[0]) / 2)
        return np.array([-half, half])
    here = _Biased.at(bias, rows if isinstance(rows, Exponentials) else Exponentials.of(rows, bias))
    for _ in range(iterations):
        gradient = here.mean_shares - wanted
        if np.abs(gradient).max() < tolerance:
            break
        if c > _NEWTON_CLASSES:
            step = np.clip(np.log(wanted / np.maximum(here.mean_shares, 1e-12)), -_MOST_STEP, _MOST_STEP)
            here = _Biased.at(here.bias + step, here.rows)
            continue
        # 1e-3/c^2 removes the null direction (adding a constant to b).
        step = np.linalg.solve(here.curvature() + 1e-3 / c**2, -gradient)
        step *= min(1.0, _MOST_STEP / np.abs(step).max())
        expected, size = float(gradient @ step), 1.0
        there = _Biased.at(here.bias + step, here.rows)
        while step.max() - step.min() > _SURE_STEP and size > _LEAST_SIZE:
            if there.value(wanted) <= here.value(wanted) + _FALL * size * expected:
                break
            size *= 0.5
            there = _Biased.at(here.bias + size * step, here.rows)
        here = there
    return np.asarray(here.bias - here.bias.mean())


def reweighting_bias(source: Array, target: Array) -> Array:
    """Return the bias, shape (c,), by which softmax outputs are those of other class shares: Bayes' theorem.

    Parameters
    ----------
    source, target
        Shape (c,): the class shares that the outputs are calibrated for, and the other ones.

    Notes
    -----
    Where the target is label shift and nothing else, this bias gives it the mean softmax ``target``, as
    :func:`restoring_bias` does; where it is not, that one would move the few unsure rows of a confident classifier as
    far as the shares ask for, and this one moves no row further than the odds of its classes changed.

    Examples
    --------
    >>> softmax_of_rare = np.array([[0.9, 0.1]])
    >>> bias = reweighting_bias(np.array([0.9, 0.1]), np.array([0.5, 0.5]))
    >>> odds = softmax_of_rare * np.exp(bias)
    >>> bool(np.allclose(odds / odds.sum(), [[0.5, 0.5]]))
    True
    """
    return np.asarray(np.log(np.maximum(target, _LEAST_SHARE) / np.maximum(source, _LEAST_SHARE)))


def _odds_against(logits: FloatArray) -> Array:
    """Return the odds of the first of two classes against the second, shape (n,)."""
    behind = np.subtract(logits[:, 0], logits[:, 1], dtype=np.float64)
    return np.asarray(np.exp(np.clip(behind, -_MOST_ODDS, _MOST_ODDS)))


def _restoring_half(against: Array, wanted: float, iterations: int, tolerance: float, half: float) -> float:
    """Do what :func:`restoring_bias` does with two classes, in numbers for vectors.

    Parameters
    ----------
    against
        Shape (n,): from :func:`_odds_against`.
    wanted
        The share of the second class.
    iterations, tolerance
        When to stop.
    half
        The bias of the second class, and minus that of the first, to begin with.
    """
    n = len(against)

    def at(half: float) -> tuple[Array, float]:
        shares = 1.0 / (1.0 + math.exp(-2.0 * half) * against)
        return shares, float(shares.sum()) / n - wanted

    def value(shares: Array, half: float) -> float:
        return 2.0 * (1.0 - wanted) * half - float(np.log(shares).sum()) / n

    shares, gradient = at(half)
    for _ in range(iterations):
        if abs(gradient) < tolerance:
            break
        variance = gradient + wanted - float(shares @ shares) / n
        step = limited(-gradient / (2.0 * variance + _LEAST_CURVATURE), -_MOST_STEP, _MOST_STEP)
        moved, size = half + step, 1.0
        there, rest = at(moved)
        while 2.0 * abs(step) > _SURE_STEP and size > _LEAST_SIZE:
            if value(there, moved) <= value(shares, half) + _FALL * size * 2.0 * gradient * step:
                break
            size *= 0.5
            moved = half + size * step
            there, rest = at(moved)
        shares, gradient, half = there, rest, moved
    return half


@dataclass(frozen=True, eq=False)
class _Biased:
    """softmax(logits + bias) at one bias: sums over rows and columns are products with vectors.

    Attributes
    ----------
    rows
        The logits with their exponentials.
    bias
        Shape (c,).
    highest
        The largest logarithm of a factor.
    factors
        Shape (c,): what the bias multiplies the columns by, the largest being one.
    inverse
        Shape (n,): one over the denominators.
    mean_shares
        Shape (c,): the mean of the softmax.
    """

    rows: Exponentials
    bias: Array
    highest: float
    factors: FloatArray
    inverse: FloatArray
    mean_shares: Array

    @classmethod
    def at(cls, bias: Array, rows: Exponentials) -> Self:
        """Bias rows whose exponentials are known, if need be at another bias."""
        moved = bias - rows.origin
        highest = float(moved.max())
        if highest - moved.min() > _FAR:
            rows, moved, highest = Exponentials.of(rows.logits, bias), np.zeros_like(bias), 0.0
        factors = np.exp(moved - highest).astype(rows.shares.dtype)
        inverse = 1.0 / (rows.shares @ factors)
        mean = np.asarray(factors * (rows.shares.T @ inverse) / len(inverse), np.float64)
        return cls(rows, bias, highest, factors, inverse, mean)

    @cached_property
    def mean_log_total(self) -> float:
        """The mean logarithm of the denominators."""
        return self.rows.mean_log + self.highest - float(np.log(self.inverse).mean(dtype=np.float64))

    def value(self, wanted: Array) -> float:
        """Return what :func:`restoring_bias` minimises."""
        return float(self.mean_log_total - wanted @ self.bias)

    def curvature(self) -> Array:
        """Return the Hessian of the value, shape (c, c): the mean covariance of draws from the softmax."""
        shares = self.rows.shares * self.inverse[:, None]
        products = self.factors[:, None] * (shares.T @ shares) * (self.factors / len(shares))
        return np.asarray(np.diag(self.mean_shares + _LEAST_CURVATURE) - products, np.float64)
