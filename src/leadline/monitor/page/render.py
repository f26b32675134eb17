"""The page of the monitor: the answer first, then each series over time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from importlib.resources import files

from leadline.monitor.page.alarms import alarms_html, listed
from leadline.monitor.page.chart import DEFINITIONS, Chart, Scale, legend
from leadline.monitor.page.columns import Column, columns_of
from leadline.monitor.page.segments import MOST_PRINTED, segments_html
from leadline.monitor.page.times import Axis, Naming
from leadline.monitor.page.windows import Explanations, windows_table
from leadline.monitor.page.words import LEVELS, Status, overall, status, track_record
from leadline.monitor.records import Alarm, Watched
from leadline.monitor.windows import Every, as_time
from leadline.results.markup import html_bar
from leadline.results.pages import page_of, text_html
from leadline.results.render import interval, percent

#: Windows drawn one by one; of more, neighbours are drawn together.
MOST_COLUMNS = 400
_MOST_OPEN = 3  # series that are all unfolded; of more, only those that are not fine


def render_page(watched: Sequence[Watched], *, made_at: datetime, title: str = "Accuracy over time") -> str:
    """Return one page of HTML that needs nothing else and is readable without its script.

    Parameters
    ----------
    watched
        The series, each with its windows, segments, alarms and track record.
    made_at
        When; times of the same year are named without it.
    title
        Of the page.

    Examples
    --------
    >>> from datetime import UTC
    >>> page = render_page([], made_at=datetime(2026, 11, 18, tzinfo=UTC))
    >>> "No series is watched yet." in page
    True
    """
    made = as_time(made_at)
    parts = [_Part(one, number, made.year) for number, one in enumerate(watched)]
    parts.sort(key=lambda part: list(LEVELS).index(part.status.level))
    folder = files("leadline.monitor.page")
    return page_of(
        title,
        header=_header(parts),
        main=DEFINITIONS + "\n".join(part.html(folded=len(parts) > _MOST_OPEN) for part in parts),
        footer=f"on {made:%Y-%m-%d %H:%M} UTC; all times are in UTC. This page holds sums and means, no single row, "
        "and loads nothing from elsewhere.",
        style=folder.joinpath("page.css").read_text(encoding="utf-8"),
        script=folder.joinpath("page.js").read_text(encoding="utf-8"),
    )


class _Part:
    """What the page shows of one series."""

    def __init__(self, watched: Watched, number: int, year: int) -> None:
        self.watched = watched
        self.prefix = f"s{number}"
        self.naming = Naming(Every(watched.series.every), year)
        self.status: Status = status(watched, self.naming)

    def answer(self, *, number_of_series: int) -> str:
        """Return the answer for the first screen; of many series, those that are fine need few words."""
        series, points = self.watched.series, self.watched.points
        alone = number_of_series == 1
        brief = number_of_series > _MOST_OPEN and self.status.level == "good"
        sign, words = LEVELS[self.status.level]
        name = text_html(series.name)
        linked = name if alone else f'<a href="#{self.prefix}">{name}</a>'
        parts = [
            f'<p class="verdict"><span class="reliance {self.status.level}">{sign} {words}</span> '
            f"<b>{linked}</b>: {text_html(self.status.sentence)}.</p>"
        ]
        if points and not brief:
            latest = points[-1]
            if alone:
                said = f"of {latest.n_rows:,} predictions are right, as {series.method} estimates"
                parts.append(f'<p class="number">{percent(latest.accuracy)} <span>{text_html(said)}</span></p>')
            parts.append(
                f'<div class="scale">{html_bar(latest.accuracy, latest.interval, before=series.reference)}'
                "<p><span>0 %</span><span>100 %</span></p></div>"
            )
            parts.append(
                f'<p class="marks">{100 * series.confidence_level:g} % interval {interval(latest.interval)}; '
                f"○ on the labelled source {percent(series.reference)}</p>"
            )
        record = track_record(self.watched)
        if brief:
            return f'<div class="model">{"".join(parts)}<p class="marks">{_with_code(record)}</p></div>'
        advice = f"<p><b>Track record</b> {_with_code(record)}</p>"
        if self.status.alarm is not None:
            advice = f"<p><b>Why</b> {self._why(self.status.alarm)}</p>{advice}"
        return f'<div class="model">{"".join(parts)}<div class="advice">{advice}</div></div>'

    def _why(self, alarm: Alarm) -> str:
        """Return the first sentence of an alarm's reason, and the way to the rest."""
        first, _, rest = alarm.reason.partition(". ")
        more = f' <a href="#{self.prefix}a{alarm.number}">More: alarm {alarm.number:,}</a>' if rest else ""
        return text_html(f"{first}." if rest else first) + more

    def html(self, *, folded: bool) -> str:
        """Return the series over time."""
        series = self.watched.series
        sign, words = LEVELS[self.status.level]
        heading = f'<h2>{text_html(series.name)}</h2> <span class="reliance {self.status.level}">{sign} {words}</span>'
        # A link into what is folded unfolds it.
        body = f'<p class="quiet" id="{self.prefix}">{text_html(self._facts())}</p>{self._over_time()}'
        if folded and self.status.level == "good":
            return f'<details class="series"><summary>{heading}</summary>{body}</details>'
        return f'<section class="series"><div class="heading">{heading}</div>{body}</section>'

    def _facts(self) -> str:
        series = self.watched.series
        return (
            f"Model {series.model_id}, estimated by {series.method}; one window per {self.naming.length}. A fall is "
            f"more than {100 * series.tolerance:g} points below the source's {percent(series.reference)}; at most one "
            f"false alarm in {series.false_alarm_every:,.0f} windows, on average."
        )

    def _over_time(self) -> str:
        watched, naming, prefix = self.watched, self.naming, self.prefix
        alarms = alarms_html(watched.alarms, naming, prefix)
        if not watched.points:
            return f"<p>No window has data yet.</p>{alarms}"
        axis = _axis(watched, naming.every)
        step = axis.step(MOST_COLUMNS)
        columns = columns_of(watched.points, axis.first, step)
        shown = [columns[place] for place in sorted(columns)]
        chart = Chart(watched.series, columns, axis, step, Scale.holding(watched.series, shown), naming)
        explanations = Explanations(watched, naming, prefix)
        merged = f"Each place is the mean of up to {naming.count(step)}. " if step > 1 else ""
        listing = "".join(explanations.folded(column) for column in reversed(shown))
        long = ' class="long"' if len(shown) > MOST_PRINTED else ""
        return (
            f"{chart.full(listed(watched.alarms), prefix)}{legend(watched.series, chart, listed(watched.alarms))}"
            f'<p class="quiet">{text_html(merged)}Choose a window to see what its estimate rests on.</p>'
            f"{explanations.panel(_telling(shown, self.status.alarm))}{alarms}{segments_html(watched, axis, naming)}"
            f"<details{long}><summary>The chart as a table</summary>{windows_table(shown, naming, prefix)}</details>"
            f'<details class="long"><summary>Every window explained</summary>{listing}</details>'
            '<p class="printed quiet">The page itself, on a screen, explains every window.</p>'
        )


def _header(parts: Sequence[_Part]) -> str:
    if not parts:
        return '<p class="answer">No series is watched yet.</p>'
    answers = "".join(part.answer(number_of_series=len(parts)) for part in parts)
    if len(parts) == 1:
        return answers
    said = overall([part.watched for part in parts], [part.status for part in parts])
    return f'<p class="answer">{text_html(said)}</p>{answers}'


def _with_code(text: str) -> str:
    """Return text as HTML, with commands between back quotes as code."""
    return re.sub("`([^`]*)`", r"<code>\1</code>", text_html(text))


def _axis(watched: Watched, every: Every) -> Axis:
    """Return the windows from the first to the last that has data or an alarm."""
    numbers = [point.window.number for point in watched.points]
    numbers += [window.number for alarm in listed(watched.alarms) for window in (alarm.first, alarm.last)]
    return Axis(every, min(numbers), max(numbers))


def _telling(shown: Sequence[Column], alarm: Alarm | None) -> Column:
    """Return the column that is explained first: where the gravest alarm was raised, else the latest."""
    if alarm is not None:
        for column in shown:
            if column.first.number <= alarm.first.number <= column.last.number:
                return column
    return shown[-1]
