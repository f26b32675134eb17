"""A report as sections of sentences, tables and figures: the one outline that the page and the Markdown follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leadline.estimators import METHODS
from leadline.report.assumptions import RELIANCE, VERDICTS, worst
from leadline.report.content import Report, TargetReport
from leadline.report.lines import ClassLine, SegmentLine
from leadline.report.pictures import Picture, detailed_targets
from leadline.results.estimate import Estimate
from leadline.results.render import Cell, Table, interval, percent, points, stated
from leadline.results.words import about_labels

_SIGNS = {"good": "✓", "caution": "!", "poor": "✗"}
_FEW_CLASSES = 10
_MOST_PULLING = 3  # parts that are shown before anything is unfolded
_LEAST_PULL = 0.0005  # nothing is left of less when it is rounded


@dataclass(frozen=True)
class Section:
    """A part of the report.

    Attributes
    ----------
    title
        Its heading.
    gist
        What it comes to in a few words, to be read beside the heading while the rest is folded.
    paragraphs
        Sentences below the heading.
    tables
        Tables below the sentences.
    pictures
        Figures below the tables.
    parts
        Sections within.
    folded
        Whether a page shows it only when asked.
    """

    title: str
    gist: str = ""
    paragraphs: Sequence[str] = ()
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()
    parts: Sequence[Section] = ()
    folded: bool = True


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
        List every class of every target; False lists ten where there are more.
    folded
        Include the details of targets beyond those that have figures.
    """
    sections: list[Section] = []
    detailed = detailed_targets(report)
    if len(report.targets) > 1:
        sections.append(_summary(report))
    for target in report.targets:
        own = [picture for picture in pictures if picture.target == target.name]
        if len(report.targets) == 1:
            sections += _target(report, target, own, all_classes)
        elif target.name in detailed or folded:
            gist = f"{percent(target.estimate.accuracy)}, reliance {target.reliance}"
            parts = _target(report, target, own, all_classes)
            sections.append(Section(target.name, gist, [target.answer, target.verdict, target.gate], parts=parts))
    sections += [_methods(report), _source(report, [one for one in pictures if one.target is None]), _repeat(report)]
    return sections


def _summary(report: Report) -> Section:
    """Return a line per target."""
    labelled = any(target.truth is not None for target in report.targets)
    header = ["target", "estimated accuracy", "interval", "samples", "shift", "reliance"]
    rows: list[list[Cell | str]] = []
    for target in report.targets:
        estimate = target.estimate
        cells: list[Cell | str] = [target.name]
        cells.append(Cell(percent(estimate.accuracy), bar=estimate.accuracy, interval=estimate.interval))
        shift = "not judged" if estimate.shift is None else estimate.shift.kind.value
        cells += [interval(estimate.interval), f"{estimate.n_samples:,}", shift, target.reliance]
        if labelled:
            error = None if target.truth is None else estimate.accuracy - target.truth
            cells += [percent(target.truth), points(error)]
        rows.append(cells)
    table = Table([*header, *(["true", "error"] if labelled else [])], rows, left=(0,))
    return Section("All targets", tables=[table], folded=False)


def _target(report: Report, target: TargetReport, pictures: Sequence[Picture], all_classes: bool) -> list[Section]:
    """Return what is said about one target."""
    single = len(report.targets) == 1
    level, meaning = RELIANCE[worst(target.checks)]
    checks = Table(
        ["check", "verdict", "what was found"],
        [[check.name, f"{_SIGNS[check.verdict]} {VERDICTS[check.verdict]}", check.text] for check in target.checks],
        left=(0, 1, 2),
    )
    paragraphs = [meaning]
    if target.truth is not None and not single:
        error = target.estimate.accuracy - target.truth
        paragraphs.append(
            f"The target has labels, which no method saw: the true accuracy is {percent(target.truth)}, "
            f"so that the estimate is off by {points(error)} points."
        )
    sections = []
    if target.with_labels is not None:
        sections.append(_labels(target, target.with_labels, folded=not single))
    rely = f"How far to rely on it: {level}"
    if target.with_labels is not None:
        rely, paragraphs = f"How far one could rely on it without labels: {level}", paragraphs[1:]
    sections.append(Section(rely, "", paragraphs, [checks], folded=not single or target.with_labels is not None))
    down = _pulling_down(report, target)
    if down is not None:
        sections.append(Section("What pulls it down", tables=[down], folded=not single))
    if target.explanation:
        sections.append(Section("What else to know of this estimate", "", target.explanation))
    if target.segments:
        sections.append(_segments(report, target))
    sections.append(_classes(target, all_classes))
    sections.append(_compared(report, target))
    if pictures:
        sections.append(Section("Figures", f"{len(pictures)}", pictures=pictures))
    return sections


def _labels(target: TargetReport, after: Estimate, *, folded: bool) -> Section:
    """Return the estimate before the labels and after them, on one scale."""
    before = target.estimate
    rows: list[list[Cell | str]] = []
    known = [target.truth] if target.truth is not None else []
    scale = _scale([before.accuracy, *before.interval, after.accuracy, *after.interval, *known])
    names = (f"without labels, by {before.method}", f"with {after.diagnostics['n_labels']:,} labels")
    for name, one in zip(names, (before, after), strict=True):
        cell = Cell(percent(one.accuracy), bar=one.accuracy, interval=one.interval, scale=scale)
        rows.append([name, cell, interval(one.interval)])
    told = [
        " ".join(about_labels(after)),
        f"Points and intervals on a scale from {100 * scale[0]:g} to {100 * scale[1]:g} %.",
    ]
    return Section("Before and after the labels", "", told, [Table(["", "accuracy", "interval"], rows)], folded=folded)


def _pulling_down(report: Report, target: TargetReport) -> Table | None:
    """Return the few segments or classes that pull the accuracy down most; None where all are much alike."""
    lines: Sequence[SegmentLine | ClassLine] = target.segments or target.classes
    down = [line for line in lines if line.pull <= -_LEAST_PULL][:_MOST_PULLING]
    if not down:
        return None
    what = ", ".join(report.by) if target.segments else "predicted class"
    rows: list[list[Cell | str]] = [
        [line.name, Cell(percent(line.accuracy), bar=line.accuracy), percent(line.share), points(line.pull)]
        for line in down
    ]
    return Table([what, "estimated accuracy", "share of the samples", "pulls by (points)"], rows)


def _compared(report: Report, target: TargetReport) -> Section:
    """Return all methods on one target: points on one scale, and the interval of the main one."""
    labelled = target.truth is not None
    estimates = [row.accuracy for row in target.methods]
    band = target.estimate.interval
    scale = _scale([*estimates, *band, *([target.truth] if target.truth is not None else [])])
    rows: list[list[Cell | str]] = []
    for row in target.methods:
        main = row.method == report.method
        around = band if main else (row.accuracy, row.accuracy)
        cells: list[Cell | str] = [f"{row.method} (main)" if main else row.method]
        cells.append(Cell(percent(row.accuracy), bar=row.accuracy, interval=around, scale=scale))
        rows.append([*cells, *([points(row.error)] if labelled else []), stated(METHODS[row.method].assumption)])
    header = ["method", "estimated accuracy", *(["error in points"] if labelled else []), "is right when"]
    told = (
        f"Each is a point on a scale from {100 * scale[0]:g} to {100 * scale[1]:g} %. The interval, {interval(band)}, "
        "is drawn once: it rests on the comparison of target and source, which all methods share."
    )
    return Section(
        "All methods",
        f"{len(estimates)} give {interval((min(estimates), max(estimates)))}",
        [told],
        [Table(header, rows, left=(0, len(header) - 1))],
    )


def _scale(values: Sequence[float]) -> tuple[float, float]:
    """Return ends in whole tenths that hold all values and differ.

    Examples
    --------
    >>> _scale([0.42, 0.69])
    (0.4, 0.7)
    """
    low, high = int(10 * min(values)), -int(-10 * max(values) // 1)
    return low / 10, max(high, low + 1) / 10


def _classes(target: TargetReport, all_classes: bool) -> Section:
    """Return the estimate by predicted class."""
    lines: Sequence[ClassLine] = target.classes
    gist = f"{len(lines)} classes"
    if not all_classes and len(lines) > _FEW_CLASSES:
        lines = lines[:_FEW_CLASSES]
        gist = f"the {len(lines)} of {len(target.classes)} that pull the accuracy down most"
    labelled = target.truth is not None
    header = ["predicted class", "estimated accuracy", "samples", "share", "share on source", "accuracy on source"]
    header += ["pulls by (points)", *(["true"] if labelled else [])]
    rows: list[list[Cell | str]] = []
    for line in lines:
        cells: list[Cell | str] = [line.name, Cell(percent(line.accuracy) or "never predicted", bar=line.accuracy)]
        cells += [f"{line.count:,}", percent(line.share), percent(line.source_share), percent(line.source_accuracy)]
        rows.append([*cells, points(line.pull), *([percent(line.truth)] if labelled else [])])
    return Section("By predicted class", gist, tables=[Table(header, rows)])


def _segments(report: Report, target: TargetReport) -> Section:
    """Return the estimate by segment."""
    labelled = any(line.truth is not None for line in target.segments)
    rows: list[list[Cell | str]] = []
    for line in target.segments:
        cells: list[Cell | str] = [line.name, Cell(percent(line.accuracy), bar=line.accuracy, interval=line.interval)]
        cells += [interval(line.interval), f"{line.count:,}", percent(line.share), points(line.pull)]
        rows.append([*cells, *([percent(line.truth)] if labelled else [])])
    by = ", ".join(report.by)
    header = [by, "estimated accuracy", "interval", "samples", "share", "pulls by (points)"]
    told = []
    if target.segments_left_out:
        told.append(
            f"The {len(target.segments)} segments that pull the accuracy down most are listed, "
            f"{target.segments_left_out:,} are not."
        )
    number = f"{len(target.segments) + target.segments_left_out:,} segments"
    return Section(f"By {by}", number, told, [Table([*header, *(["true"] if labelled else [])], rows)])


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
    several = len(comparison.targets) > 1
    return Section("All methods on all targets" if several else "What the methods are", tables=tables)


def _source(report: Report, pictures: Sequence[Picture]) -> Section:
    """Return what the estimates were learned from."""
    source = report.source
    told = [
        f"{source['name']}: {source['n_samples']:,} labelled samples of {source['n_classes']} classes, "
        f"{percent(source['accuracy'])} predicted right."
    ]
    if source["n_at_hand"] < source["n_samples"]:
        told.append(
            f"Of these, the model keeps {source['n_at_hand']:,}. The estimate rests on all of them; the other methods, "
            "the source's figures and its shares and accuracies by class rest on those kept, and would be more exact "
            "with the source itself."
        )
    title, gist = "The source and what was learned from it", f"{percent(source['accuracy'])} right"
    return Section(title, gist, told, pictures=pictures)


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
    return Section("To repeat this report", "", [f"Made on {report.created}."], tables)
