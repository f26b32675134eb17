"""The lines of a report's tables by class and by segment, those first that pull the accuracy down most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import Outputs
from leadline.errors import InputError
from leadline.results.estimate import Estimate
from leadline.results.estimates import Estimates

if TYPE_CHECKING:
    from leadline.estimators import Estimator

MOST_SEGMENTS = 50


@dataclass(frozen=True)
class ClassLine:
    """The samples predicted as one class; accuracies, shares and the pull on the accuracy are fractions."""

    name: str
    count: int
    share: float
    source_share: float
    accuracy: float | None
    source_accuracy: float | None
    truth: float | None
    pull: float


@dataclass(frozen=True)
class SegmentLine:
    """The samples of one segment."""

    name: str
    count: int
    share: float
    accuracy: float
    interval: tuple[float, float]
    truth: float | None
    pull: float


def class_names(outputs: Outputs) -> tuple[str, ...]:
    """Return the names of the classes, or their numbers."""
    return outputs.classes or tuple(map(str, range(outputs.n_classes)))


def predicted_shares(outputs: Outputs) -> NDArray[np.float64]:
    """Return how often each class is predicted, shape (c,)."""
    counts = np.bincount(outputs.predictions, minlength=outputs.n_classes)
    return np.asarray(counts / len(outputs), dtype=np.float64)


def class_lines(
    estimate: Estimate, source: Outputs, target: Outputs, shares: Sequence[NDArray[np.float64]]
) -> tuple[ClassLine, ...]:
    """Return a line per class; classes that are never predicted come last."""
    names, truths, known = class_names(source), _precision(target), _precision(source)
    lines = [
        ClassLine(
            name=names[k],
            count=entry.count,
            share=float(shares[1][k]),
            source_share=float(shares[0][k]),
            accuracy=entry.accuracy,
            source_accuracy=known[k],
            truth=truths[k],
            pull=0.0 if entry.accuracy is None else estimate.pull(entry.accuracy, entry.count),
        )
        for k, entry in enumerate(estimate.by_class)
    ]
    return tuple(sorted(lines, key=lambda line: (line.accuracy is None, line.pull)))


def estimate_segments(
    estimator: Estimator, name: str, target: Outputs, by: Sequence[str], confidence_level: float
) -> Estimates:
    """Return the estimates on the segments of a target."""
    try:
        return estimator.estimate_by(target, by, confidence_level=confidence_level)
    except InputError as error:
        raise InputError(f"target {name}: {error}") from error


def segment_lines(found: Estimates) -> tuple[SegmentLine, ...]:
    """Return a line per segment; where there are very many, those that pull the accuracy down most."""
    return tuple(
        SegmentLine(
            name=", ".join(row.values),
            count=row.estimate.n_samples,
            share=row.estimate.n_samples / found.overall.estimate.n_samples,
            accuracy=row.estimate.accuracy,
            interval=row.estimate.interval,
            truth=row.truth,
            pull=pull,
        )
        for row, pull in found.by_pull()[:MOST_SEGMENTS]
    )


def _precision(outputs: Outputs) -> list[float | None]:
    """Return the true accuracy of the predictions of each class; None where there is none to know."""
    if outputs.labels is None:
        return [None] * outputs.n_classes
    predicted = outputs.predictions
    counts = np.bincount(predicted, minlength=outputs.n_classes)
    right = np.bincount(predicted[predicted == outputs.labels], minlength=outputs.n_classes)
    return [float(r / n) if n else None for r, n in zip(right, counts, strict=True)]
