"""What the monitor knows, as plain values: a series, its windows by segment, their labels, alarms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.results.estimate import ClassEstimate
from leadline.results.shift import ShiftKind

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Series:
    """A model that is watched.

    Attributes
    ----------
    name
        What people call it.
    model_id
        The id of the model (``Estimator.model_id``).
    method
        Of its estimates.
    classes
        Names or numbers of the classes.
    every
        How long a window is: ``1h``, ``1d``, ``1w``, ``1mo``, or a number of rows such as ``5000 rows``.
    by
        The columns that the segments are made by.
    time, id
        The columns of times and of row ids.
    reference
        The accuracy that a fall is measured against: that on the source.
    n_source
        The number of rows that it was measured on.
    floor
        The accuracy below which an alarm is raised; None for no such alarm.
    tolerance
        How far accuracy may be below the reference before that is a fall.
    false_alarm_every
        In how many windows, on average, at most one false alarm is raised.
    confidence_level
        Nominal coverage of the intervals.
    registered_at
        In UTC.
    """

    name: str
    model_id: str
    method: str
    classes: tuple[str | int, ...]
    every: str
    by: tuple[str, ...]
    time: str
    id: str
    reference: float
    n_source: int
    floor: float | None
    tolerance: float
    false_alarm_every: float
    confidence_level: float
    registered_at: datetime


@dataclass(frozen=True, order=True)
class Window:
    """A stretch of time, or of rows.

    Attributes
    ----------
    number
        Windows of time: hours, days, weeks or months since 1970; of rows: counted from 0. Neighbours differ by one.
    start, end
        In UTC, without the end; of windows of rows, the earliest and latest arrival.
    """

    number: int
    start: datetime
    end: datetime


@dataclass(frozen=True, eq=False)
class Realised:
    """What late labels say of the rows of a window.

    Attributes
    ----------
    accuracy
        Share of right predictions among the labelled rows.
    interval
        Exact, for all rows of the window, if the labelled ones are a random sample of them.
    n_labels, n_rows
        How many rows are labelled, of how many.
    sample
        How the labelled rows were chosen: "all", "planned" (at random, with known probabilities), or "unknown".
    """

    accuracy: float
    interval: tuple[float, float]
    n_labels: int
    n_rows: int
    sample: str


@dataclass(frozen=True, eq=False)
class Point:
    """One segment, or all rows, in one window.

    Attributes
    ----------
    window
        When.
    segment
        The value of each column of ``Series.by``; empty for all rows together.
    n_rows
        How many rows.
    accuracy, interval
        As estimated without labels.
    by_class
        Per predicted class.
    shift
        The verdict on the shift; None where it was not judged.
    distance, noise
        Of the outputs from the source's, with the expected sampling noise removed, and that noise; NaN where the shift
        was not judged.
    realised
        What labels say; None where none came.
    words
        The estimate explained, for all rows together; empty for segments.
    """

    window: Window
    segment: Mapping[str, Any]
    n_rows: int
    accuracy: float
    interval: tuple[float, float]
    by_class: tuple[ClassEstimate, ...]
    shift: ShiftKind | None
    distance: float
    noise: float = float("nan")
    realised: Realised | None = None
    words: str = ""


class AlarmState(Enum):
    """Of an alarm."""

    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"
    CLOSED = "closed"


@dataclass(frozen=True, eq=False)
class Alarm:
    """Something that somebody should know.

    Attributes
    ----------
    number
        In the store.
    series
        The name of the series.
    rule
        The rule that raised it: ``changed``, ``estimated-fall``, ``fall``, ``floor`` or ``no-data``.
    state
        Open, acknowledged or closed.
    harmful
        Whether it is more than information: an open one makes the command exit with 1.
    first, last
        The windows at which it was raised, and until which it has held.
    raised_at, closed_at
        When, in UTC.
    reason
        In words: what happened, since when, and which segments and predicted classes pull the accuracy down.
    segments
        Those concerned, with falsely listed ones controlled; empty where it is all rows together.
    evidence
        The value of the detector, where the rule has one.
    note
        What the person who acknowledged or closed it said.
    """

    number: int
    series: str
    rule: str
    state: AlarmState
    harmful: bool
    first: Window
    last: Window
    raised_at: datetime
    closed_at: datetime | None
    reason: str
    segments: tuple[Mapping[str, Any], ...] = ()
    evidence: float | None = None
    note: str = ""


@dataclass(frozen=True)
class TrackRecord:
    """How often realised accuracy lay inside the interval so far.

    Attributes
    ----------
    windows, inside
        Windows whose labels say enough, and those of them whose interval holds what the labels say.
    confidence_level
        The nominal coverage.
    mean_error
        Mean absolute difference of estimate and realised accuracy; None without windows.
    """

    windows: int
    inside: int
    confidence_level: float
    mean_error: float | None


@dataclass(frozen=True, eq=False)
class Watched:
    """All that a view of a series shows.

    Attributes
    ----------
    series
        What is watched.
    points
        All rows together, by window, in the order of time.
    segments
        By segment (its values in the order of ``series.by``): its points in the order of time.
    alarms
        The latest first.
    record
        The track record.
    """

    series: Series
    points: tuple[Point, ...]
    record: TrackRecord
    segments: Mapping[tuple[Any, ...], tuple[Point, ...]] = field(default_factory=dict)
    alarms: tuple[Alarm, ...] = ()
