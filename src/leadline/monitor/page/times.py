"""Windows on a page: what to call them, and where along a picture they stand."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from leadline.monitor.records import Window
from leadline.monitor.windows import Every

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_LENGTHS = {"1h": "hour", "1d": "day", "1w": "week", "1mo": "month"}
# Which unit of the calendar a time is in: neighbours differ where a unit begins. The finest first.
_UNITS: dict[str, Callable[[datetime], object]] = {
    "3 hours": lambda start: (start.date(), start.hour // 3),
    "12 hours": lambda start: (start.date(), start.hour // 12),
    "day": lambda start: start.date(),
    "week": lambda start: start.isocalendar()[:2],
    "half of a month, by day": lambda start: (start.year, start.month, start.day >= 15),
    "month": lambda start: (start.year, start.month),
    "3 months": lambda start: (start.year, (start.month - 1) // 3),
    "6 months": lambda start: (start.year, (start.month - 1) // 6),
    "year": lambda start: start.year,
}
_FINEST = {"1h": "3 hours", "1d": "day", "1w": "week", "1mo": "month"}  # of windows that long
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
        return f"{number:,} {_LENGTHS.get(self.every.name, 'window')}{'' if number == 1 else 's'}"

    @property
    def length(self) -> str:
        """How long a window is, in words."""
        return _LENGTHS.get(self.every.name, self.every.name)

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
        if self.every.n_rows is None and _MOST_TICKS < self.span <= _MOST_SEARCHED:
            starts = [self.every.window(number).start for number in range(self.first, self.last + 1)]
            for chosen in _calendar(starts, self.every):
                if 2 <= len(chosen) <= _MOST_TICKS:
                    return [(place / self.span, text) for place, text in chosen]
        stride = math.ceil(self.span / _MOST_TICKS)
        return [((place + 0.5) / self.span, self._number(self.first + place)) for place in range(0, self.span, stride)]

    def _number(self, number: int) -> str:
        """Return the label of a window that stands at no boundary of the calendar."""
        if self.every.n_rows is not None:
            return f"{number:,}"
        start = self.every.window(number).start
        return f"{start:%H:%M}" if self.every.name == "1h" else _tick(start, _FINEST[self.every.name])


def _calendar(starts: Sequence[datetime], every: Every) -> list[list[tuple[int, str]]]:
    """Return the places where hours, days, weeks, months and years begin, each with its words, the finest first."""
    units = list(_UNITS.items())
    kinds = []
    for name, begun in units[next(number for number, (name, _) in enumerate(units) if name == _FINEST[every.name]) :]:
        numbers = [begun(start) for start in starts]
        places = [place for place in range(1, len(starts)) if numbers[place] != numbers[place - 1]]
        kinds.append([(place, _tick(starts[place], name)) for place in places])
    return kinds


def _tick(start: datetime, unit: str) -> str:
    """Return what to write where a unit of the calendar begins."""
    month = _MONTHS[start.month - 1][:3]
    if unit.endswith("hours") and start.hour:
        return f"{start:%H:%M}"
    if unit.endswith(("month", "months", "year")):
        return str(start.year) if start.month == 1 else month
    return f"{start.day} {month}"
