"""Which explanation of a target holds, what the accuracy is under it, and how wrong that may be.

This is what ``auto`` estimates with, and what gives every other estimator an interval that covers more than sampling
error. ``docs/which-method.md`` tells how it was found and what it rests on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray
from leadline.numeric import Array, normal_quantile, of_class, sigmoid, softmax, top_two
from leadline.results.shift import Shift, ShiftKind
from leadline.shift.explanations import DISTANCE_FLOOR, Explained, explain
from leadline.shift.priors import restoring_bias
from leadline.shift.source import SourceProfile

_EXPLAINED_ROWS, _EXPLAINED_LEAST, _EXPLAINED_VALUES = 5_000, 2_000, 2_000_000  # rows of a target that are explained

_THRESHOLD_SHARE = 0.25  # under collapse: restored confidence errs up, thresholded down, three times as far
_REWEIGHTED_SHARE = 0.5  # under label shift without thresholding: half confidence, half reweighted confidence
_COLLAPSE_FROM, _LABEL_SHIFT_TO = 0.8, 0.2  # beliefs in collapse beyond which a verdict is given

# Parts of the error and their weights, set by hand on the scale of observed errors (free fits of them overfit). Only
# the two multipliers were calibrated, leave-one-suite-out, and rounded up because new suites undercover.
_PARTS = {"methods": 0.25, "undecided": 0.5, "shift": 0.06, "ranking": 0.06}
_BASE = 0.025  # nobody knows an accuracy under shift better than this
_DOWN, _UP = 2.4, 2.0  # half-widths of the 90 % interval in units of the combined spread


@dataclass(frozen=True, eq=False)
class Judgement:
    """What was found about a target.

    Attributes
    ----------
    profile
        The source it was judged against.
    explained
        The comparison of the two explanations.
    restoring, reweighting
        Shapes (c,): biases that give the target the source's class shares, and the estimated ones.
    readings
        Accuracy by each reading of the target, by name.
    accuracy
        The combined estimate.
    parts
        Parts of its error, before their weights.
    evidence
        Share of all this that rests on the rows themselves, and not on the whole target that they are a segment of.
    """

    profile: SourceProfile
    explained: Explained
    restoring: Array
    reweighting: Array
    readings: Mapping[str, float]
    accuracy: float
    parts: Mapping[str, float]
    evidence: float = 1.0

    def interval(self, accuracy: float, confidence_level: float) -> tuple[float, float]:
        """Return the interval around an accuracy at a nominal coverage."""
        model = sum((weight * self.parts[name]) ** 2 for name, weight in _PARTS.items())
        spread = float(np.sqrt(self.parts["sampling"] ** 2 + _BASE**2 + model))
        spread *= normal_quantile(0.5 + confidence_level / 2) / normal_quantile(0.95)
        return max(0.0, accuracy - _DOWN * spread), min(1.0, accuracy + _UP * spread)

    @property
    def kind(self) -> ShiftKind:
        """Which explanation is believed."""
        if self.explained.unchanged_distance < 2 * DISTANCE_FLOOR:
            return ShiftKind.NONE
        if self.explained.collapse_weight > _COLLAPSE_FROM:
            return ShiftKind.COLLAPSE
        return ShiftKind.LABEL if self.explained.collapse_weight < _LABEL_SHIFT_TO else ShiftKind.UNDECIDED

    def shift(self) -> Shift:
        """Return the findings for people and programs."""
        weight, source = self.explained.collapse_weight, self.profile.marginal
        marginal = (1 - weight) * self.explained.label_marginal + weight * source
        return Shift(
            kind=self.kind,
            collapse_weight=weight,
            label_marginal=marginal,
            label_marginal_change=float(0.5 * np.abs(marginal - source).sum()),
            readings=self.readings,
            distance=self.explained.unchanged_distance,
            label_shift_distance=self.explained.label_shift_distance,
            collapse_distance=self.explained.collapse_distance,
            noise=self.explained.noise,
            effective_source_rows=self.explained.effective_rows,
            share_outside=self.explained.share_outside,
            threshold_trust=self.profile.threshold_trust,
            ranking=self.profile.ranking,
            uncertainty=self.parts,
            evidence=self.evidence,
        )

    def of_segment(self, n_rows: int, accuracy: float) -> Judgement:
        """Return the same verdict for a segment of the target, with its size and the accuracy it would have."""
        sampling = _sampling(self.profile, accuracy, n_rows)
        return replace(self, accuracy=accuracy, parts={**self.parts, "sampling": sampling}, evidence=0.0)

    def pooled(self, own: Judgement, share: float) -> Judgement:
        """Return this verdict on the whole mixed with a segment's own, of which ``share`` counts."""

        def mix(whole: float, part: float) -> float:
            return (1 - share) * whole + share * part

        mine, theirs = self.explained, own.explained
        return Judgement(
            profile=self.profile,
            explained=mine.mixed(theirs, share),
            restoring=(1 - share) * self.restoring + share * own.restoring,
            reweighting=(1 - share) * self.reweighting + share * own.reweighting,
            readings={name: mix(value, own.readings[name]) for name, value in self.readings.items()},
            accuracy=mix(self.accuracy, own.accuracy),
            parts={name: mix(value, own.parts[name]) for name, value in self.parts.items()}
            | {"sampling": own.parts["sampling"]},
            evidence=share,
        )


def judge(profile: SourceProfile, logits: FloatArray, n_target: int) -> Judgement:
    """Look at a target.

    Parameters
    ----------
    profile
        Of the source.
    logits
        Shape (m, c): a sample of the target's rows.
    n_target
        How many rows the target has in all.
    """
    scores = profile.log_probabilities(logits)
    few = max(_EXPLAINED_LEAST, min(_EXPLAINED_ROWS, _EXPLAINED_VALUES // logits.shape[1]))
    # Rows spread evenly over the sample: files are often sorted.
    places = np.arange(len(scores)) if len(scores) <= few else np.arange(few) * len(scores) // few
    explained = explain(*profile.explained_rows, scores[places])
    restoring = restoring_bias(scores, profile.marginal)
    reweighting = restoring_bias(scores, explained.label_marginal)
    read = row_readings(profile, scores, logits.argmax(axis=1), restoring, reweighting)
    readings = {name: float(values.mean()) for name, values in read.items()}
    label_shift, collapse = (float(values.mean()) for values in branches(profile, read))
    weight = explained.collapse_weight
    accuracy = (1 - weight) * label_shift + weight * collapse
    parts = {
        "sampling": _sampling(profile, accuracy, n_target),
        "methods": (1 - weight) * abs(readings["thresholded"] - readings["confidence"])
        + weight * abs(readings["restored_thresholded"] - readings["restored"]),
        "undecided": float(np.sqrt(weight * (1 - weight)) * abs(label_shift - collapse)),
        "shift": explained.unchanged_distance,
        "ranking": 1.0 - profile.ranking,
    }
    return Judgement(profile, explained, restoring, reweighting, readings, accuracy, parts)


def row_readings(
    profile: SourceProfile, scores: FloatArray, predicted: NDArray[np.intp], restoring: Array, reweighting: Array
) -> dict[str, Array]:
    """Return the five readings of each row, shape (n,) each, given calibrated log-probabilities and predicted classes.

    ``confidence``; ``thresholded``, whether the log-odds reach the source's threshold; ``restored``, the probability of
    the predicted class once the class shares are the source's again; ``restored_thresholded``; and ``reweighted``, the
    same with the class shares estimated under label shift.
    """
    odds = top_two(scores, predicted)[2]
    restored = of_class(softmax(scores + restoring.astype(scores.dtype)), predicted)
    reweighted = of_class(softmax(scores + reweighting.astype(scores.dtype)), predicted)
    return {
        "confidence": sigmoid(odds),
        "thresholded": (odds >= profile.threshold).astype(np.float64),
        "restored": restored,
        "restored_thresholded": (restored >= profile.restored_threshold).astype(np.float64),
        "reweighted": reweighted,
    }


def branches(profile: SourceProfile, read: Mapping[str, Array]) -> tuple[Array, Array]:
    """Return the probability that each row is right under label shift and under collapse, shapes (n,)."""
    trust = profile.threshold_trust
    averaged = (1 - _REWEIGHTED_SHARE) * read["confidence"] + _REWEIGHTED_SHARE * read["reweighted"]
    label_shift = (1 - trust) * averaged + trust * read["thresholded"]
    collapse = read["restored"] + _THRESHOLD_SHARE * trust * (read["restored_thresholded"] - read["restored"])
    return label_shift, collapse


def _sampling(profile: SourceProfile, accuracy: float, n_target: int) -> float:
    """Return the standard error that the finite numbers of rows alone would give."""
    clipped = float(np.clip(accuracy, 0.02, 0.98))  # an estimate of 1 is not without sampling error
    source_variance = profile.accuracy * (1 - profile.accuracy) / profile.n_rows
    return float(np.sqrt(source_variance + clipped * (1 - clipped) / n_target))
