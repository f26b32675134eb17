"""Estimated accuracy fell: an e-detector on the estimates of all rows and of the segments."""

from __future__ import annotations

from collections.abc import Iterator

from leadline.monitor.alarms.falls import fall_episodes
from leadline.monitor.alarms.rules import Episode, History, Rule
from leadline.monitor.alarms.tracks import estimated_coins
from leadline.monitor.alarms.words import LABEL_ADVICE, Told

_TOLD = Told("Estimated accuracy", by_class=True, advice=LABEL_ADVICE)


def _episodes(history: History, rule: Rule) -> Iterator[Episode]:
    return fall_episodes(history, rule, estimated_coins(history.whole, history.segments), _TOLD)


RULE = Rule(
    "estimated-fall",
    promise="As long as the estimated accuracy of all rows and of every segment is no further below its reference than "
    "tolerated, it is raised on average at most once in false_alarm_every windows; it is about the estimate, not the "
    "truth.",
    harmful=True,
    episodes=_episodes,
)
