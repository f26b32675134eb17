"""From a source or a model, and targets, to what a report says of them."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from leadline.comparison import Fitted, Progress, counting, evaluate, fit_planned, plan_fits
from leadline.data.outputs import Outputs, same_classes
from leadline.errors import InputError
from leadline.report.advice import gate_verdict, next_step
from leadline.report.assumptions import (
    check_agreement,
    check_outside,
    check_shift,
    check_width,
    worst,
)
from leadline.report.content import Failure, Report, TargetReport
from leadline.report.lines import (
    class_lines,
    class_names,
    estimate_segments,
    predicted_shares,
    segment_lines,
)
from leadline.results.comparison import Comparison, ComparisonRow
from leadline.results.estimate import Estimate
from leadline.results.estimates import Segment
from leadline.results.gate import Gate
from leadline.results.render import percent
from leadline.results.words import covered, remarks, verdict
from leadline.version import __version__

if TYPE_CHECKING:
    from leadline.estimators import Estimator

_PACKAGES = ("numpy", "scipy", "numba", "POT", "matplotlib")


def default_method() -> str:
    """Return the method that answers unless another is asked for."""
    from leadline.estimators import METHODS

    return "auto" if "auto" in METHODS else "alsa-g"


def kept_source(model: Estimator) -> Outputs:
    """Return the labelled samples of the source that a fitted model keeps: all, or thousands of many more."""
    return Outputs(model.source_.logits, model.source_.labels, classes=model.class_names, columns=model.columns_)


def build_report(
    source: Outputs,
    targets: Mapping[str, Outputs],
    *,
    model: Estimator | None = None,
    method: str | None = None,
    methods: Iterable[str] | None = None,
    by: Sequence[str] | str = (),
    gate: Gate | None = None,
    with_labels: Mapping[str, Estimate] | None = None,
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
        Labelled outputs of the classifier; with a model, those it was fitted on, or its :func:`kept_source`.
    targets
        Outputs by name; each is looked up when it is needed, so that a mapping that reads files keeps one in memory.
    model
        A fitted estimator that answers as it is; the other methods are fitted on ``source``.
    method
        The method that answers; None for the model's, or the one that Leadline recommends.
    methods
        All methods to show side by side; None for every one.
    by
        Metadata columns, as ``Estimator.estimate_by`` takes them; each combination of values becomes a segment.
    gate
        How accurate the classifier should be, on each target and each segment; None to ask for nothing.
    with_labels
        By target, what :func:`leadline.estimate_with_labels` says of those that people labelled some rows of.
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

    if model is not None:
        _check_model(model, method, source)
    main = model.method if model is not None else method or default_method()
    by, gate = (by,) if isinstance(by, str) else tuple(by), gate or Gate()
    names = list(dict.fromkeys([main, *(METHODS if methods is None else methods)]))
    plan = [planned for planned in plan_fits(names, (seed,)) if model is None or planned[0] != main]
    if not targets:
        raise InputError("targets must have at least one entry; got none.")
    if source.labels is None:
        raise InputError("source must have labels; got logits only.")
    report = counting(progress, len(plan) + len(names) * len(targets))
    fits = [] if model is None else [Fitted(main, model.get_params().get("seed"), model, 0.0)]
    if plan:
        fits += fit_planned(source, plan, progress=report)
    fitted = {fit.method: fit.estimator for fit in fits}
    parts: list[TargetReport] = []
    rows: list[ComparisonRow] = []
    for name in targets:
        target = targets[name]
        part = evaluate(fits, {name: target}, confidence_level=confidence_level, progress=report)
        rows.extend(part.rows)
        after = (with_labels or {}).get(name)
        parts.append(_target(fitted[main], name, source, target, part, by, gate, after))
    return Report(
        method=main,
        source={
            "name": source_name,
            "accuracy": fitted[main].source_accuracy_,
            "n_samples": fitted[main].n_source_,
            "n_at_hand": len(source),
            "n_classes": source.n_classes,
            "classes": list(class_names(source)),
        },
        targets=tuple(parts),
        comparison=Comparison(tuple(rows), confidence_level),
        by=by,
        gate=gate,
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


def _check_model(model: Estimator, method: str | None, source: Outputs) -> None:
    """Refuse a model that cannot answer as asked, or that was fitted on another source."""
    if not model.is_fitted:
        raise InputError(f"model must be fitted; this {type(model).__name__} is not. Call fit first.")
    if method not in (None, model.method):
        raise InputError(f"method must be that of the model, {model.method}; got {method!r}.")
    if source.classes is not None and model.class_names is not None:
        same_classes(source.classes, model.class_names)
    kept = kept_source(model)
    known = {(model.n_source_, model.source_accuracy_), (len(kept), kept.accuracy)}
    if (len(source), source.accuracy) not in known:
        raise InputError(
            f"source must be what the model was fitted on, {model.n_source_:,} samples, of which "
            f"{percent(model.source_accuracy_)} are predicted right; got {len(source):,} samples, "
            f"{percent(source.accuracy)} right."
        )


def _target(
    estimator: Estimator,
    name: str,
    source: Outputs,
    target: Outputs,
    comparison: Comparison,
    by: Sequence[str],
    gate: Gate,
    with_labels: Estimate | None,
) -> TargetReport:
    """Put together what is said about one target."""
    level = comparison.confidence_level
    estimate = _main_estimate(comparison, estimator.method)
    shares = [predicted_shares(outputs) for outputs in (source, target)]
    checks = [check_agreement({row.method: row.accuracy for row in comparison}), check_width(estimate.interval)]
    if estimate.shift is not None:
        sizes = (len(source), len(target))
        changed = check_shift(estimate.shift, shares[0], shares[1], class_names(source), sizes)
        checks = [changed, check_outside(estimate.shift), *checks]
    low, high = estimate.interval
    answer = (
        f"On {name}, the classifier is right on an estimated {percent(estimate.accuracy)} of "
        f"{len(target):,} samples ({100 * level:g} % interval {percent(low)} to {percent(high)}); "
        f"on the labelled source it is right on {percent(estimator.source_accuracy_)}."
    )
    final = estimate
    if with_labels is not None:
        final, (low, high) = with_labels, with_labels.interval
        shown = f"{percent(final.accuracy)} ({percent(low)} to {percent(high)})"
        answer += f" By {final.diagnostics['n_labels']:,} labels it is {shown}, whatever has happened to the data."
    found = estimate_segments(estimator, name, target, by, level) if by else None
    segments = () if found is None else segment_lines(found)
    classes = class_lines(estimate, source, target, shares)
    whole, parts = Segment({}, final, target.accuracy), () if found is None else found.rows
    accuracy = estimator.source_accuracy_
    failures = [Failure(one, tuple(gate.failures(one, accuracy))) for one in (whole, *parts)]
    failed = tuple(failure for failure in failures if failure.reasons)
    spared = sum(map(gate.leaves_out, parts)) if gate.is_set else 0
    below = sum(bool(failure.segment.group) for failure in failed)
    return TargetReport(
        name=name,
        estimate=estimate,
        with_labels=with_labels,
        truth=target.accuracy,
        answer=answer,
        verdict=verdict(estimate.shift),
        next_step=next_step(final, worst(checks), segments or classes),
        gate=gate_verdict(final, gate, accuracy, below, len(parts) - spared),
        failed=failed,
        n_judged=1 + len(parts),
        n_spared=spared,
        checks=tuple(checks),
        explanation=tuple(filter(None, [*remarks(estimate), covered(estimate)])),
        methods=comparison.rows,
        classes=classes,
        segments=segments,
        segments_left_out=len(parts) - len(segments),
    )


def _main_estimate(comparison: Comparison, method: str) -> Estimate:
    """Return the whole estimate of the main method."""
    return next(row.estimate for row in comparison if row.method == method and row.estimate is not None)
