"""Levels that accuracy is compared with: the source's for all rows, its own past for a segment."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leadline.monitor.alarms.tracks import Coins
from leadline.monitor.records import Array, Series
from leadline.numeric import normal_quantile
from leadline.shift.intervals import each_of

#: A segment is compared with its own past: at least so many windows and rows, and no more once there are so many.
LEARNED_WINDOWS, LEARNED_ROWS, LEARNED_AT_MOST = 7, 1_000, 10_000
SURE = 0.99  # that no reference is measured too high, by chance, for an unchanged series


def level(reference: Array | float, n_rows: Array | float, tolerance: float, confidence: float) -> Array:
    """Return tau, the accuracy above which there is no fall.

    Parameters
    ----------
    reference, n_rows
        The accuracy to compare with, and the number of rows it was measured on.
    tolerance
        How far below it accuracy may be.
    confidence
        That the reference, had it been measured on all rows that there are, would not be lower than tau.

    Examples
    --------
    >>> float(level(0.9, 50_000, 0.02, 0.99).round(3)), float(level(0.9, 500, 0.02, 0.99).round(3))
    (0.88, 0.869)
    """
    accuracy, n = np.asarray(reference, dtype=np.float64), np.maximum(n_rows, 1.0)
    smoothed = (accuracy * n + 1) / (n + 2)
    chance = normal_quantile(confidence) * np.sqrt(smoothed * (1 - smoothed) / n)
    return np.asarray(accuracy - np.maximum(tolerance, chance))


def references(coins: Coins, series: Series) -> tuple[Array, Array]:
    """Return the reference of each track in each window and the number of rows behind it, shapes (t, k).

    All rows are compared with the source. A segment may always have been harder or easier: it is compared with its own
    first windows, as far as they are past. Where it has too few yet, the number is 0.
    """
    rows_before, right_before = (np.cumsum(each, axis=0) - each for each in (coins.count, coins.right))
    there = (coins.count > 0).astype(np.int64)
    enough = (rows_before >= LEARNED_ROWS) & (np.cumsum(there, axis=0) - there >= LEARNED_WINDOWS)
    at = np.minimum(np.arange(len(there))[:, None], (rows_before < LEARNED_AT_MOST).sum(axis=0))
    rows, right = (np.take_along_axis(each, at, axis=0) for each in (rows_before, right_before))
    accuracy, n_rows = right / np.maximum(rows, 1.0), np.where(enough, rows, 0.0)
    accuracy[:, 0], n_rows[:, 0] = series.reference, series.n_source
    return accuracy, n_rows


def levels(coins: Coins, series: Series) -> tuple[Array, NDArray[np.bool_]]:
    """Return the level tau of each track in each window, and whether it is judged by then, shapes (t, k)."""
    accuracy, n_rows = references(coins, series)
    tau = level(accuracy, n_rows, series.tolerance, each_of(accuracy.shape[1] - 1, SURE))
    tau[:, 0] = source_level(series)
    judged = n_rows > 0
    judged[:, 0] = True
    return tau, judged


def source_level(series: Series) -> float:
    """Return the level of all rows together."""
    return float(level(series.reference, series.n_source, series.tolerance, SURE))
