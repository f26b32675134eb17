"""Slack's incoming webhooks, whose form Mattermost, Rocket.Chat and Discord (at ``/slack``) take too."""

from __future__ import annotations

import re
from types import MappingProxyType

from leadline.monitor.notifications.kinds.base import Kind, Message, Settings
from leadline.monitor.notifications.kinds.posting import post
from leadline.monitor.notifications.kinds.secrets import Secrets
from leadline.monitor.notifications.kinds.settings import variable
from leadline.monitor.notifications.messages import as_text

_MENTION = re.compile(r"(?<!\w)@(?=(channel|here|everyone|all)\b)", re.IGNORECASE)
_NOTHING = "\N{ZERO WIDTH SPACE}"


class Slack(Kind):
    """The message as text to the URL in ``url_env``; whoever knows that URL can write to the channel."""

    name = "slack"
    rules = MappingProxyType({"url_env": variable})
    required = ("url_env",)

    def _send(self, message: Message, settings: Settings, secrets: Secrets, wait: float) -> str:
        post(secrets["url"], {"text": escape(as_text(message)), "mrkdwn": False}, wait=wait)
        return ""


def escape(text: str) -> str:
    """Return a text that says the same in Slack's markup, calls nobody and makes no link of what is none.

    Examples
    --------
    >>> escape("a < b & <!channel>")
    'a &lt; b &amp; &lt;!channel&gt;'
    """
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MENTION.sub(f"@{_NOTHING}", text)
