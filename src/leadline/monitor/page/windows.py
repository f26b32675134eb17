"""The windows one by one: a table with the numbers of the chart, and an explanation of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from leadline.monitor.page.columns import Column, pull_on, segment_name
from leadline.monitor.page.times import Naming
from leadline.monitor.page.words import estimate_words, rule_words, said_by_labels
from leadline.monitor.records import Point, Watched
from leadline.results.markup import Markup, html_table
from leadline.results.pages import text_html
from leadline.results.render import interval, percent

_MOST_NAMED = 4  # classes and segments named in an explanation
_LEAST_PULL = 0.0005  # nothing is left of less when it is rounded


@dataclass(frozen=True)
class _Part:
    """A class or a segment of a window, and how far it pulls the accuracy."""

    pull: float
    name: str
    accuracy: float
    share: float


class Explanations:
    """Explains columns: what the estimate rests on, what labels say, and what pulls the accuracy down.

    Parameters
    ----------
    watched
        The series.
    naming
        What windows are called.
    prefix
        Of the names that other places of the page lead to.
    """

    def __init__(self, watched: Watched, naming: Naming, prefix: str) -> None:
        self._watched = watched
        self._naming = naming
        self._prefix = prefix
        self._segments = _by_window(watched)

    def folded(self, column: Column) -> str:
        """Return the explanation of a column, folded; a link to it unfolds it."""
        named = f"{self._naming.stretch(column.first, column.last)}: {estimate_words(column.accuracy, column.interval)}"
        return (
            f'<details class="why"><summary>{text_html(named)}</summary>'
            f'<div id="{self._prefix}w{column.first.number}">{self._body(column)}</div></details>'
        )

    def panel(self, column: Column) -> str:
        """Return the same unfolded, in the place where a script shows the one that was chosen."""
        named = f"{self._naming.stretch(column.first, column.last)}: {estimate_words(column.accuracy, column.interval)}"
        return (
            f'<div class="panel" data-shown="{self._prefix}w{column.first.number}" aria-live="polite">'
            f'<h3>{text_html(named)}</h3><div class="body">{self._body(column)}</div></div>'
        )

    def _body(self, column: Column) -> str:
        point = column.lowest
        told = []
        if column.n_windows > 1:
            told.append(
                f"The mean of {self._naming.count(column.n_windows)} with data. Of the lowest, "
                f"{self._naming.window(point.window)}, with {estimate_words(point.accuracy, point.interval)}:"
            )
        told += [
            f"Alarm {alarm.number} was raised here: {rule_words(alarm.rule)}."
            for alarm in self._watched.alarms
            if column.first.number <= alarm.first.number <= column.last.number
        ]
        told.append(point.words or _plain_words(point))
        if point.realised is not None:
            told.append(said_by_labels(point.realised, point.interval))
        body = "".join(f"<p>{text_html(text)}</p>" for text in told)
        classes = [
            _Part(
                pull_on(point, entry.accuracy, entry.count),
                str(entry.label),
                entry.accuracy,
                entry.count / point.n_rows,
            )
            for entry in point.by_class
            if entry.accuracy is not None
        ]
        body += _pulling("Predicted classes below the window's accuracy, and how far they pull it down", classes)
        return body + _pulling("Segments below it", self._segments.get(point.window.number, ()))


def windows_table(columns: Iterable[Column], naming: Naming, prefix: str) -> str:
    """Return the numbers of the chart as a table, the latest first, each with a link to its explanation."""
    newest = list(columns)[::-1]
    labelled = any(column.realised is not None for column in newest)
    header = ["window", "estimated accuracy", "interval", "rows", "shift"]
    header += ["by labels", "its interval", "labels"] if labelled else []
    rows = []
    for column in newest:
        named = text_html(naming.stretch(column.first, column.last))
        point, found = column.lowest, column.realised
        row = [
            Markup(f'<a href="#{prefix}w{column.first.number}">{named}</a>'),
            percent(column.accuracy),
            interval(column.interval),
            f"{column.n_rows:,}",
            "not judged" if point.shift is None else point.shift.value,
        ]
        if labelled and found is not None:
            row += [percent(found.accuracy), interval(found.interval), f"{found.n_labels:,}"]
        elif labelled:
            row += ["", "", ""]
        rows.append(row)
    return f'<div class="table">{html_table(header, rows, left=(0, 4), kind="wide")}</div>'


def _plain_words(point: Point) -> str:
    """Return what there is to say of a window without words of its own."""
    judged = "" if point.shift is None else f" The verdict on the outputs: {point.shift.value}."
    return f"Estimated accuracy {estimate_words(point.accuracy, point.interval)} on {point.n_rows:,} rows.{judged}"


def _by_window(watched: Watched) -> Mapping[int, Sequence[_Part]]:
    """Return the segments of each window."""
    wholes = {point.window.number: point for point in watched.points}
    found: dict[int, list[_Part]] = {number: [] for number in wholes}
    for values, points in watched.segments.items():
        name = segment_name(values)
        for point in points:
            whole = wholes.get(point.window.number)
            if whole is not None:
                pulls = pull_on(whole, point.accuracy, point.n_rows)
                found[point.window.number].append(_Part(pulls, name, point.accuracy, point.n_rows / whole.n_rows))
    return found


def _pulling(title: str, parts: Iterable[_Part]) -> str:
    """Return the parts that pull the accuracy down most, as a list; nothing where none does."""
    down = sorted((part for part in parts if part.pull <= -_LEAST_PULL), key=lambda part: part.pull)
    if not down:
        return ""
    items = "".join(
        f"<li><b>{text_html(part.name)}</b> {percent(part.accuracy)} on {percent(part.share)} of the rows: "
        f"{100 * part.pull:+.1f} points</li>"
        for part in down[:_MOST_NAMED]
    )
    more = f"<li>and {len(down) - _MOST_NAMED:,} more</li>" if len(down) > _MOST_NAMED else ""
    return f"<h4>{text_html(title)}</h4><ul>{items}{more}</ul>"
