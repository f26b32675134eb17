"""Accuracy over time, drawn as SVG that is as wide as the screen: shapes stretch, words and marks do not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from leadline.monitor.page.columns import Column, runs
from leadline.monitor.page.times import Axis, Naming
from leadline.monitor.page.words import estimate_words, rule_words
from leadline.monitor.records import Alarm, AlarmState, Realised, Series
from leadline.results.pages import text_html
from leadline.results.render import percent

_HEIGHT = 1000  # units of the stretched shapes from bottom to top
_MOST_DOTS = 90  # columns that have room for a dot each
_MOST_ON_PHONE = 24
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2)
_CUT_OFF = 0.05  # share of the intervals whose ends may lie outside the picture
_MOST_LANES = 4
_LABEL_ROOM = 0.12  # share of the width that the number of an alarm needs, on a phone

#: Patterns and marks that all pictures of the page use.
DEFINITIONS = (
    '<svg class="definitions" width="0" height="0" aria-hidden="true"><defs>'
    '<pattern id="hatch" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<path d="M0 0V7" class="hatch"/></pattern>'
    '<path id="diamond" d="M0-5.5 5.5 0 0 5.5-5.5 0z"/><path id="small" d="M0-2.6 2.6 0 0 2.6-2.6 0z"/>'
    '<path id="cross" d="M-4-4 4 4M-4 4 4-4"/><path id="up" d="M0-6 6 5H-6z"/><path id="dot" d="M-5-5H5V5H-5z"/>'
    "</defs></svg>"
)


@dataclass(frozen=True)
class Scale:
    """Accuracies from the bottom to the top of a picture.

    Attributes
    ----------
    low, high
        What bottom and top stand for.
    step
        How far the ticks are apart.
    """

    low: float
    high: float
    step: float

    @classmethod
    def holding(cls, series: Series, columns: Sequence[Column]) -> Scale:
        """Return the scale for estimates and labels; a few very wide intervals are cut off."""
        values = [series.reference, series.reference - series.tolerance]
        values += [] if series.floor is None else [series.floor]
        values += [column.accuracy for column in columns]
        values += [column.realised.accuracy for column in columns if column.realised is not None]
        intervals = [column.interval for column in columns]
        intervals += [column.realised.interval for column in columns if column.realised is not None]
        if intervals:
            lows, highs = np.array(intervals).T
            values.append(float(np.quantile(lows, _CUT_OFF, method="lower")))
            values.append(float(np.quantile(highs, 1 - _CUT_OFF, method="higher")))
        low, high = min(values), max(values)
        step = next((step for step in _STEPS if (high - low) / step <= 5), _STEPS[-1])
        # A line at the very bottom would be taken for the edge of the picture.
        low, high = math.floor(low / step - 0.2) * step, math.ceil(high / step - 1e-9) * step
        return cls(max(low, 0.0), max(min(high, 1.0), low + step), step)

    def share(self, accuracy: float) -> float:
        """Return how far below the top an accuracy stands, from 0 to 1."""
        return min(max((self.high - accuracy) / (self.high - self.low), 0.0), 1.0)

    def percent(self, accuracy: float) -> str:
        """Return the same as a percentage of the height."""
        return f"{100 * self.share(accuracy):.2f}%"

    def units(self, accuracy: float) -> int:
        """Return the same in units of stretched shapes."""
        return round(_HEIGHT * self.share(accuracy))

    def ticks(self) -> list[float]:
        """Return the accuracies that are written beside the picture."""
        return [float(value) for value in np.arange(self.low, self.high + self.step / 2, self.step)]


@dataclass(frozen=True)
class Chart:
    """Accuracy over time.

    Attributes
    ----------
    series
        Of what.
    columns
        By place; what is not there has no data.
    axis, step
        The windows along the picture, and how many a column stands for.
    scale
        From bottom to top.
    naming
        What windows are called.
    """

    series: Series
    columns: Mapping[int, Column]
    axis: Axis
    step: int
    scale: Scale
    naming: Naming

    @property
    def width(self) -> int:
        """How many columns there is room for."""
        return math.ceil(self.axis.span / self.step)

    def full(self, alarms: Sequence[Alarm], prefix: str) -> str:
        """Return the whole chart: a column is a link to its explanation, an alarm to its line in the table."""
        marked, lanes = self._alarms(alarms, prefix)
        dense = " dense" if self.width > _MOST_ON_PHONE else ""
        dense += " crowded" if self.width > _MOST_DOTS else ""
        first, last = self.naming.window(self._outer[0].first), self.naming.window(self._outer[1].last)
        label = text_html(
            f"Estimated accuracy of {self.series.name}, {first} to {last}; the table below has the numbers"
        )
        return (
            f'<div class="plot" style="--lanes:{lanes}"><svg class="chart{dense}" role="group" aria-label="{label}">'
            f"{self._grid()}{self._gaps()}{self._shapes()}{self._dots()}{marked}"
            f'<rect class="cursor" y="100%" height="3" width="0"/>{self._links(prefix)}</svg></div>'
        )

    def small(self, name: str) -> str:
        """Return a small picture without links, and the latest number in words."""
        latest = self._outer[1]
        said = f"{name}: {estimate_words(latest.accuracy, latest.interval)} in {self.naming.window(latest.last)}"
        return (
            f'<svg class="small" role="img" aria-label="{text_html(said)}"><title>{text_html(said)}</title>'
            f"{self._references()}{self._gaps()}{self._shapes()}{self._dots(small=True)}</svg>"
        )

    @property
    def _outer(self) -> tuple[Column, Column]:
        return self.columns[min(self.columns)], self.columns[max(self.columns)]

    def _across(self, place: float) -> str:
        return f"{100 * place / self.width:.2f}%"

    def _grid(self) -> str:
        """Return ticks with their words, and the lines that accuracies are compared with."""
        parts = []
        for value in self.scale.ticks():
            y = self.scale.percent(value)
            parts.append(f'<line class="grid" x2="100%" y1="{y}" y2="{y}"/>')
            parts.append(f'<text class="tick" x="-8" y="{y}" dy=".35em" text-anchor="end">{100 * value:.0f} %</text>')
        parts += [
            f'<line class="grid faint" x1="{100 * x:.2f}%" x2="{100 * x:.2f}%" y2="100%"/>'
            for x, _ in self.axis.ticks()
        ]
        parts.append(time_ticks(self.axis, 'y="100%" dy="1.6em"'))
        return "".join(parts) + self._references()

    def _references(self) -> str:
        lines = {"source": self.series.reference, "tolerance": self.series.reference - self.series.tolerance}
        if self.series.floor is not None:
            lines["floor"] = self.series.floor
        return "".join(
            f'<line class="{kind}" x2="100%" y1="{(y := self.scale.percent(value))}" y2="{y}"/>'
            for kind, value in lines.items()
        )

    def _gaps(self) -> str:
        """Return hatched places where no data came."""
        empty = [place for place in range(self.width) if place not in self.columns]
        parts = []
        for run in runs(empty):
            x, width = self._across(run[0]), self._across(len(run))
            parts.append(f'<rect class="gap" x="{x}" width="{width}" height="100%"><title>no data</title></rect>')
        return "".join(parts)

    def _shapes(self) -> str:
        """Return the band of the intervals and the line of the estimates, broken where no data came."""
        band, line, bars = [], [], []
        for run in runs(sorted(self.columns)):
            # A window on its own has no neighbour to draw a line to.
            places = [(place + 0.5, self.columns[place]) for place in run]
            if len(run) == 1:
                (middle, column), half = places[0], min(0.3, 0.05 * self.width)
                places = [(middle - half, column), (middle + half, column)]
            tops = [f"{x:g} {self.scale.units(column.interval[1])}" for x, column in places]
            bottoms = [f"{x:g} {self.scale.units(column.interval[0])}" for x, column in reversed(places)]
            band.append(f"M{'L'.join(tops + bottoms)}z")
            line.append("M" + "L".join(f"{x:g} {self.scale.units(column.accuracy)}" for x, column in places))
        for place, _, found in self._realised():
            low, high = (self.scale.units(end) for end in found.interval)
            bars.append(f"M{place + 0.5:g} {low}V{high}")
        return (
            f'<svg viewBox="0 0 {self.width} {_HEIGHT}" preserveAspectRatio="none" width="100%" height="100%">'
            f'<path class="band" d="{"".join(band)}"/><path class="bars" d="{"".join(bars)}"/>'
            f'<path class="line" d="{"".join(line)}"/></svg>'
        )

    def _realised(self) -> list[tuple[int, Column, Realised]]:
        found = [(place, column, column.realised) for place, column in self.columns.items()]
        return [(place, column, realised) for place, column, realised in found if realised is not None]

    def _dots(self, *, small: bool = False) -> str:
        """Return a dot for each estimate where there is room, and a mark for what labels say."""
        parts = []
        few = self.width <= (_MOST_ON_PHONE if small else _MOST_DOTS)
        if few:
            for place, column in self.columns.items():
                x, y = self._across(place + 0.5), self.scale.percent(column.accuracy)
                parts.append(f'<circle class="dot" cx="{x}" cy="{y}" r="3"/>')
        for place, _, found in self._realised():
            mark, kind = (
                ("cross", "unsure")
                if found.sample == "unknown"
                else ("diamond" if few and not small else "small", "true")
            )
            x, y = self._across(place + 0.5), self.scale.percent(found.accuracy)
            parts.append(f'<use class="{kind}" href="#{mark}" x="{x}" y="{y}"/>')
        return "".join(parts)

    def _alarms(self, alarms: Sequence[Alarm], prefix: str) -> tuple[str, int]:
        """Return the alarms above the picture, in lanes so that none covers another, and the number of lanes."""
        ends: list[float] = []
        parts = []
        for alarm in sorted(alarms, key=lambda alarm: alarm.first.number):
            start, end = (
                (window.number - self.axis.first + offset) / self.step
                for window, offset in ((alarm.first, 0), (alarm.last, 1))
            )
            lane = next((lane for lane, taken in enumerate(ends) if taken <= start), len(ends))
            if lane == len(ends) and lane < _MOST_LANES:
                ends.append(0.0)
            lane = min(lane, _MOST_LANES - 1)
            ends[lane] = max(end, start + _LABEL_ROOM * self.width)
            # The number of one that begins at the right edge stands to its left.
            late = start > (1 - _LABEL_ROOM) * self.width
            parts.append(self._alarm(alarm, (start, end), lane, prefix, late))
        return "".join(parts), len(ends)

    def _alarm(self, alarm: Alarm, ends: tuple[float, float], lane: int, prefix: str, late: bool) -> str:
        left, right = (self._across(end) for end in ends)
        y = -14 - 18 * lane
        kind = f"alarm {'harm' if alarm.harmful else 'note'} {alarm.state.value}"
        named = text_html(
            f"Alarm {alarm.number}, {alarm.state.value}: {rule_words(alarm.rule)}, "
            f"{self.naming.stretch(alarm.first, alarm.last)}"
        )
        beside = 'dx="-11" text-anchor="end"' if late else 'dx="11"'
        return (
            f'<a class="{kind}" href="#{prefix}a{alarm.number}" aria-label="{named}"><title>{named}</title>'
            f'<line x1="{left}" x2="{left}" y1="{y}" y2="100%"/><line x1="{left}" x2="{right}" y1="{y}" y2="{y}"/>'
            f'<use href="#{"up" if alarm.harmful else "dot"}" x="{left}" y="{y}"/>'
            f'<text x="{left}" y="{y}" dy="-.3em" {beside}>{alarm.number:,}</text></a>'
        )

    def _links(self, prefix: str) -> str:
        """Return an unseen strip over each column that leads to its explanation."""
        parts = []
        width = self._across(1)
        for place, column in sorted(self.columns.items()):
            said = f"{self.naming.stretch(column.first, column.last)}: {percent(column.accuracy)}"
            parts.append(
                f'<a href="#{prefix}w{column.first.number}" class="hit" aria-label="{text_html(said)}">'
                f'<rect x="{self._across(place)}" width="{width}" height="100%"/></a>'
            )
        return "".join(parts)


def time_ticks(axis: Axis, place: str) -> str:
    """Return the words below a picture; on a phone, every other one has room.

    Parameters
    ----------
    axis
        The windows along the picture.
    place
        The attributes of each that say how far down it stands.
    """
    return "".join(
        f'<text class="tick{" minor" if number % 2 else ""}" x="{100 * share:.2f}%" {place} '
        f'text-anchor="{"end" if share > 0.94 else "middle"}">{text_html(text)}</text>'
        for number, (share, text) in enumerate(axis.ticks())
    )


def legend(series: Series, chart: Chart, alarms: Sequence[Alarm]) -> str:
    """Return what the shapes of a chart stand for, those only that it has."""
    level = f"{100 * series.confidence_level:g} %"
    line = '<line class="{}" x2="100%" y1="50%" y2="50%"/>'
    items = [
        (line.format("line") + '<circle class="dot" cx="50%" cy="50%" r="3"/>', "estimated accuracy"),
        ('<rect class="band" width="100%" height="100%"/>', f"its {level} interval"),
    ]
    found = [column.realised for column in chart.columns.values() if column.realised is not None]
    bars = '<path class="bars" d="M14 0V16"/>'
    if any(one.sample != "unknown" for one in found):
        items.append((bars + '<use class="true" href="#diamond" x="50%" y="50%"/>', "by labels, with its interval"))
    if any(one.sample == "unknown" for one in found):
        items.append(
            (bars + '<use class="unsure" href="#cross" x="50%" y="50%"/>', "by labels that may be no random sample")
        )
    items.append((line.format("source"), f"on the source, {percent(series.reference)}"))
    tolerated = percent(series.reference - series.tolerance)
    items.append((line.format("tolerance"), f"tolerated, {tolerated}"))
    if series.floor is not None:
        items.append((line.format("floor"), f"floor, {percent(series.floor)}"))
    if len(chart.columns) < chart.width:
        items.append(('<rect class="gap" width="100%" height="100%"/>', "no data"))
    for harmful, mark, kind, words in ((True, "up", "harm", "alarm"), (False, "dot", "note", "information")):
        states = {alarm.state for alarm in alarms if alarm.harmful is harmful}
        for names, state in (
            ({AlarmState.OPEN}, "open"),
            ({AlarmState.ACKNOWLEDGED, AlarmState.CLOSED}, "closed"),
        ):
            if states & names:
                used = f'<g class="alarm {kind} {state}"><use href="#{mark}" x="50%" y="50%"/></g>'
                after = "" if state == "open" else ", acknowledged or closed"
                items.append((used, words + after))
    drawn = "".join(f"<li><svg>{shape}</svg>{text_html(words)}</li>" for shape, words in items)
    return f'<ul class="legend">{drawn}</ul>'
