"""What a report says: everything on the page, the Markdown and the JSON, computed once. Aggregates only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leadline.report.assumptions import (
    RELIANCE,
    Check,
    worst,
)
from leadline.report.lines import (
    ClassLine,
    SegmentLine,
)
from leadline.results.comparison import (
    Comparison,
    ComparisonRow,
)
from leadline.results.estimate import Estimate
from leadline.results.estimates import Segment
from leadline.results.gate import Gate
from leadline.results.render import plain

if TYPE_CHECKING:
    from leadline.estimators import Estimator


@dataclass(frozen=True, eq=False)
class Failure:
    """An estimate, of a target or of a segment of it, that breaks limits, and in what way."""

    segment: Segment
    reasons: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class TargetReport:
    """What is said about one target.

    Attributes
    ----------
    name
        The target.
    estimate
        By the main method, without values per row.
    with_labels
        What a few labels of the target say, where people labelled some; it is the answer then.
    truth
        The true accuracy, where the target has labels.
    answer
        The estimate in one sentence.
    verdict
        How the target differs from the source, in one sentence; empty where it was not judged.
    next_step
        What to do now.
    gate
        Whether the estimates are as high as asked for; empty where nothing was asked.
    failed
        What is not as high as asked for: the target, or segments of it, listed or not.
    n_judged, n_spared
        How many estimates there are, and how many of them have too few rows to be judged.
    checks
        What can be checked without labels.
    explanation
        What follows from the verdict, and what the interval covers, in sentences.
    methods
        One row per method.
    classes, segments
        The estimate by predicted class, and by segment; those first that pull the accuracy down most.
    segments_left_out
        How many further segments are not listed.
    """

    name: str
    estimate: Estimate
    with_labels: Estimate | None
    truth: float | None
    answer: str
    verdict: str
    next_step: str
    gate: str
    failed: tuple[Failure, ...]
    n_judged: int
    n_spared: int
    checks: tuple[Check, ...]
    explanation: tuple[str, ...]
    methods: tuple[ComparisonRow, ...]
    classes: tuple[ClassLine, ...]
    segments: tuple[SegmentLine, ...]
    segments_left_out: int

    @property
    def final(self) -> Estimate:
        """The answer: what labels say where there are any, or else the estimate."""
        return self.with_labels or self.estimate

    @property
    def reliance(self) -> str:
        """How far to rely on the answer: "reasonable", "limited" or "low"; labels need no check to be relied on."""
        return RELIANCE["good" if self.with_labels is not None else worst(self.checks)][0]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "target": self.name,
            "answer": self.answer,
            "verdict": self.verdict,
            "next_step": self.next_step,
            "gate": self.gate or None,
            **self.estimate.to_dict(),
            "with_labels": None if self.with_labels is None else self.with_labels.to_dict(),
            "truth": self.truth,
            "reliance": self.reliance,
            "reliance_text": RELIANCE[worst(self.checks)][1],
            "checks": [check.to_dict() for check in self.checks],
            "explanation": list(self.explanation),
            "methods": [
                {key: value for key, value in row.to_dict().items() if not key.endswith("seconds")}
                for row in self.methods
            ],
            "by_class": [vars(line) for line in self.classes],
            "segments": [vars(line) | {"interval": list(line.interval)} for line in self.segments],
            "segments_left_out": self.segments_left_out,
        }


@dataclass(frozen=True, eq=False)
class Report:
    """A whole report; :mod:`leadline.report.page` renders it.

    Attributes
    ----------
    method
        The main method.
    source
        Name, accuracy, numbers of samples and of classes, and how many of the samples were at hand: a model keeps some.
    targets
        In the order given.
    comparison
        All methods on all targets.
    by
        The columns of segments, if any.
    gate
        How accurate the classifier should be.
    settings
        Options of each method, and whatever else the caller wants to be kept.
    versions
        Of Leadline and of what it computes with.
    created
        When, in UTC.
    fitted
        The fitted estimators by method, for the figures; not part of the content.
    """

    method: str
    source: Mapping[str, Any]
    targets: tuple[TargetReport, ...]
    comparison: Comparison
    by: tuple[str, ...]
    gate: Gate
    settings: Mapping[str, Any]
    versions: Mapping[str, str]
    created: str
    fitted: Mapping[str, Estimator]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        content = {
            "method": self.method,
            "confidence_level": self.comparison.confidence_level,
            "source": dict(self.source),
            "targets": [target.to_dict() for target in self.targets],
            "mean_absolute_errors": self.comparison.mean_absolute_errors(),
            "by": list(self.by),
            "min_accuracy": self.gate.min_accuracy,
            "max_drop": self.gate.max_drop,
            "settings": dict(self.settings),
            "versions": dict(self.versions),
            "created": self.created,
        }
        result: dict[str, Any] = plain(content)
        return result
