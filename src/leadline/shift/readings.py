"""What each row of a target says of itself under each explanation of the target, and what these sayings count for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray, row_blocks
from leadline.numeric import Array, probabilities, read, sigmoid, top_two
from leadline.shift.calibration import gaps_at, reaches
from leadline.shift.clusters import Adapted, Clusters
from leadline.shift.source import MOST_CLASSES, SourceProfile

_HELD_ROWS = 100.0  # of each predicted class, that say nothing against its probabilities; 50 to 200 do alike
#: The readings of clusters: as they are, and adapted.
_OF_CLUSTERS = ("clusters", *(f"clusters_{kind}" for kind in Adapted._fields))


@dataclass(frozen=True, eq=False)
class Adaptation:
    """What the rows of a target are read with: the source's knowledge, adapted to the target as a whole.

    Attributes
    ----------
    restoring, reweighting
        Shapes (c,): biases that give the target the source's class shares, and its outputs the estimated ones.
    clusters
        As they are in the target; None where the source has none.
    """

    restoring: Array
    reweighting: Array
    clusters: Adapted | None

    def mixed(self, other: Adaptation, share: float) -> Adaptation:
        """Return this adaptation on the way to another, of which ``share`` counts."""
        clusters = None
        if self.clusters is not None and other.clusters is not None:
            pairs = zip(self.clusters, other.clusters, strict=True)
            clusters = Adapted(*(mine.mixed(theirs, share) for mine, theirs in pairs))
        return Adaptation(
            restoring=(1 - share) * self.restoring + share * other.restoring,
            reweighting=(1 - share) * self.reweighting + share * other.reweighting,
            clusters=clusters,
        )

    def to_state(self) -> dict[str, Array]:
        """Return the arrays by name."""
        state = {"restoring": self.restoring, "reweighting": self.reweighting}
        if self.clusters is not None:
            for kind, clusters in zip(Adapted._fields, self.clusters, strict=True):
                state |= {f"{kind}_{name}": values for name, values in clusters._asdict().items()}
        return state

    @classmethod
    def from_state(cls, state: Mapping[str, Array]) -> Self:
        """Return the adaptation whose arrays these are."""
        clusters = None
        if "followed_centres" in state:
            kinds = ((state[f"{kind}_{name}"] for name in Clusters._fields) for kind in Adapted._fields)
            clusters = Adapted(*(Clusters(*parts) for parts in kinds))
        return cls(state["restoring"], state["reweighting"], clusters)


def row_readings(
    profile: SourceProfile, scores: FloatArray, predicted: NDArray[np.intp], adaptation: Adaptation
) -> dict[str, Array]:
    """Return the readings of each row, shape (n,) each, given calibrated log-probabilities and predicted classes.

    ``confidence``; ``restored``, the probability of the predicted class once the class shares are the source's again;
    ``reweighted``, what it would be if label shift were all that happened; with more than a few classes
    ``thresholded``, whether minus the entropy reaches the source's threshold; and where the source has clusters what
    they say, as they are, as frequent as the target shows them, and where it shows them. Probabilities of the softmax
    are moved by what confidence misses of the source's accuracy at the same log-odds.
    """
    odds = top_two(scores, predicted)[2]
    gaps = gaps_at(odds, profile.gap_edges, profile.gaps)
    biases = {"restored": adaptation.restoring, "reweighted": adaptation.reweighting}
    found = {"confidence": sigmoid(odds)}
    found |= {name: read(scores, classes=predicted, bias=bias).probability for name, bias in biases.items()}
    found = {name: np.clip(values + gaps, 0.0, 1.0) for name, values in found.items()}
    if profile.few_classes < 1.0:
        entropy = read(scores, entropy=True).negative_entropy
        found["thresholded"] = reaches(entropy, profile.entropy_threshold).astype(np.float64)
    if adaptation.clusters is not None:
        assert profile.clusters is not None
        probable = profile.clusters.probabilities(scores, adaptation.clusters, predicted)
        found |= dict(zip(_OF_CLUSTERS, probable, strict=True))
    return found


def combined(profile: SourceProfile, read: Mapping[str, Array], weights: Array) -> Array:
    """Return the probability that each row is right, shape (n,), given its readings and what they count for."""
    few, share = profile.few_classes, profile.clusters_share
    and_more, label_shift = read["confidence"], read["reweighted"]
    if few < 1.0:  # rows tell little of how frequent many classes are
        and_more = few * and_more + (1 - few) * read["thresholded"]
        label_shift = few * label_shift + (1 - few) * and_more
    of_softmax = _explained(weights, read["confidence"], label_shift, read["restored"], and_more)
    if not share:
        return of_softmax
    of_clusters = _explained(weights, *(read[name] for name in _OF_CLUSTERS))
    return (1 - share) * of_softmax + share * of_clusters


def class_probabilities(profile: SourceProfile, scores: FloatArray, adaptation: Adaptation, weights: Array) -> Array:
    """Return the probability of every class for each row, shape (n, c), given its calibrated log-probabilities.

    What :func:`combined` says of the predicted class, without thresholds and without the corrections by what readings
    miss on the source, of which nobody knows to which class they belong.
    """
    biases = np.zeros_like(adaptation.restoring), adaptation.reweighting, adaptation.restoring
    of_softmax = _explained(weights, *(probabilities(scores + bias, 1.0) for bias in biases))
    if profile.clusters is None or adaptation.clusters is None:
        return of_softmax
    share, points = profile.clusters_share, profile.clusters.points(scores)
    clusters = profile.clusters.clusters, *adaptation.clusters
    return (1 - share) * of_softmax + share * _explained(weights, *(each.beliefs(points) for each in clusters))


def class_corrections(profile: SourceProfile) -> Array:
    """Return what makes of the probabilities of classes what they are on the source: factors by predicted class.

    Shape (c, c): for each predicted class those of all classes; near one where the source has few rows of it.
    """
    c, known = len(profile.marginal), profile.clusters
    if c > MOST_CLASSES:  # none of which has the rows to be corrected by, and the table would take gigabytes
        return np.broadcast_to(1.0, (c, c))
    clusters = None if known is None else Adapted(known.clusters, known.clusters)
    as_they_are = Adaptation(np.zeros(c), np.zeros(c), clusters)
    expected, seen, start = np.zeros((c, c)), np.zeros((c, c)), 0
    for rows in row_blocks(profile.logits):
        labels, predicted = profile.labels[start : start + len(rows)], rows.argmax(axis=1)
        scores, start = profile.log_probabilities(rows), start + len(rows)
        np.add.at(expected, predicted, class_probabilities(profile, scores, as_they_are, np.eye(4)[0]))
        np.add.at(seen, (predicted, labels), 1.0)
    held = _HELD_ROWS * expected / np.maximum(expected.sum(axis=1, keepdims=True), 1.0) + np.finfo(float).tiny
    return np.asarray((seen + held) / (expected + held))


def gaps_of_readings(profile: SourceProfile) -> dict[str, float]:
    """Return what readings miss of the accuracy on the source itself, by name.

    Thresholds are set so that they miss nothing, and confidence is moved so that it does not.
    """
    gaps = dict.fromkeys(("confidence", "reweighted", "thresholded"), 0.0) | {"restored": profile.restored_gap}
    if profile.clusters is None:
        return gaps
    return gaps | dict.fromkeys(_OF_CLUSTERS, profile.clusters.gap)


def correction(profile: SourceProfile, weights: Array) -> float:
    """Return what the readings, counting so much, miss of the accuracy on the source itself."""
    return float(combined(profile, {name: np.asarray(gap) for name, gap in gaps_of_readings(profile).items()}, weights))


def _explained(
    weights: Array, as_is: Array, label_shift: Array, collapse: Array, label_shift_and_more: Array | None = None
) -> Array:
    """Return readings by what each explanation counts for; label shift and more reads rows as they are by default."""
    and_more = as_is if label_shift_and_more is None else label_shift_and_more
    readings = as_is, label_shift, and_more, collapse
    return np.asarray(sum(weight * values for weight, values in zip(weights, readings, strict=True)))
