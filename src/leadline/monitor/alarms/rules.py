"""What a rule is: a history goes in, episodes come out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise

import numpy as np

from leadline.monitor.alarms.detector import Evidence, Span, spans
from leadline.monitor.alarms.tracks import Key, Track, WholeTrack
from leadline.monitor.records import Series, Window

_HIGHEST = 700.0  # log of the largest evidence that is told apart


@dataclass(frozen=True, eq=False)
class History:
    """All that is known of a series.

    Attributes
    ----------
    series
        What is watched.
    whole, segments
        All rows together, and segments by their values; every window of a segment is one of all rows.
    windows
        Those with rows, in the order of ``whole``.
    now
        The time at which it is judged, in UTC.
    resets
        By name of the rule: numbers of windows after which it starts anew, as somebody closed its alarm.
    """

    series: Series
    whole: WholeTrack
    segments: Mapping[Key, Track]
    windows: Sequence[Window]
    now: datetime
    resets: Mapping[str, Sequence[int]]


@dataclass(frozen=True, eq=False)
class Episode:
    """A stretch of windows over which a rule holds.

    Attributes
    ----------
    rule
        Its name.
    first, last
        Numbers of the windows at which it was raised, and until which it held: at which recovery was shown or a person
        closed it, or the latest.
    open
        Whether it still holds.
    harmful
        Whether it is more than information.
    reason
        In words.
    segments
        Those concerned, with falsely listed ones controlled.
    evidence
        The highest value of the detector; None for a rule without one.
    """

    rule: str
    first: int
    last: int
    open: bool
    harmful: bool
    reason: str
    segments: tuple[Key, ...] = ()
    evidence: float | None = None


@dataclass(frozen=True)
class Rule:
    """When to raise an alarm.

    Attributes
    ----------
    name
        What people and the store call it.
    promise
        What it promises, in one sentence for users.
    harmful
        Whether its alarms are more than information.
    episodes
        Finds them, in the order of time.
    """

    name: str
    promise: str
    harmful: bool
    episodes: Callable[[History, Rule], Iterator[Episode]]


def spans_of(history: History, rule: Rule, evidence: Evidence) -> Iterator[Span]:
    """Yield the spans of a rule, which starts anew after each reset; a reset ends a span that is open."""
    numbers = history.whole.numbers
    resets = np.asarray(history.resets.get(rule.name, ()), dtype=np.int64)
    cuts = {int(place) for place in np.searchsorted(numbers, resets, side="right")}
    for begin, end in pairwise(sorted(cuts | {0, len(numbers)})):
        for span in spans(evidence, history.series.false_alarm_every, begin, end):
            yield replace(span, open=span.open and end not in cuts)


def episode(history: History, rule: Rule, span: Span, reason: str, segments: tuple[Key, ...] = ()) -> Episode:
    """Return the episode of a span."""
    numbers = history.whole.numbers
    return Episode(
        rule.name,
        int(numbers[span.raised]),
        int(numbers[span.last]),
        span.open,
        rule.harmful,
        reason,
        segments,
        math.exp(min(span.log_evidence, _HIGHEST)),
    )
