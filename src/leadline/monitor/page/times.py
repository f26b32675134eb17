"""Windows on a page: what to call them, and where along a picture they stand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from leadline.monitor.records import Window
from leadline.monitor.windows import Every

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_MOST_TICKS = 8
_MOST_SEARCHED = 20_000  # windows among which calendar ticks are looked for


@dataclass(frozen=True)
class Naming:
    """What windows are called.

    Attributes
    ----------
    every
        How long they are.
    year
        Times of this year are named without it.

    Examples
    --------
    >>> from leadline.monitor.windows import Every
    >>> days = Every("1d")
    >>> Naming(days, 2026).window(days.window(20515)), Naming(days, 2025).since(days.window(20515))
    ('3 March', '3 March 2026')
    """

    every: Every
    year: int

    def window(self, window: Window) -> str:
        """Return what to call a window."""
        if self.every.n_rows is not None:
            return f"window {window.number:,} ({self.day(window.start)})"
        if self.every.name == "1h":
            return f"{self.day(window.start)}, {window.start:%H:%M}"
        if self.every.name == "1mo":
            return self._with_year(_MONTHS[window.start.month - 1], window.start)
        return f"week of {self.day(window.start)}" if self.every.name == "1w" else self.day(window.start)

    def since(self, window: Window) -> str:
        """Return a window as the time since when something is so."""
        return self.day(window.start) if self.every.name == "1w" else self.window(window)

    def stretch(self, first: Window, last: Window) -> str:
        """Return what to call all windows from one to another."""
        if first.number == last.number:
            return self.window(first)
        return f"{self.window(first)} to {self.window(last)}"

    def count(self, number: int) -> str:
        """Return a number of windows in words."""
        unit = {"1h": "hour", "1d": "day", "1w": "week", "1mo": "month"}.get(self.every.name, "window")
        return f"{number:,} {unit}{'' if number == 1 else 's'}"

    def day(self, time: datetime) -> str:
        """Return the day of a time."""
        return self._with_year(f"{time.day} {_MONTHS[time.month - 1]}", time)

    def _with_year(self, text: str, time: datetime) -> str:
        return text if time.year == self.year else f"{text} {time.year}"


@dataclass(frozen=True)
class Axis:
    """Windows from left to right, all equally wide: those without data have their room too.

    Attributes
    ----------
    every
        How long they are.
    first, last
        Numbers of the outermost windows.
    """

    every: Every
    first: int
    last: int

    @property
    def span(self) -> int:
        """How many windows there are, with those without data."""
        return self.last - self.first + 1

    def step(self, most: int) -> int:
        """Return how many neighbouring windows are drawn as one so that there are no more than ``most`` of them."""
        return math.ceil(self.span / most)

    def ticks(self) -> list[tuple[float, str]]:
        """Return a few places, as shares of the width, and what to write there."""
        if self.every.n_rows is None and self.span <= _MOST_SEARCHED:
            starts = [self.every.window(number).start for number in range(self.first, self.last + 1)]
            for chosen in _calendar(starts):
                if 2 <= len(chosen) <= _MOST_TICKS:
                    return [(place / self.span, text) for place, text in chosen]
        stride = max(1, math.ceil(self.span / (_MOST_TICKS - 2)))
        return [((place + 0.5) / self.span, self._number(self.first + place)) for place in range(0, self.span, stride)]

    def _number(self, number: int) -> str:
        """Return the label of a window that stands at no boundary of the calendar."""
        if self.every.n_rows is not None:
            return f"{number:,}"
        start = self.every.window(number).start
        hours = f" {start:%H:%M}" if self.every.name == "1h" else ""
        return f"{start.day} {_MONTHS[start.month - 1][:3]}{hours}"


def _calendar(starts: Sequence[datetime]) -> list[list[tuple[int, str]]]:
    """Return the places of hours, days, weeks, months and years among the starts of windows, the finest first."""
    kinds: list[list[tuple[int, str]]] = [[] for _ in range(9)]
    for place, start in enumerate(starts):
        month = _MONTHS[start.month - 1][:3]
        midnight = start.hour == 0
        hour = f"{start.day} {month}" if midnight else f"{start:%H:%M}"
        if start.hour % 3 == 0:
            kinds[0].append((place, hour))
        if start.hour % 12 == 0:
            kinds[1].append((place, hour))
        if not midnight:
            continue
        day, first = f"{start.day} {month}", start.day == 1
        kinds[2].append((place, day))
        if start.weekday() == 0:
            kinds[3].append((place, day))
        if start.day in (1, 15):
            kinds[4].append((place, day))
        if first:
            named = f"{start.year}" if start.month == 1 else month
            kinds[5].append((place, named))
            if start.month % 3 == 1:
                kinds[6].append((place, named))
            if start.month in (1, 7):
                kinds[7].append((place, named))
            if start.month == 1:
                kinds[8].append((place, named))
    return kinds
