"""The first screen of a report: the answer, how far to rely on it, and what to do next."""

from __future__ import annotations

from leadline.report.assumptions import RELIANCE
from leadline.report.content import Report
from leadline.results.render import interval, percent


def title_of(report: Report) -> str:
    """Return the title of the report."""
    targets = report.targets
    return f"Estimated accuracy on {targets[0].name if len(targets) == 1 else f'{len(targets)} targets'}"


def headline(report: Report) -> str:
    """Return the answer in one sentence."""
    if len(report.targets) == 1:
        return report.targets[0].answer
    ordered = sorted(report.targets, key=lambda target: target.estimate.accuracy)
    low, high = ordered[0], ordered[-1]
    return (
        f"Over {len(ordered)} targets, the classifier is right on an estimated {percent(low.estimate.accuracy)} "
        f"({low.name}, {100 * report.comparison.confidence_level:g} % interval {interval(low.estimate.interval)}) to "
        f"{percent(high.estimate.accuracy)} ({high.name}, {interval(high.estimate.interval)}) of the samples; "
        f"on the labelled source it is right on {percent(report.source['accuracy'])}."
    )


def reliance(report: Report) -> str:
    """Return how far to rely on the answer, in a few words."""
    if len(report.targets) == 1:
        return f"Reliance: {report.targets[0].reliance}"
    counts = {level: sum(target.reliance == level for target in report.targets) for level, _ in RELIANCE.values()}
    words = ", ".join(f"{level} for {count}" for level, count in counts.items() if count)
    return f"Reliance: {words} of {len(report.targets)} targets"


def advice(report: Report) -> dict[str, str]:
    """Return what changed, whether the estimates are as high as asked for, and the next step, by these names.

    Of several targets, the one with the lowest estimate speaks; whether they are high enough is told of all.
    """
    first = min(report.targets, key=lambda target: target.estimate.accuracy)
    told = {"What changed": first.verdict, "Asked for": first.gate, "Next": first.next_step}
    number = len(report.targets)
    if number > 1:
        told = {f"{key}, {first.name}": text for key, text in told.items() if key != "Asked for"}
        least = report.gate.least(report.source["accuracy"])
        if least is not None:
            below = sum(bool(target.failed) for target in report.targets)
            asked = percent(least)
            told["Asked for"] = f"Of {number} targets, {below} are below the {asked} asked for, as a whole or in part."
    return {key: text for key, text in told.items() if text}
