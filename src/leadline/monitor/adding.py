"""Rows into windows: merged into what is there, then estimated again.

Adding a batch is one transaction: its sums and samples join those of their windows, which are then stale. Estimates of
stale windows are worked out after that, outside of any transaction, and stored if the window has not changed meanwhile.
Whoever finds stale windows estimates them, so that a process which ends in between leaves nothing undone for long.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from leadline.engines.accumulator import Accumulator
from leadline.errors import InputError
from leadline.estimators.base import Estimator
from leadline.estimators.kept import Kept, KeptEstimates, estimate_kept, keep
from leadline.estimators.samples import Sample
from leadline.estimators.sums import Reduced
from leadline.monitor import catalogue, labelling
from leadline.monitor.blobs import pack, pack_sample, pack_sums, unpack_sample, unpack_sums
from leadline.monitor.catalogue import ALL_ROWS
from leadline.monitor.intake import Batch, Reduction, file_stamp, read_batch, read_reduction, to_outputs
from leadline.monitor.ledger import Entry
from leadline.monitor.records import Array, IntArray, Window
from leadline.monitor.schema import BATCHES, CELLS, LEDGER, SERIES, WINDOWS
from leadline.monitor.store import Store, inserted
from leadline.monitor.windows import Every, microseconds
from leadline.results.estimate import Estimate

NO_SEGMENT = 0  # the mark of rows of a series that is not cut
_MOST_SAMPLED, _LEAST_SAMPLED, _SAMPLED_VALUES = 5_000, 2_000, 100_000  # rows of a window, and rows times classes


def sample_rows(n_classes: int) -> int:
    """Return how many rows of a window are kept."""
    return max(_LEAST_SAMPLED, min(_MOST_SAMPLED, _SAMPLED_VALUES // n_classes))


@dataclass(frozen=True)
class Added:
    """What became of a batch.

    Attributes
    ----------
    batch
        Its name.
    new
        Whether it was added now; False if it was there already.
    n_rows
        Its rows.
    windows
        The windows that they belong to, in the order of time.
    """

    batch: str
    new: bool
    n_rows: int
    windows: tuple[Window, ...] = ()


def add_outputs(
    store: Store, entry: catalogue.Entry, model: Estimator, outputs: Any, *,
    time: str | datetime | np.datetime64 | None, id: str | None, batch: str | None, now: datetime,
    memory_limit: int | str | None = None,
) -> Added:  # fmt: skip
    """Add outputs in whatever form to a series, once; see :meth:`leadline.monitor.monitor.Monitor.add`."""
    if isinstance(outputs, Accumulator):
        reduction = read_reduction(outputs, model, entry.series, time, now)
        called = batch or reduction.checksum
        with store.writing() as connection:
            known = known_batch(connection, entry.id, called, reduction.checksum)
            return known or add_reduction(connection, entry, reduction, called, now)
    stamp = file_stamp(outputs)
    if stamp is not None and batch is not None:
        with store.reading() as connection:
            known = _same_file(connection, entry.id, batch, stamp)
        if known is not None:
            return known
    given = to_outputs(outputs, model, memory_limit)
    rows = read_batch(given, model, entry.series, store.salt, time=time, id=id, now=now)
    called = batch or rows.checksum
    with store.reading() as connection:
        known = known_batch(connection, entry.id, called, rows.checksum)
    if known is not None:
        return known
    correctness = None
    if rows.ids is not None:
        correctness = model._estimate(rows.rows, confidence_level=entry.series.confidence_level).correctness
    with store.writing() as connection:
        # Somebody else may have added it, or other rows, meanwhile.
        known = known_batch(connection, entry.id, called, rows.checksum)
        if known is not None:
            return known
        entry = catalogue.get(connection, entry.series.name)
        found = add_batch(connection, entry, model, rows, called, correctness, now, stamp)
        if rows.ids is not None:
            labelling.join_waiting(connection, entry, rows.ids, now)
            if rows.labels is not None:
                plans = labelling.no_plans(len(rows.ids))
                labelling.add_labels(connection, entry, rows.ids, rows.labels, plans, now)
    return found


def known_batch(connection: Connection, series: int, name: str, checksum: str) -> Added | None:
    """Return a batch that was added before; refuse another one of the same name."""
    row = connection.execute(
        sa.select(BATCHES.c.checksum, BATCHES.c.n_rows).where(BATCHES.c.series == series, BATCHES.c.name == name)
    ).first()
    if row is None:
        return None
    if row.checksum != checksum:
        raise InputError(f"batch {name!r} was added before with other rows; give these a name of their own.")
    return Added(name, new=False, n_rows=int(row.n_rows))


def _same_file(connection: Connection, series: int, name: str, stamp: str) -> Added | None:
    """Return a batch that was added from a file which has not changed since."""
    same = sa.and_(BATCHES.c.series == series, BATCHES.c.name == name, BATCHES.c.stamp == stamp)
    n_rows = connection.execute(sa.select(BATCHES.c.n_rows).where(same)).scalar()
    return None if n_rows is None else Added(name, new=False, n_rows=int(n_rows))


def add_batch(
    connection: Connection, entry: catalogue.Entry, model: Estimator, batch: Batch, name: str,
    correctness: Array | None, now: datetime, stamp: str | None,
) -> Added:  # fmt: skip
    """Add rows, in a transaction that nobody else writes beside."""
    every, n = Every.parse(entry.series.every), len(batch.rows)
    numbers = every.numbers(batch.times) if every.n_rows is None else (entry.n_rows + np.arange(n)) // every.n_rows
    of_segments = np.asarray(catalogue.segment_numbers(connection, entry.id, batch.segments), dtype=np.int64)
    (whole,) = catalogue.segment_numbers(connection, entry.id, [()])
    windows = []
    for number in np.unique(numbers).tolist():
        mine = np.flatnonzero(numbers == number) if len(batch.rows) > 1 else np.array([0])
        places, local = np.unique(batch.places[mine], return_inverse=True)
        segments = of_segments[places].tolist() if entry.series.by else [NO_SEGMENT]
        sums, sample = keep(model, batch.rows[mine], local.reshape(-1), segments, sample_rows(model.n_classes_))
        window = every.window(number) if every.n_rows is None else _window_of_rows(number, batch, mine)
        _merge(connection, entry.id, window, sums, sample, whole)
        windows.append(window)
    number = _record(connection, entry, name, batch.checksum, n, now, stamp)
    if batch.ids is not None:
        rows = Entry.of_rows(
            batch.ids, numbers.astype(np.int64), of_segments[batch.places], batch.rows.argmax(axis=1), correctness
        )
        connection.execute(
            LEDGER.insert().values(
                batch=number, series=entry.id, first=int(numbers.min()), last=int(numbers.max()),
                ends=max(microseconds(window.end) for window in windows), data=rows.to_bytes(),
            )
        )  # fmt: skip
    return Added(name, new=True, n_rows=n, windows=tuple(windows))


def add_reduction(
    connection: Connection, entry: catalogue.Entry, reduction: Reduction, name: str, now: datetime
) -> Added:
    """Add what a serving process has summed up."""
    every, n = Every.parse(entry.series.every), reduction.sums.n_rows
    if every.n_rows is not None:
        raise InputError(
            f"series {entry.series.name!r} has windows of rows, which sums cannot be cut into; add outputs."
        )
    (whole,) = catalogue.segment_numbers(connection, entry.id, [()])
    time = np.array([np.datetime64(reduction.time.replace(tzinfo=None), "us")])
    window = every.window(int(every.numbers(time)[0]))
    sample = reduction.sample.cut(sample_rows(reduction.sample.logits.shape[1] - 1))
    _merge(connection, entry.id, window, {NO_SEGMENT: reduction.sums}, sample, whole)
    _record(connection, entry, name, reduction.checksum, n, now)
    return Added(name, new=True, n_rows=n, windows=(window,))


def _window_of_rows(number: int, batch: Batch, mine: IntArray) -> Window:
    """Return a window of rows, with the times of these."""
    times = batch.times[mine]
    start, end = (time.astype("datetime64[us]").astype(datetime) for time in (times.min(), times.max()))
    return Window(number, start, end)


def _record(
    connection: Connection, entry: catalogue.Entry, name: str, checksum: str, n: int, now: datetime,
    stamp: str | None = None,
) -> int:  # fmt: skip
    """Note that a batch was added, and return its number."""
    connection.execute(SERIES.update().where(SERIES.c.id == entry.id).values(n_rows=SERIES.c.n_rows + n))
    row = BATCHES.insert().values(
        series=entry.id, name=name, checksum=checksum, stamp=stamp, n_rows=n, added_at=microseconds(now)
    )
    return inserted(connection, row)


def _merge(
    connection: Connection, series: int, window: Window, sums: Mapping[int, Reduced], sample: Sample, whole: int
) -> None:
    """Join rows to a window: the sums of its segments and of all rows, and its sample."""
    row = connection.execute(
        sa.select(WINDOWS).where(WINDOWS.c.series == series, WINDOWS.c.number == window.number)
    ).first()
    starts, ends = microseconds(window.start), microseconds(window.end)
    if row is None:
        identity = inserted(
            connection,
            WINDOWS.insert().values(
                series=series, number=window.number, starts=starts, ends=ends, version=1, estimated=0,
                sample=pack_sample(sample),
            ),
        )  # fmt: skip
    else:
        if row.sample is None:
            raise InputError(
                f"window {window.start:%Y-%m-%d %H:%M} was pruned and takes no more rows; leave such rows out."
            )
        identity = int(row.id)
        connection.execute(
            WINDOWS.update().where(WINDOWS.c.id == identity).values(
                version=WINDOWS.c.version + 1, sample=pack_sample(unpack_sample(row.sample) + sample),
                starts=min(row.starts, starts), ends=max(row.ends, ends),
            )
        )  # fmt: skip
    first, *others = sums.values()
    parts = {segment: part for segment, part in sums.items() if segment != NO_SEGMENT} | {whole: sum(others, first)}
    cells = connection.execute(
        sa.select(CELLS.c.segment, CELLS.c.sums).where(CELLS.c.window_id == identity, CELLS.c.segment.in_(parts))
    )
    known = {int(segment): data for segment, data in cells}
    new = [_cell(identity, segment, part) for segment, part in parts.items() if segment not in known]
    if new:
        connection.execute(CELLS.insert(), new)
    for segment, data in known.items():
        joined = unpack_sums(data) + parts[segment]
        connection.execute(
            CELLS.update().where(CELLS.c.window_id == identity, CELLS.c.segment == segment)
            .values(n_rows=joined.n_rows, sums=pack_sums(joined))
        )  # fmt: skip


def _cell(window: int, segment: int, sums: Reduced) -> dict[str, Any]:
    return {
        "window_id": window, "segment": segment, "n_rows": sums.n_rows, "sums": pack_sums(sums),
        "labelled": 0, "right": 0,
    }  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Stale:
    """A window to estimate: its number in the store, its version, and what is kept of it."""

    identity: int
    version: int
    kept: Kept
    whole: int


def refresh(store: Store, entry: catalogue.Entry, model: Estimator) -> int:
    """Estimate all stale windows of a series; return how many there were."""
    done = 0
    while True:
        with store.reading() as connection:
            stale = _next_stale(connection, entry, model)
        if stale is None:
            return done
        found = estimate_kept(model, stale.kept, confidence_level=entry.series.confidence_level)
        with store.writing() as connection:
            _store_estimates(connection, entry, stale, found)
        done += 1


def _next_stale(connection: Connection, entry: catalogue.Entry, model: Estimator) -> _Stale | None:
    """Return the earliest window whose estimates are not of its rows."""
    row = connection.execute(
        sa.select(WINDOWS)
        .where(WINDOWS.c.series == entry.id, WINDOWS.c.estimated != WINDOWS.c.version, WINDOWS.c.sample.is_not(None))
        .order_by(WINDOWS.c.number)
        .limit(1)
    ).first()
    if row is None:
        return None
    whole = catalogue.known_segments(connection, entry.id)[ALL_ROWS]
    kept = kept_rows(connection, int(row.id), row.sample, model, whole)
    return _Stale(int(row.id), int(row.version), kept, whole)


def kept_rows(connection: Connection, window: int, sample: bytes, model: Estimator, whole: int) -> Kept:
    """Return what is kept of a window."""
    cells = connection.execute(sa.select(CELLS.c.segment, CELLS.c.sums).where(CELLS.c.window_id == window))
    sums = {int(segment): unpack_sums(data) for segment, data in cells}
    total = sums.pop(whole)
    return Kept.of_sample(sums or {NO_SEGMENT: total}, unpack_sample(sample), sample_rows(model.n_classes_))


def _store_estimates(connection: Connection, entry: catalogue.Entry, stale: _Stale, found: KeptEstimates) -> None:
    """Store the estimates of a window, unless it has changed since it was read."""
    version = connection.execute(sa.select(WINDOWS.c.version).where(WINDOWS.c.id == stale.identity)).scalar_one()
    if version != stale.version:
        return
    connection.execute(
        WINDOWS.update().where(WINDOWS.c.id == stale.identity)
        .values(estimated=version, words=found.whole.explain())
    )  # fmt: skip
    estimates = {number: one for number, one in found.groups.items() if number != NO_SEGMENT}
    estimates[stale.whole] = found.whole
    rows = []
    for segment, estimate in estimates.items():
        shift = estimate.shift
        rows.append({
            "of_window": stale.identity, "of_segment": segment, "accuracy": estimate.accuracy,
            "low": estimate.interval[0], "high": estimate.interval[1],
            "shift": None if shift is None else shift.kind.value,
            "distance": None if shift is None else shift.distance,
            "noise": None if shift is None else shift.noise,
            "by_class": _by_class(estimate) if segment == stale.whole else None,
        })  # fmt: skip
    connection.execute(
        CELLS.update().where(
            CELLS.c.window_id == sa.bindparam("of_window"), CELLS.c.segment == sa.bindparam("of_segment")
        ),
        rows,
    )  # fmt: skip


def _by_class(estimate: Estimate) -> bytes:
    """Return what was estimated per predicted class, as the store has it."""
    shares = [np.nan if part.accuracy is None else part.accuracy for part in estimate.by_class]
    counts = [part.count for part in estimate.by_class]
    return pack({"accuracy": np.array(shares, dtype=np.float32), "count": np.array(counts, dtype=np.int64)})
