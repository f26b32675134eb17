"""Accuracy fell: the same e-detector on labels, which may come late and for some rows only."""

from __future__ import annotations

from collections.abc import Iterator

from leadline.monitor.alarms.falls import fall_episodes
from leadline.monitor.alarms.rules import Episode, History, Rule
from leadline.monitor.alarms.tracks import labelled_coins
from leadline.monitor.alarms.words import Told

_TOLD = Told("Accuracy by labels", by_class=False, advice="")


def _episodes(history: History, rule: Rule) -> Iterator[Episode]:
    if not history.whole.labelled.any():
        return iter(())
    return fall_episodes(history, rule, labelled_coins(history.whole, history.segments), _TOLD)


RULE = Rule(
    "fall",
    promise="As long as the true accuracy of all rows and of every segment is no further below its reference than "
    "tolerated, it is raised on average at most once in false_alarm_every windows with labels, if these are of all "
    "rows or of a random sample.",
    harmful=True,
    episodes=_episodes,
)
