"""``auto``: knows which reading of the target to believe."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray, IntArray, row_blocks
from leadline.estimators.alsa.model import ALSA
from leadline.estimators.base import Estimator
from leadline.estimators.groups import ALL
from leadline.estimators.integrity import require
from leadline.estimators.scans import InMemory
from leadline.estimators.sums import Reduced, State
from leadline.results.performance import Performance, expected_auc, matched
from leadline.results.shift import Shift
from leadline.shift.judgement import Judgement
from leadline.shift.readings import (
    Adaptation,
    class_corrections,
    class_probabilities,
    combined,
    correction,
    row_readings,
)
from leadline.shift.source import MOST_CLASSES, SourceProfile

_ANCHORS_SHARE = 0.25  # .15 to .35 do alike (docs/studies/nested.py)
_NOISES = 2.0  # times what sampling alone would show: as far from the source, explanations count a half for classes
_ANCHORS = ("anchors_", "peaks_", "widths_", "threshold_", "folds_", "lift_", "correction_")


def learn_anchors(source: SourceProfile) -> dict[str, Any]:
    """Return what ``Auto`` learns beyond the profile of the source: an ALSA on the sample in it, by attribute.

    Where anchors would not be asked, there is one without influence in their place.
    """
    if not anchors_share(source):
        one = np.ones(1, dtype=np.float32)
        anchors = np.ones((1, len(source.marginal)), dtype=np.float32)
        return dict(zip(_ANCHORS, (anchors, 0 * one, one, 0.0, 1, 0.0, 0.0), strict=True))
    alsa = ALSA()
    alsa.n_classes_, alsa.source_ = len(source.marginal), source
    alsa._fit(source.logits, source.labels)
    return {name: getattr(alsa, name) for name in _ANCHORS}


def anchors_share(source: SourceProfile) -> float:
    """Return the share of ALSA's reading."""
    return _ANCHORS_SHARE * source.few_classes if len(source.marginal) <= MOST_CLASSES else 0.0


def _beliefs_in_what_is_seen(weights: NDArray[np.float64], shift: Shift | None) -> NDArray[np.float64]:
    """Return what counts for how the classes of rows are spread, shape (4,): rows as they are, and each explanation.

    Explanations count as far as more moved than sampling explains, however little that is: a rare class that became
    common is known by it.
    """
    explained = weights[1:] / max(weights[1:].sum(), np.finfo(float).tiny)
    seen = 0.0
    if shift is not None and shift.distance:
        seen = shift.distance**2 / (shift.distance**2 + (_NOISES * shift.noise) ** 2)
    return np.append(1.0 - seen, seen * explained)


class Auto(Estimator):
    """Auto: combines the readings of the target whose assumptions hold on it.

    Asks why the predictions moved. If the target looks like the source with other class frequencies and nothing else
    (label shift), confidence is reweighted to them; if the classifier is surer or less sure as well (label shift and
    more), confidence is read as it is; if it looks like a classifier that drifts towards some classes (collapse), the
    source's class frequencies are restored first, unless it is surer than it was, as it is of easier rows. Belief moves
    smoothly between the three, and the nearer the target is to the source, to calibrated confidence as it is. Clusters
    of the source's logits, one for each class, count for as much, adapted to the target in the same way: as frequent as
    it shows them, or where it shows them. The result is averaged with ALSA's, whose anchors stay where they are. Each
    reading is moved by what it misses of the accuracy on the source itself. The more anything moved, the more mistakes
    are expected that the outputs do not show.

    Notes
    -----
    A first pass over the target collects a bounded sample of its rows (20,000, fewer with many classes) on which the
    explanations are compared; a second gives every row its probability of being right,

        (1 - m) AC + m [l R(pi) + (1 - l - w) AC + w PRC(pi_S)],

    with m = d^2 / (d^2 + 0.1^2) at a distance d of the target from the source, l the belief in label shift and w that
    in collapse, pi the class frequencies estimated under label shift and pi_S the source's. R(pi) is the probability of
    the predicted class by Bayes' theorem if the classes were as frequent as pi, PRC(pi_S) that after a bias has given
    the target the class frequencies of the source. With more than ten classes, ATC's reading by entropy takes the place
    of the first two more and more.

    With C the probability of the predicted class among clusters as they are, C(pi) as frequent as the target shows
    them and C* where it shows them, half of that is (1 - m + m (1 - l - w)) C + m [l C(pi) + w C*] instead; less with
    few rows of the source for each class. A quarter of the whole is ALSA's, fitted on the sample of the source that the
    model keeps; less with more than ten classes, where anchors know less. With more than 250 classes neither counts. Of
    an accuracy a that the outputs show, some 0.08 m^2 a (1 - a) is taken off.

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

    anchors_: NDArray[np.float32]
    peaks_: NDArray[np.float32]
    widths_: NDArray[np.float32]
    threshold_: float
    folds_: int
    lift_: float
    correction_: float

    def __init__(self) -> None:
        """Store nothing: there is nothing to choose."""

    def _fit(self, logits: FloatArray, labels: IntArray) -> None:
        """Learn anchors from the sample of the source; all else is in the profile that every estimator has."""
        for name, value in learn_anchors(self.source_).items():
            setattr(self, name, value)

    def _check_learned(self) -> None:
        require(abs(self.threshold_) < np.inf, "threshold_ is out of range")

    @property
    def _alsa(self) -> ALSA:
        """The fitted ALSA."""
        alsa = ALSA()
        for name in ("n_classes_", "source_", *_ANCHORS):
            setattr(alsa, name, getattr(self, name))
        return alsa

    def informed(self, judgement: Judgement) -> State:
        """Return what rows are read with, and what the readings count for."""
        return judgement.adaptation.to_state() | {
            "weights": judgement.weights,
            "hidden": np.asarray(judgement.hidden),
        }

    def reduce(self, logits: FloatArray, state: State) -> Reduced:
        """Sum the probabilities of being right."""
        scores, predicted = self.source_.log_probabilities(logits), logits.argmax(axis=1)
        read = row_readings(self.source_, scores, predicted, Adaptation.from_state(state))
        values, share = combined(self.source_, read, state["weights"]), anchors_share(self.source_)
        if share:
            values = (1 - share) * values + share * self._alsa.probabilities(logits)[0]
        return Reduced.from_values(logits, values)

    def _correction(self, state: State) -> float:
        share = anchors_share(self.source_)
        return (1 - share) * correction(self.source_, state["weights"]) + share * self.correction_

    def _accuracy(self, state: State, total: Reduced) -> float:
        return super()._accuracy(state, total) * (1.0 - float(state["hidden"]))

    def _diagnostics(self, state: State, total: Reduced) -> dict[str, Any]:
        return {"hidden_mistakes": super()._accuracy(state, total) * float(state["hidden"])}

    def performance(self, logits: Any, *, confidence_level: float = 0.9) -> Performance:
        """Estimate the confusion matrix on unlabelled rows, and from it precision, recall and F1 of each class.

        Parameters
        ----------
        logits
            Shape (n, c): the classifier's outputs on the target; or ``Outputs``.
        confidence_level
            Nominal coverage of the intervals.

        Notes
        -----
        Each row is spread over the classes by its probabilities: those of the softmax and those of clusters, adapted to
        the target by each explanation as far as that is believed and anything moved, and corrected by what they miss
        of the confusion matrix of the source. All mistakes are then made more or less frequent alike, so that the
        accuracy is that of :meth:`estimate`.
        """
        target = self._target(logits)
        driven = self._drive(InMemory(target))
        estimate, state = driven.estimate(ALL, confidence_level), driven.state()
        beliefs = _beliefs_in_what_is_seen(state["weights"], estimate.shift)
        adaptation, confusion = Adaptation.from_state(state), np.zeros((self.n_classes_, self.n_classes_))
        corrections, odds, positive = class_corrections(self.source_), [], []
        for block in row_blocks(target):
            scores = self.source_.log_probabilities(block)
            predicted = block.argmax(axis=1)
            probabilities = class_probabilities(self.source_, scores, adaptation, beliefs) * corrections[predicted]
            probabilities /= probabilities.sum(axis=1, keepdims=True)
            np.add.at(confusion.T, predicted, probabilities)
            if self.n_classes_ == 2:
                odds.append(scores[:, 1] - scores[:, 0])
                positive.append(probabilities[:, 1])
        return Performance(
            matched(confusion, estimate.accuracy),
            self.classes_,
            roc_auc=expected_auc(np.concatenate(odds), np.concatenate(positive)) if odds else None,
            margin=(estimate.interval[1] - estimate.interval[0]) / 2,
            confidence_level=confidence_level,
        )

    def _interval(
        self, accuracy: float, total: Reduced, judgement: Judgement | None, confidence_level: float
    ) -> tuple[float, float]:
        if judgement is None:
            return super()._interval(accuracy, total, judgement, confidence_level)
        return judgement.interval(accuracy, confidence_level)
