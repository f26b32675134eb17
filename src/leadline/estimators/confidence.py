"""Estimators that read the accuracy off the confidence: AC, DoC and ATC."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray, IntArray
from leadline.estimators.base import Estimator
from leadline.estimators.sums import Reduced, State
from leadline.numeric import read
from leadline.rowwise import Reading
from leadline.shift.calibration import fit_temperature, matching_threshold, reaches


class SoftmaxEstimator(Estimator):
    """Base of the methods that look at softmax outputs, calibrated on the source by temperature scaling."""

    temperature_: float

    def __init__(self, *, temperature_scaling: bool = True) -> None:
        self.temperature_scaling = temperature_scaling

    def _fit(self, logits: FloatArray, labels: IntArray) -> None:
        self.temperature_ = fit_temperature(self.source_.outputs(logits), labels) if self.temperature_scaling else 1.0
        self._fit_softmax(logits, labels)

    @abstractmethod
    def _fit_softmax(self, logits: FloatArray, labels: IntArray) -> None:
        """Learn from the rows (n, c) and labels (n,) of the source, now that the temperature is known."""

    def _read(self, logits: FloatArray, *, entropy: bool = False) -> Reading:
        """Return what calibrated softmax says of the predicted class of each row."""
        # Where a threshold decides, the predicted class need not be the likeliest one.
        decided = self.source_.decision_threshold is not None
        classes = logits.argmax(axis=1) if decided else None
        return read(self.source_.outputs(logits), self.temperature_, classes=classes, entropy=entropy)

    def _diagnostics(self, state: State, total: Reduced) -> dict[str, Any]:
        return {"temperature": self.temperature_}


class AverageConfidence(SoftmaxEstimator):
    """AC: the mean confidence on the target (Hendrycks & Gimpel, 2017).

    Right when the classifier's confidence is calibrated on the target. Estimate = mean softmax of the predicted class.

    Parameters
    ----------
    temperature_scaling
        Calibrate on the source first.
    """

    method = "ac"

    def _fit_softmax(self, logits: FloatArray, labels: IntArray) -> None:
        pass

    def reduce(self, logits: FloatArray, state: State) -> Reduced:
        """Sum confidences."""
        found = self._read(logits)
        return Reduced.from_predicted(found.classes, self.n_classes_, found.probability)


class DifferenceOfConfidence(SoftmaxEstimator):
    """DoC: source accuracy plus the change of mean confidence (Guillory et al., 2021).

    Right when the target is miscalibrated by as much as the source. The paper's appendix prints the source error
    where the source accuracy belongs.

    Parameters
    ----------
    temperature_scaling
        Calibrate on the source first.
    """

    method = "doc"

    source_confidence_: float

    def _fit_softmax(self, logits: FloatArray, labels: IntArray) -> None:
        self.source_confidence_ = float(self._read(logits).probability.mean())

    def reduce(self, logits: FloatArray, state: State) -> Reduced:
        """Sum confidences moved by the source's miscalibration."""
        found = self._read(logits)
        values = found.probability + (self.source_accuracy_ - self.source_confidence_)
        moved = Reduced.from_predicted(found.classes, self.n_classes_, values)
        # Single values may leave [0, 1]: they are no probabilities of correctness.
        return Reduced(moved.sums, rows=moved.rows)

    def _diagnostics(self, state: State, total: Reduced) -> dict[str, Any]:
        return super()._diagnostics(state, total) | {"source_confidence": self.source_confidence_}


class AverageThresholdedConfidence(SoftmaxEstimator):
    """ATC: the share of the target above the threshold that splits off the source's errors (Garg et al., 2022).

    Right when the score ranks target samples as it ranks source samples, at the same place. Scores are computed in
    log space, where saturated confidences still differ.

    Parameters
    ----------
    score
        "confidence" for the softmax of the predicted class (ATC-MC), "entropy" for minus the entropy (ATC-NE).
    temperature_scaling
        Calibrate on the source first.
    """

    threshold_: float

    def __init__(
        self, *, score: Literal["confidence", "entropy"] = "confidence", temperature_scaling: bool = True
    ) -> None:
        super().__init__(temperature_scaling=temperature_scaling)
        self.score = score

    @property
    def method(self) -> str:
        """The name of this method in ``leadline.METHODS``."""
        return "atc-mc" if self.score == "confidence" else "atc-ne"

    def _fit_softmax(self, logits: FloatArray, labels: IntArray) -> None:
        predicted, scores = self._scores(logits)
        self.threshold_ = matching_threshold(scores, predicted == labels)

    def _scores(self, logits: FloatArray) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Return predicted class and score of each row, larger for surer predictions, shapes (n,)."""
        if self.score == "confidence":
            found = self._read(logits)
            return found.classes, found.log_probability
        found = self._read(logits, entropy=True)
        return found.classes, found.negative_entropy

    def reduce(self, logits: FloatArray, state: State) -> Reduced:
        """Count rows at or above the threshold."""
        predicted, scores = self._scores(logits)
        return Reduced.from_predicted(predicted, self.n_classes_, reaches(scores, self.threshold_).astype(np.float64))

    def _diagnostics(self, state: State, total: Reduced) -> dict[str, Any]:
        return super()._diagnostics(state, total) | {"threshold": self.threshold_}
