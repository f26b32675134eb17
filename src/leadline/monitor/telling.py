"""Who is told of alarms: the part of the monitor that speaks to channels."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from leadline.errors import InputError
from leadline.monitor import catalogue
from leadline.monitor.notifications import channels, outbox
from leadline.monitor.notifications.channels import Channel
from leadline.monitor.notifications.kinds.errors import DeliveryError
from leadline.monitor.notifications.outbox import Delivered, Delivery
from leadline.monitor.store import Store


class Telling:
    """Channels and the outbox of a store."""

    store: Store
    _clock: Callable[[], datetime]

    def notify(self, name: str | None, kind: str, **settings: Any) -> int:
        """Tell a channel of alarms from now on; return its number.

        Parameters
        ----------
        name
            Of the series; None for all of them.
        kind
            ``webhook``, ``slack``, ``email`` or ``command``.
        settings
            Of the channel, such as ``url_env="SLACK_URL"``: secrets stay in environment variables, whose names are
            given. ``docs/notifications.md`` has all of them.
        """
        with self.store.writing() as connection:
            series = None if name is None else catalogue.get(connection, name).id
            return channels.add_channel(connection, series, kind, settings)

    def channels(self) -> tuple[Channel, ...]:
        """Return who is told of alarms."""
        with self.store.reading() as connection:
            return channels.list_channels(connection)

    def remove_channel(self, number: int) -> None:
        """Tell a channel no more."""
        with self.store.writing() as connection:
            channels.remove_channel(connection, number)

    def deliver(self, *, deadline_seconds: float = 30.0) -> Delivered:
        """Send what is due in the outbox, for so long at most; what fails is tried again later."""
        with self.store.clear_errors():
            return outbox.deliver(self.store.engine, self._clock(), deadline_seconds=deadline_seconds)

    def outbox(self, *, state: str | None = None, limit: int = 100) -> tuple[Delivery, ...]:
        """Return messages, the latest first: all, or those ``waiting``, ``delivered`` or ``failed``."""
        with self.store.reading() as connection:
            return outbox.list_outbox(connection, state=state, limit=limit)

    def retry_failed(self) -> int:
        """Try messages again that were given up; return how many there are."""
        with self.store.writing() as connection:
            return outbox.retry_failed(connection, self._clock())

    def try_channel(self, number: int) -> str:
        """Send a message that says that it is a test; return what the channel remarked."""
        found = [channel for channel in self.channels() if channel.number == number]
        if not found:
            raise InputError(f"there is no channel {number}.")
        try:
            return channels.try_channel(found[0], self._clock())
        except DeliveryError as error:
            raise InputError(f"channel {number} cannot be reached ({error}).") from error
