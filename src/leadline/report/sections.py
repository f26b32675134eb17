"""A report as sections of sentences, tables and figures: the one outline that the page and the Markdown follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from leadline.estimators import METHODS
from leadline.report.assumptions import RELIANCE, VERDICTS, worst
from leadline.report.content import ClassLine, Report, TargetReport
from leadline.report.pictures import Picture, detailed_targets
from leadline.results.render import Cell, Table, interval, percent, points, stated

_SIGNS = {"good": "✓", "caution": "!", "poor": "✗"}
_FEW_CLASSES = 10


@dataclass(frozen=True)
class Section:
    """A part of the report.

    Attributes
    ----------
    title
        Its heading.
    paragraphs
        Sentences below the heading.
    tables
        Tables below the sentences.
    pictures
        Figures below the tables.
    folded
        Whether a page shows it only when asked.
    """

    title: str
    paragraphs: Sequence[str] = ()
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = field(default_factory=tuple)
    folded: bool = False


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


def outline(
    report: Report, pictures: Sequence[Picture], *, all_classes: bool = True, folded: bool = True
) -> list[Section]:
    """Return the sections of a report.

    Parameters
    ----------
    report
        What to say.
    pictures
        What to show.
    all_classes
        List every class of every target; False lists the lowest ten where there are more.
    folded
        Include the details of targets beyond those that have figures.
    """
    detailed = detailed_targets(report)
    sections = [_summary(report)] if len(report.targets) > 1 else []
    for target in report.targets:
        if target.name in detailed or folded:
            own = [picture for picture in pictures if picture.target == target.name]
            sections.append(_target(report, target, own, all_classes, folded=target.name not in detailed))
    sections.append(_methods(report))
    sections.append(
        Section(
            "The source and what was learned from it",
            [
                f"{report.source['name']}: {report.source['n_samples']:,} labelled samples of "
                f"{report.source['n_classes']} classes, {percent(report.source['accuracy'])} predicted right."
            ],
            pictures=[picture for picture in pictures if picture.target is None],
        )
    )
    sections.append(_repeat(report))
    return sections


def _summary(report: Report) -> Section:
    """Return a line per target."""
    labelled = any(target.truth is not None for target in report.targets)
    header = [
        "target",
        "estimated accuracy",
        "interval",
        "samples",
        "reliance",
        *(["true", "error"] if labelled else []),
    ]
    rows: list[list[Cell | str]] = []
    for target in report.targets:
        estimate = target.estimate
        cells: list[Cell | str] = [target.name, Cell(percent(estimate.accuracy), bar=estimate.accuracy)]
        cells += [interval(estimate.interval), f"{estimate.n_samples:,}", target.reliance]
        if labelled:
            error = None if target.truth is None else estimate.accuracy - target.truth
            cells += [percent(target.truth), points(error)]
        rows.append(cells)
    return Section("All targets", tables=[Table(header, rows, left=(0, 4))])


def _target(
    report: Report, target: TargetReport, pictures: Sequence[Picture], all_classes: bool, *, folded: bool
) -> Section:
    """Return what is said about one target."""
    level, meaning = RELIANCE[worst(target.checks)]
    paragraphs = [target.answer] if len(report.targets) > 1 else []
    if target.truth is not None:
        error = target.estimate.accuracy - target.truth
        paragraphs.append(
            f"The target has labels, which no method saw: the true accuracy is {percent(target.truth)}, "
            f"so that the estimate is off by {points(error)} points."
        )
    paragraphs.append(f"Reliance: {level}. {meaning}")
    paragraphs.extend(target.explanation)
    checks = Table(
        ["check", "verdict", "what was found"],
        [[check.name, f"{_SIGNS[check.verdict]} {VERDICTS[check.verdict]}", check.text] for check in target.checks],
        title="Why",
        left=(0, 1, 2),
    )
    tables = [checks, _method_table(report, target), _class_table(target, all_classes)]
    if target.segments:
        tables.append(_segment_table(report, target))
    if target.segments_left_out:
        paragraphs.append(
            f"The {len(target.segments)} largest segments are listed, {target.segments_left_out:,} are not."
        )
    heading = f"How far to rely on it: {target.name}" if len(report.targets) == 1 else target.name
    return Section(heading, paragraphs, tables, pictures, folded)


def _method_table(report: Report, target: TargetReport) -> Table:
    """Return all methods on one target."""
    labelled = target.truth is not None
    rows: list[list[Cell | str]] = []
    for row in target.methods:
        name = f"{row.method} (main)" if row.method == report.method else row.method
        cells: list[Cell | str] = [name, Cell(percent(row.accuracy), bar=row.accuracy), interval(row.interval)]
        rows.append([*cells, *([points(row.error)] if labelled else []), stated(METHODS[row.method].assumption)])
    header = ["method", "estimated accuracy", "interval", *(["error in points"] if labelled else []), "is right when"]
    return Table(header, rows, "All methods", left=(0, len(header) - 1))


def _class_table(target: TargetReport, all_classes: bool) -> Table:
    """Return the estimate by predicted class."""
    lines: Sequence[ClassLine] = target.classes
    title = "By predicted class"
    if not all_classes and len(lines) > _FEW_CLASSES:
        predicted = [line for line in lines if line.accuracy is not None]
        lines = sorted(predicted, key=lambda line: line.accuracy or 0.0)[:_FEW_CLASSES]
        title += f": the lowest {len(lines)} of {len(target.classes)}"
    labelled = target.truth is not None
    header = ["predicted class", "estimated accuracy", "samples", "share", "share on source", "accuracy on source"]
    rows: list[list[Cell | str]] = []
    for line in lines:
        cells: list[Cell | str] = [line.name, Cell(percent(line.accuracy) or "never predicted", bar=line.accuracy)]
        cells += [f"{line.count:,}", percent(line.share), percent(line.source_share), percent(line.source_accuracy)]
        rows.append(cells + ([percent(line.truth)] if labelled else []))
    return Table([*header, *(["true"] if labelled else [])], rows, title)


def _segment_table(report: Report, target: TargetReport) -> Table:
    """Return the estimate by segment."""
    labelled = any(line.truth is not None for line in target.segments)
    rows: list[list[Cell | str]] = []
    for line in target.segments:
        cells: list[Cell | str] = [line.name, Cell(percent(line.accuracy), bar=line.accuracy)]
        cells += [interval(line.interval), f"{line.count:,}", *([percent(line.truth)] if labelled else [])]
        rows.append(cells)
    by = ", ".join(report.by)
    header = [by, "estimated accuracy", "interval", "samples", *(["true"] if labelled else [])]
    return Table(header, rows, f"By {by}")


def _methods(report: Report) -> Section:
    """Return all methods on all targets, and how far off each is where labels are known."""
    comparison = report.comparison
    rows: list[list[Cell | str]] = [
        [target, *(percent(comparison.accuracy(method, target)) for method in comparison.methods)]
        for target in comparison.targets
    ]
    tables = []
    errors = comparison.mean_absolute_errors()
    if len(comparison.targets) > 1:
        tables.append(Table(["target", *comparison.methods], rows, "Estimated accuracy"))
    if errors and len(comparison.targets) > 1:
        lines = [[method, f"{100 * error:.1f}"] for method, error in errors.items()]
        tables.append(Table(["method", "points"], lines, "Mean absolute error over the targets with labels"))
    tables.append(
        Table(
            ["method", "what it computes", "published by"],
            [[name, stated(METHODS[name].summary), stated(METHODS[name].reference)] for name in comparison.methods],
            "The methods",
            left=(0, 1, 2),
        )
    )
    return Section("All methods side by side", tables=tables)


def _repeat(report: Report) -> Section:
    """Return what is needed to get the same report again."""
    settings = dict(report.settings)
    options = settings.pop("options")
    rows = [[name, str(value)] for name, value in settings.items() if not isinstance(value, dict)]
    tables = [Table(["setting", "value"], [["main method", report.method], *rows], "Settings", left=(0, 1))]
    for name, value in settings.items():
        if isinstance(value, dict):
            tables.append(Table([name, "value"], [[key, str(item)] for key, item in value.items()], left=(0, 1)))
    lines = [
        [method, ", ".join(f"{key}={value!r}" for key, value in given.items())] for method, given in options.items()
    ]
    tables.append(Table(["method", "options"], lines, "Options", left=(0, 1)))
    tables.append(
        Table(["package", "version"], [list(pair) for pair in report.versions.items()], "Versions", left=(0, 1))
    )
    return Section("To repeat this report", [f"Made on {report.created}."], tables)
