"""The outputs no longer look like the source: bets on the distance of each window, which is one number a window."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from leadline.monitor.alarms.detector import Evidence
from leadline.monitor.alarms.rules import Episode, History, Rule, episode, spans_of
from leadline.monitor.alarms.words import since
from leadline.monitor.records import Array

_BETS = np.array([0.1, 0.3, 0.6, 0.9])  # shares of the wealth that are lost at distance 0
_USUAL = 0.03  # beyond sampling noise: unchanged streams stay below on average (docs/monitor-alarms.md)


def usual_distance(noise: Array) -> Array:
    """Return the mean distance that unchanged windows stay below, shape (t,)."""
    return _USUAL + np.nan_to_num(noise)


def _episodes(history: History, rule: Rule) -> Iterator[Episode]:
    whole = history.whole
    judged = ~np.isnan(whole.distance)
    distance, usual = np.nan_to_num(whole.distance), usual_distance(whole.noise)
    far = judged & (distance > usual)
    # A window not judged wins and loses nothing. The bet on "distance is at most usual on average" is a fair one: its
    # wealth 1 + b (distance - usual) / usual has mean 1 at most, and is positive.
    bets = np.log1p(_BETS * np.where(judged, (distance - usual) / usual, 0.0)[:, None])[:, None]
    # Half of the wealth is bet on each judged window being near, against "more often far than near".
    recovery = np.log(np.where(judged, np.where(far, 0.5, 1.5), 1.0))[:, None, None]
    evidence = Evidence(
        against=lambda low, high: bets[low:high],
        recovery=lambda low, high: recovery[low:high],
        weights=judged[:, None] * 1.0,
        shares=np.ones((len(judged), 1)),
    )
    for span in spans_of(history, rule, evidence):
        during = slice(span.onset, span.until + 1)
        verb, mean = "no longer look" if span.open else "did not look", np.nanmean(whole.distance[during])
        reason = (
            f"The outputs {verb} like the source's {since(history, span)}: they are {mean:.2f} away on average, where "
            f"{usual[during].mean():.2f} is usual at most. That alone is no harm: see the estimated accuracy."
        )
        yield episode(history, rule, span, reason)


RULE = Rule(
    "changed",
    promise="As long as the outputs are on average no further from the source's than 0.03 more than sampling noise "
    "alone would show, it is raised on average at most once in false_alarm_every windows; it is information, not harm.",
    harmful=False,
    episodes=_episodes,
)
