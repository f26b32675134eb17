"""Made-up series for the monitor's page: seeded, with drops, gaps, labels and alarms where a test asks for them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np

from leadline.monitor.history import track_record
from leadline.monitor.records import (
    Alarm,
    AlarmState,
    Point,
    Realised,
    Series,
    Watched,
    Window,
)
from leadline.monitor.windows import Every
from leadline.results.estimate import ClassEstimate
from leadline.results.shift import ShiftKind

MADE_AT = datetime(2026, 11, 18, 2, 0, tzinfo=UTC)
LEVEL = 0.9
REFERENCE = 0.915


def make_series(name: str = "fraud", *, every: str = "1d", by: Sequence[str] = (), floor: float | None = 0.8) -> Series:
    return Series(
        name=name,
        model_id="3f9a1c77",
        method="auto",
        classes=("fraud", "honest", "unsure"),
        every=every,
        by=tuple(by),
        time="ts",
        id="id",
        reference=REFERENCE,
        n_source=4000,
        floor=floor,
        tolerance=0.02,
        false_alarm_every=1000.0,
        confidence_level=LEVEL,
        registered_at=datetime(2025, 11, 1, tzinfo=UTC),
    )


def window_of(every: str, number: int) -> Window:
    """Return the window so many before the one of MADE_AT, for -1, -2 and so on."""
    found = Every.parse(every)
    if found.n_rows is not None:
        start = MADE_AT + timedelta(hours=9 * (number - 40))
        return Window(number, start, start + timedelta(hours=9))
    now = int(found.numbers(np.array([np.datetime64(MADE_AT.replace(tzinfo=None), "us")]))[0])
    return found.window(now + number)


def make_watched(
    windows: int = 30,
    *,
    name: str = "fraud",
    every: str = "1d",
    segments: Sequence[str] = (),
    labelled: int = 0,
    drop: int | None = None,
    gaps: Collection[int] = (),
    sample: str = "planned",
    rows: int = 900,
    seed: int = 0,
) -> Watched:
    """Return a series.

    Parameters
    ----------
    windows
        How many windows it reaches over.
    segments
        The values of a column ``shop``.
    labelled
        How many of the first windows have labels.
    drop
        The place of the window from which on accuracy is lower, by much in the first segment; it raises an alarm.
    gaps
        Places of windows without data.
    """
    rng = np.random.default_rng(seed)
    series = make_series(name, every=every, by=("shop",) if segments else ())
    first = 0 if "rows" in every else -windows
    places = [place for place in range(windows) if place not in gaps]
    found = {place: window_of(every, first + place) for place in places}
    points: list[Point] = []
    parts: dict[tuple[str], list[Point]] = {(value,): [] for value in segments}
    for place in places:
        fallen = drop is not None and place >= drop
        truth = (0.83 if fallen else 0.913) + 0.008 * np.sin(place / 6)
        n = int(rows * rng.uniform(0.7, 1.3))
        estimate = truth + rng.normal(scale=0.009)
        realised = _realised(rng, truth, n, sample) if place < labelled else None
        point = _point(rng, found[place], {}, n, estimate, fallen, realised)
        points.append(point)
        for number, value in enumerate(segments):
            if rng.uniform() < 0.03:
                continue  # a shop that was closed
            own = truth - 0.04 * (number % 5 == 4) - (0.25 if fallen and number == 0 else 0.0)
            share = max(20, n // len(segments))
            parts[value,].append(
                _point(rng, found[place], {"shop": value}, share, own + rng.normal(scale=0.02), fallen, None)
            )
    alarms = [] if drop is None else make_alarms(series.name, found, places, drop, list(segments[:1]))
    return Watched(
        series,
        tuple(points),
        track_record(points, LEVEL),
        {key: tuple(value) for key, value in parts.items()},
        tuple(alarms),
    )


def make_alarms(
    name: str, found: dict[int, Window], places: Sequence[int], drop: int, segments: Sequence[str]
) -> list[Alarm]:
    """Return an open alarm since the drop, an acknowledged and a closed one before."""
    start, last = found[places[min(drop + 1, len(places) - 1)]], found[places[-1]]
    alarms = [
        Alarm(
            number=7,
            series=name,
            rule="estimated-fall",
            state=AlarmState.OPEN,
            harmful=True,
            first=start,
            last=last,
            raised_at=start.end,
            closed_at=None,
            reason="Estimated accuracy is 8.3 points below the source. Predictions of fraud pull it down by 5.1 points"
            + (f", rows of shop {segments[0]} by 3.9 points." if segments else "."),
            segments=tuple({"shop": value} for value in segments),
            evidence=1834.2,
        )
    ]
    if drop > 10:
        early, later = found[places[drop // 3]], found[places[drop // 2]]
        alarms.append(
            Alarm(
                number=3,
                series=name,
                rule="changed",
                state=AlarmState.CLOSED,
                harmful=False,
                first=early,
                last=later,
                raised_at=early.end,
                closed_at=later.end,
                reason="The outputs no longer look like the source: other class frequencies.",
                note="Autumn sale.",
            )
        )
    return alarms


def _point(
    rng: np.random.Generator, window: Window, segment: dict[str, str], n: int, accuracy: float, fallen: bool,
    realised: Realised | None,
) -> Point:  # fmt: skip
    accuracy = min(max(float(accuracy), 0.0), 1.0)
    half = 0.015 + 0.55 / n**0.5 + 0.01 * fallen
    ends = (max(accuracy - half, 0.0), min(accuracy + 0.8 * half, 1.0))
    kind = ShiftKind.COLLAPSE if fallen else ShiftKind.NONE
    classes: tuple[ClassEstimate, ...] = ()
    if not segment:
        counts = rng.multinomial(n, [0.25, 0.65, 0.1])
        accuracies = [accuracy - 0.15 - 0.1 * fallen, accuracy + 0.07, accuracy - 0.04]
        classes = tuple(
            ClassEstimate(label, int(count), min(max(value, 0.0), 1.0))
            for label, count, value in zip(("fraud", "honest", "unsure"), counts, accuracies, strict=True)
        )
    words = ""
    if not segment:
        verdict = (
            "The predictions drift towards some classes in a way that other class frequencies do not explain "
            "(collapse). Confidence is then too high; methods that restore the source's class frequencies (cot, cott) "
            "are nearer."
            if fallen
            else "The target looks like the source: nothing differs beyond sampling noise."
        )
        words = (
            f"Estimated accuracy {accuracy:.1%} ({LEVEL:.0%} interval {ends[0]:.1%} to {ends[1]:.1%}), by auto on "
            f"{n:,} samples; it was {REFERENCE:.1%} on the labelled source. {verdict} The interval covers sampling "
            "error and the spread of the readings."
        )
    return Point(window, segment, n, accuracy, ends, classes, kind, 0.2 if fallen else 0.01, 0.02, realised, words)


def _realised(rng: np.random.Generator, truth: float, n: int, sample: str) -> Realised:
    labels = n if sample == "all" else min(n, 300)
    accuracy = float(rng.binomial(labels, truth) / labels)
    half = 1.65 * np.sqrt(accuracy * (1 - accuracy) / labels)
    return Realised(accuracy, (max(accuracy - half, 0.0), min(accuracy + half, 1.0)), labels, n, sample)
