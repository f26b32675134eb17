"""Reasons in plain words: what happened, since when, what pulls the accuracy down, and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from leadline.monitor.alarms.detector import Span
from leadline.monitor.alarms.levels import source_level
from leadline.monitor.alarms.rules import History
from leadline.monitor.alarms.tracks import Coins, Key
from leadline.monitor.records import Array, Window
from leadline.results.estimate import pull

_SHOWN = 3  # segments and classes named at most
_NOTABLE, _NOTABLE_MIX = 0.002, 0.005  # pulls that are worth a word
LABEL_ADVICE = (
    "This is read off the outputs alone: label some rows to be sure (leadline plan chooses which), and the alarm on "
    "labels will tell."
)


@dataclass(frozen=True)
class Told:
    """How a rule speaks.

    Attributes
    ----------
    subject
        What fell.
    by_class
        Whether the estimates by predicted class explain it.
    advice
        What to do.
    """

    subject: str
    by_class: bool
    advice: str


def fall_reason(history: History, coins: Coins, span: Span, told: Told) -> str:
    """Return why accuracy is said to have fallen."""
    series = history.series
    below = series.reference - _accuracy(coins, _during(span), 0)
    tolerated = series.reference - source_level(series)
    why = f", as the source has only {series.n_source:,} rows" if tolerated > series.tolerance + 0.001 else ""
    against = (
        f", {100 * abs(below):.1f} points {'below' if below >= 0 else 'above'} the {series.reference:.1%} of the "
        f"source ({100 * tolerated:.1f} are tolerated{why})."
    )
    return _joined(
        _stated(history, coins, span, told) + against,
        *_fallen(history, coins, span),
        *_pulling(history, coins, span, told),
        told.advice,
    )


def floor_reason(history: History, coins: Coins, span: Span, told: Told) -> str:
    """Return why accuracy is said to be below the floor."""
    floor = f"; the floor is {history.series.floor:.1%}."
    return _joined(_stated(history, coins, span, told) + floor, *_pulling(history, coins, span, told), told.advice)


def since(history: History, span: Span) -> str:
    """Return from when, and for an episode that has ended until when."""
    first, last = (called(history.series.every, history.windows[place]) for place in (span.onset, span.until))
    return f"since {first}" if span.open else f"from {first} to {last}"


def called(every: str, window: Window) -> str:
    """Return what to call a window: its date, its hour, or, where it is one of rows, its number."""
    if every.endswith("rows"):
        return f"window {window.number}"
    return f"{window.start:%Y-%m-%d %H:%M} UTC" if every == "1h" else f"{window.start:%Y-%m-%d}"


def named(history: History, key: Key) -> str:
    """Return what to call a segment."""
    return ", ".join(f"{column}={value}" for column, value in zip(history.series.by, key, strict=True))


def _stated(history: History, coins: Coins, span: Span, told: Told) -> str:
    """Return what accuracy is, in how many windows, since when."""
    windows = int((coins.count[_during(span), 0] > 0).sum())
    return (
        f"{told.subject} {'is' if span.open else 'was'} {_accuracy(coins, _during(span), 0):.1%} "
        f"in {windows:,} window{'' if windows == 1 else 's'} {since(history, span)}"
    )


def _pulling(history: History, coins: Coins, span: Span, told: Told) -> Iterable[str]:
    """Yield which predicted classes and segments pull the accuracy down, and by how many points.

    Each against what it was before; where there is no before, against all rows together.
    """
    whole, parts = history.whole, []
    if told.by_class:
        names = [str(name) for name in history.series.classes]
        right = np.nan_to_num(whole.class_accuracy) * whole.class_counts
        parts.append(("predicted classes", names, right, whole.class_counts))
    if coins.right.shape[1] > 1:
        names = [named(history, key) for key in history.segments]
        parts.append(("segments", names, coins.right[:, 1:], coins.count[:, 1:]))
    accuracy = _accuracy(coins, _during(span), 0)
    for kind, names, right, count in parts:
        amounts, mix = _amounts(right, count, span, accuracy)
        order = [column for column in np.argsort(amounts)[:_SHOWN] if amounts[column] < -_NOTABLE]
        if order:
            shown = ", ".join(f"{names[column]} ({100 * amounts[column]:+.1f})" for column in order)
            yield f"Of the {kind}, these pull it down most, in points: {shown}."
        if mix < -_NOTABLE_MIX:
            yield f"Another mix of the {kind} than before takes {100 * -mix:.1f} points."


def _amounts(right: Array, count: Array, span: Span, accuracy: float) -> tuple[Array, float]:
    """Return how far each part pulls the accuracy up or, below 0, down, shape (k,), and how far their new shares do."""
    now, before = _during(span), _before(span)
    counts, counts_before = count[now].sum(axis=0), count[before].sum(axis=0)
    base = np.where(counts_before > 0, right[before].sum(axis=0) / np.maximum(counts_before, 1e-9), accuracy)
    n, n_before = max(float(counts.sum()), 1e-9), float(counts_before.sum())
    amounts = np.asarray(pull(right[now].sum(axis=0) / np.maximum(counts, 1e-9), counts, base, n))
    return amounts, float(base @ counts / n - base @ counts_before / n_before) if n_before else 0.0


def _fallen(history: History, coins: Coins, span: Span) -> Iterable[str]:
    """Yield which segments fell, from what to what."""
    keys = tuple(history.segments)
    told = []
    for column in span.listed[:_SHOWN]:
        known = coins.count[_before(span), column].any()
        before = f"from {_accuracy(coins, _before(span), column):.1%} " if known else ""
        told.append(f"{named(history, keys[column - 1])} ({before}to {_accuracy(coins, _during(span), column):.1%})")
    if told:
        more = f", and {len(span.listed) - _SHOWN} more" if len(span.listed) > _SHOWN else ""
        yield f"Segments that fell: {', '.join(told)}{more}."
    elif keys:
        yield "No segment stands out by itself."


def _accuracy(coins: Coins, windows: slice, column: int) -> float:
    """Return the accuracy of a track over some windows."""
    count = float(coins.count[windows, column].sum())
    return float(coins.right[windows, column].sum()) / max(count, 1e-9)


def _during(span: Span) -> slice:
    return slice(span.onset, span.until + 1)


def _before(span: Span) -> slice:
    return slice(span.onset)


def _joined(*sentences: str) -> str:
    return " ".join(sentence for sentence in sentences if sentence)
