"""A year of digits in fast motion: the monitor sees a harmless change, then a sensor that fails, and late labels.

Two sites send 400 digits a week. In spring both see mostly 0, 4 and 6, which the network reads as well as the rest.
From September the sensor of one site gets noisier week by week. Four labels in ten arrive, a week late.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.comparison import Progress, counting
from leadline.data.files import write_bytes, write_outputs
from leadline.data.outputs import IntArray, Outputs
from leadline.demo.digits import SEED, Digits, add_noise, mostly, refuse_to_overwrite, train
from leadline.estimators.registry import make
from leadline.monitor.monitor import Monitor
from leadline.monitor.records import Alarm, Point, TrackRecord

SERIES = "digits"
STORE, PAGE, MODEL, LABELS, BATCHES = "monitor.db", "monitor.html", "model.leadline", "labels.csv", "weeks"
SITES = ("north", "south")
FAILING = "north"
FREQUENT = (0, 4, 6)

_WEEK = np.timedelta64(7, "D")
_FIRST = np.datetime64("2025-01-06")  # a Monday
_OTHER_MIX, _AS_BEFORE, _FAILS, _END = 13, 25, 34, 52  # weeks: 7 April, 30 June, 1 September
_ROWS = 400
_LABELLED = 0.4
_USUAL_NOISE, _WORSE_BY, _WORST = 0.05, 0.08, 0.4  # spread of the noise: always, more each week, at most
_STORE_FILES = (STORE, f"{STORE}-wal", f"{STORE}-shm")


@dataclass(frozen=True)
class Phase:
    """A part of the year.

    Attributes
    ----------
    what
        What was different in it.
    first, last
        The Mondays of its weeks.
    truth, estimated
        Accuracy of all rows: by all labels, which the monitor does not have, and as it estimated them.
    by_site
        The same two for each site.
    """

    what: str
    first: str
    last: str
    truth: float
    estimated: float
    by_site: dict[str, tuple[float, float]]


@dataclass(frozen=True)
class Seen:
    """An alarm, when it was first there.

    Attributes
    ----------
    alarm
        As it is at the end of the year.
    on
        The day on which the monitor knew.
    weeks
        Weeks of rows, from the first that was different on, that this took.
    """

    alarm: Alarm
    on: str
    weeks: int


@dataclass(frozen=True)
class Year:
    """What the year showed.

    Attributes
    ----------
    folder
        Where the files are.
    reference
        Accuracy on the source.
    phases
        In the order of time.
    seen
        Alarms, in the order in which they were raised.
    record
        How often labels lay inside the intervals.
    """

    folder: Path
    reference: float
    phases: list[Phase]
    seen: list[Seen]
    record: TrackRecord


@dataclass(frozen=True, eq=False)
class _Week:
    """Rows of a week with times, ids and sites, their true classes, and those of them whose labels will come."""

    rows: Outputs
    labels: IntArray
    labelled: NDArray[np.intp]

    def column(self, name: str) -> NDArray[Any]:
        """Return a column of the rows."""
        return np.asarray(self.rows.metadata[name])

    def late_labels(self) -> tuple[list[str], list[int]]:
        """Return ids and labels of the rows whose labels come."""
        return self.column("id")[self.labelled].tolist(), self.labels[self.labelled].tolist()


def run(folder: str | Path, *, method: str = "auto", force: bool = False, progress: Progress | None = None) -> Year:
    """Train, replay the year week by week, and write the store, the page and what they were made of to a folder.

    Parameters
    ----------
    folder
        Made if it does not exist.
    method
        What estimates the accuracy.
    force
        Overwrite the demo's files if they exist.
    progress
        Called after each step with steps done, steps in all, and what was done.
    """
    folder = Path(folder)
    refuse_to_overwrite(folder, [STORE, PAGE, MODEL, LABELS, BATCHES], force=force)
    report = counting(progress, _END + 2)
    digits = train()
    source = digits.source
    model = make(method).fit(source.logits, source.labels)
    report("train a network on digits")
    (folder / BATCHES).mkdir(parents=True, exist_ok=True)
    for name in _STORE_FILES:
        (folder / name).unlink(missing_ok=True)
    model.save(folder / MODEL, force=force)
    weeks = list(_weeks(digits))
    raised: dict[int, int] = {}
    with Monitor(folder / STORE) as monitor:
        monitor.register(SERIES, model, every="1w", by=["site"])
        for number, week in enumerate(weeks):
            path = folder / BATCHES / f"{_monday(number)}.parquet"
            write_outputs(week.rows, path, force=force)
            monitor.add(SERIES, path, batch=str(path))
            if number:
                monitor.add_labels(SERIES, *weeks[number - 1].late_labels())
            for alarm in monitor.alarms(SERIES):
                raised.setdefault(alarm.number, number)
            report(f"week of {_monday(number)}")
        found = monitor.watched(SERIES)
        monitor.page(folder / PAGE, force=force)
    write_bytes(folder / LABELS, _label_table(weeks[:-1]).encode(), force=force)
    report("write the page")
    segments = {str(site): points for (site,), points in found.segments.items()}
    seen = [_seen(alarm, raised[alarm.number]) for alarm in found.alarms]
    return Year(
        folder, found.series.reference, list(_phases(weeks, found.points, segments)),
        sorted(seen, key=lambda one: one.on), found.record,
    )  # fmt: skip


def _weeks(digits: Digits) -> Iterator[_Week]:
    """Yield what each week brings."""
    for week in range(_END):
        rng = np.random.default_rng([SEED, week])
        other = _OTHER_MIX <= week < _AS_BEFORE
        n = len(digits.labels)
        rows = mostly(FREQUENT, digits.labels, _ROWS, rng) if other else rng.integers(0, n, _ROWS)
        sites = np.array(SITES)[rng.integers(0, len(SITES), _ROWS)]
        worse = min(_WORST, _WORSE_BY * max(0, week - _FAILS + 1))
        images = add_noise(digits.images[rows], rng, spread=_USUAL_NOISE)
        noisy = add_noise(images, rng, spread=worse)
        seen = np.where((sites == FAILING)[:, None, None], noisy, images)
        times = _FIRST + week * _WEEK + np.sort(rng.integers(0, 7 * 86_400, _ROWS)) * np.timedelta64(1, "s")
        ids = np.array([f"{week:02}-{row:03}" for row in range(_ROWS)])
        metadata = {"ts": times, "site": sites, "id": ids}
        labelled = np.sort(rng.permutation(_ROWS)[: round(_LABELLED * _ROWS)])
        yield _Week(Outputs(digits.logits(seen), metadata=metadata), digits.labels[rows], labelled)


def _label_table(weeks: Sequence[_Week]) -> str:
    """Return the labels that came, as CSV."""
    lines = [f"{one},{label}" for week in weeks for one, label in zip(*week.late_labels(), strict=True)]
    return "\n".join(["id,label", *lines]) + "\n"


def _monday(week: int) -> str:
    return str(_FIRST + week * _WEEK)


def _seen(alarm: Alarm, week: int) -> Seen:
    """Return an alarm with when it was known: at the end of a week."""
    began = max((first for first in (_OTHER_MIX, _FAILS) if first <= week), default=0)
    return Seen(alarm, _monday(week + 1), week - began + 1)


def _phases(
    weeks: Sequence[_Week], points: Sequence[Point], segments: Mapping[str, Sequence[Point]]
) -> Iterator[Phase]:
    """Yield what was true and what was estimated in each part of the year."""
    often = f"{', '.join(map(str, FREQUENT[:-1]))} and {FREQUENT[-1]}"
    bounds = [
        ("as on the source", 0, _OTHER_MIX), (f"mostly {often}", _OTHER_MIX, _AS_BEFORE),
        ("as before", _AS_BEFORE, _FAILS), (f"{FAILING}'s sensor fails", _FAILS, _END),
    ]  # fmt: skip
    for what, first, end in bounds:
        right = np.concatenate([week.rows.logits.argmax(axis=1) == week.labels for week in weeks[first:end]])
        sites = np.concatenate([week.column("site") for week in weeks[first:end]])
        by_site = {
            site: (float(right[sites == site].mean()), _mean(segments[site][first:end]))
            for site in SITES
        }  # fmt: skip
        yield Phase(
            what, _monday(first), _monday(end - 1), float(right.mean()), _mean(points[first:end]), by_site
        )  # fmt: skip


def _mean(points: Sequence[Point]) -> float:
    """Return the estimated accuracy of all rows of some windows."""
    return float(np.average([point.accuracy for point in points], weights=[point.n_rows for point in points]))
