"""Compiled loops over points among clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

_OPTIONS: dict[str, Any] = {
    "fastmath": {"contract", "nnan", "nsz", "reassoc"}, "nogil": True, "cache": True, "error_model": "numpy",
}  # fmt: skip


@njit(**_OPTIONS)  # type: ignore[untyped-decorator]
def probability(
    points: Any, products: Any, norms: Any, scales: Any, weights: Any, power: Any, least: Any, classes: Any, found: Any
) -> None:
    """Find the probability of one class of each point, of t distributions without a single logarithm.

    Parameters
    ----------
    points, products
        Shapes (n, k) and (n, c): the points, and their products with the centres.
    norms, scales, weights
        Shapes (c,): squared lengths of the centres, one over spread and freedom, and what classes count for.
    power, least
        The exponent, in halves, and what roots of ratios are held at so that no power of them is zero.
    classes, found
        Shapes (n,): the classes, and room for their probabilities.
    """
    c = norms.shape[0]
    ratios, powers = np.empty(c), np.empty(c)
    for i in range(points.shape[0]):
        point, row, square, nearest = points[i], products[i], 0.0, np.inf
        for k in range(point.shape[0]):
            square += point[k] * point[k]
        for j in range(c):
            distance = square - 2.0 * row[j] + norms[j]
            apart = 1.0 + (distance if distance > 0.0 else 0.0) * scales[j]
            ratios[j] = apart
            nearest = apart if apart < nearest else nearest
        for j in range(c):
            ratio = np.sqrt(nearest / ratios[j])
            ratios[j] = ratio if ratio > least else least
            powers[j] = weights[j]
        left = power
        while left > 0:
            if left & 1:
                for j in range(c):
                    powers[j] *= ratios[j]
            left >>= 1
            if left > 0:
                for j in range(c):
                    ratios[j] *= ratios[j]
        total = 0.0
        for j in range(c):
            total += powers[j]
        found[i] = powers[classes[i]] / total
