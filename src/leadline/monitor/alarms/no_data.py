"""No data: a window that was to be expected has no rows.

Windows are expected by the week before: an hour or a day that had rows then; any week and any month. Week-ends and
nights in which nothing ever comes are quiet so. Where the week before says nothing, as in the first one, a whole week
without rows is a gap.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise

from leadline.monitor.alarms.rules import Episode, History, Rule
from leadline.monitor.alarms.words import called
from leadline.monitor.windows import Every

_CYCLES = {"1h": 168, "1d": 7, "1w": 1, "1mo": 1}  # windows after which the pattern repeats
_PATIENCE = timedelta(days=1)  # after the end of a window, or as long as the window itself, if that is shorter


def _episodes(history: History, rule: Rule) -> Iterator[Episode]:
    every = Every.parse(history.series.every)
    cycle = _CYCLES.get(every.name)
    if cycle is None or not history.windows:
        return
    present = [window.number for window in history.windows if window.start <= history.now]
    known = set(present)
    due = _last_due(history, every, present[-1]) if present else None
    ends = [*present, *([] if due is None else [due + 1])]
    for before, after in pairwise(ends):
        gap = range(before + 1, after)
        missing = next((number for number in gap if number - cycle in known or number - before >= cycle), None)
        if missing is None:
            continue
        closed = any(reset >= missing for reset in history.resets.get(rule.name, ()))
        is_open = due is not None and after > due and not closed
        reason = _reason(*(called(every.name, every.window(number)) for number in (missing, after - 1, before)))
        yield Episode(rule.name, missing, after - 1, is_open, rule.harmful, reason)


def _last_due(history: History, every: Every, latest: int) -> int | None:
    """Return the last window whose rows should be there by now; None where none is due after the latest with rows."""
    due = None
    number = latest + 1
    while True:
        window = every.window(number)
        if window.end + min(window.end - window.start, _PATIENCE) > history.now:
            return due
        due, number = number, number + 1


def _reason(first: str, last: str, before: str) -> str:
    """Return what is missing, and when rows came last."""
    missing = f"for {first}" if first == last else f"from {first} to {last}"
    return f"No rows came {missing}, where rows were to be expected; the last before came for {before}."


RULE = Rule(
    "no-data",
    promise="It is raised when a window has no rows though the same hour or day of the week before had some, or when "
    "nothing has come for a week; one window, at most a day, after it ended, and once for the whole gap.",
    harmful=True,
    episodes=_episodes,
)
