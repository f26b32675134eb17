"""Temperature scaling (Guo et al., 2017), and thresholds that match the source error."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray, IntArray
from leadline.numeric import golden_section

# Far outside what real networks need (0.5 to 5), and where softmax still has a gradient to search along.
TEMPERATURE_RANGE = (1e-2, 1e2)


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

    return float(np.exp(golden_section(loss, *np.log(TEMPERATURE_RANGE))))


def matching_threshold(scores: FloatArray, correct: NDArray[np.bool_]) -> float:
    """Return the threshold t for which the share of source scores below t is the source error.

    ``sorted(scores)[number of errors]``: the smallest score when there are no errors, and the next number above the
    largest score when there is nothing else.
    """
    errors = int(np.count_nonzero(~correct))
    if errors == len(scores):
        return float(np.nextafter(scores.max(), np.inf))
    return float(np.partition(scores, errors)[errors])
