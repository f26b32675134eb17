"""Alarms that keep their word: pure functions from a history to episodes, each rule with a promise.

A rule is one module with a ``RULE``, and its line in :data:`leadline.monitor.alarms.judging.RULES`.
"""

from leadline.monitor.alarms.judging import RULES, judge
from leadline.monitor.alarms.rules import Episode, Rule
from leadline.monitor.alarms.tracks import Track, WholeTrack

__all__ = ["RULES", "Episode", "Rule", "Track", "WholeTrack", "judge"]
