"""Rules for the settings of channels.

A rule is a function of a setting's name and value that refuses wrong values. What it says repeats numbers, but no text:
people put secrets where they do not belong.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import SplitResult, urlsplit

from leadline.errors import InputError

Rule = Callable[[str, Any], None]

#: The longest that an answer may be waited for.
MOST_SECONDS = 60

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_HOST = re.compile(r"[A-Za-z0-9.:_-]+", re.ASCII)
_ADDRESS = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9.-]+", re.ASCII)
_TOKEN = re.compile(r"(?=[^/]*\d)[^/]{20,}")  # a part of a path that nobody would type


def refuse(name: str, rule: str, value: Any) -> InputError:
    """Return the error for a setting that breaks a rule, without the texts in it."""
    if isinstance(value, str):
        found = f"a text of {len(value)} characters (not shown: it may be a secret)"
    else:
        found = repr(value) if isinstance(value, int | float | None) else f"a {type(value).__name__}"
    return InputError(f"{name} must be {rule}; got {found}.")


def variable(name: str, value: Any) -> None:
    """Take the name of an environment variable."""
    if not isinstance(value, str) or not _VARIABLE.fullmatch(value):
        raise refuse(name, "the name of an environment variable that holds the secret, such as SLACK_URL", value)


def text(name: str, value: Any) -> None:
    """Take a text on one line."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise refuse(name, "a text on one line", value)


def host(name: str, value: Any) -> None:
    """Take the name or number of a host."""
    if not isinstance(value, str) or not _HOST.fullmatch(value):
        raise refuse(name, "the name of a host, such as smtp.example.com", value)


def port(name: str, value: Any) -> None:
    """Take the number of a port."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 65536:
        raise refuse(name, "a port, from 1 to 65535", value)


def seconds(name: str, value: Any) -> None:
    """Take a time to wait."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= MOST_SECONDS:
        raise refuse(name, f"a number of seconds, above 0 and at most {MOST_SECONDS}", value)


def flag(name: str, value: Any) -> None:
    """Take yes or no."""
    if not isinstance(value, bool):
        raise refuse(name, "True or False", value)


def one_of(*choices: str) -> Rule:
    """Return the rule that takes one of some texts."""

    def rule(name: str, value: Any) -> None:
        if value not in choices:
            raise refuse(name, f"one of {', '.join(choices)}", value)

    return rule


def address(name: str, value: Any) -> None:
    """Take the address of a mailbox."""
    if not isinstance(value, str) or not _ADDRESS.fullmatch(value):
        raise refuse(name, "an e-mail address such as oncall@example.com, without a name", value)


def addresses(name: str, value: Any) -> None:
    """Take a list of addresses of mailboxes."""
    if not isinstance(value, list | tuple) or not value:
        raise refuse(name, "a list of e-mail addresses, such as ['oncall@example.com']", value)
    for item in value:
        address(f"each of {name}", item)


def words(name: str, value: Any) -> None:
    """Take a program and its arguments."""
    rule = "a list of a program and its arguments, such as ['/usr/local/bin/page-me', '--urgent']"
    if not isinstance(value, list | tuple) or not value or not value[0]:
        raise refuse(name, rule, value)
    if not all(isinstance(word, str) and "\0" not in word for word in value):
        raise InputError(f"{name} must be {rule}; one of its words is no text, or has a zero character.")


def split_url(url: str) -> SplitResult | None:
    """Return the parts of a URL of the web, or None for anything else."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        return None
    return parts if usable and url.isprintable() and url.isascii() and " " not in url else None


def plain_url(name: str, value: Any) -> None:
    """Take a URL of the web without a secret in it."""
    parts = split_url(value) if isinstance(value, str) else None
    if parts is None:
        raise refuse(name, "a URL with http or https, such as https://example.com/alarms", value)
    if "@" in parts.netloc or parts.query or parts.fragment or any(map(_TOKEN.fullmatch, parts.path.split("/"))):
        raise InputError(
            f"{name} must hold no secret, as the store keeps it in clear; it has a user, a query, or a part that looks "
            f"like a token. Put it into an environment variable and give the variable's name as {name}_env."
        )
