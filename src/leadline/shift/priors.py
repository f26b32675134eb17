"""Label marginals: what softmax outputs would be if the classes were differently frequent."""

from __future__ import annotations

import numpy as np

from leadline.data.outputs import FloatArray
from leadline.numeric import Array, softmax_with_total

_NEWTON_CLASSES = 150  # above, the c x c Hessian costs more than a few more fixed-point passes
_LEAST_SHARE = 1e-6  # an absent class would need a bias of minus infinity


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
    n, c = logits.shape
    wanted = np.maximum(marginal, _LEAST_SHARE)
    wanted = wanted / wanted.sum()

    def evaluate(bias: Array) -> tuple[float, FloatArray]:
        shares, log_total = softmax_with_total(logits, bias)
        return float(log_total.mean() - wanted @ bias), shares

    bias = np.zeros(c) if start is None else start.copy()
    value, restored = evaluate(bias)
    for _ in range(iterations):
        mean = restored.mean(axis=0, dtype=np.float64)
        gradient = mean - wanted
        if np.abs(gradient).max() < tolerance:
            break
        if c > _NEWTON_CLASSES:
            bias = bias + np.clip(np.log(wanted / np.maximum(mean, 1e-12)), -4.0, 4.0)
            value, restored = evaluate(bias)
            continue
        # 1e-3/c^2 removes the null direction (adding a constant to b), 1e-7 keeps empty classes invertible.
        hessian = np.diag(mean) - restored.T @ restored / n + 1e-7 * np.eye(c) + 1e-3 / c**2
        step = np.linalg.solve(hessian, -gradient)
        step *= min(1.0, 4.0 / np.abs(step).max())  # beyond 4 nats at once the quadratic model is useless
        size = 1.0
        while True:
            new_value, new_restored = evaluate(bias + size * step)
            if new_value <= value + 1e-4 * size * (gradient @ step) or size < 1e-4:
                break
            size *= 0.5
        bias, value, restored = bias + size * step, new_value, new_restored
    return np.asarray(bias - bias.mean())
