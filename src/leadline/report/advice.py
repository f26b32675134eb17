"""What to do with an estimate: the next step, and whether it is good enough."""

from __future__ import annotations

import math
from collections.abc import Sequence

from leadline.numeric import normal_quantile
from leadline.report.assumptions import Verdict
from leadline.report.lines import ClassLine, SegmentLine
from leadline.results.estimate import Estimate
from leadline.results.gate import Gate
from leadline.results.render import percent

_WITHIN = 0.05  # labels that are worth their price tell the accuracy at least so well
_NOTABLE_PULL = -0.005


def next_step(estimate: Estimate, verdict: Verdict, parts: Sequence[SegmentLine | ClassLine]) -> str:
    """Return what to do next.

    Parameters
    ----------
    estimate
        The answer, with labels or without.
    verdict
        That of the worst check.
    parts
        Segments or classes, the one first that pulls the accuracy down most.
    """
    if "n_labels" in estimate.diagnostics:
        told = "Go by the labels, which hold whatever has happened to the data."
    elif verdict == "good":
        told = "Nothing needs to be done now; look again when new data comes in."
    else:
        number = labels_needed(estimate)
        told = (
            f"Before you act on the number, label {number:,} of these samples, drawn at random: "
            f"they alone tell the accuracy to within {100 * _WITHIN:g} points."
        )
    if parts and parts[0].pull < _NOTABLE_PULL:
        first = parts[0]
        what = first.name if isinstance(first, SegmentLine) else f"the samples predicted as {first.name}"
        told += f" Look first at {what}: they pull the accuracy down most."
    return told


def labels_needed(estimate: Estimate) -> int:
    """Return how many random labels tell the accuracy to within five points, at the level of the interval.

    Notes
    -----
    ``n = z^2 p (1 - p) / 0.05^2`` at the least favourable ``p`` of the interval, less where the target has few samples.
    """
    low, high = estimate.interval
    p = min(max(0.5, low), high)
    n = (normal_quantile(0.5 + estimate.confidence_level / 2) / _WITHIN) ** 2 * p * (1 - p)
    return min(estimate.n_samples, math.ceil(n / (1 + n / estimate.n_samples)))


def gate_verdict(estimate: Estimate, gate: Gate, source_accuracy: float, below: int, segments: int) -> str:
    """Return whether an estimate, and those of its segments, are as high as asked for; empty where nothing was.

    Parameters
    ----------
    estimate
        Of the target.
    gate
        What was asked for.
    source_accuracy
        The accuracy on the source.
    below, segments
        How many segments are below, of how many that have rows enough to be judged.
    """
    least = gate.least(source_accuracy)
    if least is None:
        return ""
    asked = f"the {percent(least)} asked for"
    if not estimate.accuracy >= least:
        told = f"Below {asked}."
    elif not estimate.interval[0] >= least:
        told = f"Meets {asked}, but the interval does not rule out less."
        if gate.judged == "lower-end":
            told = f"Below {asked} with the lower end of its interval."
    else:
        told = f"Meets {asked} with its whole interval."
    return told + (f" Of {segments:,} segments, {below:,} {'is' if below == 1 else 'are'} below." if segments else "")
