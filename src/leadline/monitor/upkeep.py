"""Keeping a store small and sound: what is old is dropped, and everything is checked against everything else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from leadline.errors import InputError
from leadline.estimators.persistence import checksum
from leadline.monitor import catalogue
from leadline.monitor.blobs import unpack_sample, unpack_sums
from leadline.monitor.catalogue import ALL_ROWS
from leadline.monitor.ledger import NO_LABEL, Entry
from leadline.monitor.notifications.outbox import DELIVERED
from leadline.monitor.schema import ALARMS, BATCHES, CELLS, LABELS, LEDGER, OUTBOX, WINDOWS
from leadline.monitor.windows import from_microseconds, microseconds


@dataclass(frozen=True)
class Pruned:
    """What was dropped: rows that waited for labels, labels that waited for rows, samples of windows."""

    rows: int
    labels: int
    windows: int


def prune(connection: Connection, entry: catalogue.Entry, before: datetime) -> Pruned:
    """Drop what windows that ended before a time need to take more rows and labels; what is known of them stays."""
    limit = microseconds(before)
    old = connection.execute(
        sa.select(LEDGER.c.batch, LEDGER.c.data).where(LEDGER.c.series == entry.id, LEDGER.c.ends <= limit)
    ).all()
    rows = sum(len(Entry.from_bytes(data).ids) for _, data in old)
    connection.execute(LEDGER.delete().where(LEDGER.c.series == entry.id, LEDGER.c.ends <= limit))
    labels = connection.execute(LABELS.delete().where(LABELS.c.series == entry.id, LABELS.c.added_at <= limit)).rowcount
    ended = sa.and_(
        WINDOWS.c.series == entry.id, WINDOWS.c.ends <= limit, WINDOWS.c.estimated == WINDOWS.c.version,
        WINDOWS.c.sample.is_not(None),
    )  # fmt: skip
    windows = connection.execute(WINDOWS.update().where(ended).values(sample=None)).rowcount
    alarms = sa.select(ALARMS.c.id).where(ALARMS.c.series == entry.id)
    connection.execute(
        OUTBOX.delete().where(OUTBOX.c.state == DELIVERED, OUTBOX.c.next_at <= limit, OUTBOX.c.alarm.in_(alarms))
    )
    return Pruned(rows, labels, windows)


def faults(connection: Connection, entry: catalogue.Entry) -> Iterator[str]:
    """Yield what contradicts itself in a series."""
    name = entry.series.name
    try:
        if checksum(catalogue.model_of(connection, entry.checksum)) != entry.checksum:
            yield f"{name}: the model is not the one that was registered."
    except InputError as error:
        yield f"{name}: {error}"
    known = catalogue.known_segments(connection, entry.id)
    whole, in_windows = known.get(ALL_ROWS), 0
    for window in connection.execute(sa.select(WINDOWS).where(WINDOWS.c.series == entry.id)).all():
        place = f"{name}, window {from_microseconds(window.starts):%Y-%m-%d %H:%M}"
        cells = connection.execute(sa.select(CELLS).where(CELLS.c.window_id == window.id)).all()
        counts = {cell.segment: cell.n_rows for cell in cells}
        total = counts.pop(whole, None)
        if total is None:
            yield f"{place}: all rows together are missing."
            continue
        in_windows += total
        if counts and sum(counts.values()) != total:
            yield f"{place}: its segments have {sum(counts.values()):,} rows, all together {total:,}."
        yield from (f"{place}: {fault}" for fault in _cell_faults(cells, window))
    in_batches = connection.execute(
        sa.select(sa.func.coalesce(sa.func.sum(BATCHES.c.n_rows), 0)).where(BATCHES.c.series == entry.id)
    ).scalar_one()
    if not in_windows == int(in_batches) == entry.n_rows:
        yield f"{name}: {int(in_batches):,} rows were added, {entry.n_rows:,} counted, {in_windows:,} are in windows."
    yield from _ledger_faults(connection, entry, whole)


def _cell_faults(cells: Sequence[Any], window: Any) -> Iterator[str]:
    """Yield what contradicts itself in a window."""
    try:
        if window.sample is not None:
            unpack_sample(window.sample)
        for cell in cells:
            if unpack_sums(cell.sums).n_rows != cell.n_rows:
                yield f"sums of segment {cell.segment} are not of its {cell.n_rows:,} rows."
    except (InputError, KeyError, ValueError) as error:
        yield str(error)
    for cell in cells:
        ends = cell.accuracy, cell.low, cell.high
        if window.estimated == window.version and not all(end is not None and 0.0 <= end <= 1.0 for end in ends):
            yield f"segment {cell.segment} has no estimate."


def _ledger_faults(connection: Connection, entry: catalogue.Entry, whole: int | None) -> Iterator[str]:
    """Yield where labels in the ledger and in windows are not the same."""
    counted: dict[int, int] = {}
    first: int | None = None
    for data in connection.execute(sa.select(LEDGER.c.data).where(LEDGER.c.series == entry.id)).scalars():
        try:
            rows = Entry.from_bytes(data)
        except InputError as error:
            yield f"{entry.series.name}: {error}"
            return
        first = int(rows.windows.min()) if first is None else min(first, int(rows.windows.min()))
        windows, counts = np.unique(rows.windows[rows.labels != NO_LABEL], return_counts=True)
        for number, count in zip(windows.tolist(), counts.tolist(), strict=True):
            counted[number] = counted.get(number, 0) + count
    if first is None:
        return
    in_cells = connection.execute(
        sa.select(WINDOWS.c.number, CELLS.c.labelled)
        .join(CELLS, CELLS.c.window_id == WINDOWS.c.id)
        .where(WINDOWS.c.series == entry.id, CELLS.c.segment == whole, WINDOWS.c.number >= first)
        .where(WINDOWS.c.sample.is_not(None))
    )
    for number, labelled in in_cells:
        if counted.get(number, 0) != labelled:
            yield (
                f"{entry.series.name}, window number {number}: {labelled:,} labels are counted, "
                f"{counted.get(number, 0):,} are in the ledger."
            )
