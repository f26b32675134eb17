"""JSON sent to a URL, without following where it is sent on to."""

from __future__ import annotations

import base64
import json
from http import HTTPStatus
from typing import Any
from urllib.error import HTTPError
from urllib.parse import unquote
from urllib.request import HTTPRedirectHandler, Request, build_opener

from leadline.monitor.notifications.kinds.errors import DeliveryError
from leadline.monitor.notifications.kinds.settings import split_url
from leadline.version import __version__


class _Stay(HTTPRedirectHandler):
    """Takes redirections for failures: what is sent may be meant for no other host."""

    def redirect_request(self, *args: Any) -> None:
        """Make no further request."""
        del args


def post(url: str, content: Any, *, wait: float, token: str | None = None) -> None:
    """Send JSON by POST; the answer's body is never read.

    Parameters
    ----------
    url
        With a user and a password, they are sent as basic authorization.
    content
        What to send.
    wait
        Seconds for each answer.
    token
        Sent as bearer authorization.
    """
    parts = split_url(url)
    if parts is None:
        raise DeliveryError("the environment variable of the URL holds no URL with http or https")
    user, _, server = parts.netloc.rpartition("@")
    headers = {"Content-Type": "application/json", "User-Agent": f"leadline/{__version__}"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    elif user:
        headers["Authorization"] = "Basic " + base64.b64encode(unquote(user).encode()).decode()
    address = parts._replace(netloc=server, fragment="").geturl()
    request = Request(address, json.dumps(content, allow_nan=False).encode(), headers, method="POST")
    try:
        build_opener(_Stay).open(request, timeout=wait).close()
    except HTTPError as error:
        error.close()
        raise DeliveryError(_answer(error.code)) from None


def _answer(code: int) -> str:
    """Return what a status means, in words of the standard."""
    phrase = HTTPStatus(code).phrase if code in HTTPStatus.__members__.values() else "unknown status"
    hint = "; redirections are not followed, so give the URL that it leads to" if code // 100 == 3 else ""
    return f"the server answered {code} ({phrase}){hint}"
