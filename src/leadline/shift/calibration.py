"""Temperature scaling (Guo et al., 2017), Platt scaling's bias, what is left of miscalibration, and thresholds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray, IntArray
from leadline.data.ranges import LARGEST
from leadline.numeric import find_root, sigmoid

# Far outside what real networks need (0.5 to 5), and where softmax still has a gradient to search along.
TEMPERATURE_RANGE = (1e-2, 1e2)
_MOST_BIAS = 15.0  # log-odds of one millionth
ROUNDING = 1e-12  # of a score
_MOST_BINS, _BIN_ROWS = 10, 20  # of confidence; 5 and 20 bins do alike (docs/which-method.md)


def fit_temperature(logits: FloatArray, labels: IntArray) -> float:
    """Return the temperature that minimises the negative log-likelihood of the labels.

    The loss is convex in 1/T, so that it is least where its derivative is zero. A classifier without a single error
    has no such place: the search ends at the lower bound of ``TEMPERATURE_RANGE``.

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

    def slope(log_temperature: float) -> float:
        powers = np.exp(shifted * np.exp(-log_temperature))
        return float(np.mean(of_label - np.einsum("ij,ij->i", powers, shifted) / powers.sum(axis=1)))

    return float(np.exp(find_root(slope, *np.log(TEMPERATURE_RANGE))))


def fit_bias(logits: FloatArray, labels: IntArray) -> float:
    """Return what Platt scaling adds to the log-odds of the second of two classes, before it divides by a temperature.

    Zero where larger log-odds do not make the second class likelier.

    Parameters
    ----------
    logits
        Shape (n, 2).
    labels
        Shape (n,): 0 or 1.

    Notes
    -----
    Labels count as Platt's targets, (n_1 + 1) / (n_1 + 2) and 1 / (n_0 + 2), which keeps the optimum finite where the
    classes can be told apart without error (Platt, 1999).
    """
    from scipy.optimize import minimize

    odds = np.asarray(logits[:, 1] - logits[:, 0], dtype=np.float64)
    middle, spread = float(odds.mean()), float(odds.std()) or 1.0
    scaled, n_second = (odds - middle) / spread, int(labels.sum())
    wanted = np.where(labels == 1, (n_second + 1) / (n_second + 2), 1 / (len(labels) - n_second + 2))

    def loss(parameters: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        score = parameters[0] * scaled + parameters[1]
        residual = sigmoid(score) - wanted
        value = np.mean(np.logaddexp(0.0, score) - wanted * score)
        return float(value), np.array([np.mean(residual * scaled), np.mean(residual)])

    slope, intercept = minimize(loss, np.array([spread, middle]), jac=True, method="L-BFGS-B").x
    if slope <= 0.0:
        return 0.0
    return float(np.clip(intercept * spread / slope - middle, -_MOST_BIAS, _MOST_BIAS))


def fit_gaps(odds: FloatArray, correct: NDArray[np.bool_]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what scaling leaves of miscalibration: edges of bins of log-odds, and accuracy less confidence in each.

    A classifier can be right as often at a confidence of .97 as at .999, and no temperature says so.

    Parameters
    ----------
    odds, correct
        Shapes (n,): log-odds of the predictions, and whether they are right.

    Returns
    -------
    edges, gaps
        Shapes (b - 1,) and (b,): for :func:`gaps_at`.
    """
    n_bins = int(np.clip(len(odds) // _BIN_ROWS, 1, _MOST_BINS))
    edges = np.asarray(np.quantile(odds, np.arange(1, n_bins) / n_bins), dtype=np.float64).clip(-LARGEST, LARGEST)
    missed = correct - sigmoid(odds)
    bins = np.searchsorted(edges, odds)
    rows, total = np.bincount(bins, minlength=n_bins), np.bincount(bins, weights=missed, minlength=n_bins)
    # Equal scores can leave a bin empty.
    return edges, np.where(rows > 0, total / np.maximum(rows, 1), missed.mean())


def gaps_at(odds: FloatArray, edges: NDArray[np.float64], gaps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the gap at each of these log-odds, shape (n,)."""
    return np.asarray(gaps[np.searchsorted(edges, odds)])


def matching_threshold(scores: FloatArray, correct: NDArray[np.bool_]) -> float:
    """Return the threshold t for which the share of source scores below t is the source error.

    ``sorted(scores)[number of errors]``: the smallest score when there are no errors, and a little more than the
    largest score when there is nothing else.
    """
    errors = int(np.count_nonzero(~correct))
    if errors == len(scores):
        largest = float(scores.max())
        return float(np.nextafter(largest + 4 * ROUNDING * abs(largest), np.inf))
    return float(np.partition(scores, errors)[errors])


def reaches(scores: FloatArray, threshold: float) -> NDArray[np.bool_]:
    """Say of each score whether it is at the threshold or above, shape (n,).

    Scores that differ by rounding alone are equal: those of few digits fall on a threshold by the thousand, and must do
    so on whatever processor they are computed.
    """
    return np.asarray(scores >= threshold - ROUNDING * abs(threshold))
