"""The answer in words: how a model does, since when, and how far the estimates have been right so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import bdtr

from leadline.monitor.page.times import Naming
from leadline.monitor.records import Alarm, AlarmState, Realised, Watched
from leadline.results.render import interval, percent

#: What each rule says when it holds, the gravest first.
RULES = {
    "fall": "accuracy fell",
    "estimated-fall": "estimated accuracy fell",
    "floor": "accuracy is below the floor",
    "no-data": "no data",
    "changed": "the outputs changed",
}
#: Of each level: its sign, and what a model of it is called.
LEVELS = {"poor": ("✗", "not fine"), "caution": ("!", "take care"), "good": ("✓", "fine")}
_RARE = 0.05  # a record this unlikely under the nominal coverage is no chance


@dataclass(frozen=True)
class Status:
    """How a model does.

    Attributes
    ----------
    level
        One of :data:`LEVELS`.
    sentence
        What is so, since when, and how many alarms there are.
    alarm
        The one that the sentence is about, if any.
    """

    level: str
    sentence: str
    alarm: Alarm | None = None


def rule_words(rule: str) -> str:
    """Return what a rule says, or its name where it is not known here."""
    return RULES.get(rule, rule)


def status(watched: Watched, naming: Naming) -> Status:
    """Return how a model does."""
    live = [alarm for alarm in watched.alarms if alarm.state is not AlarmState.CLOSED]
    harmful = [alarm for alarm in live if alarm.harmful]
    order = list(RULES)
    gravest = min(
        harmful or live,
        key=lambda alarm: (order.index(alarm.rule) if alarm.rule in order else len(order), alarm.first.number),
        default=None,
    )
    counted = _count(live)
    if gravest is not None:
        told = f"{_happened(gravest, watched)} since {naming.since(gravest.first)}{_now(watched, gravest, naming)}"
        others = {alarm.rule: alarm for alarm in harmful if alarm.rule != gravest.rule}
        told += "".join(
            f"; also {_happened(alarm, watched)} since {naming.since(alarm.first)}" for alarm in others.values()
        )
        return Status("poor" if harmful else "caution", f"{told}; {counted}", gravest)
    if not watched.points:
        return Status("caution", "no data yet")
    return Status("good", f"{_latest(watched, naming)}; {counted}")


def overall(watched: Sequence[Watched], found: Sequence[Status]) -> str:
    """Return how all models do, in one sentence."""
    parts = []
    for level, (_, words) in LEVELS.items():
        names = [one.series.name for one, state in zip(watched, found, strict=True) if state.level == level]
        if names and level == "good":
            parts.append("all are fine" if len(names) == len(watched) else f"{len(names)} fine")
        elif names:
            parts.append(f"{len(names)} {words} ({', '.join(names)})")
    return f"{len(watched)} models: {', '.join(parts)}."


def track_record(watched: Watched) -> str:
    """Return how often realised accuracy lay inside the interval, or that nobody knows."""
    record = watched.record
    if record.windows == 0:
        some = any(point.realised is not None for point in watched.points)
        came = "The labels that came are too few" if some else "No labels have come yet"
        return (
            f"{came}, so nothing here has been checked against the truth. A few hundred labels of one window would do: "
            "`leadline plan` chooses the rows."
        )
    n, inside, level = record.windows, record.inside, record.confidence_level
    told = (
        f"Realised accuracy lay inside the interval, as far as the labels can tell, in {inside:,} of {n:,} labelled "
        f"window{'' if n == 1 else 's'}; nominal {100 * level:g} %."
    )
    if record.mean_error is not None:
        told += f" Estimates were off by {100 * record.mean_error:.1f} points on average."
    if bdtr(inside, n, level) < _RARE:
        told += " That is fewer than promised: the intervals are too narrow here, so rely on labels."
    return told


def said_by_labels(realised: Realised, estimate: tuple[float, float]) -> str:
    """Return what labels say of a window, and whether they agree with the estimate: whether the intervals meet."""
    (low, high), (least, most) = estimate, realised.interval
    agreed = "which agrees with the estimate" if low <= most and least <= high else "which contradicts the estimate"
    chosen = {"all": "", "planned": ", drawn at random"}.get(realised.sample, ", not known to be a random sample")
    return (
        f"Labels: {percent(realised.accuracy)} right ({interval(realised.interval)}), {agreed}; "
        f"{realised.n_labels:,} of {realised.n_rows:,} rows are labelled{chosen}."
    )


def estimate_words(accuracy: float, ends: tuple[float, float]) -> str:
    """Return an estimate with its interval."""
    return f"{percent(accuracy)} ({interval(ends)})"


def _happened(alarm: Alarm, watched: Watched) -> str:
    floor = watched.series.floor
    words = rule_words(alarm.rule)
    return f"{words} of {percent(floor)}" if alarm.rule == "floor" and floor is not None else words


def _now(watched: Watched, alarm: Alarm, naming: Naming) -> str:
    """Return where the accuracy stands."""
    if not watched.points:
        return ""
    if alarm.rule == "no-data":
        return f"; before that, {_latest(watched, naming)}"
    told = f": {_latest(watched, naming)}"
    labelled = next((point for point in reversed(watched.points) if point.realised is not None), None)
    if alarm.rule == "fall" and labelled is not None and labelled.realised is not None:
        at, found = naming.window(labelled.window), labelled.realised
        told += f"; labels of {at} say {estimate_words(found.accuracy, found.interval)}"
    return told


def _latest(watched: Watched, naming: Naming) -> str:
    latest = watched.points[-1]
    said, before = estimate_words(latest.accuracy, latest.interval), percent(watched.series.reference)
    return f"{said} in the latest window, {naming.window(latest.window)}; {before} on the source"


def _count(live: Sequence[Alarm]) -> str:
    """Return how many alarms there are."""
    parts = []
    for state in (AlarmState.OPEN, AlarmState.ACKNOWLEDGED):
        number = sum(alarm.state is state for alarm in live)
        if number:
            parts.append(f"{number} alarm{'' if number == 1 else 's'} {state.value}")
    return ", ".join(parts) or "no alarm open"
