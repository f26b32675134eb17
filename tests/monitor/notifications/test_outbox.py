"""The outbox: messages are there if their alarm is, and arrive at least once, whatever fails."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine

import leadline
from leadline import InputError
from leadline.monitor.notifications.channels import add_channel, list_channels, remove_channel
from leadline.monitor.notifications.messages import of_alarm
from leadline.monitor.notifications.outbox import (
    LEASE,
    MOST_ATTEMPTS,
    Delivered,
    Delivery,
    delay,
    deliver,
    enqueue,
    list_outbox,
    retry_failed,
)
from leadline.monitor.records import Alarm
from leadline.monitor.schema import ALARMS, CHANNELS, OUTBOX
from notification_servers import Web, status

MINUTE = timedelta(minutes=1)
FRAUD, CHURN = 1, 2


@pytest.fixture
def message(make_alarm: Callable[..., Alarm], now: datetime) -> dict[str, Any]:
    return of_alarm(make_alarm(), "raised", now)


def add(engine: Engine, series: int | None, kind: str = "webhook", **settings: Any) -> int:
    with engine.begin() as connection:
        return add_channel(connection, series, kind, settings)


def write(engine: Engine, message: dict[str, Any], now: datetime, alarm: int = 1, event: str = "raised") -> int:
    with engine.begin() as connection:
        return enqueue(connection, alarm, event, message, FRAUD, now)


def entries(engine: Engine, **which: Any) -> tuple[Delivery, ...]:
    with engine.connect() as connection:
        return list_outbox(connection, **which)


# ------------------------------------------------------------------------------------------------ channels
def test_channels_are_listed_as_they_were_added(engine: Engine) -> None:
    numbers = [
        add(engine, FRAUD, "slack", url_env="SLACK_URL"),
        add(engine, None, "command", command=("page-me", "--urgent"), timeout=3),
        add(engine, CHURN, "slack", url_env="SLACK_URL"),
    ]
    with engine.connect() as connection:
        assert [(one.number, one.series, one.kind, one.settings) for one in list_channels(connection)] == [
            (numbers[0], "fraud", "slack", {"url_env": "SLACK_URL"}),
            (numbers[1], None, "command", {"command": ["page-me", "--urgent"], "timeout": 3}),
            (numbers[2], "churn", "slack", {"url_env": "SLACK_URL"}),
        ]


@pytest.mark.parametrize("series", [FRAUD, None])
def test_a_channel_is_added_once(engine: Engine, series: int | None) -> None:
    first = add(engine, series, "webhook", url="https://a.example", timeout=3)
    assert add(engine, series, "webhook", timeout=3, url="https://a.example") == first
    assert add(engine, series, "webhook", timeout=4, url="https://a.example") != first


def test_wrong_channels_are_not_added(engine: Engine) -> None:
    with pytest.raises(InputError, match="slack needs the setting url_env"):
        add(engine, None, "slack")
    with pytest.raises(InputError, match="kind must be one of"):
        add(engine, None, "pigeon")
    with engine.connect() as connection:
        assert list_channels(connection) == ()


def test_a_removed_channel_takes_its_messages_with_it(engine: Engine, message: dict[str, Any], now: datetime) -> None:
    gone, kept = add(engine, FRAUD, url="https://a.example"), add(engine, FRAUD, url="https://b.example")
    write(engine, message, now)
    with engine.begin() as connection:
        remove_channel(connection, gone)
    assert [one.channel for one in entries(engine)] == [kept]
    with engine.begin() as connection, pytest.raises(InputError, match=rf"that of a channel \({kept}\); got {gone}"):
        remove_channel(connection, gone)


# ------------------------------------------------------------------------------------------------ what is written
def test_a_message_goes_to_the_channels_of_its_series_and_of_all(
    engine: Engine, message: dict[str, Any], now: datetime
) -> None:
    own, every = add(engine, FRAUD, url="https://a.example"), add(engine, None, url="https://b.example")
    add(engine, CHURN, url="https://c.example")
    add(engine, None, url="https://a.example")  # that of the series, once more
    assert write(engine, message, now) == 2
    assert sorted(one.channel for one in entries(engine)) == [own, every]
    (first, _) = entries(engine)
    assert (first.alarm, first.series, first.event, first.state, first.attempts, first.at, first.error) == (
        1, "fraud", "raised", "waiting", 0, now, "",
    )  # fmt: skip


def test_a_message_is_written_once(engine: Engine, message: dict[str, Any], now: datetime) -> None:
    add(engine, None, url="https://a.example")
    assert [write(engine, message, now), write(engine, message, now + MINUTE)] == [1, 0]
    assert [write(engine, message, now, event="closed"), write(engine, message, now, alarm=2)] == [1, 1]
    add(engine, FRAUD, url="https://b.example")
    assert write(engine, message, now, event="closed") == 1  # for the new channel
    assert len(entries(engine)) == 4


def test_an_alarm_that_is_raised_again_is_told_again(engine: Engine, message: dict[str, Any], now: datetime) -> None:
    add(engine, None, url="https://a.example")
    happened = ("raised", "raised", "closed", "raised", "raised", "acknowledged", "closed", "raised")
    assert [write(engine, {**message, "event": event}, now, event=event) for event in happened] == [
        1, 0, 1, 1, 0, 1, 1, 1,
    ]  # fmt: skip
    assert [one.event for one in reversed(entries(engine))] == [
        "raised", "closed", "raised", "acknowledged", "closed", "raised",
    ]  # fmt: skip


def test_a_message_is_there_if_its_alarm_is(engine: Engine, message: dict[str, Any], now: datetime) -> None:
    add(engine, None, url="https://a.example")
    with pytest.raises(RuntimeError), engine.begin() as connection:  # noqa: PT012 - what happens before the failure
        enqueue(connection, 1, "raised", message, FRAUD, now)
        raise RuntimeError
    assert entries(engine) == ()


def test_mere_information_can_be_left_out(
    engine: Engine, make_alarm: Callable[..., Alarm], message: dict[str, Any], now: datetime
) -> None:
    add(engine, None, url="https://a.example", harmful_only=True)
    assert write(engine, of_alarm(make_alarm(harmful=False), "raised", now), now) == 0
    assert write(engine, message, now) == 1


# ------------------------------------------------------------------------------------------------ what is sent
def test_delivery(engine: Engine, web: Web, message: dict[str, Any], now: datetime) -> None:
    add(engine, None, url=web.url)
    write(engine, message, now)
    assert deliver(engine, now - MINUTE) == Delivered(0, 0, 0, 1, ())
    assert deliver(engine, now) == Delivered(1, 0, 0, 0, ())
    assert deliver(engine, now + 10 * LEASE) == Delivered(0, 0, 0, 0, ())
    assert [request.content for request in web.requests] == [message]
    (entry,) = entries(engine)
    assert (entry.state, entry.attempts, entry.error) == ("delivered", 1, "")
    assert entry.to_dict()["at"] == "2026-03-05T02:00:00+00:00"


def test_a_failure_is_tried_again_later_and_later(
    engine: Engine, web: Web, message: dict[str, Any], now: datetime
) -> None:
    add(engine, None, url=web.url)
    write(engine, message, now)
    web.answer = status(503)
    reason = "the server answered 503 (Service Unavailable)"
    clock, waits = now, []
    for attempt in range(1, MOST_ATTEMPTS):
        assert deliver(engine, clock) == Delivered(0, 1, 0, 1, (f"channel 1 (webhook): {reason}",))
        (entry,) = entries(engine, state="waiting")
        assert (entry.attempts, entry.error) == (attempt, reason)
        waits.append(entry.at - clock)
        assert deliver(engine, entry.at - MINUTE / 2).postponed == 0
        clock = entry.at
    for minutes, wait in zip([1, 2, 4, 8, 16, 32, 64, 128, 256] + [360] * 10, waits, strict=True):
        assert minutes * MINUTE <= wait <= minutes * 1.25 * MINUTE + timedelta(seconds=5)
    assert timedelta(days=2.5) < clock - now < timedelta(days=4)
    assert deliver(engine, clock) == Delivered(0, 0, 1, 0, (f"channel 1 (webhook): {reason}",))
    assert deliver(engine, clock + timedelta(days=30)) == Delivered(0, 0, 0, 0, ())
    (entry,) = entries(engine, state="failed")
    assert (entry.attempts, entry.error) == (MOST_ATTEMPTS, reason)
    web.answer = status(200)
    with engine.begin() as connection:
        assert retry_failed(connection, clock) == 1
    assert deliver(engine, clock).delivered == 1
    with engine.begin() as connection:
        assert retry_failed(connection, clock) == 0


def test_what_waits_after_a_failure_can_be_tried_at_once(
    engine: Engine, web: Web, message: dict[str, Any], now: datetime
) -> None:
    add(engine, None, url=web.url)
    write(engine, message, now)
    web.answer = status(503)
    deliver(engine, now)
    web.answer = status(200)
    assert deliver(engine, now + timedelta(seconds=1)).delivered == 0
    with engine.begin() as connection:
        assert retry_failed(connection, now) == 1
    assert deliver(engine, now).delivered == 1


def test_what_failed_together_is_not_tried_again_together() -> None:
    waits = {delay(3, str(key)) for key in range(100)}
    assert len(waits) > 90
    assert all(4 * MINUTE <= wait <= 5 * MINUTE for wait in waits)
    assert delay(3, "a") == delay(3, "a")
    assert 6 * 60 * MINUTE <= delay(10_000, "a") <= 7.5 * 60 * MINUTE


def test_a_channel_that_hangs_costs_one_timeout_and_holds_up_no_other(
    engine: Engine, web: Web, message: dict[str, Any], now: datetime
) -> None:
    slow = Web()
    slow.answer = slow.hang
    add(engine, None, url=slow.url, timeout=0.1)
    add(engine, None, url=web.url)
    for alarm in (1, 2, 3, 4):
        write(engine, message, now, alarm)
    started = time.monotonic()
    done = deliver(engine, now)
    assert time.monotonic() - started < 2
    slow.stop()
    assert (done.delivered, done.postponed, done.waiting) == (4, 1, 4)
    assert done.problems == ("channel 1 (webhook): no answer within 0.1 seconds",)
    assert (len(slow.requests), len(web.requests)) == (1, 4)


def test_a_message_that_one_channel_refuses_holds_up_no_other_of_it(
    engine: Engine, web: Web, message: dict[str, Any], now: datetime
) -> None:
    add(engine, None, url=web.url)
    for alarm in (1, 2):
        write(engine, {**message, "alarm": alarm}, now, alarm)

    def answer(handler: BaseHTTPRequestHandler) -> None:
        status(400 if web.requests[-1].content["alarm"] == 1 else 200)(handler)

    web.answer = answer
    assert deliver(engine, now).postponed == 1
    assert deliver(engine, now).delivered == 1


def test_limits_of_a_run(engine: Engine, web: Web, message: dict[str, Any], now: datetime) -> None:
    add(engine, None, url=web.url)
    for alarm in (1, 2, 3):
        write(engine, message, now, alarm)
    assert deliver(engine, now, deadline_seconds=0) == Delivered(0, 0, 0, 3, ())
    assert deliver(engine, now, limit=2) == Delivered(2, 0, 0, 1, ())


def test_the_oldest_is_sent_first(engine: Engine, web: Web, message: dict[str, Any], now: datetime) -> None:
    add(engine, None, url=web.url)
    for alarm, minutes in ((1, 2), (2, 1), (3, 1)):
        write(engine, {**message, "alarm": alarm}, now + minutes * MINUTE, alarm)
    deliver(engine, now + 3 * MINUTE)
    assert [request.content["alarm"] for request in web.requests] == [2, 3, 1]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (CHANNELS.update().values(kind="pigeon"), "this Leadline does not know the kind of the channel"),
        (CHANNELS.update().values(settings="[1]"), "the message or the settings in the store are damaged"),
        (
            CHANNELS.update().values(settings='{"url_env": "NOT_SET_HERE"}'),
            "the environment variable NOT_SET_HERE is not set",
        ),
    ],
)
def test_who_cannot_send_leaves_it_to_others(
    engine: Engine, message: dict[str, Any], now: datetime, change: sa.Update, reason: str
) -> None:
    add(engine, None, url="https://a.example")
    for alarm in (1, 2):
        write(engine, message, now, alarm)
    with engine.begin() as connection:
        connection.execute(change)
    (problem,) = deliver(engine, now).problems
    assert problem.endswith(reason)
    assert {(one.state, one.attempts, one.at) for one in entries(engine)} == {("waiting", 0, now)}


def test_a_damaged_message_holds_up_no_other(engine: Engine, web: Web, message: dict[str, Any], now: datetime) -> None:
    add(engine, None, url=web.url)
    for alarm in (1, 2):
        write(engine, message, now, alarm)
    with engine.begin() as connection:
        connection.execute(OUTBOX.update().where(OUTBOX.c.alarm == 1).values(message="{"))
    assert deliver(engine, now).problems == (
        "channel 1 (webhook): the message or the settings in the store are damaged",
    )
    assert deliver(engine, now).delivered == 1


# ------------------------------------------------------------------------------------------------ many at once
def test_two_who_deliver_send_nothing_twice(
    engine: Engine, database: Path, web: Web, message: dict[str, Any], now: datetime
) -> None:
    for number in range(12):
        add(engine, None, url=f"{web.url}/{number}")
    for alarm in (1, 2):
        write(engine, {**message, "alarm": alarm}, now, alarm)
    done: list[Delivered] = []
    ready = Barrier(3)

    def work() -> None:
        own = sa.create_engine(f"sqlite:///{database}")
        ready.wait()
        done.append(deliver(own, now))
        own.dispose()

    threads = [Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(one.delivered for one in done) == 24
    sent = [(request.path, request.content["alarm"]) for request in web.requests]
    assert len(sent) == len(set(sent)) == 24
    assert {one.state for one in entries(engine)} == {"delivered"}


def test_adding_goes_on_while_a_channel_hangs(
    engine: Engine, database: Path, web: Web, message: dict[str, Any], now: datetime
) -> None:
    add(engine, None, url=web.url)
    write(engine, message, now)
    web.answer = web.hang
    thread = Thread(target=deliver, args=(engine, now))
    thread.start()
    assert web.arrived.wait(5)
    adding = sa.create_engine(f"sqlite:///{database}", connect_args={"timeout": 0})
    with adding.begin() as connection:
        connection.execute(ALARMS.update().values(note="added"))
        assert enqueue(connection, 2, "raised", message, FRAUD, now) == 1
    adding.dispose()
    web.answer = status(200)
    web.stop()
    thread.join()
    assert len(web.requests) == 1


KILLED = """
import sys
from datetime import datetime
import sqlalchemy as sa
from leadline.monitor.notifications.outbox import deliver
deliver(sa.create_engine(sys.argv[1]), datetime.fromisoformat(sys.argv[2]))
"""


def test_killed_between_sending_and_noting_it_sends_again(
    engine: Engine, database: Path, web: Web, message: dict[str, Any], now: datetime
) -> None:
    add(engine, None, url=web.url)
    write(engine, message, now)
    web.answer = web.hang  # has the message, and the sender does not know it yet
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, f"sqlite:///{database}", now.isoformat()],
        env=os.environ | {"PYTHONPATH": str(Path(leadline.__file__).parents[1])},
    )
    assert web.arrived.wait(20)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    web.answer = status(200)
    assert deliver(engine, now + LEASE / 2) == Delivered(0, 0, 0, 1, ())
    assert deliver(engine, now + LEASE + MINUTE) == Delivered(1, 0, 0, 0, ())
    assert [request.content for request in web.requests] == [message] * 2
    assert entries(engine)[0].attempts == 2


@pytest.mark.parametrize(("other", "late"), [(200, 503), (503, 200)])
def test_what_has_arrived_stays_so_whoever_is_late(
    engine: Engine, web: Web, message: dict[str, Any], now: datetime, other: int, late: int
) -> None:
    add(engine, None, url=web.url)
    write(engine, message, now)

    def answer(handler: BaseHTTPRequestHandler) -> None:
        web.answer = status(other)
        deliver(engine, now + LEASE + MINUTE)  # by another, as the lease is over
        status(late)(handler)

    web.answer = answer
    deliver(engine, now)
    (entry,) = entries(engine)
    assert (len(web.requests), entry.state, entry.error) == (2, "delivered", "")
