"""What one place along a picture stands for: a window, or neighbouring windows together where there are too many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from leadline.monitor.records import Point, Realised, Window
from leadline.results.estimate import pull
from leadline.results.estimates import MISSING


@dataclass(frozen=True, eq=False)
class Column:
    """Neighbouring windows that are shown as one; mostly a single one.

    Attributes
    ----------
    first, last
        The outermost of them.
    n_windows, n_rows
        How many windows with rows, and how many rows.
    accuracy, interval
        The mean over the rows; the ends of the intervals are averaged too, so that the interval gets no narrower.
    realised
        What labels say, in the same way; None where none came.
    lowest
        The window with the lowest estimate, which explains the column.
    """

    first: Window
    last: Window
    n_windows: int
    n_rows: int
    accuracy: float
    interval: tuple[float, float]
    realised: Realised | None
    lowest: Point


def columns_of(points: Iterable[Point], start: int, step: int) -> dict[int, Column]:
    """Return the columns that have rows, by their place: 0 for the ``step`` windows from number ``start`` on."""
    grouped = groupby(points, key=lambda point: (point.window.number - start) // step)
    return {place: _column(list(members)) for place, members in grouped}


def runs(places: Iterable[int]) -> Iterator[list[int]]:
    """Return stretches of neighbouring places.

    Examples
    --------
    >>> list(runs([1, 2, 5]))
    [[1, 2], [5]]
    """
    for _, members in groupby(enumerate(places), key=lambda pair: pair[1] - pair[0]):
        yield [place for _, place in members]


def segment_name(values: Iterable[Any]) -> str:
    """Return what to call a segment."""
    return ", ".join(MISSING if value is None else str(value) for value in values)


def pull_on(whole: Point, accuracy: float, n_rows: int) -> float:
    """Return how far a part of a window's rows pulls the accuracy of all its rows up or, below 0, down."""
    return float(pull(accuracy, n_rows, whole.accuracy, whole.n_rows))


def _column(points: Sequence[Point]) -> Column:
    first = points[0]
    if len(points) == 1:
        return Column(
            first.window, first.window, 1, first.n_rows, first.accuracy, first.interval, first.realised, first
        )
    rows = [point.n_rows for point in points]
    return Column(
        first=first.window,
        last=points[-1].window,
        n_windows=len(points),
        n_rows=sum(rows),
        accuracy=_mean([point.accuracy for point in points], rows),
        interval=_mean_ends([point.interval for point in points], rows),
        realised=_realised([point.realised for point in points if point.realised is not None]),
        lowest=min(points, key=lambda point: point.accuracy),
    )


def _realised(found: Sequence[Realised]) -> Realised | None:
    if not found:
        return None
    labels = [one.n_labels for one in found]
    samples = {one.sample for one in found}
    return replace(
        found[0],
        accuracy=_mean([one.accuracy for one in found], labels),
        interval=_mean_ends([one.interval for one in found], labels),
        n_labels=sum(labels),
        n_rows=sum(one.n_rows for one in found),
        sample=samples.pop() if len(samples) == 1 else "unknown" if "unknown" in samples else "planned",
    )


def _mean_ends(intervals: Sequence[tuple[float, float]], weights: Sequence[int]) -> tuple[float, float]:
    return _mean([low for low, _ in intervals], weights), _mean([high for _, high in intervals], weights)


def _mean(values: Sequence[float], weights: Sequence[int]) -> float:
    return sum(value * weight for value, weight in zip(values, weights, strict=True)) / sum(weights)
