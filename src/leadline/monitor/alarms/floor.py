"""Below the floor: an e-detector on all rows together, by labels in windows that have enough, else by the estimate."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from leadline.monitor.alarms.detector import starting_weights
from leadline.monitor.alarms.falls import coin_evidence
from leadline.monitor.alarms.rules import Episode, History, Rule, episode, spans_of
from leadline.monitor.alarms.tracks import estimated_coins, labelled_coins
from leadline.monitor.alarms.words import LABEL_ADVICE, Told, floor_reason

_ENOUGH_LABELS = 100  # of a window, or all of its rows: they are then believed rather than the estimate


def _episodes(history: History, rule: Rule) -> Iterator[Episode]:
    floor, whole = history.series.floor, history.whole
    if floor is None:
        return
    believed = (whole.labelled >= np.minimum(whole.n_rows, _ENOUGH_LABELS)) & (whole.labelled > 0)
    coins = estimated_coins(whole, {}).or_rather(labelled_coins(whole, {}), believed[:, None])
    every = np.ones_like(coins.right)
    for span in spans_of(history, rule, coin_evidence(coins, floor * every, starting_weights(coins.count), every)):
        labels = believed[span.onset : span.until + 1]
        told = Told(
            "Accuracy by labels"
            if labels.all()
            else "Accuracy, partly estimated,"
            if labels.any()
            else "Estimated accuracy",
            by_class=not labels.all(),
            advice="" if labels.any() else LABEL_ADVICE,
        )
        yield episode(history, rule, span, floor_reason(history, coins, span, told))


RULE = Rule(
    "floor",
    promise="As long as accuracy, by labels in windows that have 100 of them and as estimated in the others, is not "
    "below the floor, it is raised on average at most once in false_alarm_every windows.",
    harmful=True,
    episodes=_episodes,
)
