"""What the store knows, as records."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from leadline.monitor import catalogue
from leadline.monitor.blobs import unpack
from leadline.monitor.catalogue import ALL_ROWS
from leadline.monitor.records import Alarm, AlarmState, Point, Realised, Series, Window
from leadline.monitor.schema import ALARMS, CELLS, WINDOWS
from leadline.monitor.windows import Every, from_microseconds
from leadline.results.estimate import ClassEstimate
from leadline.results.shift import ShiftKind


def read_points(connection: Connection, entry: catalogue.Entry, *, segments: bool) -> list[Point]:
    """Return the points of a series in the order of time: of all rows, and of the segments if these are wanted."""
    known = catalogue.known_segments(connection, entry.id)
    values = catalogue.segment_values(known.items())
    whole = known.get(ALL_ROWS)
    chosen = sa.select(CELLS, WINDOWS.c.number, WINDOWS.c.starts, WINDOWS.c.ends, WINDOWS.c.words).join(
        WINDOWS, WINDOWS.c.id == CELLS.c.window_id
    )
    chosen = chosen.where(WINDOWS.c.series == entry.id, CELLS.c.accuracy.is_not(None))
    if not segments:
        chosen = chosen.where(CELLS.c.segment == whole)
    rows = connection.execute(chosen.order_by(WINDOWS.c.number, CELLS.c.segment))
    return [_point(row, values[row.segment], entry.series, is_whole=row.segment == whole) for row in rows]


def _point(row: Any, values: tuple[Any, ...], series: Series, *, is_whole: bool) -> Point:
    """Return a row of the table of cells."""
    realised = None
    if row.realised is not None:
        interval = (row.realised_low, row.realised_high)
        realised = Realised(row.realised, interval, row.labelled, row.n_rows, row.chosen)
    return Point(
        window=Window(row.number, from_microseconds(row.starts), from_microseconds(row.ends)),
        segment={} if is_whole else dict(zip(series.by, values, strict=True)),
        n_rows=row.n_rows,
        accuracy=row.accuracy,
        interval=(row.low, row.high),
        by_class=_by_class(row.by_class, series.classes),
        shift=None if row.shift is None else ShiftKind(row.shift),
        distance=np.nan if row.distance is None else row.distance,
        noise=np.nan if row.noise is None else row.noise,
        realised=realised,
        words=(row.words or "") if is_whole else "",
    )


def _by_class(data: bytes | None, classes: Sequence[str | int]) -> tuple[ClassEstimate, ...]:
    """Return what was estimated per predicted class; nothing for segments."""
    if data is None:
        return ()
    arrays = unpack(data)
    return tuple(
        ClassEstimate(label, int(count), None if np.isnan(accuracy) else float(accuracy))
        for label, count, accuracy in zip(classes, arrays["count"], arrays["accuracy"], strict=True)
    )


def read_alarms(connection: Connection, entry: catalogue.Entry) -> list[Alarm]:
    """Return the alarms of a series, the latest first."""
    rows = connection.execute(
        sa.select(ALARMS).where(ALARMS.c.series == entry.id).order_by(ALARMS.c.first.desc(), ALARMS.c.id.desc())
    ).all()
    known = _windows(connection, entry)
    return [_alarm(row, entry.series, known) for row in rows]


def _windows(connection: Connection, entry: catalogue.Entry) -> Mapping[int, Window]:
    """Return the windows of a series by their numbers."""
    rows = connection.execute(
        sa.select(WINDOWS.c.number, WINDOWS.c.starts, WINDOWS.c.ends).where(WINDOWS.c.series == entry.id)
    )
    return {row.number: Window(row.number, from_microseconds(row.starts), from_microseconds(row.ends)) for row in rows}


def read_windows(connection: Connection, entry: catalogue.Entry) -> list[Window]:
    """Return the windows of a series in the order of time."""
    return sorted(_windows(connection, entry).values())


def _alarm(row: Any, series: Series, known: Mapping[int, Window]) -> Alarm:
    """Return a row of the table of alarms."""
    every = Every.parse(series.every)

    def window(number: int) -> Window:
        return known[number] if number in known or every.n_rows is not None else every.window(number)

    return Alarm(
        number=row.id,
        series=series.name,
        rule=row.rule,
        state=AlarmState(row.state),
        harmful=bool(row.harmful),
        first=window(row.first),
        last=window(row.last),
        raised_at=from_microseconds(row.raised_at),
        closed_at=None if row.closed_at is None else from_microseconds(row.closed_at),
        reason=row.reason,
        segments=tuple(json.loads(row.segments)),
        evidence=row.evidence,
        note=row.note,
    )
