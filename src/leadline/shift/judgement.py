"""Which explanation of a target holds, what the accuracy is under it, and how wrong that may be.

This is what ``auto`` estimates with, and what gives every other estimator an interval that covers more than sampling
error. ``docs/which-method.md`` tells how it was found and what it rests on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from leadline.data.outputs import FloatArray
from leadline.numeric import Array, limited, normal_quantile, top_two
from leadline.results.shift import Shift, ShiftKind
from leadline.shift.explanations import DISTANCE_FLOOR, Explained, explain, unchanged
from leadline.shift.priors import Exponentials, restoring_bias, reweighting_bias
from leadline.shift.readings import Adaptation, combined, correction, gaps_of_readings, row_readings
from leadline.shift.source import SourceProfile

_EXPLAINED_ROWS, _EXPLAINED_LEAST, _EXPLAINED_VALUES = 5_000, 2_000, 2_000_000  # rows of a target that are explained

_COLLAPSE_FROM, _LABEL_SHIFT_TO = 0.8, 0.2  # beliefs in collapse beyond which a verdict is given

# Half-width of the 90 % interval by the distance d of the target from the source: most (2 - ranking) d / (d + half).
# Nothing where nothing moved; 6 points at .05, 11 at .2 and 14 at .5 where the ranking is one half: so grow the largest
# tenths of errors, and more where confidence tells less of right and wrong (docs/which-method.md). At the same distance
# half of the answer rests on why the target differs; where nothing moved, on confidence as it is. Estimates that are
# far off are mostly too high, so that intervals reach further down than up.
_MOST, _HALF = 0.115, 0.1
SKEW = 0.2
_BINS = 10  # of the confidence
_UNSEEN = 0.3  # share of the noise that a shift may hide in
_LEANINGS = MappingProxyType({"classes": "reweighted", "drift": "restored"})  # the readings they are towards
_UNSHOWN = 0.08  # mistakes that a target that moved does not show, over those it does; .04 to .12 do alike


@dataclass(frozen=True, eq=False)
class Judgement:
    """What was found about a target.

    Attributes
    ----------
    profile
        The source it was judged against.
    explained
        The comparison of the explanations.
    adaptation
        What its rows are read with.
    readings
        Accuracy by each reading of the target, by name.
    accuracy
        The combined estimate.
    hidden
        The share of the rows that seem right to expect to be wrong, because the target moved.
    parts
        Standard errors: of sampling, and of whatever the shift may do to the readings; and, with their signs, how far
        the estimate would move if other class shares were all that happened, and if it were collapse after all, as far
        as either is believed.
    confidences
        Shape (10,): shares of the rows by confidence.
    evidence
        Share of all this that rests on the rows themselves, and not on the whole target that they are a segment of.
    """

    profile: SourceProfile
    explained: Explained
    adaptation: Adaptation
    readings: Mapping[str, float]
    accuracy: float
    hidden: float
    parts: Mapping[str, float]
    confidences: Array
    evidence: float = 1.0

    def interval(self, accuracy: float, confidence_level: float) -> tuple[float, float]:
        """Return the interval around an accuracy at a nominal coverage.

        It leans to one side by what label shift would make of this accuracy, and collapse; ``parts`` have that of its
        own.
        """
        quantile, apart = normal_quantile(0.5 + confidence_level / 2), self.accuracy - accuracy
        sampling, shift = self.parts["sampling"], self.parts["shift"]
        shares = _leanings(self.profile, self.explained)
        leans = [self.parts[name] + share * apart / normal_quantile(0.95) for name, share in shares.items()]
        lower = math.hypot(sampling, (1.0 + SKEW) * shift, *(min(lean, 0.0) for lean in leans))
        upper = math.hypot(sampling, (1.0 - SKEW) * shift, *(max(lean, 0.0) for lean in leans))
        return max(0.0, accuracy - quantile * lower), min(1.0, accuracy + quantile * upper)

    @property
    def weights(self) -> Array:
        """Shape (4,): the shares of confidence as it is, and of the reading under each explanation in turn."""
        return _weights(self.explained)

    @property
    def kind(self) -> ShiftKind:
        """Which explanation is believed."""
        if self.explained.unchanged_distance < 2 * DISTANCE_FLOOR:
            return ShiftKind.NONE
        believed, doubted = self.explained.collapse_weight, self.explained.doubted_weight
        if believed > _COLLAPSE_FROM:
            return ShiftKind.COLLAPSE
        return ShiftKind.LABEL if believed + doubted < _LABEL_SHIFT_TO else ShiftKind.UNDECIDED

    def shift(self) -> Shift:
        """Return the findings for people and programs."""
        weight, source = self.explained.collapse_weight, self.profile.marginal
        marginal = (1 - weight) * self.explained.label_marginal + weight * source
        return Shift(
            kind=self.kind,
            collapse_weight=weight,
            label_shift_weight=self.explained.label_shift_weight,
            label_marginal=marginal,
            label_marginal_change=float(0.5 * np.abs(marginal - source).sum()),
            readings=self.readings,
            distance=self.explained.unchanged_distance,
            label_shift_distance=self.explained.label_shift_distance,
            collapse_distance=self.explained.collapse_distance,
            noise=self.explained.noise,
            effective_source_rows=self.explained.effective_rows,
            share_outside=self.explained.share_outside,
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
            adaptation=self.adaptation.mixed(own.adaptation, share),
            readings={name: mix(value, own.readings[name]) for name, value in self.readings.items()},
            accuracy=mix(self.accuracy, own.accuracy),
            hidden=mix(self.hidden, own.hidden),
            parts={name: mix(value, own.parts[name]) for name, value in self.parts.items()}
            | {"sampling": own.parts["sampling"]},
            confidences=(1 - share) * self.confidences + share * own.confidences,
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
    rows, (top, second, odds) = Exponentials.of(scores, np.zeros(scores.shape[1])), top_two(scores)
    as_is = unchanged(profile.top_two, (top, second, odds), scores.shape[1])
    mean_softmax = rows.shares[places].mean(axis=0, dtype=np.float64)
    explained = explain(profile.moved_rows, (top[places], second[places], odds[places]), mean_softmax, as_is)
    known = profile.clusters
    adaptation = Adaptation(
        restoring=restoring_bias(rows, profile.marginal),
        reweighting=reweighting_bias(profile.moved_rows.marginal, explained.label_marginal),
        clusters=None if known is None else known.adapted(known.points(scores)),
    )
    read = row_readings(profile, scores, logits.argmax(axis=1), adaptation)
    weights = _weights(explained)
    shown = limited(float(combined(profile, read, weights).mean()) + correction(profile, weights))
    hidden = _UNSHOWN * (1.0 - float(weights[0])) ** 2 * (1.0 - shown)
    accuracy = shown * (1.0 - hidden)
    gaps = gaps_of_readings(profile)
    readings = {name: limited(float(values.mean()) + gaps[name]) for name, values in read.items()}
    distance = _distance(explained)
    most = _MOST * (2.0 - profile.ranking) * distance / (distance + _HALF)
    parts = {"sampling": _sampling(profile, accuracy, n_target), "shift": most / normal_quantile(0.95)}
    for name, share in _leanings(profile, explained).items():
        parts[name] = share * (readings[_LEANINGS[name]] - accuracy) / normal_quantile(0.95)
    bins = np.searchsorted(np.linspace(0.0, 1.0, _BINS + 1)[1:-1], read["confidence"], side="right")
    confidences = np.bincount(bins, minlength=_BINS) / len(bins)
    return Judgement(profile, explained, adaptation, readings, accuracy, hidden, parts, confidences)


def _leanings(profile: SourceProfile, explained: Explained) -> dict[str, float]:
    """Return how far intervals reach towards what label shift alone, and collapse, would make of the accuracy."""
    moved = 1.0 - float(_weights(explained)[0])
    shares = {"classes": 1.0 - explained.collapse_weight, "drift": moved * explained.doubted_weight}
    return {name: profile.few_classes * share for name, share in shares.items()}


def _distance(explained: Explained) -> float:
    """Return how far the target is from the source, with what noise may hide."""
    return float(np.hypot(explained.unchanged_distance, _UNSEEN * explained.noise))


def _weights(explained: Explained) -> Array:
    """Return what confidence as it is and the readings under each explanation count for, shape (4,)."""
    square, label_shift, collapse = _distance(explained) ** 2, explained.label_shift_weight, explained.collapse_weight
    moved = square / (square + _HALF**2)
    return np.array([1.0 - moved, moved * label_shift, moved * (1.0 - label_shift - collapse), moved * collapse])


def _sampling(profile: SourceProfile, accuracy: float, n_target: int) -> float:
    """Return the standard error that the finite numbers of rows alone would give."""
    clipped = limited(accuracy, 0.02, 0.98)  # an estimate of 1 is not without sampling error
    source_variance = profile.accuracy * (1 - profile.accuracy) / profile.n_rows
    return float(np.sqrt(source_variance + clipped * (1 - clipped) / n_target))
