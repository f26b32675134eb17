"""Clocks that jump: messages still arrive, once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from sqlalchemy.engine import Engine

from leadline.monitor.notifications.channels import add_channel
from leadline.monitor.notifications.messages import of_alarm
from leadline.monitor.notifications.outbox import deliver, enqueue
from leadline.monitor.records import Alarm
from notification_servers import Web, status


@pytest.mark.parametrize("ahead", [timedelta(days=365), timedelta(days=-365)], ids=["ahead", "behind"])
@pytest.mark.parametrize("failed", [False, True])
def test_a_clock_that_was_wrong_for_a_while_holds_no_message_back(
    ahead: timedelta, failed: bool, engine: Engine, web: Web, make_alarm: Callable[..., Alarm], now: datetime
) -> None:
    wrong = now + ahead
    with engine.begin() as connection:
        add_channel(connection, None, "webhook", {"url": web.url})
        enqueue(connection, 1, "raised", of_alarm(make_alarm(), "raised", wrong), 1, wrong)
    if failed:
        web.answer = status(503)
        assert deliver(engine, wrong).postponed == 1
        web.answer = status(204)
    assert deliver(engine, now).delivered == 1
    assert deliver(engine, now).delivered == 0
    assert deliver(engine, wrong).delivered == 0
