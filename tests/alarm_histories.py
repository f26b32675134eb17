"""Histories that the tests of alarms judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.monitor.alarms import Episode, Track, WholeTrack, judge
from leadline.monitor.records import Series
from leadline.monitor.windows import Every

FIRST_DAY = 20_454  # a Thursday: 2026-01-01
SERIES = Series(
    name="model", model_id="x", method="auto", classes=("cat", "dog"), every="1d", by=("country",), time="at", id="id",
    reference=0.9, n_source=50_000, floor=None, tolerance=0.02, false_alarm_every=1000.0, confidence_level=0.9,
    registered_at=datetime(2026, 1, 1, tzinfo=UTC),
)  # fmt: skip


def track(n_rows: Any, accuracy: Any, *, numbers: Any = None, labelled: Any = 0, right: Any = 0) -> Track:
    """A segment; without numbers, over the days from the first on."""
    accuracy = np.atleast_1d(np.asarray(accuracy, dtype=float))
    numbers = FIRST_DAY + np.arange(len(accuracy)) if numbers is None else np.asarray(numbers)
    rows, labels = (np.broadcast_to(np.asarray(n, dtype=np.int64), accuracy.shape) for n in (n_rows, labelled))
    rights = np.broadcast_to(np.asarray(right, dtype=float), accuracy.shape)
    return Track(np.asarray(numbers, dtype=np.int64), rows, accuracy, labels, rights)


def whole(n_rows: Any, accuracy: Any, *, distance: Any = 0.01, noise: Any = 0.03, **options: Any) -> WholeTrack:
    """All rows; every second row is predicted to be a cat, and all classes are as accurate as the whole."""
    base = track(n_rows, accuracy, **options)
    wide = [np.broadcast_to(np.asarray(column, dtype=float), base.accuracy.shape) for column in (distance, noise)]
    by_class = (base.n_rows[:, None] * np.array([0.5, 0.5]), np.repeat(base.accuracy[:, None], 2, axis=1))
    return WholeTrack(
        **vars(base), distance=wide[0], noise=wide[1], class_counts=by_class[0], class_accuracy=by_class[1]
    )


def judged(
    all_rows: WholeTrack,
    segments: Mapping[tuple[Any, ...], Track] | None = None,
    *,
    now: datetime | None = None,
    resets: Mapping[str, Sequence[int]] | None = None,
    **settings: Any,
) -> list[Episode]:
    """Judge by all rules; now is the end of the last window unless given."""
    series = replace(SERIES, **settings)
    every = Every.parse(series.every)
    windows = [Every("1d" if every.n_rows else every.name).window(int(number)) for number in all_rows.numbers]
    then = now or (windows[-1].end if windows else series.registered_at + timedelta(days=1))
    return judge(series, all_rows, segments or {}, now=then, windows=windows, resets=resets or {})


def of_rule(found: Sequence[Episode], rule: str) -> list[tuple[int, int, bool]]:
    """First and last day, counted from the first, of the episodes of a rule, and whether they are open."""
    return [(one.first - FIRST_DAY, one.last - FIRST_DAY, one.open) for one in found if one.rule == rule]


def estimates(rng: np.random.Generator, n_rows: Any, accuracy: Any) -> NDArray[np.float64]:
    """Estimated accuracies of windows: means of rows that are right with some probability each."""
    return np.asarray(rng.binomial(n_rows, accuracy) / np.maximum(n_rows, 1))
