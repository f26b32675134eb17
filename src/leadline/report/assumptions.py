"""How far to rely on an estimate: what can be checked without labels, in plain words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from leadline.results.render import percent
from leadline.results.shift import Shift, ShiftKind

Verdict = Literal["good", "caution", "poor"]

#: What a verdict says, from best to worst.
VERDICTS: dict[Verdict, str] = {"good": "fine", "caution": "take care", "poor": "warning"}
#: What the worst verdict of all checks means for the estimate.
RELIANCE: dict[Verdict, tuple[str, str]] = {
    "good": ("reasonable", "No check speaks against this estimate. No check can prove it right either."),
    "caution": ("limited", "At least one assumption is in doubt. Label a small sample before you act on the number."),
    "poor": ("low", "At least one assumption seems broken. Label a sample before you rely on the number."),
}

# From which a check says "take care", and "warning".
_OUTSIDE = (0.05, 0.15)
_CLASSES = (0.05, 0.15)
_DISAGREEMENT = (0.06, 0.15)
_HALF_WIDTH = (0.08, 0.15)
_CHANGED_CLASSES_SHOWN = 3
_KINDS = {
    ShiftKind.LABEL: "Label shift: the classes are more or less frequent than on the source.",
    ShiftKind.COLLAPSE: "Collapse: the classifier drifts towards some classes.",
    ShiftKind.UNDECIDED: "Undecided: label shift or collapse; without labels the two look alike here.",
}


@dataclass(frozen=True)
class Check:
    """One assumption, and what the data says about it.

    Attributes
    ----------
    name
        What was looked at.
    verdict
        "good", "caution" or "poor".
    value
        The measured amount, a fraction.
    text
        What was found and what it means, for people.
    """

    name: str
    verdict: Verdict
    value: float
    text: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return asdict(self)


def worst(checks: Sequence[Check]) -> Verdict:
    """Return the verdict of the check that is worst."""
    order = list(VERDICTS)
    return max((check.verdict for check in checks), key=order.index, default="good")


def check_shift(
    shift: Shift,
    source: NDArray[np.float64],
    target: NDArray[np.float64],
    names: Sequence[str],
    sizes: tuple[int, int],
) -> Check:
    """Check what the judgement of the target found, and which predictions it shows in.

    Parameters
    ----------
    shift
        The judgement; it alone says whether anything changed.
    source, target
        Shape (c,): the share of samples predicted as each class.
    names
        The names of the classes.
    sizes
        Numbers of samples of source and target.

    Notes
    -----
    The distance is half the sum of absolute changes. Chance alone would give about
    ``sum_k sqrt(p_k (1 - p_k) (1/n + 1/m) / (2 pi))`` for samples of these sizes; how far the distance is beyond that
    says how grave a change is.
    """
    distance = float(np.abs(source - target).sum() / 2)
    name = "what changed"
    if shift.kind is ShiftKind.NONE:
        return Check(name, "good", distance, "No detectable shift: chance alone explains what differs.")
    pooled = (sizes[0] * source + sizes[1] * target) / sum(sizes)
    chance = float(np.sqrt(pooled * (1 - pooled) * (1 / sizes[0] + 1 / sizes[1]) / (2 * np.pi)).sum())
    most = np.argsort(-np.abs(target - source), kind="stable")[:_CHANGED_CLASSES_SHOWN]
    changes = ", ".join(f"{names[k]} from {percent(source[k])} to {percent(target[k])}" for k in most)
    verdict = _grade(distance - chance, _CLASSES)
    text = (
        f"{_KINDS[shift.kind]} To be spread over the classes as on the source, {percent(distance)} of the predictions "
        f"would have to change (chance alone gives about {percent(chance)})"
        + (", which is little." if verdict == "good" else f". Most changed: {changes}.")
    )
    return Check(name, verdict, distance, text)


def check_outside(shift: Shift) -> Check:
    """Check how many samples have no like in the source."""
    name, share = "samples unlike the source", shift.share_outside
    if shift.kind is ShiftKind.NONE:
        return Check(name, "good", share, "No more of them than chance explains.")
    found = f"{percent(share)} of the samples have a predicted class and confidence that no source sample has. "
    meaning = {
        "good": "The source has something to say on nearly all of the target.",
        "caution": "What is said of them is a guess.",
        "poor": "That is much, and what is said of them is a guess.",
    }
    verdict = _grade(share, _OUTSIDE)
    return Check(name, verdict, share, found + meaning[verdict])


def check_agreement(estimates: Mapping[str, float]) -> Check:
    """Check whether methods with different assumptions come to the same answer.

    Parameters
    ----------
    estimates
        Accuracies by method; at least one.
    """
    low, high = min(estimates, key=estimates.__getitem__), max(estimates, key=estimates.__getitem__)
    spread = estimates[high] - estimates[low]
    found = (
        f"{len(estimates)} methods give {percent(estimates[low])} ({low}) to {percent(estimates[high])} ({high}), "
        f"{100 * spread:.1f} points apart. "
    )
    meaning = {
        "good": "Methods that assume different things agree.",
        "caution": "They do not quite agree: some of what they assume does not hold.",
        "poor": "They contradict each other: for most of them, what they assume does not hold.",
    }
    verdict = _grade(spread, _DISAGREEMENT)
    return Check("disagreement between methods", verdict, spread, found + meaning[verdict])


def check_width(interval: Sequence[float]) -> Check:
    """Check whether the interval is narrow enough to say something."""
    half_width = (interval[1] - interval[0]) / 2
    found = f"The interval reaches {100 * half_width:.1f} points to each side. "
    meaning = {
        "good": "That is precise enough for most decisions.",
        "caution": "The number is a rough one.",
        "poor": "The number says little.",
    }
    verdict = _grade(half_width, _HALF_WIDTH)
    return Check("width of the interval", verdict, half_width, found + meaning[verdict])


def _grade(value: float, limits: tuple[float, float]) -> Verdict:
    """Return the verdict on an amount of which less is better."""
    return "good" if value < limits[0] else "caution" if value < limits[1] else "poor"
