"""Histories that alarms are judged from: accuracy over the windows, of all rows and of segments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.monitor.records import Array, IntArray

Key = tuple[Any, ...]

#: Rows of a window that count as evidence in an estimate. Beyond these, what the estimator thinks of a window as a
#: whole varies more from one unchanged window to the next than more rows would tell (docs/monitor-alarms.md).
COUNTED_ROWS = 5_000


@dataclass(frozen=True, eq=False)
class Track:
    """A segment over its windows, in the order of time.

    Attributes
    ----------
    numbers
        Shape (t,): the windows' numbers, rising.
    n_rows
        Shape (t,): rows in each.
    accuracy
        Shape (t,): as estimated; NaN where it was not.
    labelled, right
        Shapes (t,): rows with a label, and how many of them are right. Where the labelled rows were planned, with other
        chances for other rows, that is their number times the accuracy that they speak for, not a plain count.
    """

    numbers: IntArray
    n_rows: IntArray
    accuracy: Array
    labelled: IntArray
    right: Array


@dataclass(frozen=True, eq=False)
class WholeTrack(Track):
    """All rows together over their windows.

    Attributes
    ----------
    distance, noise
        Shapes (t,): of the outputs from the source's (``Shift.distance``), and what sampling noise alone would show
        (``Shift.noise``); NaN where the shift was not judged.
    class_counts, class_accuracy
        Shapes (t, c): rows by predicted class, and their estimated accuracy, NaN where there are none.
    """

    distance: Array
    noise: Array
    class_counts: Array
    class_accuracy: Array


@dataclass(frozen=True, eq=False)
class Coins:
    """Rows as coins that fell right or wrong, of all rows and of the segments, over the windows of all rows.

    Attributes
    ----------
    right, wrong
        Shapes (t, k): how many; fractions where they are estimated. The first column is all rows together.
    """

    right: Array
    wrong: Array

    @property
    def count(self) -> Array:
        """Shape (t, k): all of them."""
        return self.right + self.wrong

    def or_rather(self, others: Coins, wanted: NDArray[np.bool_]) -> Coins:
        """Return the others where they are wanted, shape (t, k), and these elsewhere."""
        return Coins(np.where(wanted, others.right, self.right), np.where(wanted, others.wrong, self.wrong))


def estimated_coins(whole: Track, segments: Mapping[Key, Track]) -> Coins:
    """Return what the estimates say of the rows: of n rows, n times the accuracy are right.

    At most ``COUNTED_ROWS`` rows of a window, and of a segment in it, count.
    """

    def counts(track: Track) -> tuple[Array, Array]:
        counted = np.where(np.isnan(track.accuracy), 0, np.minimum(track.n_rows, COUNTED_ROWS))
        right = counted * np.clip(np.nan_to_num(track.accuracy), 0.0, 1.0)
        return right, counted - right

    return _stacked(whole, segments, counts)


def labelled_coins(whole: Track, segments: Mapping[Key, Track]) -> Coins:
    """Return what labels say of the rows."""
    return _stacked(whole, segments, lambda track: (track.right, track.labelled - track.right))


def _stacked(whole: Track, segments: Mapping[Key, Track], counts: Callable[[Track], tuple[Array, Array]]) -> Coins:
    """Return the counts of all tracks over the windows of all rows; 0 in windows that a segment is not in."""
    right, wrong = np.zeros((2, len(whole.numbers), 1 + len(segments)))
    for column, track in enumerate((whole, *segments.values())):
        places = np.searchsorted(whole.numbers, track.numbers)
        right[places, column], wrong[places, column] = counts(track)
    return Coins(right, wrong)
