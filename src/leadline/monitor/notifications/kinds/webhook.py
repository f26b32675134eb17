"""A webhook: the message as JSON to a URL."""

from __future__ import annotations

from types import MappingProxyType

from leadline.errors import InputError
from leadline.monitor.notifications.kinds.base import Kind, Message, Settings
from leadline.monitor.notifications.kinds.posting import post
from leadline.monitor.notifications.kinds.secrets import Secrets
from leadline.monitor.notifications.kinds.settings import plain_url, variable


class Webhook(Kind):
    """The message as JSON by POST to ``url``, or to the URL in ``url_env``, with the token in ``token_env`` if any."""

    name = "webhook"
    rules = MappingProxyType({"url": plain_url, "url_env": variable, "token_env": variable})

    def _check_together(self, settings: Settings) -> None:
        if ("url" in settings) == ("url_env" in settings):
            raise InputError("webhook needs one of url and url_env, the name of an environment variable with the URL.")

    def _send(self, message: Message, settings: Settings, secrets: Secrets, wait: float) -> str:
        post(secrets.get("url") or settings["url"], message, wait=wait, token=secrets.get("token"))
        return ""
