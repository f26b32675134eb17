"""The result every method returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.results.shift import Shift


@dataclass(frozen=True)
class ClassEstimate:
    """The estimate for the samples that were predicted to be of one class.

    ``label`` is the name of the class where it is known, else its number. ``accuracy`` is the estimated share of them
    that truly is of this class (the class's precision); None where the class was never predicted.
    """

    label: str | int
    count: int
    accuracy: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {"class": self.label, "count": self.count, "accuracy": self.accuracy}


@dataclass(frozen=True, eq=False)
class Estimate:
    """How accurate a classifier is on unlabelled data, as one method sees it.

    All accuracies are fractions in [0, 1].

    Attributes
    ----------
    accuracy
        The estimated accuracy.
    interval
        Lower and upper end of the interval at ``confidence_level``.
    confidence_level
        The nominal coverage of the interval.
    n_samples
        How many rows of logits the estimate rests on.
    method
        The name in ``leadline.METHODS``.
    by_class
        One entry per class, in the order of the logit columns: count and estimated accuracy where predicted.
    correctness
        Shape (n,): the probability that each prediction is right (0 or 1 from thresholded methods); None where the
        method gives no such thing or the rows were not kept.
    shift
        How the target differs from the source; None where it was not judged.
    lower_bound
        Accuracy that disagreement discrepancy guarantees under its condition; only if it was asked for.
    diagnostics
        What the method noticed: temperature, share of rows out of reach, why training stopped, and the like.
    """

    accuracy: float
    interval: tuple[float, float]
    confidence_level: float
    n_samples: int
    method: str
    by_class: tuple[ClassEstimate, ...]
    correctness: NDArray[np.float64] | None = None
    shift: Shift | None = None
    lower_bound: float | None = None
    diagnostics: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON; the per-sample values stay out, as there may be millions."""
        return {
            "method": self.method,
            "accuracy": self.accuracy,
            "interval": list(self.interval),
            "confidence_level": self.confidence_level,
            "n_samples": self.n_samples,
            "lower_bound": self.lower_bound,
            "shift": None if self.shift is None else self.shift.to_dict(),
            "by_class": [entry.to_dict() for entry in self.by_class],
            "diagnostics": dict(self.diagnostics),
        }

    def explain(self) -> str:
        """Return in words what the estimate is, which assumption holds, and how far to trust it."""
        from leadline.results.words import sentences

        return " ".join(sentences(self))

    def __str__(self) -> str:
        """Return one line for people."""
        low, high = self.interval
        return (
            f"{self.method}: accuracy {self.accuracy:.1%} "
            f"({self.confidence_level:.0%} interval {low:.1%} to {high:.1%}) on {self.n_samples:,} samples"
        )

    def pull(self, accuracy: float, count: int) -> float:
        """Return how far a part of the rows pulls the accuracy up or, below 0, down: its gap times its share.

        Parameters
        ----------
        accuracy, count
            Of the part: a class, or a segment.
        """
        return float(pull(accuracy, count, self.accuracy, self.n_samples))

    def _repr_html_(self) -> str:
        """Return a notebook's view."""
        from leadline.results.views import estimate_view

        return estimate_view(self)


def pull(
    accuracy: float | NDArray[np.float64],
    count: float | NDArray[np.float64],
    base: float | NDArray[np.float64],
    n_samples: float,
) -> float | NDArray[np.float64]:
    """Return how far parts of the rows pull the accuracy up or, below 0, down: their gaps times their shares.

    Parameters
    ----------
    accuracy, count
        Of the parts.
    base
        What they are compared with: the accuracy of all rows, or what their own was before.
    n_samples
        All rows.
    """
    return (accuracy - base) * count / n_samples
