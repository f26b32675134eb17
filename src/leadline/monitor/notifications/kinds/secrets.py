"""Secrets: read from the environment when a message is sent, kept nowhere, and taken out of what is said about it."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from leadline.monitor.notifications.kinds.errors import DeliveryError

#: How the name of a setting ends whose value is the name of an environment variable.
SUFFIX = "_env"
_HIDDEN = "***"
_SHORTEST_PART = 6  # of a path, to be a secret by itself


class Secrets:
    """What the environment variables hold that the settings of a channel name.

    Parameters
    ----------
    values
        By the name of the setting, without ``_env``.

    Examples
    --------
    >>> secrets = Secrets({"url": "https://hooks.example/services/T024/B91/x7Yw"})
    >>> secrets
    Secrets(url)
    >>> secrets.scrub("cannot open /services/T024/B91/x7Yw")
    'cannot open ***'
    """

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = dict(values)

    @classmethod
    def read(cls, settings: Mapping[str, Any]) -> Secrets:
        """Return the secrets of a channel, or say which variable is missing."""
        values = {}
        for setting, variable in settings.items():
            if setting.endswith(SUFFIX):
                value = os.environ.get(variable, "").strip()
                if not value:
                    raise DeliveryError(f"the environment variable {variable} is not set")
                if not value.isprintable():
                    raise DeliveryError(f"the environment variable {variable} holds a control character")
                values[setting.removesuffix(SUFFIX)] = value
        return cls(values)

    def __getitem__(self, name: str) -> str:
        """Return a secret."""
        return self._values[name]

    def get(self, name: str) -> str | None:
        """Return a secret, or None where there is no such one."""
        return self._values.get(name)

    def __repr__(self) -> str:
        """Tell which secrets there are, and none of them."""
        return f"Secrets({', '.join(self._values)})"

    def scrub(self, text: str) -> str:
        """Return a text without the secrets, however they are encoded, and without the parts of those that are URLs."""
        pieces = {form for value in self._values.values() for part in _parts(value) for form in _forms(part)}
        for piece in sorted(pieces, key=len, reverse=True):
            text = text.replace(piece, _HIDDEN)
        return text


def _parts(value: str) -> Iterator[str]:
    """Yield a secret and, of a URL, what is secret about it by itself."""
    yield value
    try:
        url = urlsplit(value)
    except ValueError:
        return
    if url.scheme and url.netloc:
        user, _, _ = url.netloc.rpartition("@")
        yield from filter(None, (user, *user.split(":"), url.path.strip("/"), url.query, url.fragment))
        yield from (part for part in url.path.split("/") if len(part) >= _SHORTEST_PART)
        if url.path.strip("/"):
            yield url.path


def _forms(part: str) -> Iterator[str]:
    """Yield the ways in which a secret may be written."""
    yield part
    yield quote(part)
    yield quote(part, safe="")
    yield unquote(part)
    yield json.dumps(part)[1:-1]
    yield base64.b64encode(part.encode()).decode()
