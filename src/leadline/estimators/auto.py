"""``auto``: knows which reading of the target to believe."""

from __future__ import annotations

from typing import Any

import numpy as np

from leadline.data.outputs import FloatArray, IntArray, row_blocks
from leadline.estimators.base import Estimator
from leadline.estimators.scans import InMemory
from leadline.estimators.sums import Reduced, State
from leadline.numeric import softmax
from leadline.results.performance import Performance
from leadline.shift.judgement import Judgement, branches, row_readings


class Auto(Estimator):
    """Auto: combines the readings of the target whose assumptions hold on it.

    Asks why the predictions moved. If the target looks like the source with other class frequencies (label shift),
    confidence and thresholded confidence are read; if it looks like a classifier that drifts towards some classes
    (collapse), the source's class frequencies are restored first. Belief moves smoothly between the two, and
    thresholded readings count only as far as the source shows that they bear flattened logits.

    Notes
    -----
    A first pass over the target collects a bounded sample of its rows (20,000, fewer with many classes) on which the
    explanations are compared; a second gives every row its probability of being right,

        (1 - w) [(1 - t) (AC + PRC(pi)) / 2 + t ATC] + w [PRC(pi_S) + t / 4 (thresholded PRC(pi_S) - PRC(pi_S))],

    with w the belief in collapse, t the trust in thresholds, pi the class frequencies estimated under label shift and
    pi_S the source's. PRC(pi) is the probability of the predicted class after a bias has given the target the class
    frequencies pi.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 3, 2000)
    >>> logits = rng.normal(size=(2000, 3)) + 2 * np.eye(3)[labels]
    >>> estimate = Auto().fit(logits[:1000], labels[:1000]).estimate(logits[1000:])
    >>> bool(abs(estimate.accuracy - np.mean(logits[1000:].argmax(1) == labels[1000:])) < 0.05)
    True
    """

    method = "auto"
    passes = "two"

    def __init__(self) -> None:
        """Store nothing: there is nothing to choose."""

    def _fit(self, logits: FloatArray, labels: IntArray) -> None:
        """Learn nothing beyond the profile of the source that every estimator has."""

    def informed(self, judgement: Judgement) -> State:
        """Return the biases and the belief in collapse."""
        return {
            "restoring": judgement.restoring,
            "reweighting": judgement.reweighting,
            "collapse_weight": np.asarray(judgement.explained.collapse_weight),
        }

    def reduce(self, logits: FloatArray, state: State) -> Reduced:
        """Sum the probabilities of being right."""
        scores, predicted = self.source_.log_probabilities(logits), logits.argmax(axis=1)
        read = row_readings(self.source_, scores, predicted, state["restoring"], state["reweighting"])
        label_shift, collapse = branches(self.source_, read)
        weight = float(state["collapse_weight"])
        return Reduced.from_values(logits, np.asarray((1 - weight) * label_shift + weight * collapse))

    def performance(self, logits: Any) -> Performance:
        """Estimate the confusion matrix on unlabelled rows, and from it precision, recall and F1 of each class.

        Parameters
        ----------
        logits
            Shape (n, c): the classifier's outputs on the target; or ``Outputs``.

        Notes
        -----
        Each row is spread over the classes by its probabilities after the class frequencies have been restored
        (collapse) or reweighted (label shift), in the proportion in which either is believed.
        """
        target = self._target(logits)
        state = self._drive(InMemory(target)).state()
        weight = float(state["collapse_weight"])
        confusion = np.zeros((self.n_classes_, self.n_classes_))
        for block in row_blocks(target):
            scores = self.source_.log_probabilities(block)
            reweighted = softmax(scores + state["reweighting"].astype(scores.dtype))
            restored = softmax(scores + state["restoring"].astype(scores.dtype))
            np.add.at(confusion.T, block.argmax(axis=1), (1 - weight) * reweighted + weight * restored)
        return Performance(confusion, self.classes_)

    def _interval(
        self, accuracy: float, total: Reduced, judgement: Judgement | None, confidence_level: float
    ) -> tuple[float, float]:
        if judgement is None:
            return super()._interval(accuracy, total, judgement, confidence_level)
        return judgement.interval(accuracy, confidence_level)
