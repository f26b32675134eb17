"""How far a target can be trusted: which explanation holds, what the accuracy is under it, how wrong that may be.

This is what ``auto`` estimates with, and what gives every other estimator an interval that covers more than sampling
error. ``docs/which-method.md`` tells how it was found and what it rests on.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray, IntArray
from leadline.shift.calibration import fit_temperature, log_softmax, matching_threshold
from leadline.shift.explanations import DISTANCE_FLOOR, Explained, explain
from leadline.shift.intervals import normal_quantile
from leadline.shift.priors import Array, restoring_bias, softmax, top_two

# Bounds on work: rows of source and target, and rows times classes, that are looked at.
MOST_ROWS = 20_000
_MOST_VALUES = 4_000_000
_LEAST_ROWS = 1_000
_GATE_SOURCE_ROWS, _GATE_TARGET_ROWS = 4_000, 5_000
_GATE_VALUES = 2_000_000
_GATE_LEAST_ROWS = 2_000
_TEMPERATURE_VALUES = 1_000_000  # one parameter needs no more
_SINGLE_PRECISION_FROM = 150  # classes: memory traffic is the cost

# Flattening the source's logits leaves its accuracy, so that what confidence and thresholded confidence then lose is
# error. Thresholding is trusted where it loses little more than confidence does.
_FLATTENINGS = (0.5, 0.6, 0.7)
_REACTIVITY_CENTRE, _REACTIVITY_WIDTH = 0.75, 0.06
_THRESHOLD_SHARE = 0.25  # under collapse: restored confidence errs up, thresholded down, three times as far
_REWEIGHTED_SHARE = 0.5  # under label shift without thresholding: half confidence, half reweighted confidence

# Parts of the error and their weights, set by hand on the scale of observed errors (free fits of them overfit). Only
# the two multipliers were calibrated, leave-one-suite-out, and rounded up because new suites undercover.
_PARTS = {"methods": 0.25, "undecided": 0.5, "shift": 0.06, "ranking": 0.06}
_BASE = 0.025  # nobody knows an accuracy under shift better than this
_DOWN, _UP = 2.4, 2.0  # half-widths of the 90 % interval in units of the combined spread


def sample_size(n_classes: int) -> int:
    """Return how many rows are looked at."""
    return max(_LEAST_ROWS, min(MOST_ROWS, _MOST_VALUES // n_classes))


@dataclass(frozen=True, eq=False)
class Grounds:
    """What judging a target needs of the labelled source.

    Attributes
    ----------
    temperature
        Of the calibration.
    source, labels
        Shapes (n, c) and (n,): calibrated log-probabilities of labelled rows, for the explanations.
    others
        Shape (n, c): other rows' centred logits.
    marginal
        Shape (c,): class shares of the source.
    threshold, restored_threshold
        ATC's threshold on log-odds, and the same on prior-restored confidence.
    accuracy, n_rows
        Of the source.
    ranking
        How well confidence ranks right before wrong: 2 AUC - 1, in [0, 1].
    reactivity
        Fall of confidence over fall of thresholded confidence when logits are only flattened.
    """

    temperature: float
    source: FloatArray
    labels: IntArray
    others: FloatArray
    marginal: Array
    threshold: float
    restored_threshold: float
    accuracy: float
    n_rows: int
    ranking: float
    reactivity: float

    @property
    def threshold_trust(self) -> float:
        """Weight of thresholded readings, from 0 to 1."""
        return _logistic((min(self.reactivity, 10.0) - _REACTIVITY_CENTRE) / _REACTIVITY_WIDTH)

    def log_probabilities(self, logits: FloatArray) -> FloatArray:
        """Return calibrated log-probabilities, shape (n, c)."""
        return _scores(logits, self.temperature)


def learn_grounds(logits: FloatArray, labels: IntArray, *, marginal: Array, accuracy: float, n_rows: int) -> Grounds:
    """Learn from labelled source rows.

    Parameters
    ----------
    logits, labels
        Shapes (n, c) and (n,): a sample of the source in random order.
    marginal
        Shape (c,): class shares of the whole source.
    accuracy, n_rows
        Of the whole source.
    """
    n, c = logits.shape
    few = slice(max(1_000, _TEMPERATURE_VALUES // c))
    temperature = fit_temperature(logits[few], labels[few])
    scores = _scores(logits, temperature)
    top, _, odds = top_two(scores)
    correct = top == labels
    threshold = matching_threshold(odds, correct)
    restored = softmax(scores + restoring_bias(scores, marginal).astype(scores.dtype))[np.arange(n), top]
    gate = slice(max(_GATE_LEAST_ROWS, min(_GATE_SOURCE_ROWS, _GATE_VALUES // c)))
    centred = scores - scores.mean(axis=0)
    return Grounds(
        temperature=temperature,
        source=scores[gate],
        labels=labels[gate],
        others=np.roll(centred, n // 2, axis=0)[gate],
        marginal=marginal,
        threshold=threshold,
        restored_threshold=matching_threshold(restored, correct),
        accuracy=accuracy,
        n_rows=n_rows,
        ranking=_ranking(odds, correct),
        reactivity=_reactivity(scores, threshold),
    )


@dataclass(frozen=True, eq=False)
class Judgement:
    """What was found about a target.

    Attributes
    ----------
    explained
        The comparison of the two explanations.
    restoring, reweighting
        Shapes (c,): biases that give the target the source's class shares, and the estimated ones.
    readings
        Accuracy by each reading of the target, by name.
    accuracy
        The combined estimate on the rows looked at.
    parts
        Parts of its error, before their weights.
    """

    explained: Explained
    restoring: Array
    reweighting: Array
    readings: Mapping[str, float]
    accuracy: float
    parts: Mapping[str, float]

    def interval(self, accuracy: float, level: float) -> tuple[float, float]:
        """Return the interval around an accuracy at a nominal coverage."""
        model = sum((weight * self.parts[name]) ** 2 for name, weight in _PARTS.items())
        spread = float(np.sqrt(self.parts["sampling"] ** 2 + _BASE**2 + model))
        spread *= normal_quantile(0.5 + level / 2) / normal_quantile(0.95)
        return max(0.0, accuracy - _DOWN * spread), min(1.0, accuracy + _UP * spread)

    def verdict(self) -> str:
        """Return which explanation is believed, in a word or two."""
        if self.explained.unchanged_distance < 2 * DISTANCE_FLOOR:
            return "no detectable shift"
        if self.explained.collapse_weight > 0.8:
            return "collapse"
        return "label shift" if self.explained.collapse_weight < 0.2 else "undecided"

    def diagnostics(self, grounds: Grounds) -> dict[str, Any]:
        """Return the findings as plain values."""
        weight = self.explained.collapse_weight
        marginal = (1 - weight) * self.explained.label_marginal + weight * grounds.marginal
        return {
            "hypothesis": self.verdict(),
            "collapse_weight": weight,
            "threshold_trust": grounds.threshold_trust,
            "ranking": grounds.ranking,
            "readings": dict(self.readings),
            "readings_spread": float(np.ptp(list(self.readings.values()))),
            "label_marginal": marginal.tolist(),
            "label_marginal_change": float(0.5 * np.abs(marginal - grounds.marginal).sum()),
            "label_shift_distance": self.explained.label_shift_distance,
            "collapse_distance": self.explained.collapse_distance,
            "distance_to_source": self.explained.unchanged_distance,
            "distance_noise": self.explained.noise,
            "effective_source_rows": self.explained.effective_rows,
            "share_outside": self.explained.share_outside,
            "uncertainty": dict(self.parts),
        }


def judge(grounds: Grounds, logits: FloatArray, n_target: int) -> Judgement:
    """Look at a target.

    Parameters
    ----------
    grounds
        From the source.
    logits
        Shape (m, c): a sample of the target's rows.
    n_target
        How many rows the target has in all.
    """
    c = logits.shape[1]
    scores = grounds.log_probabilities(logits)
    few = max(_GATE_LEAST_ROWS, min(_GATE_TARGET_ROWS, _GATE_VALUES // c))
    # Rows spread evenly over the sample: files are often sorted.
    places = np.arange(len(scores)) if len(scores) <= few else np.arange(few) * len(scores) // few
    explained = explain(grounds.source, grounds.labels, grounds.others, scores[places])
    restoring = restoring_bias(scores, grounds.marginal)
    reweighting = restoring_bias(scores, explained.label_marginal)
    read = row_readings(grounds, scores, restoring, reweighting)
    readings = {name: float(values.mean()) for name, values in read.items()}
    label_shift, collapse = (float(values.mean()) for values in branches(grounds, read))
    weight = explained.collapse_weight
    accuracy = (1 - weight) * label_shift + weight * collapse
    clipped = float(np.clip(accuracy, 0.02, 0.98))  # an estimate of 1 is not without sampling error
    source_variance = grounds.accuracy * (1 - grounds.accuracy) / grounds.n_rows
    parts = {
        "sampling": float(np.sqrt(source_variance + clipped * (1 - clipped) / n_target)),
        "methods": (1 - weight) * abs(readings["thresholded"] - readings["confidence"])
        + weight * abs(readings["restored_thresholded"] - readings["restored"]),
        "undecided": float(np.sqrt(weight * (1 - weight)) * abs(label_shift - collapse)),
        "shift": explained.unchanged_distance,
        "ranking": 1.0 - grounds.ranking,
    }
    return Judgement(explained, restoring, reweighting, readings, accuracy, parts)


def row_readings(
    grounds: Grounds, scores: FloatArray, restoring: Array, reweighting: Array
) -> dict[str, NDArray[np.float64]]:
    """Return the five readings of each row, shape (n,) each.

    ``confidence``; ``thresholded``, whether the log-odds reach the source's threshold; ``restored``, the probability of
    the predicted class once the class shares are the source's again; ``restored_thresholded``; and ``reweighted``, the
    same with the class shares estimated under label shift.
    """
    rows = np.arange(len(scores))
    top, _, odds = top_two(scores)
    restored = softmax(scores + restoring.astype(scores.dtype))[rows, top].astype(np.float64)
    reweighted = softmax(scores + reweighting.astype(scores.dtype))[rows, top].astype(np.float64)
    with np.errstate(over="ignore"):
        confidence = 1.0 / (1.0 + np.exp(-odds.astype(np.float64)))
    return {
        "confidence": confidence,
        "thresholded": (odds >= grounds.threshold).astype(np.float64),
        "restored": restored,
        "restored_thresholded": (restored >= grounds.restored_threshold).astype(np.float64),
        "reweighted": reweighted,
    }


def branches(grounds: Grounds, read: Mapping[str, Array]) -> tuple[Array, Array]:
    """Return the probability that each row is right under label shift and under collapse, shapes (n,)."""
    trust = grounds.threshold_trust
    averaged = (1 - _REWEIGHTED_SHARE) * read["confidence"] + _REWEIGHTED_SHARE * read["reweighted"]
    label_shift = (1 - trust) * averaged + trust * read["thresholded"]
    collapse = read["restored"] + _THRESHOLD_SHARE * trust * (read["restored_thresholded"] - read["restored"])
    return label_shift, collapse


def _scores(logits: FloatArray, temperature: float) -> FloatArray:
    """Return calibrated log-probabilities, shape (n, c); in single precision where there are many classes."""
    scores: FloatArray = log_softmax(logits, temperature)
    return scores.astype(np.float32) if logits.shape[1] > _SINGLE_PRECISION_FROM else scores


def _ranking(odds: FloatArray, correct: NDArray[np.bool_]) -> float:
    """Return 2 AUC - 1 of the log-odds for correctness, in [0, 1]; 1 where there is nothing to rank."""
    right = int(correct.sum())
    wrong = len(correct) - right
    if right == 0 or wrong == 0:
        return 1.0
    _, place, count = np.unique(odds, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[place]  # ties share their mean rank
    auc = (ranks[correct].sum() - right * (right + 1) / 2) / (right * wrong)
    return float(np.clip(2 * auc - 1, 0.0, 1.0))


def _reactivity(scores: FloatArray, threshold: float) -> float:
    """Return the fall of confidence over that of thresholded confidence when logits are only flattened."""

    def read(factor: float) -> tuple[float, float]:
        odds = top_two(factor * scores)[2].astype(np.float64)
        return float(np.mean(1.0 / (1.0 + np.exp(-np.clip(odds, -500.0, 500.0))))), float(np.mean(odds >= threshold))

    base = np.array(read(1.0))
    falls = sum(base - np.array(read(factor)) for factor in _FLATTENINGS)
    return float(falls[0] / falls[1]) if falls[1] > 0 else float("inf")


def _logistic(x: float) -> float:
    return float(1.0 / (1.0 + np.exp(-x)))


Found = TypeVar("Found")


class _Memory(Generic[Found]):
    """The last things found, by the content they were found from.

    Methods that were fitted on one source ask the same of the same target; only the first has to work for it.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._found: OrderedDict[bytes, Found] = OrderedDict()
        self._lock = threading.Lock()

    def recall(self, key: bytes, find: Callable[[], Found]) -> Found:
        """Return what was found for the key, or find it now."""
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
                return self._found[key]
        found = find()
        with self._lock:
            self._found[key] = found
            while len(self._found) > self._size:
                self._found.popitem(last=False)
        return found


_grounds_memory: _Memory[Grounds] = _Memory(4)
_judgement_memory: _Memory[Judgement] = _Memory(1024)


@dataclass(frozen=True, eq=False)
class SourceRows:
    """A sample of a labelled source in random order, and what is known of all of it."""

    logits: FloatArray
    labels: IntArray
    marginal: Array
    accuracy: float
    n_rows: int

    def grounds(self) -> Grounds:
        """Return what judging a target needs."""
        return _grounds_memory.recall(
            self._key(),
            lambda: learn_grounds(
                self.logits, self.labels, marginal=self.marginal, accuracy=self.accuracy, n_rows=self.n_rows
            ),
        )

    def judge(self, logits: FloatArray, n_target: int) -> Judgement:
        """Look at a sample of a target, shape (m, c), which has ``n_target`` rows in all."""
        key = self._key() + _digest(logits) + n_target.to_bytes(8, "big")
        return _judgement_memory.recall(key, lambda: judge(self.grounds(), logits, n_target))

    def _key(self) -> bytes:
        return _digest(self.logits) + _digest(self.labels) + _digest(self.marginal) + self.n_rows.to_bytes(8, "big")


def _digest(array: NDArray[Any]) -> bytes:
    return hashlib.blake2b(np.ascontiguousarray(array).tobytes(), digest_size=16).digest()
