"""What both alarms of a fall share: bets on all rows and segments together, and episodes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from leadline.monitor.alarms.detector import Evidence, log_bets, starting_weights
from leadline.monitor.alarms.levels import levels
from leadline.monitor.alarms.rules import Episode, History, Rule, episode, spans_of
from leadline.monitor.alarms.tracks import Coins
from leadline.monitor.alarms.words import Told, fall_reason
from leadline.monitor.records import Array, Series


def fall_evidence(coins: Coins, series: Series) -> Evidence:
    """Return bets on a fall of all rows (half of the detector) and of segments (the other half, in equal parts)."""
    tau, judged = levels(coins, series)
    n_segments = judged[:, 1:].sum(axis=1, keepdims=True)
    shares = np.where(judged, 0.5 / np.maximum(n_segments, 1), 0.0)
    shares[:, :1] = np.where(n_segments > 0, 0.5, 1.0)
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
