"""The table of the kinds of channels: a new one is a module and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from leadline.errors import InputError
from leadline.monitor.notifications.kinds.base import Kind
from leadline.monitor.notifications.kinds.command import Command
from leadline.monitor.notifications.kinds.email import Email
from leadline.monitor.notifications.kinds.slack import Slack
from leadline.monitor.notifications.kinds.webhook import Webhook

KINDS: Mapping[str, Kind] = MappingProxyType({
    "webhook": Webhook(),
    "slack": Slack(),
    "email": Email(),
    "command": Command(),
})  # fmt: skip


def get_kind(name: str) -> Kind:
    """Return a kind of channel by its name."""
    if name not in KINDS:
        raise InputError(f"kind must be one of {', '.join(KINDS)}; got {name!r}.")
    return KINDS[name]
