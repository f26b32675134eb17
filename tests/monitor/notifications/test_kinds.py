"""Settings of channels: wrong ones are refused early, in words that repeat no secret."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from leadline import InputError
from leadline.monitor.notifications.kinds.table import KINDS, get_kind

SECRET = "https://hooks.slack.com/services/T024BE7LD/B91/x7YwQp3ZkLm29"
MAIL = {"host": "smtp.example.com", "sender": "leadline@example.com", "to": ["oncall@example.com"]}
LOGIN = {**MAIL, "user": "leadline", "password_env": "SMTP_PASSWORD"}

GOOD = [
    ("webhook", {"url": "https://example.com/alarms"}),
    ("webhook", {"url": "http://10.0.0.7:8080/hooks/leadline-production-alarms"}),
    ("webhook", {"url_env": "HOOK", "token_env": "HOOK_TOKEN", "timeout": 2.5, "harmful_only": True}),
    ("slack", {"url_env": "SLACK_URL"}),
    ("email", MAIL),
    ("email", {**MAIL, "port": 25, "security": "none"}),
    ("email", {**LOGIN, "security": "ssl"}),
    ("command", {"command": ["page-me", "--team", "fraud; rm -rf /"]}),
]

BAD: list[tuple[str, dict[str, Any], str]] = [
    ("webhook", {}, "webhook needs one of url and url_env"),
    ("webhook", {"url": "https://a.example", "url_env": "HOOK"}, "webhook needs one of url and url_env"),
    ("webhook", {"url": "ftp://a.example/x"}, "url must be a URL with http or https"),
    ("webhook", {"url": "file:///etc/passwd"}, "url must be a URL with http or https"),
    ("webhook", {"url": "https://"}, "url must be a URL with http or https"),
    ("webhook", {"url": "https://a.example:99999/"}, "url must be a URL with http or https"),
    ("webhook", {"url": "https://a.example/\r\nX: y"}, "url must be a URL with http or https"),
    ("webhook", {"url": "https://user:hunter2@a.example/"}, "url must hold no secret.*give the .* as url_env"),
    ("webhook", {"url": "https://a.example/?token=hunter2"}, "url must hold no secret"),
    ("webhook", {"url": "https://a.example/hook/550e8400-e29b-41d4-a716-446655440000"}, "url must hold no secret"),
    ("webhook", {"url_env": SECRET}, "url_env must be the name of an environment variable"),
    ("webhook", {"url_env": "HOOK", "token": "hunter2"}, "no setting 'token'.*Give token_env instead"),
    ("slack", {}, "slack needs the setting url_env"),
    ("slack", {"url": SECRET}, "slack has no setting 'url'.*Give url_env instead"),
    ("slack", {"url_env": "SLACK URL"}, "url_env must be the name"),
    ("slack", {"url_env": "SLACK_URL", "timeout": 0}, "timeout must be a number of seconds.* got 0"),
    ("slack", {"url_env": "SLACK_URL", "timeout": 600}, "at most 60; got 600"),
    ("slack", {"url_env": "SLACK_URL", "timeout": float("nan")}, "timeout must be"),
    ("slack", {"url_env": "SLACK_URL", "harmful_only": "yes"}, "harmful_only must be True or False"),
    ("email", {}, "email needs the setting host"),
    ("email", {**MAIL, "host": "smtp://user:hunter2@smtp.example.com"}, "host must be the name of a host"),
    ("email", {**MAIL, "port": "25"}, "port must be a port"),
    ("email", {**MAIL, "port": 0}, "port must be a port, from 1 to 65535; got 0"),
    ("email", {**MAIL, "security": "tls"}, "security must be one of starttls, ssl, none"),
    ("email", {**MAIL, "to": "oncall@example.com"}, "to must be a list of e-mail addresses"),
    ("email", {**MAIL, "to": []}, "to must be a list of e-mail addresses"),
    ("email", {**MAIL, "to": ["a@example.com\r\nBcc: b@example.com"]}, "each of to must be an e-mail address"),
    ("email", {**MAIL, "sender": "Leadline <leadline@example.com>"}, "sender must be an e-mail address"),
    ("email", {**MAIL, "password": "hunter2"}, "no setting 'password'.*Give password_env instead"),
    ("email", {**MAIL, "user": "leadline"}, "both user and password_env"),
    ("email", {**LOGIN, "security": "none"}, "security must be starttls or ssl to log in"),
    ("command", {"command": "page-me --urgent"}, "command must be a list of a program and its arguments"),
    ("command", {"command": []}, "command must be a list"),
    ("command", {"command": ["page-me", 7]}, "one of its words is no text"),
    ("command", {"command": ["page-me", "a\0b"]}, "one of its words is no text"),
]


@pytest.mark.parametrize(("kind", "settings"), GOOD)
def test_right_settings(kind: str, settings: dict[str, Any]) -> None:
    KINDS[kind].check(settings)


@pytest.mark.parametrize(("kind", "settings", "rule"), BAD)
def test_wrong_settings(kind: str, settings: dict[str, Any], rule: str) -> None:
    with pytest.raises(InputError, match=rule) as raised:
        KINDS[kind].check(settings)
    assert "hunter2" not in str(raised.value)
    assert "x7YwQp3ZkLm29" not in str(raised.value)


def test_kinds_by_name() -> None:
    assert all(kind.name == name for name, kind in KINDS.items())
    with pytest.raises(InputError, match="kind must be one of webhook, slack, email, command; got 'pigeon'"):
        get_kind("pigeon")


def test_every_setting_is_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "notifications.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", page.partition("## Channels")[2], re.MULTILINE))
    for name, kind in KINDS.items():
        assert set(kind.rules) <= set(re.findall(r"`(\w+)`", rows[name])), name
