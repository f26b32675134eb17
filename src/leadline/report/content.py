"""What a report says: everything on the page, the Markdown and the JSON, computed once. Aggregates only."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leadline.comparison import Comparison, ComparisonRow, Progress, counting, evaluate, fit_planned, plan_fits
from leadline.data.outputs import Outputs
from leadline.errors import InputError
from leadline.report.assumptions import RELIANCE, Check, check_agreement, check_classes, check_reach, check_width, worst
from leadline.results.estimate import Estimate
from leadline.results.estimates import MISSING
from leadline.results.render import percent, plain
from leadline.results.words import sentences
from leadline.version import __version__

if TYPE_CHECKING:
    from leadline.estimators import Estimator

MOST_SEGMENTS = 50
_PACKAGES = ("numpy", "scipy", "numba", "POT", "matplotlib")
_REACH_METHOD = "alsa-g"


@dataclass(frozen=True)
class ClassLine:
    """The samples predicted as one class; accuracies and shares are fractions."""

    name: str
    count: int
    share: float
    source_share: float
    accuracy: float | None
    source_accuracy: float | None
    truth: float | None


@dataclass(frozen=True)
class SegmentLine:
    """The samples of one segment."""

    name: str
    count: int
    accuracy: float
    interval: tuple[float, float]
    truth: float | None


@dataclass(frozen=True, eq=False)
class TargetReport:
    """What is said about one target.

    Attributes
    ----------
    name
        The target.
    estimate
        By the main method, without values per row.
    truth
        The true accuracy, where the target has labels.
    answer
        The estimate in one sentence.
    checks
        What can be checked without labels.
    explanation
        What the estimate rests on, in sentences.
    methods
        One row per method.
    classes, segments
        The estimate by predicted class, and by segment, the largest first.
    segments_left_out
        How many smaller segments are not listed.
    """

    name: str
    estimate: Estimate
    truth: float | None
    answer: str
    checks: tuple[Check, ...]
    explanation: tuple[str, ...]
    methods: tuple[ComparisonRow, ...]
    classes: tuple[ClassLine, ...]
    segments: tuple[SegmentLine, ...]
    segments_left_out: int

    @property
    def reliance(self) -> str:
        """How far the checks let people rely on the estimate: "reasonable", "limited" or "low"."""
        return RELIANCE[worst(self.checks)][0]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "target": self.name,
            "answer": self.answer,
            **self.estimate.to_dict(),
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
        Name, accuracy, numbers of samples and of classes.
    targets
        In the order given.
    comparison
        All methods on all targets.
    by
        The columns of segments, if any.
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
            "settings": dict(self.settings),
            "versions": dict(self.versions),
            "created": self.created,
        }
        result: dict[str, Any] = plain(content)
        return result


def default_method() -> str:
    """Return the method that answers unless another is asked for."""
    from leadline.estimators import METHODS

    return "auto" if "auto" in METHODS else "alsa-g"


def build_report(
    source: Outputs,
    targets: Mapping[str, Outputs],
    *,
    method: str | None = None,
    methods: Iterable[str] | None = None,
    by: Sequence[str] | str = (),
    seed: int = 0,
    confidence_level: float = 0.9,
    source_name: str = "source",
    settings: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Report:
    """Compute everything that a report says.

    Parameters
    ----------
    source
        Labelled outputs of the classifier.
    targets
        Outputs by name; each is looked up when it is needed, so that a mapping that reads files keeps one in memory.
    method
        The method that answers; None for the one that Leadline recommends.
    methods
        All methods to show side by side; None for every one.
    by
        Metadata columns, as ``Estimator.estimate_by`` takes them; each combination of values becomes a segment.
    seed
        Of methods with something random.
    confidence_level
        Nominal coverage of the intervals.
    source_name
        What to call the source.
    settings
        Further things to keep in the report, such as the command and the checksums of the files.
    progress
        Called after each step with steps done, steps in all, and what was done.

    Returns
    -------
    Report
        Aggregates only: no row of the outputs is in it.
    """
    from leadline.estimators import METHODS

    main = method or default_method()
    by = (by,) if isinstance(by, str) else tuple(by)
    names = list(dict.fromkeys([main, *(METHODS if methods is None else methods)]))
    plan = plan_fits(names, (seed,))
    if not targets:
        raise InputError("targets must have at least one entry; got none.")
    if source.labels is None:
        raise InputError("source must have labels; got logits only.")
    report = counting(progress, len(plan) * (1 + len(targets)))
    fits = fit_planned(source, plan, progress=report)
    fitted = {fit.method: fit.estimator for fit in fits}
    reach = None
    if _REACH_METHOD in fitted:
        reach = _outside_reach(fitted[_REACH_METHOD].estimate(source.logits, confidence_level=confidence_level))
    parts: list[TargetReport] = []
    rows: list[ComparisonRow] = []
    for name in targets:
        target = targets[name]
        part = evaluate(fits, {name: target}, confidence_level=confidence_level, progress=report)
        rows.extend(part.rows)
        segments, left_out = _segments(fitted[main], name, target, by, confidence_level)
        parts.append(_target(main, name, source, target, part, segments, left_out, source_reach=reach))
    return Report(
        method=main,
        source={
            "name": source_name,
            "accuracy": source.accuracy,
            "n_samples": len(source),
            "n_classes": source.n_classes,
            "classes": list(class_names(source)),
        },
        targets=tuple(parts),
        comparison=Comparison(tuple(rows), confidence_level),
        by=by,
        settings={
            "seed": seed,
            "options": {name: estimator.get_params() for name, estimator in fitted.items()},
            **(settings or {}),
        },
        versions={
            "leadline": __version__,
            "python": platform.python_version(),
            **{package: version(package) for package in _PACKAGES},
            "platform": f"{platform.system()} {platform.machine()}",
        },
        created=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        fitted=fitted,
    )


def class_names(outputs: Outputs) -> tuple[str, ...]:
    """Return the names of the classes, or their numbers."""
    return outputs.classes or tuple(map(str, range(outputs.n_classes)))


def _target(
    main: str,
    name: str,
    source: Outputs,
    target: Outputs,
    comparison: Comparison,
    segments: tuple[SegmentLine, ...],
    segments_left_out: int,
    *,
    source_reach: float | None,
) -> TargetReport:
    """Put together what is said about one target."""
    level = comparison.confidence_level
    found = {row.method: row.estimate for row in comparison if row.estimate is not None}
    estimate = found[main]
    shares = [_predicted_shares(outputs) for outputs in (source, target)]
    sizes = (len(source), len(target))
    checks = [check_classes(shares[0], shares[1], class_names(source), sizes)]
    if source_reach is not None:
        checks.insert(0, check_reach(_outside_reach(found[_REACH_METHOD]), source_reach))
    checks.append(check_agreement({row.method: row.accuracy for row in comparison}))
    checks.append(check_width(estimate.interval))
    low, high = estimate.interval
    answer = (
        f"On {name}, the classifier is right on an estimated {percent(estimate.accuracy)} of "
        f"{len(target):,} samples ({100 * level:g} % interval {percent(low)} to {percent(high)}); "
        f"on the labelled source it is right on {percent(source.accuracy)}."
    )
    return TargetReport(
        name=name,
        estimate=estimate,
        truth=target.accuracy,
        answer=answer,
        checks=tuple(checks),
        explanation=tuple(sentences(estimate)),
        methods=comparison.rows,
        classes=_classes(estimate, source, target, shares),
        segments=segments,
        segments_left_out=segments_left_out,
    )


def _outside_reach(estimate: Estimate) -> float:
    """Return the share of rows out of the anchors' reach, of an estimate by ALSA."""
    return float(estimate.diagnostics["rectified_share"])


def _predicted_shares(outputs: Outputs) -> NDArray[np.float64]:
    """Return how often each class is predicted, shape (c,)."""
    counts = np.bincount(outputs.predictions, minlength=outputs.n_classes)
    return np.asarray(counts / len(outputs), dtype=np.float64)


def _precision(outputs: Outputs) -> list[float | None]:
    """Return the true accuracy of the predictions of each class; None where there is none to know."""
    if outputs.labels is None:
        return [None] * outputs.n_classes
    predicted = outputs.predictions
    counts = np.bincount(predicted, minlength=outputs.n_classes)
    right = np.bincount(predicted[predicted == outputs.labels], minlength=outputs.n_classes)
    return [float(r / n) if n else None for r, n in zip(right, counts, strict=True)]


def _classes(
    estimate: Estimate, source: Outputs, target: Outputs, shares: Sequence[NDArray[np.float64]]
) -> tuple[ClassLine, ...]:
    """Return a line per class."""
    names, truths, known = class_names(source), _precision(target), _precision(source)
    return tuple(
        ClassLine(
            name=names[k],
            count=entry.count,
            share=float(shares[1][k]),
            source_share=float(shares[0][k]),
            accuracy=entry.accuracy,
            source_accuracy=known[k],
            truth=truths[k],
        )
        for k, entry in enumerate(estimate.by_class)
    )


def _segments(
    estimator: Estimator, name: str, target: Outputs, by: Sequence[str], confidence_level: float
) -> tuple[tuple[SegmentLine, ...], int]:
    """Return a line per segment, the largest first, and how many were left out."""
    if not by:
        return (), 0
    try:
        found = estimator.estimate_by(target, by, confidence_level=confidence_level)
    except InputError as error:
        raise InputError(f"target {name}: {error}") from error
    largest = sorted(found, key=lambda row: -row.estimate.n_samples)[:MOST_SEGMENTS]
    lines = tuple(
        SegmentLine(
            ", ".join(MISSING if value is None else str(value) for value in row.group.values()),
            row.estimate.n_samples,
            row.estimate.accuracy,
            row.estimate.interval,
            row.truth,
        )
        for row in largest
    )
    return lines, len(found) - len(lines)
