"""What is told of an alarm."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest

from leadline import InputError
from leadline.monitor.notifications import messages
from leadline.monitor.notifications.kinds.slack import escape
from leadline.monitor.records import Alarm, AlarmState


def test_a_message_says_what_the_alarm_says(make_alarm: Callable[..., Alarm], now: datetime) -> None:
    message = messages.of_alarm(make_alarm(), "raised", now, page="https://monitor.example/fraud#1")
    assert message == {
        "version": 1,
        "event": "raised",
        "at": "2026-03-05T02:00:00+00:00",
        "series": "fraud",
        "alarm": 1,
        "rule": "estimated-fall",
        "state": "open",
        "harmful": True,
        "first": {"start": "2026-03-02T00:00:00+00:00", "end": "2026-03-03T00:00:00+00:00"},
        "last": {"start": "2026-03-04T00:00:00+00:00", "end": "2026-03-05T00:00:00+00:00"},
        "raised_at": "2026-03-05T02:00:00+00:00",
        "closed_at": None,
        "reason": "Estimated accuracy fell from 92% to 85%.",
        "segments": [{"country": "de"}, {"country": "fr"}],
        "n_segments": 2,
        "evidence": 1234.5,
        "note": "",
        "page": "https://monitor.example/fraud#1",
    }
    assert messages.as_text(message) == (
        "Alarm raised: fraud, estimated fall\n"
        "Estimated accuracy fell from 92% to 85%.\n"
        "Segments: country=de; country=fr\n"
        "From 2026-03-02 00:00 to 2026-03-05 00:00 UTC; alarm 1 is open.\n"
        "https://monitor.example/fraud#1\n"
    )


def test_every_field_is_documented(make_alarm: Callable[..., Alarm], now: datetime) -> None:
    table = (messages.__doc__ or "").split("=\n")[2]
    documented = {name for line in table.splitlines() for name in line[:15].replace(",", " ").split() if line[0] != "="}
    page = (Path(__file__).parents[3] / "docs" / "notifications.md").read_text()
    rows = re.findall(r"^\| (`.*?) \|", page.partition("## The message")[2], re.MULTILINE)
    on_the_page = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    message = messages.of_alarm(make_alarm(), "raised", now)
    assert documented == on_the_page == set(message) == set(messages.of_test("fraud", now))


def test_closed_by_a_person(make_alarm: Callable[..., Alarm], now: datetime) -> None:
    alarm = make_alarm(state=AlarmState.CLOSED, closed_at=now, note="A camera was replaced.", segments=())
    text = messages.as_text(messages.of_alarm(alarm, "closed", now))
    assert text.startswith("Alarm closed: fraud, estimated fall\n")
    assert "alarm 1 is closed" in text
    assert text.endswith("Note: A camera was replaced.\n")
    assert "Segments" not in text


def test_information_is_no_alarm(make_alarm: Callable[..., Alarm], now: datetime) -> None:
    message = messages.of_alarm(make_alarm(harmful=False, rule="changed"), "raised", now)
    assert messages.headline(message) == "Notice raised: fraud, changed"


def test_a_test_is_no_alarm(now: datetime) -> None:
    assert messages.as_text(messages.of_test(None, now)).startswith("Test message: all series\n")
    assert messages.of_test("fraud", now)["alarm"] is None


def test_times_are_in_utc(make_alarm: Callable[..., Alarm], now: datetime) -> None:
    berlin = now.astimezone(timezone(timedelta(hours=1)))
    assert messages.of_alarm(make_alarm(raised_at=berlin), "raised", berlin) == messages.of_alarm(
        make_alarm(), "raised", now
    )


def test_values_that_json_lacks(make_alarm: Callable[..., Alarm], now: datetime) -> None:
    segments = ({"day": np.datetime64("2026-03-02"), "shop": np.int64(7), "rate": float("nan"), "none": None},)
    message = messages.of_alarm(make_alarm(segments=segments, evidence=float("inf")), "raised", now)
    assert json.loads(json.dumps(message, allow_nan=False)) == message
    assert message["segments"] == [{"day": "2026-03-02", "shop": 7, "rate": None, "none": None}]
    assert message["evidence"] is None


def test_control_characters_go_and_lines_stay(make_alarm: Callable[..., Alarm], now: datetime) -> None:
    alarm = make_alarm(
        series="fraud\r\nBcc: all@example.com",
        reason="one\r\ntwo\x00\x1b[31m\n\n\u202ethree\ud800",
        segments=({"a\nb": "c\td"},),
    )
    message = messages.of_alarm(alarm, "raised", now)
    assert message["series"] == "fraud Bcc: all@example.com"
    assert message["reason"] == "one\ntwo [31m\nthree"
    assert message["segments"] == [{"a b": "c d"}]
    messages.as_text(message).encode()


def test_huge_alarms_stay_readable(make_alarm: Callable[..., Alarm], now: datetime) -> None:
    many = tuple({"shop": "x" * 10_000 + str(number), "y" * 10_000: 1} for number in range(3000))
    alarm = make_alarm(series="s" * 10_000, reason="why " * 100_000, note="n\n" * 100_000, segments=many)
    message = messages.of_alarm(alarm, "raised", now)
    assert len(json.dumps(message)) < 30_000
    assert (len(message["segments"]), message["n_segments"]) == (50, 3000)
    text = messages.as_text(message)
    assert len(text) < 8_000
    assert "; and 2990 more" in text
    assert len(messages.headline(message)) < 200


@pytest.mark.parametrize(
    "page",
    ["monitor.html", "javascript:alert(1)", "https://u:hunter2@x.example", "https://x.example/a b", "https://x>y"],
)
def test_a_page_is_a_link(make_alarm: Callable[..., Alarm], now: datetime, page: str) -> None:
    with pytest.raises(InputError, match="page must be a link") as raised:
        messages.of_alarm(make_alarm(), "raised", now, page=page)
    assert page not in str(raised.value)


def test_slack_calls_nobody() -> None:
    assert escape("<!here> <@U1> & a>b <https://x|y>") == ("&lt;!here&gt; &lt;@U1&gt; &amp; a&gt;b &lt;https://x|y&gt;")
    for mention in ("@channel", "@here", "@Everyone", "@all"):
        assert mention not in escape(f"to {mention} now")
    for address in ("oncall@example.com", "x@here.example", "@alligator"):
        assert escape(address) == address
