"""How results look in a notebook: HTML that needs no style sheet, on light and dark pages, with everything escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from leadline.results.markup import Markup, html_bar, html_table
from leadline.results.printing import printable
from leadline.results.render import Cell, Table, interval, percent
from leadline.results.words import covered, remarks, verdict

if TYPE_CHECKING:
    from leadline.results.estimate import Estimate
    from leadline.results.estimates import Estimates
    from leadline.results.performance import Performance

#: Lines that a table in a notebook has at most.
MOST_LINES = 20
_QUIET = "opacity:.72;font-size:.92em"


def estimate_view(estimate: Estimate) -> str:
    """Return the estimate with its interval, how the target differs, and the classes it rests on."""
    return _framed([_answer(estimate), _words(estimate), _folded("By predicted class", _classes(estimate))])


def estimates_view(estimates: Estimates) -> str:
    """Return the estimate on all rows, and the segments, those first that pull it down most."""
    whole = estimates.overall.estimate
    parts = [_answer(whole), _words(whole)]
    if estimates.by:
        parts.append(table_view(_segments(estimates), f"segments of {', '.join(estimates.by)}"))
    if estimates.left_out:
        files, rows = (
            sum(item.rows is None for item in estimates.left_out),
            sum(item.rows or 0 for item in estimates.left_out),
        )
        parts.append(_paragraph(f"Left out as bad: {files:,} files, {rows:,} rows.", quiet=True))
    return _framed(parts)


def performance_view(performance: Performance) -> str:
    """Return accuracy, and precision, recall and F1 by class, the lowest F1 first."""
    found = performance.confusion
    names = performance.classes or range(len(found))
    measures = np.column_stack([performance.precision, performance.recall, performance.f1])
    rows: list[list[Cell | str]] = []
    for k in np.argsort(np.nan_to_num(performance.f1, nan=np.inf), kind="stable"):
        shown = [Cell("unknown") if np.isnan(value) else Cell(percent(value), bar=value) for value in measures[k]]
        rows.append([str(names[k]), *shown, f"{found[k].sum():,.0f}", f"{found[:, k].sum():,.0f}"])
    header = ["class", "precision", "recall", "F1", "samples of it", "predicted as it"]
    title = f"Expected accuracy {percent(performance.accuracy)} on {found.sum():,.0f} samples"
    return _framed([_paragraph(title), table_view(Table(header, rows), "classes, the lowest F1 first")])


def table_view(table: Table, what: str) -> str:
    """Return a table, cut where it is long.

    Parameters
    ----------
    table
        The lines that matter most first.
    what
        What the lines are, for the sentence on those left out.
    """
    shown = table.rows[:MOST_LINES]
    made = html_table(table.header, [[cell_html(cell) for cell in row] for row in shown], left=table.left)
    scrolled = f'<div style="overflow-x:auto">{made}</div>'
    if len(shown) == len(table.rows):
        return scrolled
    return scrolled + _paragraph(f"{len(shown)} of {len(table.rows):,} {what}.", quiet=True)


def cell_html(cell: Cell | str) -> Markup:
    """Return a cell with its bar, if it has one."""
    if not isinstance(cell, Cell):
        return Markup(escape(printable(cell)))
    drawn = "" if cell.bar is None else html_bar(cell.bar, cell.interval, scale=cell.scale)
    text = escape(printable(cell.text))
    return Markup((f"<strong>{text}</strong>" if cell.style == "bold" else text) + drawn)


def _framed(parts: Iterable[str]) -> str:
    return f'<div style="max-width:52em;line-height:1.45">{"".join(parts)}</div>'


def _paragraph(text: str, *, quiet: bool = False) -> str:
    style = f"margin:.4em 0;{_QUIET}" if quiet else "margin:.4em 0"
    return f'<p style="{style}">{escape(printable(text))}</p>'


def _folded(title: str, body: str) -> str:
    return f'<details style="margin:.4em 0"><summary>{escape(title)}</summary>{body}</details>'


def _answer(estimate: Estimate) -> str:
    """Return the number, its bar, and what the marks on it are."""
    source = estimate.diagnostics.get("source_accuracy")
    told = f"{100 * estimate.confidence_level:g} % interval {interval(estimate.interval)}"
    told += "" if source is None else f"; ○ on the labelled source {percent(source)}"
    return (
        f'<div style="font-size:1.9em;font-weight:600;line-height:1.2">{percent(estimate.accuracy)}'
        f'<span style="font-size:.5em;font-weight:400"> estimated accuracy, by {escape(estimate.method)} on '
        f"{estimate.n_samples:,} samples</span></div>"
        f'<div style="max-width:34em">{html_bar(estimate.accuracy, estimate.interval, before=source)}</div>'
    ) + _paragraph(told, quiet=True)


def _words(estimate: Estimate) -> str:
    """Return how the target differs from the source, and what to bear in mind."""
    said, others = verdict(estimate.shift), [*remarks(estimate), covered(estimate)]
    return (_paragraph(said) if said else "") + _paragraph(" ".join(filter(None, others)), quiet=True)


def _classes(estimate: Estimate) -> str:
    """Return the predicted classes, those first that pull the accuracy down most."""
    predicted = [(entry, entry.accuracy) for entry in estimate.by_class if entry.accuracy is not None]
    pulls = [(estimate.pull(accuracy, entry.count), entry, accuracy) for entry, accuracy in predicted]
    rows: list[Sequence[Cell | str]] = [
        [
            str(entry.label),
            Cell(percent(accuracy), bar=accuracy),
            f"{entry.count:,}",
            percent(entry.count / estimate.n_samples),
            f"{100 * pull:+.2f}",
        ]
        for pull, entry, accuracy in sorted(pulls, key=lambda line: line[0])
    ]
    header = ["predicted class", "estimated accuracy", "samples", "share", "pulls by (points)"]
    never = len(estimate.by_class) - len(predicted)
    note = _paragraph(f"{never:,} classes are never predicted.", quiet=True) if never else ""
    return table_view(Table(header, rows), "predicted classes, those that pull the accuracy down most") + note


def _segments(estimates: Estimates) -> Table:
    """Return the segments, those first that pull the accuracy down most."""
    labelled = any(row.truth is not None for row in estimates)
    whole = estimates.overall.estimate
    rows: list[Sequence[Cell | str]] = []
    for row, pull in estimates.by_pull():
        found = row.estimate
        rows.append(
            [
                *row.values,
                Cell(percent(found.accuracy), bar=found.accuracy, interval=found.interval),
                interval(found.interval),
                f"{found.n_samples:,}",
                percent(found.n_samples / whole.n_samples),
                f"{100 * pull:+.2f}",
                *([percent(row.truth)] if labelled else []),
            ]
        )
    header = [*estimates.by, "estimated accuracy", "interval", "samples", "share", "pulls by (points)"]
    return Table([*header, *(["true"] if labelled else [])], rows, left=range(len(estimates.by)))
