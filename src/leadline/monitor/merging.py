"""Coarser windows: what is kept of finer ones, merged and estimated; no row is looked at again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from leadline.errors import InputError
from leadline.estimators.base import Estimator
from leadline.estimators.kept import Kept, estimate_kept
from leadline.estimators.samples import Sample
from leadline.estimators.sums import Reduced
from leadline.labels.intervals import exact_interval
from leadline.monitor import catalogue, reading
from leadline.monitor.adding import NO_SEGMENT, sample_rows
from leadline.monitor.blobs import unpack_sample, unpack_sums
from leadline.monitor.catalogue import ALL_ROWS
from leadline.monitor.records import Point, Realised, Series, Window
from leadline.monitor.schema import CELLS, WINDOWS
from leadline.monitor.windows import Every, from_microseconds
from leadline.results.estimate import Estimate


@dataclass(frozen=True, eq=False)
class _Labels:
    """Counts of labels: rows with one, those predicted right, and how they were chosen."""

    labelled: int
    right: int
    chosen: frozenset[str]


@dataclass(frozen=True, eq=False)
class Merged:
    """A coarser window: what is kept of its rows, and the counts of its labels by segment."""

    window: Window
    kept: Kept
    labels: Mapping[int, _Labels]
    whole: int

    def points(self, model: Estimator, series: Series, values: Mapping[int, tuple[object, ...]]) -> list[Point]:
        """Return the estimates of all rows and of the segments."""
        found = estimate_kept(model, self.kept, confidence_level=series.confidence_level)
        estimates = {self.whole: found.whole} | {
            number: estimate for number, estimate in found.groups.items() if number != NO_SEGMENT
        }
        return [self._point(number, estimate, series, values) for number, estimate in estimates.items()]

    def _point(
        self, number: int, estimate: Estimate, series: Series, values: Mapping[int, tuple[object, ...]]
    ) -> Point:
        is_whole = number == self.whole
        return Point(
            window=self.window,
            segment={} if is_whole else dict(zip(series.by, values[number], strict=True)),
            n_rows=(self.kept.total if is_whole else self.kept.sums[number]).n_rows,
            accuracy=estimate.accuracy,
            interval=estimate.interval,
            by_class=estimate.by_class,
            shift=None if estimate.shift is None else estimate.shift.kind,
            distance=np.nan if estimate.shift is None else estimate.shift.distance,
            noise=np.nan if estimate.shift is None else estimate.shift.noise,
            realised=self._realised(number, series.confidence_level),
            words=estimate.explain() if is_whole else "",
        )

    def _realised(self, number: int, confidence_level: float) -> Realised | None:
        """Return what the labels of all its windows say together."""
        labels = self.labels[number]
        if not labels.labelled:
            return None
        n_rows = (self.kept.total if number == self.whole else self.kept.sums[number]).n_rows
        interval = exact_interval(labels.right, labels.labelled, n_rows, confidence_level)
        chosen = "all" if labels.chosen == {"all"} and labels.labelled == n_rows else "unknown"
        return Realised(labels.right / labels.labelled, interval, labels.labelled, n_rows, chosen)


def merged_windows(connection: Connection, entry: catalogue.Entry, model: Estimator, every: Every) -> list[Merged]:
    """Return the coarser windows of a series, in the order of time."""
    finer = Every.parse(entry.series.every)
    every.check_coarser(finer)
    rows = connection.execute(
        sa.select(WINDOWS).where(WINDOWS.c.series == entry.id).order_by(WINDOWS.c.number)
    ).all()  # fmt: skip
    pruned = next((row for row in rows if row.sample is None), None)
    if pruned is not None:
        raise InputError(
            f"window {from_microseconds(pruned.starts):%Y-%m-%d %H:%M} was pruned, so that it cannot be merged."
        )
    starts = np.array([row.starts for row in rows], dtype="datetime64[us]")
    numbers = every.numbers(starts).tolist() if rows else []
    whole = catalogue.known_segments(connection, entry.id).get(ALL_ROWS, NO_SEGMENT)
    found = []
    for number, group in groupby(zip(numbers, rows, strict=True), key=lambda pair: pair[0]):
        members = [row for _, row in group]
        sample: Sample = sum((unpack_sample(row.sample) for row in members[1:]), unpack_sample(members[0].sample))
        sums, labels = _cells(connection, [row.id for row in members])
        total = sums.pop(whole)
        kept = Kept.of_sample(sums or {NO_SEGMENT: total}, sample, sample_rows(model.n_classes_))
        found.append(Merged(every.window(number), kept, labels, whole))
    return found


def _cells(connection: Connection, windows: list[int]) -> tuple[dict[int, Reduced], dict[int, _Labels]]:
    """Return the sums and the counts of labels of windows together, by segment."""
    sums: dict[int, Reduced] = {}
    labels: dict[int, _Labels] = {}
    for row in connection.execute(sa.select(CELLS).where(CELLS.c.window_id.in_(windows))):
        part = unpack_sums(row.sums)
        sums[row.segment] = sums[row.segment] + part if row.segment in sums else part
        before = labels.get(row.segment, _Labels(0, 0, frozenset()))
        chosen = before.chosen | ({row.chosen} if row.chosen else set())
        labels[row.segment] = _Labels(before.labelled + row.labelled, before.right + row.right, chosen)
    return sums, labels


def read_points(
    connection: Connection, entry: catalogue.Entry, model: Estimator, every: str | None, *, segments: bool
) -> list[Point]:
    """Return the points of a series in the order of time, merged to longer windows if these are wanted."""
    if every is None or Every.parse(every).name == entry.series.every:
        return reading.read_points(connection, entry, segments=segments)
    values = catalogue.segment_values(catalogue.known_segments(connection, entry.id).items())
    merged = merged_windows(connection, entry, model, Every.parse(every))
    points = (point for window in merged for point in window.points(model, entry.series, values))
    return [point for point in points if segments or not point.segment]
