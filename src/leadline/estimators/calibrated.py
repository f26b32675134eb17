"""Confidence calibrated class by class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray, IntArray
from leadline.estimators.confidence import SoftmaxEstimator
from leadline.estimators.sums import Reduced, State
from leadline.numeric import sigmoid

Array = NDArray[np.float64]

# How firmly a class's own offset is held to zero: as much as this many of its rows speak against it. Rare classes then
# follow the common curve.
_OFFSET_WEIGHT = 2.0
_SLOPE_WEIGHT = 1e-3
_MOST_ODDS = 30.0  # log-odds beyond are certain in double precision


class CalibratedConfidence(SoftmaxEstimator):
    """CBPE: mean confidence, calibrated on the source for each predicted class (after NannyML's estimator).

    The probability that a prediction is right is a logistic function of its log-odds, with one slope and an offset for
    each predicted class. Only the outcome that matters is calibrated, whether the top class is right, and not each
    class's score on its own: rescaling those to sum to one biases the estimate even without any shift.

    Parameters
    ----------
    temperature_scaling
        Scale the logits first; the calibration takes it back where it is wrong.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 4, 2000)
    >>> logits = 0.2 * (rng.normal(size=(2000, 4)) + 3 * np.eye(4)[labels])    # far too modest
    >>> model = CalibratedConfidence(temperature_scaling=False).fit(logits, labels)
    >>> bool(abs(model.estimate(logits).accuracy - model.source_accuracy_) < 0.01)
    True
    """

    method = "cbpe"

    slope_: float
    intercept_: float
    offsets_: Array

    def _fit_softmax(self, logits: FloatArray, labels: IntArray) -> None:
        found = self._read(logits)
        self.slope_, self.intercept_, self.offsets_ = _fit_logistic(
            _bounded(found.log_odds), found.classes, found.classes == labels, self.n_classes_
        )

    def reduce(self, logits: FloatArray, state: State) -> Reduced:
        """Sum calibrated confidences."""
        found = self._read(logits)
        score = self.slope_ * _bounded(found.log_odds) + self.intercept_ + self.offsets_[found.classes]
        return Reduced.from_predicted(found.classes, self.n_classes_, sigmoid(score))

    def _diagnostics(self, state: State, total: Reduced) -> dict[str, Any]:
        return super()._diagnostics(state, total) | {"slope": self.slope_, "intercept": self.intercept_}


def _bounded(odds: Array) -> Array:
    return np.clip(odds, -_MOST_ODDS, _MOST_ODDS)


def _fit_logistic(odds: Array, top: NDArray[np.intp], correct: NDArray[np.bool_], c: int) -> tuple[float, float, Array]:
    """Return slope, intercept and offsets (c,) of the penalised logistic regression of correctness on log-odds.

    One pseudo-row right and one wrong, at the mean log-odds, keep the intercept finite where all rows are of a kind.
    """
    from scipy.optimize import minimize

    n = len(odds)
    middle = float(odds.mean())
    spread = float(odds.std()) or 1.0
    scaled = (odds - middle) / spread

    def loss(parameters: Array) -> tuple[float, Array]:
        slope, intercept, offsets = parameters[0], parameters[1], parameters[2:]
        score = slope * scaled + intercept + offsets[top]
        pseudo = np.logaddexp(0.0, intercept) + np.logaddexp(0.0, -intercept)
        value = np.sum(np.logaddexp(0.0, score) - correct * score) + pseudo
        value += 0.5 * (_OFFSET_WEIGHT * offsets @ offsets + _SLOPE_WEIGHT * slope * slope)
        residual = sigmoid(score) - correct
        of_intercept = residual.sum() + 2.0 * float(sigmoid(np.asarray(intercept))) - 1.0
        of_offsets = np.bincount(top, weights=residual, minlength=c) + _OFFSET_WEIGHT * offsets
        gradient = np.concatenate([[residual @ scaled + _SLOPE_WEIGHT * slope, of_intercept], of_offsets])
        return float(value / n), gradient / n

    start = np.zeros(2 + c)
    start[0] = spread  # confidence as it is
    start[1] = middle
    options = {"maxiter": 500, "ftol": 1e-12, "gtol": 1e-8}
    found = np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x)
    slope = float(found[0] / spread)
    return slope, float(found[1] - slope * middle), found[2:]
