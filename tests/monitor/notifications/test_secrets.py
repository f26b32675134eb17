"""Secrets are in no store, no log, no error and no description, whatever fails."""

from __future__ import annotations

import base64
import json
import logging
import traceback
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote

import pytest
from sqlalchemy.engine import Engine

from leadline.monitor.notifications.channels import Channel, add_channel, list_channels, try_channel
from leadline.monitor.notifications.kinds.base import Kind, Message, Settings
from leadline.monitor.notifications.kinds.errors import DeliveryError
from leadline.monitor.notifications.kinds.secrets import Secrets
from leadline.monitor.notifications.kinds.table import KINDS
from leadline.monitor.notifications.messages import of_alarm, of_test
from leadline.monitor.notifications.outbox import deliver, enqueue, list_outbox
from leadline.monitor.records import Alarm
from notification_servers import Answer, MailServer, Web, close, echo, status

TOKEN = "x7YwQp3Z/+k=Lm29"
FORMS = (TOKEN, quote(TOKEN), quote(TOKEN, safe=""), base64.b64encode(TOKEN.encode()).decode(), "x7YwQp3Z")


@pytest.mark.parametrize("answer", [status(204), status(302, Location="http://127.0.0.1:1/"), echo, close])
@pytest.mark.usefixtures("trusted")
def test_they_are_nowhere(
    engine: Engine, database: Path, web: Web, make_mail_server: Callable[..., MailServer], now: datetime,
    make_alarm: Callable[..., Alarm], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str], answer: Answer,
) -> None:  # fmt: skip
    caplog.set_level(logging.DEBUG)
    web.answer, mail_server = answer, make_mail_server(tls=True)
    mail_server.password = TOKEN if answer is not echo else "another"
    host = web.url.removeprefix("http://")
    monkeypatch.setenv("HOOK", f"http://leadline:{quote(TOKEN, safe='')}@{host}/hook/{quote(TOKEN)}?key={quote(TOKEN)}")
    monkeypatch.setenv("TOKEN", TOKEN)
    monkeypatch.setenv("SLACK_URL", f"{web.url}/services/{quote(TOKEN)}")
    mail = {"host": "localhost", "port": mail_server.port, "sender": "a@example.com", "to": ["b@example.com"]}
    with engine.begin() as connection:
        add_channel(connection, None, "webhook", {"url_env": "HOOK"})
        add_channel(connection, None, "webhook", {"url": web.url, "token_env": "TOKEN"})
        add_channel(connection, None, "slack", {"url_env": "SLACK_URL"})
        add_channel(connection, None, "email", {**mail, "user": "leadline", "password_env": "TOKEN"})
        enqueue(connection, 1, "raised", of_alarm(make_alarm(), "raised", now), 1, now)
        channels = list_channels(connection)
    told = [repr(deliver(engine, now)), repr(channels), *(json.dumps(channel.to_dict()) for channel in channels)]
    with engine.connect() as connection:
        told += [json.dumps(one.to_dict()) + repr(one) for one in list_outbox(connection)]
    for channel in channels:
        try:
            try_channel(channel, now)
        except DeliveryError:
            told.append(traceback.format_exc())
    told += [caplog.text, *capfd.readouterr()]
    assert len(web.requests) == 6  # the secrets were used
    assert any(TOKEN in request.headers.get("Authorization", "") for request in web.requests)
    for form in FORMS:
        assert form not in "\n".join(told)
        assert form.encode() not in database.read_bytes()


class Careless(Kind):
    """Fails with all it knows."""

    name = "careless"
    rules = MappingProxyType({})

    def _send(self, message: Message, settings: Settings, secrets: Secrets, wait: float) -> str:
        raise OSError(5, f"cannot open {secrets['url']}, {secrets['token']}\nnor {base64.b64encode(TOKEN.encode())!r}")


def test_errors_of_others_are_scrubbed(now: datetime) -> None:
    secrets = Secrets({"url": f"https://a.example/hook/{quote(TOKEN)}", "token": TOKEN})
    with pytest.raises(DeliveryError) as raised:
        Careless().send(of_test("fraud", now), {}, secrets)
    assert str(raised.value) == "cannot open ***, *** nor b'***'"
    assert TOKEN not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize(
    "said",
    [
        "https://u:hunter2@a.example/services/T02/x7YwQp3Z?k=v1",
        "/services/T02/x7YwQp3Z?k=v1",
        "part x7YwQp3Z",
        "login u:hunter2",
        "pass hunter2",
        base64.b64encode(b"u:hunter2").decode(),
        "https%3A//u%3Ahunter2%40a.example/services/T02/x7YwQp3Z%3Fk%3Dv1",
    ],
)
def test_parts_of_urls_are_scrubbed(said: str) -> None:
    scrubbed = Secrets({"url": "https://u:hunter2@a.example/services/T02/x7YwQp3Z?k=v1"}).scrub(said)
    assert not any(part in scrubbed for part in ("hunter2", "x7YwQp3Z", "v1", "aHVudGVy", "dTpod"))


def test_they_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACK_URL", f" https://a.example/{TOKEN}\n")
    secrets = Secrets.read({"url_env": "SLACK_URL", "timeout": 3})
    assert secrets["url"] == f"https://a.example/{TOKEN}"
    assert secrets.get("token") is None
    assert repr(secrets) == str(secrets) == "Secrets(url)"


@pytest.mark.parametrize(
    ("value", "reason"), [(None, "is not set"), ("  ", "is not set"), ("hunter2\r\nX: y", "holds a control character")]
)
def test_variables_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch, value: str | None, reason: str) -> None:
    monkeypatch.delenv("SLACK_URL", raising=False)
    if value is not None:
        monkeypatch.setenv("SLACK_URL", value)
    with pytest.raises(DeliveryError, match=f"^the environment variable SLACK_URL {reason}$"):
        Secrets.read({"url_env": "SLACK_URL"})


def test_a_channel_is_tried_at_once(web: Web, now: datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACK_URL", web.url)
    channel = Channel(1, "fraud", "slack", {"url_env": "SLACK_URL"})
    assert try_channel(channel, now, page="https://monitor.example/") == ""
    assert web.requests[0].content["text"].startswith("Test message: fraud\n")
    monkeypatch.delenv("SLACK_URL")
    with pytest.raises(DeliveryError, match="SLACK_URL is not set"):
        try_channel(channel, now)


def test_every_secret_setting_can_be_read() -> None:
    for kind in KINDS.values():
        for setting in kind.rules:
            assert not any(word in setting for word in ("password", "token", "secret")) or setting.endswith("_env")
