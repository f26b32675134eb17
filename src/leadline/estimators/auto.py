"""``auto``: knows which reading of the target to believe."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray, IntArray, as_logits, row_blocks
from leadline.estimators.base import Estimator, Reduced, State
from leadline.estimators.sums import Sample
from leadline.results.performance import Performance
from leadline.shift.judgement import Grounds, Judgement, branches, row_readings, sample_size
from leadline.shift.priors import softmax


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

    def __init__(self) -> None:
        """Store nothing: there is nothing to choose."""

    def _fit(self, logits: FloatArray, labels: IntArray) -> None:
        """Learn nothing beyond the sample of the source that every estimator keeps."""

    def advance(self, state: State, total: Reduced) -> State | None:
        """After the first pass, judge the target; after the second, end."""
        judged = None if state else self._judge(total)
        if judged is None:
            return None
        found = judged[1]
        return {
            "restoring": found.restoring,
            "reweighting": found.reweighting,
            "collapse_weight": np.asarray(found.explained.collapse_weight),
        }

    def reduce(self, logits: FloatArray, state: State) -> Reduced:
        """Sample rows; in the second pass, also sum their probabilities of being right."""
        values = self._values(logits, state) if state else np.zeros(len(logits))
        reduced = Reduced.from_values(logits, values)
        return replace(reduced, sample=Sample.of(logits, sample_size(self.n_classes_)))

    def _values(self, logits: FloatArray, state: State) -> NDArray[np.float64]:
        """Return the probability that each row is right, shape (n,)."""
        grounds = self._source.grounds()
        read = row_readings(grounds, grounds.log_probabilities(logits), state["restoring"], state["reweighting"])
        label_shift, collapse = branches(grounds, read)
        weight = float(state["collapse_weight"])
        return np.asarray((1 - weight) * label_shift + weight * collapse)

    def performance(self, logits: Any) -> Performance:
        """Estimate the confusion matrix on unlabelled rows, and from it precision, recall and F1 of each class.

        Parameters
        ----------
        logits
            Shape (n, c): the classifier's outputs on the target.

        Notes
        -----
        Each row is spread over the classes by its probabilities after the class frequencies have been restored
        (collapse) or reweighted (label shift), in the proportion in which either is believed.
        """
        logits = as_logits(logits, n_classes=self._check_fitted())
        state, _, _ = self._reduce_all(logits)
        grounds = self._source.grounds()
        weight = float(state["collapse_weight"])
        confusion = np.zeros((self.n_classes_, self.n_classes_))
        for block in row_blocks(logits):
            scores = grounds.log_probabilities(block)
            reweighted = softmax(scores + state["reweighting"].astype(scores.dtype))
            restored = softmax(scores + state["restoring"].astype(scores.dtype))
            np.add.at(confusion.T, block.argmax(axis=1), (1 - weight) * reweighted + weight * restored)
        return Performance(confusion)

    def _interval(
        self, accuracy: float, total: Reduced, judged: tuple[Grounds, Judgement] | None, level: float
    ) -> tuple[float, float]:
        if judged is None:
            return super()._interval(accuracy, total, judged, level)
        return judged[1].interval(accuracy, level)
