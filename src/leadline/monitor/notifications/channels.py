"""Channels: where alarms of a series, or of all, are told. The store holds their settings, and no secret of theirs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from leadline.errors import InputError
from leadline.monitor.notifications.kinds.secrets import Secrets
from leadline.monitor.notifications.kinds.table import get_kind
from leadline.monitor.notifications.messages import of_test
from leadline.monitor.schema import CHANNELS, OUTBOX, SERIES


@dataclass(frozen=True)
class Channel:
    """Where to tell.

    Attributes
    ----------
    number
        In the store.
    series
        The name of the series whose alarms go there; None for all.
    kind
        ``webhook``, ``slack``, ``email`` or ``command``.
    settings
        Of the kind; secrets are named by the environment variables that hold them.
    """

    number: int
    series: str | None
    kind: str
    settings: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return {"number": self.number, "series": self.series, "kind": self.kind, "settings": dict(self.settings)}


def add_channel(connection: Connection, series_id: int | None, kind: str, settings: Mapping[str, Any]) -> int:
    """Add a channel and return its number; one that is there already stays as it is.

    Parameters
    ----------
    connection
        In a transaction that writes.
    series_id
        Of the series in the store; None for all, also those that are registered later.
    kind, settings
        See :data:`leadline.monitor.notifications.kinds.table.KINDS`.
    """
    get_kind(kind).check(settings)
    values = {"series": series_id, "kind": kind, "settings": json.dumps(dict(settings), sort_keys=True)}
    same = [CHANNELS.c[name].is_not_distinct_from(value) for name, value in values.items()]
    number = connection.execute(sa.select(CHANNELS.c.id).where(*same)).scalar()
    if number is None:
        number = connection.execute(CHANNELS.insert().values(**values).returning(CHANNELS.c.id)).scalar_one()
    return int(number)


def list_channels(connection: Connection) -> tuple[Channel, ...]:
    """Return all channels, by number."""
    rows = connection.execute(
        sa.select(CHANNELS.c.id, SERIES.c.name, CHANNELS.c.kind, CHANNELS.c.settings)
        .select_from(CHANNELS.outerjoin(SERIES, CHANNELS.c.series == SERIES.c.id))
        .order_by(CHANNELS.c.id)
    )
    return tuple(Channel(number, name, kind, json.loads(settings)) for number, name, kind, settings in rows)


def remove_channel(connection: Connection, number: int) -> None:
    """Remove a channel, and with it what waits to be sent there."""
    # Locked first: what is enqueued at this moment is waited for, and goes with it.
    locked = sa.select(CHANNELS.c.id).where(CHANNELS.c.id == number).with_for_update()
    if connection.execute(locked).scalar() is None:
        known = ", ".join(str(channel.number) for channel in list_channels(connection)) or "none"
        raise InputError(f"number must be that of a channel ({known}); got {number}.")
    connection.execute(OUTBOX.delete().where(OUTBOX.c.channel == number))
    connection.execute(CHANNELS.delete().where(CHANNELS.c.id == number))


def try_channel(channel: Channel, now: datetime, *, page: str | None = None) -> str:
    """Send a test message at once, and return the remark on it; a :class:`DeliveryError` says why it did not arrive."""
    message = of_test(channel.series, now, page=page)
    return get_kind(channel.kind).send(message, channel.settings, Secrets.read(channel.settings))
