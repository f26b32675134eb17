"""The outbox: what to tell where, until it has arrived.

A message is written in the transaction of what it tells, and sent later outside of any: a channel that fails or hangs
holds nobody up. It arrives at least once. Who sends takes a message by moving its next try to the end of a lease;
somebody who is killed before noting that it has arrived leaves it to the next, who sends it again.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
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
        What is told; each channel is told once, however often this is called.
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
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    written = 0
    for channel in told.values():
        entry = insert(OUTBOX).values(
            alarm=alarm_id, channel=channel, event=event, message=text, state=WAITING, attempts=0, next_at=due, error=""
        )
        written += connection.execute(entry.on_conflict_do_nothing()).rowcount
    return written


def deliver(engine: Engine, now: datetime, *, limit: int = 100, deadline_seconds: float = 60.0) -> Delivered:
    """Send what is due.

    A channel that fails is left alone for the rest of the run: one that hangs costs one timeout and not one for each of
    its messages. Any number of processes may do this at once.

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
        row = _take(engine, clock(), failing)
        if row is None:
            break
        try:
            problem = _send(row)
        except DeliveryError as error:
            problem = str(error)
            failing.add(row.channel)
            outcomes.append(_postpone(engine, row, problem, clock()))
        else:
            outcomes.append(DELIVERED)
            _finish(engine, row, problem, clock())
        if problem:
            problems.append(f"channel {row.channel} ({row.kind}): {problem}")
    with engine.connect() as connection:
        waiting = connection.execute(sa.select(sa.func.count()).where(OUTBOX.c.state == WAITING)).scalar_one()
    arrived, postponed, given_up = (outcomes.count(state) for state in (DELIVERED, WAITING, FAILED))
    return Delivered(arrived, postponed, given_up, waiting, tuple(problems))


def list_outbox(connection: Connection, *, state: str | None = None, limit: int = 100) -> tuple[Delivery, ...]:
    """Return messages of the outbox, the latest first; those in a state, or all."""
    query = _rows().order_by(OUTBOX.c.id.desc()).limit(limit)
    if state is not None:
        query = query.where(OUTBOX.c.state == state)
    return tuple(
        Delivery(
            row.id, row.channel, row.alarm, json.loads(row.message)["series"], row.event, row.kind, row.state,
            row.attempts, from_microseconds(row.next_at), row.error,
        )
        for row in connection.execute(query)
    )  # fmt: skip


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


def _rows() -> sa.Select[Any]:
    columns = (*OUTBOX.c, CHANNELS.c.kind, CHANNELS.c.settings)
    return sa.select(*columns).select_from(OUTBOX.join(CHANNELS, OUTBOX.c.channel == CHANNELS.c.id))


def _take(engine: Engine, now: datetime, failing: set[int]) -> Row[Any] | None:
    """Take what has been due longest, of channels that do not fail; None if there is nothing."""
    due = sa.and_(OUTBOX.c.state == WAITING, OUTBOX.c.next_at <= microseconds(now), OUTBOX.c.channel.not_in(failing))
    while True:
        with engine.connect() as connection:
            row = connection.execute(_rows().where(due).order_by(OUTBOX.c.next_at, OUTBOX.c.id).limit(1)).first()
        if row is None:
            return None
        # Taken by whoever finds it as it was read. Reading and writing are two transactions, as SQLite does not let one
        # that has read wait for its turn to write.
        lease = OUTBOX.update().where(*_as_read(row, row.attempts), OUTBOX.c.next_at == row.next_at)
        if _changed(engine, lease.values(attempts=row.attempts + 1, next_at=microseconds(now + LEASE), error="")):
            return row


def _send(row: Row[Any]) -> str:
    """Send a message and return the remark on it."""
    if row.kind not in KINDS:
        raise DeliveryError("this Leadline does not know the kind of the channel")
    try:
        message, settings = json.loads(row.message), json.loads(row.settings)
    except ValueError:
        raise DeliveryError("the message or the settings in the store are damaged") from None
    return KINDS[row.kind].send(message, settings, Secrets.read(settings))


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
