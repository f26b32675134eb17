"""The alarms of a series as a table: what each says, why, since when, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence

from leadline.monitor.page.columns import segment_name
from leadline.monitor.page.times import Naming
from leadline.monitor.page.words import rule_words
from leadline.monitor.records import Alarm, AlarmState
from leadline.results.markup import Markup, html_table
from leadline.results.pages import text_html

#: Alarms in the table: those that are not closed, and as many of the latest.
MOST_ALARMS = 50
_MOST_EVIDENCE = 1_000_000  # that is told apart
_MOST_SEGMENTS = 10
_ORDER = (AlarmState.OPEN, AlarmState.ACKNOWLEDGED, AlarmState.CLOSED)


def listed(alarms: Sequence[Alarm]) -> list[Alarm]:
    """Return the alarms that a page shows: open ones first, each kind the latest first."""
    ordered = sorted(alarms, key=lambda alarm: (_ORDER.index(alarm.state), -alarm.first.number, -alarm.number))
    live = sum(alarm.state is not AlarmState.CLOSED for alarm in ordered)
    return ordered[: max(MOST_ALARMS, live)]


def alarms_html(alarms: Sequence[Alarm], naming: Naming, prefix: str) -> str:
    """Return the alarms as HTML."""
    if not alarms:
        return '<h3>Alarms</h3><p class="quiet">None has been raised.</p>'
    shown = listed(alarms)
    rows = [[_cell(text) for text in _row(alarm, naming)] for alarm in shown]
    for alarm, row in zip(shown, rows, strict=True):
        row[0] = Markup(f'<span id="{prefix}a{alarm.number}">{row[0]}</span>')
    header = ["alarm", "state", "since", "until", "reason"]
    table = f'<div class="table">{html_table(header, rows, left=range(5), kind="wide alarms")}</div>'
    left_out = len(alarms) - len(shown)
    more = f'<p class="quiet">{left_out:,} older ones are not shown.</p>' if left_out else ""
    return f"<h3>Alarms</h3>{table}{more}"


def _row(alarm: Alarm, naming: Naming) -> list[list[str]]:
    """Return the cells of an alarm, each as its paragraphs."""
    sign = "▲" if alarm.harmful else "■"
    hollow = {"▲": "△", "■": "□"}
    live = alarm.state is AlarmState.OPEN
    state = [f"{sign if live else hollow[sign]} {alarm.state.value}"]
    if alarm.closed_at is not None:
        state.append(f"on {naming.day(alarm.closed_at)}")
    reason = [alarm.reason]
    if alarm.segments:
        names = [segment_name(segment.values()) for segment in alarm.segments]
        more = f" and {len(names) - _MOST_SEGMENTS:,} more" if len(names) > _MOST_SEGMENTS else ""
        reason.append(f"Segments: {'; '.join(names[:_MOST_SEGMENTS])}{more}.")
    if alarm.evidence is not None:
        much = f"{alarm.evidence:,.0f}" if alarm.evidence < _MOST_EVIDENCE else f"over {_MOST_EVIDENCE:,}"
        reason.append(f"The detector, which adds up evidence from window to window, stood at {much} at most.")
    if alarm.note:
        reason.append(f"Note: {alarm.note}")
    what = f"{alarm.number:,}: {rule_words(alarm.rule)}{'' if alarm.harmful else ' (information)'}"
    return [[what], state, [naming.window(alarm.first)], [naming.window(alarm.last)], reason]


def _cell(paragraphs: Sequence[str]) -> Markup:
    return Markup("<br>".join(text_html(text) for text in paragraphs if text))
