"""What an estimate must reach for a pipeline to go on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from leadline.errors import InputError
from leadline.results.estimate import Estimate
from leadline.results.estimates import Segment

Judged = Literal["estimate", "lower-end"]


@dataclass(frozen=True)
class Gate:
    """Limits that estimates must keep.

    Parameters
    ----------
    min_accuracy
        The least accuracy; None for no such limit.
    max_drop
        How far the accuracy may be below that of the source; None for no such limit.
    judged
        What must keep the limits: the estimate, or the lower end of its interval.
    min_samples
        Segments of fewer rows are not judged: a few rows miss any limit by chance. All rows together always are.

    Examples
    --------
    >>> Gate(min_accuracy=0.8, judged="lower-end").is_set
    True
    """

    min_accuracy: float | None = None
    max_drop: float | None = None
    judged: Judged = "estimate"
    min_samples: int = 0

    def __post_init__(self) -> None:
        """Refuse limits that nothing can keep or break."""
        for name, limit in (("min_accuracy", self.min_accuracy), ("max_drop", self.max_drop)):
            if limit is not None and not 0.0 <= limit <= 1.0:
                raise InputError(f"{name} must be a fraction from 0 to 1; got {limit:g}.")

    @property
    def is_set(self) -> bool:
        """Whether there is a limit to keep."""
        return self.min_accuracy is not None or self.max_drop is not None

    def leaves_out(self, segment: Segment) -> bool:
        """Say whether a segment has too few rows to be judged."""
        return bool(segment.group) and segment.estimate.n_samples < self.min_samples

    def least(self, source_accuracy: float) -> float | None:
        """Return the accuracy that keeps all limits, given that on the source; None where there are none."""
        limits = [self.min_accuracy, None if self.max_drop is None else source_accuracy - self.max_drop]
        return max((limit for limit in limits if limit is not None), default=None)

    def failures(self, segment: Segment, source_accuracy: float) -> list[str]:
        """Return what is wrong with an estimate, a text for each limit that it breaks.

        Parameters
        ----------
        segment
            The estimate, of a segment or of all rows.
        source_accuracy
            The accuracy on the source, from which a drop is measured.
        """
        if self.leaves_out(segment):
            return []
        value, what = self._value(segment.estimate)
        found = []
        # What is not a number keeps no limit.
        if self.min_accuracy is not None and not value >= self.min_accuracy:
            found.append(f"{what} {value:.4f} is below the {self.min_accuracy:g} asked for")
        if self.max_drop is not None and not source_accuracy - value <= self.max_drop:
            drop = source_accuracy - value
            found.append(
                f"{what} {value:.4f} is {drop:.4f} below the source's {source_accuracy:.4f}, "
                f"more than the {self.max_drop:g} allowed"
            )
        return found

    def _value(self, estimate: Estimate) -> tuple[float, str]:
        """Return what is judged, and what it is called."""
        if self.judged == "estimate":
            return estimate.accuracy, "estimated accuracy"
        return estimate.interval[0], f"{estimate.confidence_level:.0%} interval's lower end"
