"""Estimates over time, beside what late labels say of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leadline.data.segments import ordered
from leadline.monitor.records import Point, Series, TrackRecord, Watched
from leadline.results.estimate import Estimate
from leadline.results.estimates import Estimates, Segment
from leadline.results.render import Document, Table

_LEAST_LABELS = 30  # of a window that counts in the track record
_LEARNING_RATE = 0.1  # of the adaptive intervals


@dataclass(frozen=True, eq=False)
class WindowEstimate(Segment):
    """The estimate on a window of a segment.

    Attributes
    ----------
    realised, realised_interval
        The accuracy that labels show, and its interval; None where no labels came.
    n_labels
        How many rows are labelled.
    sample
        How the labelled rows were chosen: "all", "planned" or "unknown"; None without labels.
    point
        All that is known.
    """

    realised: float | None = None
    realised_interval: tuple[float, float] | None = None
    n_labels: int = 0
    sample: str | None = None
    point: Point | None = None

    @classmethod
    def of(cls, point: Point, series: Series) -> WindowEstimate:
        """Return a point as an estimate."""
        found, label = point.realised, {"window": point.window.start}
        return cls(
            {**label, **point.segment},
            _estimate(series, point.accuracy, point.interval, point.n_rows, point),
            realised=None if found is None else found.accuracy,
            realised_interval=None if found is None else found.interval,
            n_labels=0 if found is None else found.n_labels,
            sample=None if found is None else found.sample,
            point=point,
        )

    def to_record(self, by: Sequence[str]) -> dict[str, Any]:
        """Return one row of a table: the same fields for every window; missing where a column is not its own."""
        plain = self.to_dict()
        group, interval, realised = plain.pop("group") or {}, plain.pop("interval"), plain.pop("realised_interval")
        ends = realised or (None, None)
        return {
            "window": plain.pop("window"),
            "window_end": plain.pop("window_end"),
            **{column: group.get(column) for column in by},
            "accuracy": plain.pop("accuracy"),
            "interval_low": interval[0],
            "interval_high": interval[1],
            **plain,
            "realised_low": ends[0],
            "realised_high": ends[1],
        }

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        assert self.point is not None
        window = self.point.window
        return {
            "window": window.start.isoformat(),
            "window_end": window.end.isoformat(),
            "group": {name: value for name, value in self.group.items() if name != "window"} or None,
            "accuracy": self.estimate.accuracy,
            "interval": list(self.estimate.interval),
            "confidence_level": self.estimate.confidence_level,
            "n_samples": self.estimate.n_samples,
            "method": self.estimate.method,
            "shift": None if self.point.shift is None else self.point.shift.value,
            "distance": self.point.distance,
            "realised": self.realised,
            "realised_interval": None if self.realised_interval is None else list(self.realised_interval),
            "n_labels": self.n_labels,
            "sample": self.sample,
        }


def _estimate(series: Series, accuracy: float, interval: tuple[float, float], n_rows: int, point: Point) -> Estimate:
    return Estimate(accuracy, interval, series.confidence_level, n_rows, series.method, point.by_class)


@dataclass(frozen=True, eq=False)
class History(Estimates):
    """Estimates of a series over time: :class:`leadline.Estimates` whose segments are windows.

    ``overall`` is the mean over the windows, weighted by their rows. ``record`` says how often realised accuracy lay
    inside the interval.
    """

    record: TrackRecord | None = None

    @property
    def windows(self) -> tuple[WindowEstimate, ...]:
        """The rows, as what they are."""
        return tuple(row for row in self.rows if isinstance(row, WindowEstimate))

    def to_arrow(self) -> Any:
        """Return the windows as an Arrow table.

        Columns: ``window`` (its start), those of ``by``, and what :meth:`leadline.Estimates.to_arrow` has; then
        ``window_end``, ``distance``, ``realised``, ``realised_low``, ``realised_high``, ``n_labels``, ``sample``.
        """
        import pyarrow as pa

        table = super().to_arrow()
        rows = [row for row in self.windows if row.point is not None]
        points = [row.point for row in rows if row.point is not None]
        kinds = [None if point.shift is None else point.shift.value for point in points]
        table = table.set_column(table.column_names.index("shift"), "shift", pa.array(kinds, pa.string()))
        ends = [row.realised_interval or (None, None) for row in rows]
        more = {
            "window_end": pa.array([point.window.end for point in points], pa.timestamp("us", "UTC")),
            "distance": pa.array([point.distance for point in points], pa.float64()),
            "realised": pa.array([row.realised for row in rows], pa.float64()),
            "realised_low": pa.array([low for low, _ in ends], pa.float64()),
            "realised_high": pa.array([high for _, high in ends], pa.float64()),
            "n_labels": pa.array([row.n_labels for row in rows], pa.int64()),
            "sample": pa.array([row.sample for row in rows], pa.string()),
        }
        for name, column in more.items():
            table = table.append_column(name, column)
        return table.drop_columns(["truth"])


def to_history(series: Series, points: Sequence[Point], record: TrackRecord, by: Sequence[str]) -> History:
    """Return points, in the order of time, as estimates."""
    rows = tuple(WindowEstimate.of(point, series) for point in points)
    weights = np.array([point.n_rows for point in points], dtype=np.float64)
    ends = np.array([[point.accuracy, *point.interval] for point in points])
    # Of no rows, nothing is known but what the source says.
    mean, low, high = weights @ ends / weights.sum() if len(points) else (series.reference, 0.0, 1.0)
    overall = Estimate(
        float(mean), (float(low), float(high)), series.confidence_level, int(weights.sum()), series.method, ()
    )
    return History(("window", *by), Segment({}, overall), rows, model_id=series.model_id, record=record)


def track_record(points: Sequence[Point], confidence_level: float) -> TrackRecord:
    """Return how often what labels show lay inside the interval.

    A window counts from 30 labels on. It is inside if the two intervals, that of the estimate and that of the labels,
    have an accuracy in common: with few labels nobody knows it better.
    """
    counted = [point for point in points if point.realised is not None and point.realised.n_labels >= _LEAST_LABELS]
    inside = sum(map(_agrees, counted))
    errors = [abs(point.accuracy - point.realised.accuracy) for point in counted if point.realised is not None]
    return TrackRecord(len(counted), inside, confidence_level, float(np.mean(errors)) if errors else None)


def _agrees(point: Point) -> bool:
    """Say whether the interval of the estimate and that of the labels meet."""
    assert point.realised is not None
    low, high = point.realised.interval
    return point.interval[0] <= high and low <= point.interval[1]


def adapted(points: Sequence[Point], confidence_level: float) -> list[Point]:
    """Return points whose intervals have learned from the labels of earlier windows.

    Halves of intervals grow by a tenth after each labelled window that they missed and shrink after each that they
    held, by so much less that in the long run they hold as often as they say, whatever the errors do: quantile
    tracking (Angelopoulos, Candès and Tibshirani 2023, after Gibbs and Candès 2021) on the logarithm of the length.

    Parameters
    ----------
    points
        Of one segment, in the order of time.
    confidence_level
        The nominal coverage.
    """
    log_factor, found = 0.0, []
    for point in points:
        moved = replace(point, interval=_scaled(point, float(np.exp(log_factor))))
        found.append(moved)
        if point.realised is not None and point.realised.n_labels >= _LEAST_LABELS:
            log_factor += _LEARNING_RATE * (confidence_level - _agrees(moved))
    return found


def _scaled(point: Point, factor: float) -> tuple[float, float]:
    """Return the interval of a point, its halves so many times as long."""
    low, high = point.interval
    return (
        max(0.0, point.accuracy - factor * (point.accuracy - low)),
        min(1.0, point.accuracy + factor * (high - point.accuracy)),
    )


def by_segment(points: Sequence[Point], by: Sequence[str]) -> Mapping[tuple[Any, ...], list[Point]]:
    """Return points of segments by their values, in the order of these."""
    found: dict[tuple[Any, ...], list[Point]] = {}
    for point in points:
        found.setdefault(tuple(point.segment[name] for name in by), []).append(point)
    keys = list(found)
    return {keys[place]: found[keys[place]] for place in ordered(keys)}


def windows_document(watched: Watched) -> Document:
    """Return all windows of a series, of all rows and of every segment, as data and as a table."""
    points = [*watched.points, *(point for of_segment in watched.segments.values() for point in of_segment)]
    rows = [WindowEstimate.of(point, watched.series) for point in points]
    records = [row.to_record(watched.series.by) for row in rows]
    header = list(records[0]) if records else ["window"]
    cells = [["" if value is None else str(value) for value in record.values()] for record in records]
    return Document([row.to_dict() for row in rows], records, [Table(header, cells)])
