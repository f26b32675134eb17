"""The outbox: what to tell where, until it has arrived.

A message is written in the transaction of what it tells, and sent later outside of any: a channel that fails or hangs
holds nobody up. It arrives at least once. Who sends takes a message by moving its next try to the end of a lease;
somebody who is killed before noting that it has arrived leaves it to the next, who sends it again.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection, Engine, Row

from leadline.monitor.notifications.kinds.errors import DeliveryError
from leadline.monitor.notifications.kinds.secrets import Secrets
from leadline.monitor.notifications.kinds.table import KINDS
from leadline.monitor.schema import CHANNELS, OUTBOX
from leadline.monitor.windows import from_microseconds, microseconds

WAITING, DELIVERED, FAILED = "waiting", "delivered", "failed"

#: Longer than a message can take to be sent and a writer can wait for the store, so that nobody sends it meanwhile.
LEASE = timedelta(minutes=5)
FIRST_DELAY, LONGEST_DELAY = timedelta(minutes=1), timedelta(hours=6)
#: Tries before a message is given up, after about three days: an outage of a week-end loses nothing.
MOST_ATTEMPTS = 20


@dataclass(frozen=True)
class Delivered:
    """What a run of :func:`deliver` did.

    Attributes
    ----------
    delivered, postponed, given_up
        Messages that arrived, that failed and will be tried again, and that failed for the last time.
    waiting
        Messages in the outbox that are still to be sent, now or later.
    problems
        Why messages failed, and remarks on those that arrived, with the channel: a line each.
    """

    delivered: int
    postponed: int
    given_up: int
    waiting: int
    problems: tuple[str, ...]


@dataclass(frozen=True)
class Delivery:
    """A message in the outbox.

    Attributes
    ----------
    number, channel, alarm
        In the store.
    series, event
        What it tells of.
    kind
        Of the channel.
    state
        ``waiting``, ``delivered``, or ``failed`` once it was given up.
    attempts
        How often it was tried.
    at
        When it is tried next, or when the last try was.
    error
        Why the last try failed, or a remark on one that did not.
    """

    number: int
    channel: int
    alarm: int | None
    series: str
    event: str
    kind: str
    state: str
    attempts: int
    at: datetime
    error: str

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return {**self.__dict__, "at": self.at.isoformat(timespec="seconds")}


def enqueue(
    connection: Connection, alarm_id: int, event: str, message: Mapping[str, Any], series_id: int, now: datetime
) -> int:
    """Write a message for every channel of a series, and for those of all series.

    Parameters
    ----------
    connection
        In the transaction in which the event happens: the message is there if that is.
    alarm_id, event
        What is told. A channel is told the same once, however often this is called, unless something else happened to
        the alarm in between: one that is raised again is told again.
    message
        See :mod:`leadline.monitor.notifications.messages`.
    series_id
        Of the series in the store.
    now
        When the first try is due.

    Returns
    -------
    How many messages were written.
    """
    concerned = sa.or_(CHANNELS.c.series == series_id, CHANNELS.c.series.is_(None))
    # Locked, so that a channel cannot go before its message is there.
    channels = sa.select(CHANNELS).where(concerned).order_by(CHANNELS.c.id).with_for_update(read=True, key_share=True)
    told: dict[tuple[str, str], int] = {}  # a channel of the series and the same for all are one
    for row in connection.execute(channels):
        if message["harmful"] or not json.loads(row.settings).get("harmful_only", False):
            told.setdefault((row.kind, row.settings), row.id)
    text, due = json.dumps(message, allow_nan=False), microseconds(now)
    before = _events(connection, alarm_id)
    entries = [
        {"alarm": alarm_id, "channel": channel, "event": name, "message": text, "state": WAITING, "attempts": 0,
         "next_at": due, "error": ""}
        for channel in told.values()
        if (name := _next_name(event, before.get(channel, []))) is not None
    ]  # fmt: skip
    if not entries:
        return 0
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    # Counted by what comes back, as PostgreSQL's driver does not count what is inserted.
    written = insert(OUTBOX).values(entries).on_conflict_do_nothing().returning(OUTBOX.c.id)
    return len(connection.execute(written).all())


def deliver(engine: Engine, now: datetime, *, limit: int = 100, deadline_seconds: float = 60.0) -> Delivered:
    """Send what is due.

    A channel that fails is left alone for the rest of the run: one that hangs costs one timeout and not one for each of
    its messages. One whose environment variables are not set here is left to those who have them, and that is no failed
    try. Any number of processes may do this at once.

    Parameters
    ----------
    engine
        Of the store. No transaction is open while a message is sent.
    now
        When this begins.
    limit
        The most messages to send.
    deadline_seconds
        When to begin with no further message.
    """
    started = monotonic()

    def clock() -> datetime:
        return now + timedelta(seconds=monotonic() - started)

    outcomes: list[str] = []
    problems: list[str] = []
    failing: set[int] = set()
    while len(outcomes) < limit and monotonic() - started < deadline_seconds:
        row = _find(engine, clock(), failing)
        if row is None:
            break
        try:
            settings, secrets = _prepare(row)
        except DeliveryError as error:
            failing.add(row.channel)
            problems.append(_problem(row, str(error)))
            continue
        if not _take(engine, row, clock()):
            continue  # somebody else was faster
        try:
            remark = KINDS[row.kind].send(_parse(row.message), settings, secrets)
        except DeliveryError as error:
            failing.add(row.channel)
            problems.append(_problem(row, str(error)))
            outcomes.append(_postpone(engine, row, str(error), clock()))
        else:
            outcomes.append(DELIVERED)
            _finish(engine, row, remark, clock())
            if remark:
                problems.append(_problem(row, remark))
    with engine.connect() as connection:
        waiting = connection.execute(sa.select(sa.func.count()).where(OUTBOX.c.state == WAITING)).scalar_one()
    arrived, postponed, given_up = (outcomes.count(state) for state in (DELIVERED, WAITING, FAILED))
    return Delivered(arrived, postponed, given_up, waiting, tuple(problems))


def list_outbox(connection: Connection, *, state: str | None = None, limit: int = 100) -> tuple[Delivery, ...]:
    """Return messages of the outbox, the latest first; those in a state, or all."""
    query = _rows().order_by(OUTBOX.c.id.desc()).limit(limit)
    if state is not None:
        query = query.where(OUTBOX.c.state == state)
    return tuple(_delivery(row) for row in connection.execute(query))


def retry_failed(connection: Connection, now: datetime) -> int:
    """Send again, from now on, what was given up or waits after a failure; return how many messages that is."""
    failed = OUTBOX.update().where(OUTBOX.c.state != DELIVERED, OUTBOX.c.error != "")
    return connection.execute(failed.values(state=WAITING, attempts=0, next_at=microseconds(now), error="")).rowcount


def delay(attempts: int, key: str) -> timedelta:
    """Return how long to wait after some tries: twice as long each time, and up to a quarter more.

    What is more differs by ``key``, so that what failed together is not tried again together.
    """
    # Ten of them are longer than the longest; a hundred are too much for a timedelta.
    doublings = min(attempts - 1, 10)
    pause: timedelta = min(FIRST_DELAY * 2**doublings, LONGEST_DELAY)
    return pause * (1 + 0.25 * zlib.crc32(f"{attempts} {key}".encode()) / 2**32)


def _events(connection: Connection, alarm_id: int) -> dict[int, list[str]]:
    """Return what each channel was told of an alarm, or will be, in the order of time."""
    query = sa.select(OUTBOX.c.channel, OUTBOX.c.event).where(OUTBOX.c.alarm == alarm_id).order_by(OUTBOX.c.id)
    events: dict[int, list[str]] = {}
    for channel, name in connection.execute(query):
        events.setdefault(channel, []).append(name)
    return events


def _next_name(event: str, before: Sequence[str]) -> str | None:
    """Return what the outbox calls an event: ``raised``, then ``raised 2``; None if it was the last that happened."""
    kinds = [name.partition(" ")[0] for name in before]
    if kinds[-1:] == [event]:
        return None
    return f"{event} {kinds.count(event) + 1}" if event in kinds else event


def _rows() -> sa.Select[Any]:
    columns = (*OUTBOX.c, CHANNELS.c.kind, CHANNELS.c.settings)
    return sa.select(*columns).select_from(OUTBOX.join(CHANNELS, OUTBOX.c.channel == CHANNELS.c.id))


def _delivery(row: Row[Any]) -> Delivery:
    message = json.loads(row.message)
    return Delivery(
        row.id, row.channel, row.alarm, message["series"], message["event"], row.kind, row.state, row.attempts,
        from_microseconds(row.next_at), row.error,
    )  # fmt: skip


def _find(engine: Engine, now: datetime, failing: set[int]) -> Row[Any] | None:
    """Return what has been due longest, of channels that do not fail; None if there is nothing.

    What is due later than the longest wait was written by a clock that ran ahead and was then set right: it is due now.
    """
    come = sa.or_(OUTBOX.c.next_at <= microseconds(now), OUTBOX.c.next_at > microseconds(now + 2 * LONGEST_DELAY))
    due = sa.and_(OUTBOX.c.state == WAITING, come, OUTBOX.c.channel.not_in(failing))
    with engine.connect() as connection:
        return connection.execute(_rows().where(due).order_by(OUTBOX.c.next_at, OUTBOX.c.id).limit(1)).first()


def _prepare(row: Row[Any]) -> tuple[dict[str, Any], Secrets]:
    """Return the settings and the secrets of a message's channel, or say why it cannot be sent from here."""
    if row.kind not in KINDS:
        raise DeliveryError("this Leadline does not know the kind of the channel")
    settings = _parse(row.settings)
    return settings, Secrets.read(settings)


def _take(engine: Engine, row: Row[Any], now: datetime) -> bool:
    """Take a message for the time of a lease, unless it is no longer as it was read; tell whether it is ours.

    Reading and taking are two transactions, as SQLite does not let one that has read wait for its turn to write.
    """
    lease = OUTBOX.update().where(*_as_read(row, row.attempts), OUTBOX.c.next_at == row.next_at)
    return _changed(engine, lease.values(attempts=row.attempts + 1, next_at=microseconds(now + LEASE), error=""))


def _parse(text: str) -> dict[str, Any]:
    try:
        return dict(json.loads(text))
    except (TypeError, ValueError):
        raise DeliveryError("the message or the settings in the store are damaged") from None


def _problem(row: Row[Any], reason: str) -> str:
    return f"channel {row.channel} ({row.kind}): {reason}"


def _finish(engine: Engine, row: Row[Any], remark: str, now: datetime) -> None:
    """Note that a message has arrived, whoever may be sending it again."""
    done = OUTBOX.update().where(OUTBOX.c.id == row.id)
    _changed(engine, done.values(state=DELIVERED, next_at=microseconds(now), error=remark))


def _postpone(engine: Engine, row: Row[Any], reason: str, now: datetime) -> str:
    """Note that a message has failed, unless somebody else has it by now; return its state."""
    attempts = row.attempts + 1
    state = FAILED if attempts >= MOST_ATTEMPTS else WAITING
    due = now if state == FAILED else now + delay(attempts, f"{row.id} {row.message}")
    failed = OUTBOX.update().where(*_as_read(row, attempts))
    _changed(engine, failed.values(state=state, next_at=microseconds(due), error=reason))
    return state


def _as_read(row: Row[Any], attempts: int) -> tuple[sa.ColumnElement[bool], ...]:
    return OUTBOX.c.id == row.id, OUTBOX.c.state == WAITING, OUTBOX.c.attempts == attempts


def _changed(engine: Engine, update: sa.Update) -> bool:
    """Tell whether an update, in a transaction of its own, has found its row."""
    with engine.begin() as connection:
        return connection.execute(update).rowcount == 1
