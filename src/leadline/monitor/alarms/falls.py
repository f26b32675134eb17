"""What both alarms of a fall share: levels, bets on all rows and segments together, episodes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from leadline.monitor.alarms.detector import Evidence, log_bets, starting_weights
from leadline.monitor.alarms.rules import Episode, History, Rule, episode, spans_of
from leadline.monitor.alarms.tracks import Coins
from leadline.monitor.alarms.words import Told, fall_reason
from leadline.monitor.records import Array, Series
from leadline.numeric import normal_quantile
from leadline.shift.intervals import each_of

#: A segment is compared with its own past: at least so many windows and rows, and no more once there are so many.
LEARNED_WINDOWS, LEARNED_ROWS, LEARNED_AT_MOST = 7, 1_000, 10_000
_SURE = 0.99  # that no reference is measured too high, by chance, for an unchanged series


def level(reference: Array | float, n_rows: Array | float, tolerance: float, confidence: float = _SURE) -> Array:
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
    >>> float(level(0.9, 50_000, 0.02).round(3)), float(level(0.9, 500, 0.02).round(3))
    (0.88, 0.868)
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


def fall_evidence(coins: Coins, series: Series) -> Evidence:
    """Return bets on a fall of all rows (half of the detector) and of segments (the other half, in equal parts)."""
    accuracy, n_rows = references(coins, series)
    judged = n_rows > 0
    judged[:, 0] = True
    n_segments = judged[:, 1:].sum(axis=1, keepdims=True)
    shares = np.where(judged, 0.5 / np.maximum(n_segments, 1), 0.0)
    shares[:, :1] = np.where(n_segments > 0, 0.5, 1.0)
    tau = level(accuracy, n_rows, series.tolerance, each_of(accuracy.shape[1] - 1, _SURE))
    tau[:, 0] = level(series.reference, series.n_source, series.tolerance)
    return coin_evidence(coins, tau, judged * starting_weights(coins.count), shares)


def coin_evidence(coins: Coins, tau: Array, weights: Array, shares: Array) -> Evidence:
    """Return bets on accuracies below levels, shape (t, k), and on their being above again."""
    return Evidence(
        against=lambda low, high: log_bets(coins.right[low:high], coins.wrong[low:high], tau[low:high]),
        recovery=lambda low, high: log_bets(coins.wrong[low:high], coins.right[low:high], 1 - tau[low:high]),
        weights=weights,
        shares=shares,
    )


def fall_episodes(history: History, rule: Rule, coins: Coins, told: Told) -> Iterator[Episode]:
    """Yield the falls of all rows and of segments."""
    keys = tuple(history.segments)
    for span in spans_of(history, rule, fall_evidence(coins, history.series)):
        listed = tuple(keys[column - 1] for column in span.listed)
        yield episode(history, rule, span, fall_reason(history, coins, span, told), listed)
