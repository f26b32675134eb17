"""Segments over time: a small chart each where they are few, a heat map where they are many, and a table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

from leadline.monitor.page.chart import Chart, Scale, time_ticks
from leadline.monitor.page.columns import Column, columns_of, pull_on, segment_name
from leadline.monitor.page.times import Axis, Naming
from leadline.monitor.records import Point, Series, Watched
from leadline.results.pages import table_html, text_html
from leadline.results.render import Cell, Table, interval, percent

#: Segments that are shown; of more, those that pull the accuracy down most.
MOST_SEGMENTS = 100
#: Lines of a table that are printed; of a longer one, none is.
MOST_PRINTED = 40
_MOST_CHARTS = 12
_CHART_COLUMNS = 120  # windows or groups of them along a small chart, and along a heat map
_FALLS = (0.05, 0.1, 0.2)  # where the shades of a heat map change, beyond the tolerance


@dataclass(frozen=True, eq=False)
class Segment:
    """One segment over time.

    Attributes
    ----------
    name
        What to call it.
    points
        Its windows, in the order of time.
    pull
        How far it pulls the accuracy of the latest window; None where it has no rows there.
    """

    name: str
    points: tuple[Point, ...]
    pull: float | None


def segments_of(watched: Watched) -> list[Segment]:
    """Return the segments with data, those first that pull the accuracy of the latest window down most."""
    if not watched.points:
        return []
    latest = watched.points[-1]
    found = []
    for values, points in watched.segments.items():
        if points:
            here = points[-1].window.number == latest.window.number
            pulls = pull_on(latest, points[-1].accuracy, points[-1].n_rows) if here else None
            found.append(Segment(segment_name(values), points, pulls))
    return sorted(found, key=lambda one: (one.pull is None, one.pull or 0.0))


def segments_html(watched: Watched, axis: Axis, naming: Naming) -> str:
    """Return the segments of a series as HTML; nothing where there are none."""
    found = segments_of(watched)
    if not found:
        return ""
    shown = found[:MOST_SEGMENTS]
    step = axis.step(_CHART_COLUMNS)
    left_out = f" {len(found) - len(shown):,} more are not shown." if len(found) > len(shown) else ""
    merged = "" if step == 1 else f" Each place along it is the mean of up to {naming.count(step)}."
    told = f"Those first that pull the accuracy of the latest window down most.{left_out}{merged}"
    by = ", ".join(watched.series.by)
    draw = _charts if len(shown) <= _MOST_CHARTS else _heat_map
    table = table_html(_table(watched, shown, naming), "h4")
    long = ' class="long"' if len(shown) > MOST_PRINTED else ""
    return (
        f"<h3>By {text_html(by)}: {len(found):,} segment{'' if len(found) == 1 else 's'}</h3>"
        f'<p class="quiet">{text_html(told)}</p>{draw(watched, shown, axis, naming)}'
        f"<details{long}><summary>The segments as a table</summary>{table}</details>"
    )


def _charts(watched: Watched, shown: Sequence[Segment], axis: Axis, naming: Naming) -> str:
    """Return a small chart of each segment, all of one scale."""
    series, step = watched.series, axis.step(_CHART_COLUMNS)
    columns = [columns_of(one.points, axis.first, step) for one in shown]
    scale = Scale.holding(series, [column for one in columns for column in one.values()])
    plain = Chart(series, {}, axis, step, scale, naming)
    parts = []
    for one, own in zip(shown, columns, strict=True):
        latest = one.points[-1]
        drawn = replace(plain, columns=own).small(one.name)
        parts.append(
            f"<figure><figcaption><b>{text_html(one.name)}</b> {percent(latest.accuracy)} "
            f"<small>{interval(latest.interval)}</small></figcaption>{drawn}</figure>"
        )
    ends = f"All from {100 * scale.low:.0f} to {100 * scale.high:.0f} %, over the same time as the chart above."
    return f'<div class="smalls">{"".join(parts)}</div><p class="quiet">{ends}</p>'


def _heat_map(watched: Watched, shown: Sequence[Segment], axis: Axis, naming: Naming) -> str:
    """Return a row of shaded cells for each segment; runs of one shade are one shape, which keeps the page light."""
    series, step = watched.series, axis.step(_CHART_COLUMNS)
    width = -(-axis.span // step)
    whole = columns_of(watched.points, axis.first, step)
    titles = {place: naming.stretch(column.first, column.last) for place, column in whole.items()}
    edges = [series.tolerance, *(fall for fall in _FALLS if fall > series.tolerance)]
    shapes: dict[int, list[str]] = {level: [] for level in range(len(edges) + 1)}
    surely: list[str] = []
    cells: list[list[object]] = []
    for row, one in enumerate(shown):
        columns = columns_of(one.points, axis.first, step)
        levels = [(place, _level(series, column, edges)) for place, column in columns.items()]
        for (level, _), members in groupby(enumerate(levels), key=lambda pair: (pair[1][1], pair[1][0] - pair[0])):
            run = [place for _, (place, _) in members]
            shapes[level].append(f"M{run[0]} {row}h{len(run)}v.88h-{len(run)}z")
        below = series.reference - series.tolerance
        surely += [f"M{place + 0.5} {row}.44h0" for place, column in columns.items() if column.interval[1] < below]
        cells.append([_numbers(columns.get(place)) for place in range(width)])
    paths = "".join(f'<path class="shade{level}" d="{"".join(parts)}"/>' for level, parts in shapes.items() if parts)
    names = "".join(f'<li title="{text_html(one.name)}">{text_html(one.name)}</li>' for one in shown)
    ticks = time_ticks(axis, 'y="1em"')
    data = json.dumps(
        {"titles": [titles.get(place, "") for place in range(width)], "cells": cells}, separators=(",", ":")
    )
    label = f"Accuracy of {len(shown)} segments over time: the darker a cell, the further below the source"
    return (
        f'<div class="heat" style="--rows:{len(shown)}"><ol>{names}</ol><div class="cells">'
        f'<svg viewBox="0 0 {width} {len(shown)}" preserveAspectRatio="none" role="img" aria-label="{label}">'
        f'{paths}<path class="surely" d="{"".join(surely)}"/><rect class="cell" width="0" height=".88"/></svg>'
        f'<svg class="ticks" aria-hidden="true">{ticks}</svg></div></div>'
        f'{_shades(series, edges)}<p class="readout quiet" aria-live="polite"></p>'
        f'<script type="application/json" class="heat-data">{_in_script(data)}</script>'
    )


def _level(series: Series, column: Column, edges: Sequence[float]) -> int:
    """Return how dark a cell is: how many edges its accuracy is further below the source's than."""
    return sum(series.reference - column.accuracy > edge for edge in edges)


def _numbers(column: Column | None) -> object:
    """Return a cell's accuracy, the ends of its interval, in tenths of a percent, and its rows; 0 for no rows."""
    if column is None:
        return 0
    return [*(round(1000 * value) for value in (column.accuracy, *column.interval)), column.n_rows]


def _shades(series: Series, edges: Sequence[float]) -> str:
    """Return what the shades stand for."""
    ends = [f"{100 * edge:g}" for edge in edges]
    words = [f"at most {ends[0]} points below the source's {percent(series.reference)}"]
    words += [f"{low} to {high} points" for low, high in pairwise(ends)]
    words.append(f"more than {ends[-1]} points")
    items = "".join(
        f'<li><svg><rect class="shade{level}" width="100%" height="100%"/></svg>{text_html(text)}</li>'
        for level, text in enumerate(words)
    )
    dot = '<svg><rect class="shade1" width="100%" height="100%"/><path class="surely" d="M14 8h0"/></svg>'
    items += f"<li>{dot}the whole interval is below what is tolerated</li><li>blank: no rows</li>"
    return f'<ul class="legend">{items}</ul>'


def _table(watched: Watched, shown: Sequence[Segment], naming: Naming) -> Table:
    """Return the latest window of each segment, and its lowest."""
    labelled = any(point.realised is not None for one in shown for point in one.points)
    rows: list[list[Cell | str]] = []
    for one in shown:
        latest = one.points[-1]
        lowest = min(one.points, key=lambda point: point.accuracy)
        row: list[Cell | str] = [
            one.name,
            Cell(percent(latest.accuracy), bar=latest.accuracy, interval=latest.interval),
            interval(latest.interval),
            f"{latest.n_rows:,}",
            naming.window(latest.window),
            "" if one.pull is None else f"{100 * one.pull:+.2f}",
            f"{percent(lowest.accuracy)}, {naming.window(lowest.window)}",
        ]
        if labelled:
            last = next((point.realised for point in reversed(one.points) if point.realised is not None), None)
            row.append("" if last is None else f"{percent(last.accuracy)}")
        rows.append(row)
    header = ["segment", "latest estimate", "interval", "rows", "window", "pulls by (points)", "lowest"]
    return Table([*header, *(["latest by labels"] if labelled else [])], rows, left=(0, 4, 6))


def _in_script(data: str) -> str:
    """Return JSON that cannot end the element it stands in."""
    return data.replace("<", "\\u003c")
