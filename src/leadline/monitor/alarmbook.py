"""Alarms in the store: what the rules find in a history is compared with what was raised before."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from leadline.errors import InputError
from leadline.monitor import catalogue, reading
from leadline.monitor.alarms import Episode, Track, WholeTrack, judge
from leadline.monitor.blobs import unpack
from leadline.monitor.catalogue import ALL_ROWS
from leadline.monitor.notifications.messages import Event, of_alarm
from leadline.monitor.notifications.outbox import enqueue
from leadline.monitor.records import AlarmState, Window
from leadline.monitor.schema import ALARMS, BATCHES, CELLS, WINDOWS
from leadline.monitor.store import inserted
from leadline.monitor.windows import from_microseconds, microseconds

_LATE_WINDOWS, _LATE = 7, timedelta(days=2)  # after which the latest rows are a replay
_GONE = "No longer so, after rows or labels came late."


def reconcile(connection: Connection, entry: catalogue.Entry, now: datetime) -> None:
    """Raise, extend and close alarms as the history of a series says now, in a transaction of its own."""
    known = connection.execute(
        sa.select(ALARMS).where(ALARMS.c.series == entry.id).order_by(ALARMS.c.first)
    ).all()  # fmt: skip
    resets: dict[str, list[int]] = {}
    for alarm in known:
        if alarm.reset is not None:
            resets.setdefault(alarm.rule, []).append(alarm.reset)
    tracks = _tracks(connection, entry)
    if tracks is None:
        return
    whole, segments = tracks
    windows = reading.read_windows(connection, entry)
    estimated = set(whole.numbers.tolist())
    windows = [window for window in windows if window.number in estimated]
    at = _judged_at(connection, entry, windows[-1], now)
    episodes = judge(entry.series, whole, segments, now=at, windows=windows, resets=resets)
    matched = set()
    for episode in episodes:
        same = [alarm for alarm in known if alarm.id not in matched and _same(alarm, episode)]
        if same:
            matched.add(same[0].id)
            _extend(connection, entry, same[0], episode, now)
        else:
            _raise(connection, entry, episode, now)
    for alarm in known:
        if alarm.id not in matched and alarm.state != AlarmState.CLOSED.value:
            _close(connection, entry, alarm.id, now, note=_GONE)


def _judged_at(connection: Connection, entry: catalogue.Entry, latest: Window, now: datetime) -> datetime:
    """Return the time at which a history is judged: now, or for a replay of old rows, when the latest window ended.

    Rows that come long after their window are not those of a stream that has stopped.
    """
    added = connection.execute(
        sa.select(sa.func.max(BATCHES.c.added_at)).where(BATCHES.c.series == entry.id)
    ).scalar_one()  # fmt: skip
    late = from_microseconds(int(added)) - latest.end
    return latest.end if late > max(_LATE_WINDOWS * (latest.end - latest.start), _LATE) else now


def _same(alarm: Any, episode: Episode) -> bool:
    """Say whether an episode is that of an alarm: of the same rule, at the same time."""
    return bool(alarm.rule == episode.rule and alarm.first <= episode.last and episode.first <= alarm.last)


def _raise(connection: Connection, entry: catalogue.Entry, episode: Episode, now: datetime) -> None:
    """Add an alarm; one that has ended already is history, and nobody is told."""
    state = AlarmState.OPEN if episode.open else AlarmState.CLOSED
    number = inserted(
        connection,
        ALARMS.insert().values(
            series=entry.id, rule=episode.rule, first=episode.first, state=state.value, harmful=episode.harmful,
            raised_at=microseconds(now), closed_at=None if episode.open else microseconds(now), note="",
            **_found(entry, episode),
        ),
    )  # fmt: skip
    if episode.open:
        _tell(connection, entry, number, "raised", now)


def _extend(connection: Connection, entry: catalogue.Entry, alarm: Any, episode: Episode, now: datetime) -> None:
    """Bring an alarm up to date."""
    if alarm.reset is not None:
        return  # a person closed it
    connection.execute(ALARMS.update().where(ALARMS.c.id == alarm.id).values(**_found(entry, episode)))
    closed = alarm.state == AlarmState.CLOSED.value
    if episode.open and closed:
        reopened = {"state": AlarmState.OPEN.value, "closed_at": None, "note": ""}
        connection.execute(ALARMS.update().where(ALARMS.c.id == alarm.id).values(**reopened))
        _tell(connection, entry, alarm.id, "raised", now)
    elif not episode.open and not closed:
        _close(connection, entry, alarm.id, now, note=alarm.note)


def _found(entry: catalogue.Entry, episode: Episode) -> dict[str, Any]:
    """Return what changes while an alarm holds."""
    segments = [dict(zip(entry.series.by, values, strict=True)) for values in episode.segments]
    return {
        "last": episode.last, "reason": episode.reason, "segments": json.dumps(segments), "evidence": episode.evidence,
    }  # fmt: skip


def _close(
    connection: Connection, entry: catalogue.Entry, number: int, now: datetime, *, note: str, reset: int | None = None
) -> None:
    values = {"state": AlarmState.CLOSED.value, "closed_at": microseconds(now), "note": note, "reset": reset}
    connection.execute(ALARMS.update().where(ALARMS.c.id == number).values(**values))
    _tell(connection, entry, number, "closed", now)


def answer(
    connection: Connection, entry: catalogue.Entry, number: int, state: AlarmState, note: str, now: datetime
) -> None:
    """Acknowledge or close an alarm; a rule whose alarm a person closes starts anew after the latest window."""
    wanted = sa.select(ALARMS).where(ALARMS.c.series == entry.id, ALARMS.c.id == number)
    alarm = connection.execute(wanted).first() if number.bit_length() < 64 else None  # no database counts so far
    if alarm is None:
        raise InputError(f"series {entry.series.name!r} has no alarm {number}.")
    if alarm.state == AlarmState.CLOSED.value:
        raise InputError(f"alarm {number} is closed already.")
    if state is AlarmState.CLOSED:
        latest = connection.execute(sa.select(sa.func.max(WINDOWS.c.number)).where(WINDOWS.c.series == entry.id))
        _close(connection, entry, number, now, note=note, reset=max(alarm.last, int(latest.scalar_one())))
    else:
        connection.execute(ALARMS.update().where(ALARMS.c.id == number).values(state=state.value, note=note))
        _tell(connection, entry, number, "acknowledged", now)


def _tell(connection: Connection, entry: catalogue.Entry, number: int, event: Event, now: datetime) -> None:
    """Write what happened to an alarm to the outbox, in the same transaction."""
    alarm = next(one for one in reading.read_alarms(connection, entry) if one.number == number)
    enqueue(connection, number, event, of_alarm(alarm, event, now), entry.id, now)


_COUNTS, _VALUES = ("number", "n_rows", "labelled", "right"), ("accuracy", "realised", "distance", "noise")


def _tracks(connection: Connection, entry: catalogue.Entry) -> tuple[WholeTrack, dict[tuple[Any, ...], Track]] | None:
    """Return the history of all rows and of each segment; None where nothing is estimated."""
    known = catalogue.known_segments(connection, entry.id)
    whole = known.get(ALL_ROWS)
    names = ("segment", *_COUNTS, *_VALUES)
    rows = connection.execute(
        sa.select(*(WINDOWS.c.number if name == "number" else CELLS.c[name] for name in names))
        .join(WINDOWS, WINDOWS.c.id == CELLS.c.window_id)
        .where(WINDOWS.c.series == entry.id, CELLS.c.accuracy.is_not(None)).order_by(CELLS.c.segment, WINDOWS.c.number)
    ).all()  # fmt: skip
    if not rows:
        return None
    table: dict[str, Any] = {
        name: np.array(column, dtype=np.float64 if name in _VALUES else np.int64)
        for name, column in zip(names, zip(*rows, strict=True), strict=True)
    }
    numbers, starts = np.unique(table["segment"], return_index=True)
    places = np.split(np.arange(len(rows)), starts[1:])
    parts = {
        number: {name: column[mine] for name, column in table.items()}
        for number, mine in zip(numbers.tolist(), places, strict=True)
    }
    if whole is None or whole not in parts:
        return None
    of_whole = parts.pop(whole)
    values = catalogue.segment_values(known.items())
    classes = [unpack(data) for data in _by_class(connection, entry, whole)]
    return WholeTrack(
        **_shared(of_whole),
        distance=of_whole["distance"],
        noise=of_whole["noise"],
        class_counts=np.array([one["count"] for one in classes], dtype=np.float64),
        class_accuracy=np.array([one["accuracy"] for one in classes], dtype=np.float64),
    ), {values[number]: Track(**_shared(part)) for number, part in parts.items()}


def _shared(part: dict[str, Any]) -> dict[str, Any]:
    """Return what all tracks have."""
    # Where labels were planned, not the plain share of right ones.
    right = np.where(np.isnan(part["realised"]), part["right"], part["realised"] * part["labelled"])
    same = {name: part[name] for name in ("n_rows", "accuracy", "labelled")}
    return {"numbers": part["number"], "right": right, **same}


def _by_class(connection: Connection, entry: catalogue.Entry, whole: int) -> Sequence[bytes]:
    """Return what was estimated per predicted class in each window, in the order of time."""
    return connection.execute(
        sa.select(CELLS.c.by_class).join(WINDOWS, WINDOWS.c.id == CELLS.c.window_id)
        .where(WINDOWS.c.series == entry.id, CELLS.c.segment == whole, CELLS.c.accuracy.is_not(None))
        .order_by(WINDOWS.c.number)
    ).scalars().all()  # fmt: skip


def open_alarms(alarms: Sequence[Any]) -> list[Any]:
    """Return the alarms that somebody should look at: harmful ones that are open."""
    return [alarm for alarm in alarms if alarm.harmful and alarm.state is AlarmState.OPEN]
