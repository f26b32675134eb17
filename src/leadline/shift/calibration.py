"""Softmax in log space, temperature scaling (Guo et al., 2017), and thresholds that match the source error."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray, IntArray

# Far outside what real networks need (0.5 to 5), and where softmax still has a gradient to search along.
TEMPERATURE_RANGE = (1e-2, 1e2)


def log_softmax(logits: FloatArray, temperature: float = 1.0) -> NDArray[np.float64]:
    """Return log softmax(logits / temperature) in float64, shape (n, c).

    The largest entry keeps its precision when the confidence is 1 to the last bit: ``log p = -log1p(rest)`` tells
    1 - 1e-20 from 1 - 1e-30, on which thresholded methods depend to break ties.
    """
    shifted = np.array(logits, dtype=np.float64)
    shifted -= shifted.max(axis=1, keepdims=True)
    shifted /= temperature
    top = shifted.argmax(axis=1)
    rows = np.arange(len(shifted))
    exponentials = np.exp(shifted)
    exponentials[rows, top] = 0.0
    shifted -= np.log1p(exponentials.sum(axis=1, keepdims=True))
    return shifted


def fit_temperature(logits: FloatArray, labels: IntArray) -> float:
    """Return the temperature that minimises the negative log-likelihood of the labels.

    The loss is convex in 1/T, so that a bounded search on log T finds the minimum. A classifier without a single
    error has none: the search ends at the lower bound of ``TEMPERATURE_RANGE``.

    Parameters
    ----------
    logits
        Shape (n, c).
    labels
        Shape (n,): indices of the true classes.
    """
    shifted = np.asarray(logits, dtype=np.float64)
    shifted = shifted - shifted.max(axis=1, keepdims=True)
    of_label = shifted[np.arange(len(shifted)), labels]

    def loss(log_temperature: float) -> float:
        scale = np.exp(-log_temperature)
        return float(np.mean(np.log(np.exp(shifted * scale).sum(axis=1)) - of_label * scale))

    return float(np.exp(_golden_section(loss, *np.log(TEMPERATURE_RANGE))))


def _golden_section(function: Callable[[float], float], low: float, high: float) -> float:
    """Return the minimum of a unimodal function to 1e-6.

    A few lines here, because importing SciPy's optimisers takes longer than most estimates.
    """
    ratio = (np.sqrt(5.0) - 1.0) / 2.0
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = function(left), function(right)
    while high - low > 1e-6:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = function(right)
    return float((low + high) / 2.0)


def matching_threshold(scores: FloatArray, correct: NDArray[np.bool_]) -> float:
    """Return the threshold t for which the share of source scores below t is the source error.

    ``sorted(scores)[number of errors]``: the smallest score when there are no errors, and the next number above the
    largest score when there is nothing else.
    """
    errors = int(np.count_nonzero(~correct))
    if errors == len(scores):
        return float(np.nextafter(scores.max(), np.inf))
    return float(np.partition(scores, errors)[errors])
