"""From what people have to a batch: rows, their times, segments and ids."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from glob import has_magic
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.data.columns import Columns
from leadline.data.files import outputs_of, read_outputs
from leadline.data.outputs import FloatArray, Outputs
from leadline.data.segments import segment_rows
from leadline.data.tables import from_table
from leadline.engines.accumulator import Accumulator
from leadline.engines.lake import find_files
from leadline.errors import InputError
from leadline.estimators.base import Estimator
from leadline.estimators.samples import Sample
from leadline.estimators.sums import Reduced
from leadline.monitor.ledger import hash_ids
from leadline.monitor.records import IntArray, Series
from leadline.monitor.windows import Times, as_time, read_times


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows to add.

    Attributes
    ----------
    rows
        Shape (n, c), validated.
    times
        Shape (n,).
    segments
        The values of each segment.
    places
        Shape (n,): the place of each row's segment in them.
    ids
        Shape (n,): hashes of the row ids; None where rows have none.
    labels
        Shape (n,): the true classes, where they came with the rows.
    checksum
        Of all of it, without the labels.
    """

    rows: FloatArray
    times: Times
    segments: Sequence[tuple[Any, ...]]
    places: NDArray[np.intp]
    ids: IntArray | None
    labels: IntArray | None
    checksum: str


@dataclass(frozen=True, eq=False)
class Reduction:
    """What a serving process has summed up of its rows: no segments, no ids, one time."""

    sums: Reduced
    sample: Sample
    time: datetime
    checksum: str


def segment_key(values: Sequence[Any]) -> str:
    """Return the values of a segment as the store has them."""
    return json.dumps([value.item() if isinstance(value, np.generic) else value for value in values], default=str)


def to_outputs(value: Any, model: Estimator, memory_limit: int | str | None = None) -> Outputs:
    """Return rows in whatever form as outputs, as the model learned to read them; labels may be missing."""
    if isinstance(value, Outputs):
        return value
    if isinstance(value, str | Path):
        return read_outputs(
            value, classes=model.class_names, columns=model.columns_, late_labels=True, memory_limit=memory_limit
        )
    table = _arrow(value)
    if table is None:
        raise InputError(
            f"outputs must be leadline.Outputs, a table, an accumulator or a file; got {type(value).__name__}."
        )
    contents = from_table(table, model.columns_ or Columns())
    return outputs_of(contents, model.class_names, model.columns_, late_labels=True)


def file_stamp(outputs: Any) -> str | None:
    """Return the size and the time of a file, which tell whether it has changed; None for what is no file."""
    if not isinstance(outputs, str | Path) or not Path(outputs).is_file():
        return None
    found = Path(outputs).stat()
    return f"{found.st_size}:{found.st_mtime_ns}"


def find_batches(place: str | Path) -> list[str]:
    """Return the files that a path, folder or pattern means, in the order of their names: a batch each."""
    text = str(place)
    if has_magic(text) or Path(text).is_dir():
        return [file.path for file in find_files(text)]
    return [text]


def read_batch(
    outputs: Outputs, model: Estimator, series: Series, salt: bytes, *,
    time: str | datetime | np.datetime64 | None, id: str | None, now: datetime,
) -> Batch:  # fmt: skip
    """Return outputs as a batch.

    Parameters
    ----------
    outputs
        With the columns that the series needs.
    model
        That of the series.
    series
        Where they go.
    salt
        Of the hashes of ids.
    time
        The column of times, or one time for all rows; None for the column of the series.
    id
        The column of row ids; None for the column of the series, if there is one.
    now
        The time of rows in windows of rows that have none.
    """
    rows = model._target(outputs)
    times = _times(outputs, series, time, now)
    places, segments = segment_rows(outputs.metadata, len(rows), series.by)
    column = series.id if id is None else id
    if id is not None and id not in outputs.metadata:
        raise InputError(f"column {id!r} is not in these outputs; metadata columns: {_known(outputs)}.")
    ids = hash_ids(outputs.metadata[column], salt, f"column {column!r}") if column in outputs.metadata else None
    digest = hashlib.blake2b(digest_size=16)
    digest.update(np.ascontiguousarray(rows, dtype=np.float32).tobytes())
    digest.update(times.astype(np.int64).tobytes() if _has_times(outputs, series, time) else b"")
    digest.update(json.dumps([segment_key(values) for values in segments]).encode() + places.astype(np.int64).tobytes())
    digest.update(b"" if ids is None else ids.tobytes())
    return Batch(rows, times, segments, places, ids, outputs.labels, digest.hexdigest())


def read_reduction(accumulator: Accumulator, model: Estimator, series: Series, time: Any, now: datetime) -> Reduction:
    """Return what a serving process has summed up."""
    if series.by:
        raise InputError(
            f"an accumulator has no segments, and series {series.name!r} is cut by {', '.join(series.by)}; add outputs."
        )
    if accumulator.model.model_id != model.model_id:
        raise InputError(f"the accumulator must be of the model of series {series.name!r}; it is of another.")
    if isinstance(time, str):
        raise InputError(f"an accumulator has no columns; give one time for all its rows, not {time!r}.")
    sums, sample = accumulator.kept()
    digest = hashlib.blake2b(sample.keys.tobytes() + sample.counts.tobytes(), digest_size=16)
    for name in sorted(sums.sums):
        digest.update(np.asarray(sums.sums[name]).tobytes())
    return Reduction(sums, sample, now if time is None else as_time(time), digest.hexdigest())


def _arrow(value: Any) -> Any | None:
    """Return a frame or table of whatever library as an Arrow table; None if it is none."""
    import pyarrow as pa

    if isinstance(value, pa.Table):
        return value
    if hasattr(value, "to_arrow"):
        return value.to_arrow()
    if type(value).__module__.startswith("pandas"):
        return pa.Table.from_pandas(value, preserve_index=False)
    return None


def _has_times(outputs: Outputs, series: Series, time: Any) -> bool:
    """Say whether the rows have times of their own, or were given one."""
    return time is not None or series.time in outputs.metadata


def _times(outputs: Outputs, series: Series, time: Any, now: datetime) -> Times:
    """Return the time of each row."""
    if isinstance(time, datetime | np.datetime64):
        one = np.datetime64(as_time(time).replace(tzinfo=None), "us")
        return np.full(len(outputs), one)
    column = series.time if time is None else str(time)
    if column in outputs.metadata:
        return read_times(outputs.metadata[column], column)
    if time is None and series.every.endswith("rows"):
        return np.full(len(outputs), np.datetime64(now.replace(tzinfo=None), "us"))
    raise InputError(
        f"column {column!r} of times is not in these outputs; metadata columns: {_known(outputs)}. "
        "Name the column of times, or give one time for all rows."
    )


def _known(outputs: Outputs) -> str:
    return ", ".join(sorted(outputs.metadata)) or "none"
