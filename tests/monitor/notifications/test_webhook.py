"""Webhooks and Slack: what is sent, and what happens where it does not arrive."""

from __future__ import annotations

import base64
import ssl
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import leadline
from leadline.monitor.notifications.kinds.errors import DeliveryError
from leadline.monitor.notifications.kinds.secrets import Secrets
from leadline.monitor.notifications.kinds.table import KINDS
from leadline.monitor.notifications.messages import of_alarm
from leadline.monitor.records import Alarm
from notification_servers import Answer, Web, close, endless, status, trickle

PATH = "/services/T024BE7LD/x7YwQp3ZkLm29"


@pytest.fixture
def message(make_alarm: Callable[..., Alarm], now: datetime) -> dict[str, Any]:
    return of_alarm(make_alarm(series="a < b"), "raised", now)


def test_webhook_sends_the_message(web: Web, message: dict[str, Any]) -> None:
    assert KINDS["webhook"].send(message, {"url": f"{web.url}/alarms"}, Secrets({})) == ""
    (request,) = web.requests
    assert (request.method, request.path, request.content) == ("POST", "/alarms", message)
    assert request.headers["Content-Type"] == "application/json"
    assert request.headers["User-Agent"] == f"leadline/{leadline.__version__}"
    assert "Authorization" not in request.headers


def test_webhook_with_a_token(web: Web, message: dict[str, Any]) -> None:
    secrets = Secrets({"url": f"{web.url}{PATH}?key=1", "token": "hunter2"})
    KINDS["webhook"].send(message, {"url_env": "HOOK", "token_env": "TOKEN"}, secrets)
    assert (web.requests[0].path, web.requests[0].headers["Authorization"]) == (f"{PATH}?key=1", "Bearer hunter2")


def test_webhook_with_a_user(web: Web, message: dict[str, Any]) -> None:
    url = web.url.replace("//", "//leadline:hunter%402@")
    KINDS["webhook"].send(message, {"url_env": "HOOK"}, Secrets({"url": url}))
    basic = base64.b64encode(b"leadline:hunter@2").decode()
    assert (web.requests[0].path, web.requests[0].headers["Authorization"]) == ("/", f"Basic {basic}")


def test_slack_gets_escaped_text(web: Web, message: dict[str, Any]) -> None:
    KINDS["slack"].send(message, {"url_env": "SLACK_URL"}, Secrets({"url": f"{web.url}{PATH}"}))
    (request,) = web.requests
    assert set(request.content) == {"text", "mrkdwn"}
    assert request.content["text"].startswith("Alarm raised: a &lt; b, estimated fall\nEstimated accuracy fell")
    assert request.content["mrkdwn"] is False
    assert request.path == PATH


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (status(500), r"the server answered 500 \(Internal Server Error\)"),
        (status(404), r"the server answered 404 \(Not Found\)"),
        (status(599), r"the server answered 599 \(unknown status\)"),
        (close, "Remote"),
    ],
)
def test_failures_have_reasons(web: Web, message: dict[str, Any], answer: Answer, reason: str) -> None:
    web.answer = answer
    with pytest.raises(DeliveryError, match=reason) as raised:
        KINDS["slack"].send(message, {"url_env": "SLACK_URL"}, Secrets({"url": f"{web.url}{PATH}"}))
    assert raised.value.__context__ is None


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_redirections_are_not_followed(web: Web, message: dict[str, Any], code: int) -> None:
    other = Web()
    web.answer = status(code, Location=f"{other.url}/caught")
    secrets = Secrets({"url": f"{web.url}{PATH}", "token": "hunter2"})
    with pytest.raises(DeliveryError, match=f"the server answered {code}.*not followed, so give the URL"):
        KINDS["webhook"].send(message, {"url_env": "HOOK", "token_env": "TOKEN"}, secrets)
    other.stop()
    assert (len(web.requests), other.requests) == (1, [])


@pytest.mark.parametrize("how", ["hang", "trickle"])
def test_silence_ends(web: Web, message: dict[str, Any], how: str) -> None:
    web.answer = web.hang if how == "hang" else trickle
    started = time.monotonic()
    with pytest.raises(DeliveryError, match=r"^no answer within 0\.1 seconds$"):
        KINDS["webhook"].send(message, {"url": web.url, "timeout": 0.1}, Secrets({}))
    assert time.monotonic() - started < 2


def test_the_body_of_an_answer_is_not_read(web: Web, message: dict[str, Any]) -> None:
    web.answer = endless
    assert KINDS["webhook"].send(message, {"url": web.url}, Secrets({})) == ""


def test_certificates_are_checked(
    message: dict[str, Any], tls: ssl.SSLContext, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    safe = Web(tls)
    with pytest.raises(DeliveryError, match="certificate verify failed"):
        KINDS["slack"].send(message, {"url_env": "SLACK_URL"}, Secrets({"url": f"{safe.url}{PATH}"}))
    assert safe.requests == []
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    KINDS["slack"].send(message, {"url_env": "SLACK_URL"}, Secrets({"url": f"{safe.url}{PATH}"}))
    assert safe.requests[0].path == PATH
    safe.stop()


def test_nobody_there(message: dict[str, Any]) -> None:
    gone = Web()
    gone.stop()
    with pytest.raises(DeliveryError, match=r"^Connection refused$"):
        KINDS["webhook"].send(message, {"url": gone.url}, Secrets({}))


@pytest.mark.parametrize("url", ["not a url", "ftp://a.example/hunter2", "file:///etc/hunter2", "http://[hunter2"])
def test_a_variable_that_holds_no_url(message: dict[str, Any], url: str) -> None:
    with pytest.raises(DeliveryError, match="holds no URL with http or https") as raised:
        KINDS["slack"].send(message, {"url_env": "SLACK_URL"}, Secrets({"url": url}))
    assert "hunter2" not in str(raised.value)
