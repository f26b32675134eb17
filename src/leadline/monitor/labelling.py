"""Late labels: joined to their rows by id, in any order and as often as they come."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from leadline.errors import InputError
from leadline.monitor import catalogue
from leadline.monitor.catalogue import ALL_ROWS
from leadline.monitor.ledger import NO_PLAN, Entry, joined, realise
from leadline.monitor.records import Array, IntArray
from leadline.monitor.schema import CELLS, LABELS, LEDGER, PLANS, WINDOWS
from leadline.monitor.store import inserted
from leadline.monitor.windows import microseconds

_MANY = 500  # values in one statement


@dataclass(frozen=True)
class LabelsAdded:
    """What became of labels.

    Attributes
    ----------
    joined
        Labels whose row is known, each counted once.
    changed
        Those of them that differ from an earlier label of the row, which they replace.
    waiting
        Labels whose row has not come yet; they wait for it.
    """

    joined: int
    changed: int
    waiting: int


def once(ids: IntArray, labels: IntArray) -> tuple[IntArray, IntArray]:
    """Return ids, each once; refuse two labels for one."""
    order = np.argsort(ids, kind="stable")
    ids, labels = ids[order], labels[order]
    same = np.flatnonzero(np.diff(ids) == 0)
    if (labels[same] != labels[same + 1]).any():
        row = same[labels[same] != labels[same + 1]][0]
        raise InputError(
            f"ids must have one label each; rows {order[row]} and {order[row + 1]} give one id two labels."
        )
    first = np.concatenate([[True], np.diff(ids) != 0]) if len(ids) else np.zeros(0, dtype=bool)
    return ids[first], labels[first]


def add_labels(
    connection: Connection, entry: catalogue.Entry, ids: IntArray, labels: IntArray, plans: IntArray, now: datetime
) -> LabelsAdded:
    """Join labels to the rows of a series, in a transaction that nobody else writes beside.

    Parameters
    ----------
    connection, entry
        The store and the series.
    ids, labels, plans
        Shapes (k,): hashes of row ids, all different, the true classes, and the plans by which rows were chosen.
    now
        When they came.
    """
    found = np.zeros(len(ids), dtype=bool)
    changed, windows = 0, set()
    batches = connection.execute(sa.select(LEDGER.c.batch).where(LEDGER.c.series == entry.id)).scalars().all()
    for batch in batches:
        rows = _of_batch(connection, batch)
        known, places = rows.find(ids)
        if not len(places):
            continue
        found |= known
        before = rows.labels[places]
        moved = (before != labels[known]) | (rows.plans[places] != plans[known])
        changed += int(np.count_nonzero((before != labels[known]) & (before >= 0)))
        if moved.any():
            rows = rows.labelled(places, labels[known], plans[known])
            connection.execute(LEDGER.update().where(LEDGER.c.batch == batch).values(data=rows.to_bytes()))
            windows.update(np.unique(rows.windows[places[moved]]).tolist())
    _wait(connection, entry.id, ids[~found], labels[~found], plans[~found], now)
    realise_windows(connection, entry, sorted(windows))
    return LabelsAdded(int(found.sum()), changed, int(np.count_nonzero(~found)))


def join_waiting(connection: Connection, entry: catalogue.Entry, ids: IntArray, now: datetime) -> None:
    """Join labels that came before these rows."""
    waiting = connection.execute(sa.select(LABELS).where(LABELS.c.series == entry.id)).all()
    if not waiting:
        return
    of_labels = np.array([row.id for row in waiting], dtype=np.int64)
    known = np.isin(of_labels, ids)
    if not known.any():
        return
    labels, plans = (np.array([getattr(row, name) for row in waiting])[known] for name in ("label", "plan"))
    _forget(connection, entry.id, of_labels[known])
    add_labels(connection, entry, of_labels[known], labels, plans, now)


def plan_number(connection: Connection, series: int, cuts: Array) -> int:
    """Return the number of a plan in the store, by the cuts between its strata."""
    text = json.dumps(np.asarray(cuts, dtype=np.float64).tolist())
    chosen = sa.select(PLANS.c.id).where(PLANS.c.series == series, PLANS.c.cuts == text)
    number = connection.execute(chosen).scalar()
    if number is None:
        return inserted(connection, PLANS.insert().values(series=series, cuts=text))
    return int(number)


def realise_windows(connection: Connection, entry: catalogue.Entry, windows: Sequence[int]) -> None:
    """Work out anew what labels say of windows and their segments."""
    if not windows:
        return
    cuts = {
        int(number): np.array(json.loads(text))
        for number, text in connection.execute(sa.select(PLANS.c.id, PLANS.c.cuts).where(PLANS.c.series == entry.id))
    }
    whole = catalogue.known_segments(connection, entry.id)[ALL_ROWS]
    spans = connection.execute(
        sa.select(LEDGER.c.batch, LEDGER.c.first, LEDGER.c.last).where(
            LEDGER.c.series == entry.id, LEDGER.c.first <= max(windows), LEDGER.c.last >= min(windows)
        )
    ).all()
    held: dict[int, Entry] = {}
    for number in windows:
        # No more of the ledger is held at a time than concerns the window.
        batches = [span.batch for span in spans if span.first <= number <= span.last]
        held = {batch: held[batch] if batch in held else _of_batch(connection, batch) for batch in batches}
        rows = joined([one.take(one.windows == number) for one in held.values()])
        identity = connection.execute(
            sa.select(WINDOWS.c.id).where(WINDOWS.c.series == entry.id, WINDOWS.c.number == number)
        ).scalar_one()
        parts = {**dict(rows.by_segment()), whole: rows}
        connection.execute(
            CELLS.update().where(CELLS.c.window_id == identity, CELLS.c.segment == sa.bindparam("of_segment")),
            [_realised(segment, part, cuts, entry.series.confidence_level) for segment, part in parts.items()],
        )


def _of_batch(connection: Connection, batch: int) -> Entry:
    """Return what the ledger has of a batch."""
    return Entry.from_bytes(connection.execute(sa.select(LEDGER.c.data).where(LEDGER.c.batch == batch)).scalar_one())


def _realised(segment: int, rows: Entry, cuts: Mapping[int, Array], confidence_level: float) -> dict[str, Any]:
    """Return what labels say of a window of a segment, as the store has it."""
    found = realise(rows, cuts, confidence_level)
    return {
        "of_segment": segment,
        "labelled": 0 if found is None else found.n_labels,
        "right": int(np.count_nonzero(rows.right)),
        "realised": None if found is None else found.accuracy,
        "realised_low": None if found is None else found.interval[0],
        "realised_high": None if found is None else found.interval[1],
        "chosen": None if found is None else found.sample,
    }


def _wait(connection: Connection, series: int, ids: IntArray, labels: IntArray, plans: IntArray, now: datetime) -> None:
    """Keep labels whose rows have not come yet."""
    if not len(ids):
        return
    _forget(connection, series, ids)
    at = microseconds(now)
    connection.execute(
        LABELS.insert(),
        [
            {"series": series, "id": one, "label": label, "plan": plan, "added_at": at}
            for one, label, plan in zip(ids.tolist(), labels.tolist(), plans.tolist(), strict=True)
        ],
    )


def _forget(connection: Connection, series: int, ids: IntArray) -> None:
    """Drop labels that wait."""
    for start in range(0, len(ids), _MANY):
        few = ids[start : start + _MANY].tolist()
        connection.execute(LABELS.delete().where(LABELS.c.series == series, LABELS.c.id.in_(few)))


def no_plans(n: int) -> IntArray:
    """Return that rows were labelled by no plan, shape (n,)."""
    return np.full(n, NO_PLAN, dtype=np.int64)
