"""E-mail: what is sent, how the connection is kept secret, and what happens where it fails."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from leadline.monitor.notifications.kinds.errors import DeliveryError
from leadline.monitor.notifications.kinds.secrets import Secrets
from leadline.monitor.notifications.kinds.table import KINDS
from leadline.monitor.notifications.messages import as_text, of_alarm, of_test
from leadline.monitor.records import Alarm
from notification_servers import MailServer

MakeServer = Callable[..., MailServer]


@pytest.fixture
def message(make_alarm: Callable[..., Alarm], now: datetime) -> dict[str, Any]:
    return of_alarm(make_alarm(), "raised", now)


def send(message: dict[str, Any], server: MailServer, secrets: Secrets | None = None, **settings: Any) -> str:
    values = {
        "host": "localhost", "port": server.port, "security": "none", "sender": "leadline@example.com",
        "to": ["a@example.com", "b@example.com"], "timeout": 5, **settings,
    }  # fmt: skip
    KINDS["email"].check(values)
    return KINDS["email"].send(message, values, secrets or Secrets({}))


def test_a_mail_says_what_the_message_says(message: dict[str, Any], make_mail_server: MakeServer) -> None:
    server = make_mail_server()
    assert send(message, server) == ""
    (mail,) = server.mails
    assert (mail.sender, mail.to) == ("leadline@example.com", ["a@example.com", "b@example.com"])
    assert mail.message["Subject"] == "[Leadline] Alarm raised: fraud, estimated fall"
    assert mail.message["To"] == "a@example.com, b@example.com"
    assert mail.message["Date"].datetime == datetime.fromisoformat(message["at"])
    assert mail.message["Auto-Submitted"] == "auto-generated"
    assert mail.message.get_content().replace("\r\n", "\n") == as_text(message)
    assert server.commands[-1].upper() == "QUIT"


def test_what_comes_later_of_an_alarm_answers_its_beginning(
    make_alarm: Callable[..., Alarm], now: datetime, make_mail_server: MakeServer
) -> None:
    server, later = make_mail_server(), now + timedelta(hours=1)
    raised = of_alarm(make_alarm(), "raised", now)
    closed, reopened = (
        of_alarm(make_alarm(), "closed", later),
        of_alarm(make_alarm(), "raised", now + timedelta(hours=2)),
    )
    other, test = of_alarm(make_alarm(number=2), "raised", now), of_test("fraud", now)
    for message in (raised, raised, closed, reopened, other, test):
        send(message, server)
    first, again, *rest = (mail.message for mail in server.mails)
    assert first["Message-ID"] == again["Message-ID"]
    assert len({mail["Message-ID"] for mail in (first, *rest)}) == 5
    beginning = [mail["In-Reply-To"] for mail in (first, again, *rest)]
    assert beginning == [None, None, first["Message-ID"], first["Message-ID"], None, None]
    assert rest[0]["References"] == first["Message-ID"]


def test_texts_of_any_kind_arrive_whole(
    make_alarm: Callable[..., Alarm], now: datetime, make_mail_server: MakeServer
) -> None:
    server = make_mail_server()
    alarm = make_alarm(series="Über\r\nBcc: x@example.com\u2028" + "ü" * 300, reason="." + "größer " * 500 + "\n.\nend")
    message = of_alarm(alarm, "raised", now)
    send(message, server)
    (mail,) = server.mails
    assert mail.to == ["a@example.com", "b@example.com"]
    assert mail.message["Bcc"] is None
    assert mail.message.as_bytes().isascii()
    assert str(mail.message["Subject"]).startswith("[Leadline] Alarm raised: Über Bcc: x@example.com ü")
    assert mail.message.get_content().replace("\r\n", "\n") == as_text(message)


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("security", ["starttls", "ssl"])
def test_login_over_an_encrypted_connection(
    message: dict[str, Any], make_mail_server: MakeServer, security: str
) -> None:
    server = make_mail_server(tls=True, implicit=security == "ssl")
    login = {"security": security, "user": "leadline", "password_env": "SMTP_PASSWORD"}
    send(message, server, Secrets({"password": "right"}), **login)
    (mail,) = server.mails
    assert (mail.user, mail.encrypted) == ("leadline", True)
    with pytest.raises(DeliveryError, match=r"^the server refused user and password \(535\)$") as raised:
        send(message, server, Secrets({"password": "hunter2"}), **login)
    assert (len(server.mails), raised.value.__context__) == (1, None)


@pytest.mark.usefixtures("trusted")
def test_the_certificate_must_be_of_the_host(message: dict[str, Any], make_mail_server: MakeServer) -> None:
    server = make_mail_server(tls=True)
    with pytest.raises(DeliveryError, match="certificate verify failed"):
        send(message, server, host="127.0.0.1", security="starttls")
    assert server.mails == []


def test_a_certificate_that_nobody_trusts(message: dict[str, Any], make_mail_server: MakeServer) -> None:
    for security in ("starttls", "ssl"):
        server = make_mail_server(tls=True, implicit=security == "ssl")
        with pytest.raises(DeliveryError, match="certificate verify failed"):
            send(message, server, security=security)
        assert server.mails == []


def test_without_the_encryption_that_was_asked_for_nothing_is_sent(
    message: dict[str, Any], make_mail_server: MakeServer
) -> None:
    server = make_mail_server()
    with pytest.raises(DeliveryError, match="does not offer what the settings ask for"):
        send(message, server, security="starttls")
    assert not any(line.startswith(("MAIL", "mail", "AUTH")) for line in server.commands)


def test_one_refused_address_is_a_remark_and_all_are_a_failure(
    message: dict[str, Any], make_mail_server: MakeServer
) -> None:
    server = make_mail_server()
    server.refused = {"b@example.com"}
    assert send(message, server) == "1 of 2 addresses were refused by the server"
    assert server.mails[0].to == ["a@example.com"]
    server.refused = {"a@example.com", "b@example.com"}
    with pytest.raises(DeliveryError, match=r"^the server refused all addresses$"):
        send(message, server)


@pytest.mark.parametrize(
    ("command", "answer", "reason"),
    [
        ("CONNECT", "421 busy", "the server answered 421"),
        ("MAIL", "451 later, leadline@example.com", "the server answered 451"),
        ("DATA", "554 spam", "the server answered 554"),
        ("DATA", "", "the server closed the connection"),
    ],
)
def test_failures_have_reasons(
    message: dict[str, Any], make_mail_server: MakeServer, command: str, answer: str, reason: str
) -> None:
    server = make_mail_server()
    server.answers[command] = answer
    with pytest.raises(DeliveryError, match=f"^{reason}$"):
        send(message, server)


def test_a_server_that_does_not_take_its_leave_has_the_mail(
    message: dict[str, Any], make_mail_server: MakeServer
) -> None:
    server = make_mail_server()
    server.answers["QUIT"] = "500 never"
    assert send(message, server) == ""
    assert len(server.mails) == 1
