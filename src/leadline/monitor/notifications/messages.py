"""What is told of an alarm: a plain dict that JSON can hold, and the same in words.

=============  =========================================================================================================
Field          What it says
=============  =========================================================================================================
version        Of this table: 1. Fields may be added to a version; a field that changes its meaning makes a new one.
event          ``raised``, ``acknowledged``, ``closed``, or ``test`` for a message that only tries a channel.
at             When that happened.
series         The name of what is watched.
alarm          The number of the alarm in the store. With ``event`` and ``at`` it tells a message that comes twice.
rule           The rule that raised it: ``changed``, ``estimated-fall``, ``fall``, ``floor`` or ``no-data``.
state          ``open``, ``acknowledged`` or ``closed``.
harmful        Whether it is more than information.
first, last    The windows at which it was raised and until which it has held: objects with ``start`` and ``end``.
raised_at      When it was raised.
closed_at      When it was closed, or null.
reason         In words: what happened, since when, and what pulls the accuracy down.
segments       Those concerned, as objects by column: the first 50 of them.
n_segments     How many are concerned; 0 where it is all rows together.
evidence       The value of the detector, or null.
note           What the person said who acknowledged or closed it.
page           A link to the page of the monitor, or null.
=============  =========================================================================================================

Times are in UTC, as in ``2026-03-02T00:00:00+00:00``. Of a test, what an alarm has is null or empty. Texts are free of
control characters and of bounded length.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from leadline.data.names import one_line
from leadline.monitor.notifications.kinds.settings import refuse, split_url
from leadline.monitor.records import Alarm, Window
from leadline.monitor.windows import as_time
from leadline.results.render import plain

Event = Literal["raised", "acknowledged", "closed"]

VERSION = 1
_MOST_SEGMENTS = 50  # in a message
_MOST_SHOWN = 10  # in words
_MOST_NAME = 120
_MOST_TEXT = 2000
_MOST_LINES = 40


def of_alarm(alarm: Alarm, event: Event, at: datetime, *, page: str | None = None) -> dict[str, Any]:
    """Return the message about an alarm.

    Parameters
    ----------
    alarm
        As it is after the event.
    event
        What happened to it.
    at
        When.
    page
        A link to the page of the monitor.
    """
    return {
        "version": VERSION,
        "event": event,
        "at": _time(at),
        "series": one_line(alarm.series, _MOST_NAME),
        "alarm": alarm.number,
        "rule": alarm.rule,
        "state": alarm.state.value,
        "harmful": alarm.harmful,
        "first": _window(alarm.first),
        "last": _window(alarm.last),
        "raised_at": _time(alarm.raised_at),
        "closed_at": None if alarm.closed_at is None else _time(alarm.closed_at),
        "reason": _lines(alarm.reason),
        "segments": [_segment(segment) for segment in alarm.segments[:_MOST_SEGMENTS]],
        "n_segments": len(alarm.segments),
        "evidence": plain(alarm.evidence),
        "note": _lines(alarm.note),
        "page": _link(page),
    }


def of_test(series: str | None, at: datetime, *, page: str | None = None) -> dict[str, Any]:
    """Return the message that tries a channel of a series, or of all."""
    return {
        "version": VERSION,
        "event": "test",
        "at": _time(at),
        "series": one_line(series or "all series", _MOST_NAME),
        **dict.fromkeys(("alarm", "rule", "state", "harmful", "first", "last", "raised_at", "closed_at")),
        "reason": "This only tries whether alarms of Leadline's monitor arrive here.",
        "segments": [],
        "n_segments": 0,
        "evidence": None,
        "note": "",
        "page": _link(page),
    }


def headline(message: Mapping[str, Any]) -> str:
    """Return a message in one line."""
    if message["event"] == "test":
        return f"Test message: {message['series']}"
    what = "Alarm" if message["harmful"] else "Notice"
    return f"{what} {message['event']}: {message['series']}, {message['rule'].replace('-', ' ')}"


def as_text(message: Mapping[str, Any]) -> str:
    """Return a message as plain text of several lines."""
    lines = [headline(message), message["reason"]]
    if message["segments"]:
        shown = [", ".join(f"{key}={value}" for key, value in one.items()) for one in message["segments"][:_MOST_SHOWN]]
        more = message["n_segments"] - len(shown)
        lines.append(f"Segments: {'; '.join(shown)}{f'; and {more} more' if more else ''}")
    if message["first"]:
        since, until = _minutes(message["first"]["start"]), _minutes(message["last"]["end"])
        lines.append(f"From {since} to {until} UTC; alarm {message['alarm']} is {message['state']}.")
    if message["note"]:
        lines.append(f"Note: {message['note']}")
    if message["page"]:
        lines.append(message["page"])
    return "\n".join(lines) + "\n"


def _window(window: Window) -> dict[str, str]:
    return {"start": _time(window.start), "end": _time(window.end)}


def _segment(segment: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a segment; texts among them, and names, are cut to a readable length."""
    return {
        one_line(key, _MOST_NAME): one_line(value, _MOST_NAME) if isinstance(value, str) else value
        for key, value in plain(segment).items()
    }


def _time(time: datetime) -> str:
    return as_time(time).isoformat(timespec="seconds")


def _minutes(time: str) -> str:
    return time[:16].replace("T", " ")


def _lines(text: str) -> str:
    """Return a text of several lines without control characters, and of bounded length."""
    lines = [one_line(line, _MOST_TEXT) for line in text.splitlines()[:_MOST_LINES]]
    whole = "\n".join(filter(None, lines))
    return whole if len(whole) <= _MOST_TEXT else f"{whole[: _MOST_TEXT - 3]}..."


def _link(page: str | None) -> str | None:
    """Return a link that readers of mail and messages take for one, whole."""
    if page is not None:
        parts = split_url(page)
        if parts is None or "@" in parts.netloc or set(page) & set('<>|"'):
            raise refuse("page", "a link with http or https, without a password", page)
    return page
