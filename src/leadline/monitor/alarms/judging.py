"""The rules, and the one call that judges a history by all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType

import numpy as np

from leadline.errors import InputError
from leadline.monitor.alarms import changed, estimated_fall, fall, floor, no_data
from leadline.monitor.alarms.rules import Episode, History, Rule
from leadline.monitor.alarms.tracks import Key, Track, WholeTrack
from leadline.monitor.records import Series, Window

#: The rules by name; one more is one module and its line here.
RULES: Mapping[str, Rule] = MappingProxyType(
    {rule.name: rule for rule in (fall.RULE, estimated_fall.RULE, floor.RULE, no_data.RULE, changed.RULE)}
)


def judge(
    series: Series,
    whole: WholeTrack,
    segments: Mapping[Key, Track],
    *,
    now: datetime,
    windows: Sequence[Window],
    resets: Mapping[str, Sequence[int]],
) -> list[Episode]:
    """Return all episodes of a series, open and ended, from its whole history.

    Nothing is carried from one call to the next: rows and labels that come late change what is found, also of the past.

    Parameters
    ----------
    series
        What is watched.
    whole, segments
        All rows together, and segments by their values; every window of a segment is one of all rows.
    now
        The time at which it is judged, in UTC.
    windows
        Those of ``whole``.
    resets
        By name of the rule: numbers of windows after which it starts anew, as somebody closed its alarm.

    Returns
    -------
    list of Episode
        By the window at which they were raised; the more serious rules first in each.
    """
    numbers = whole.numbers.tolist()
    if [window.number for window in windows] != numbers or sorted(set(numbers)) != numbers:
        raise InputError("windows must be those of whole, each once, in the order of time.")
    for key, track in segments.items():
        if not np.isin(track.numbers, whole.numbers).all():
            raise InputError(f"segments must have windows of whole only; {key} has others.")
    history = History(series, whole, segments, windows, now, resets)
    found = [episode for rule in RULES.values() for episode in rule.episodes(history, rule)]
    return sorted(found, key=lambda episode: episode.first)
