"""Columns to group by: plain ones, and times cut into hours, days, weeks or months."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.data.arrow import plain_decimals
from leadline.data.names import one_line
from leadline.data.tables import storable
from leadline.errors import InputError

BUCKETS = ("hour", "day", "week", "month")
#: Integers that count from 1970 in a unit: those of the years 1973 to 2286, which no two units share.
_EPOCHS = {"s": (10**8, 10**10), "ms": (10**11, 10**13), "us": (10**14, 10**16), "ns": (10**17, 10**19)}


@dataclass(frozen=True)
class Key:
    """A column to group by.

    Attributes
    ----------
    name
        What the caller called it.
    column
        The column in the data.
    bucket
        One of :data:`BUCKETS` to cut times (in UTC; weeks begin on Mondays), or None to take values as they are.
    """

    name: str
    column: str
    bucket: str | None = None

    def values(self, column: Any) -> Any:
        """Return what an Arrow array of the column's values is grouped by; NaN counts as missing."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        kind = column.type
        if pa.types.is_dictionary(kind) and not (self.bucket is None and pa.types.is_string(kind.value_type)):
            column = column.cast(kind.value_type)
        if self.bucket is not None:
            return self._cut(column)
        column = plain_decimals(column)
        kind = column.type
        if pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType):
            raise InputError(
                f"column {self.column!r} must hold plain values of one type to group by it; it holds {kind}."
            )
        if pa.types.is_timestamp(kind) and kind.tz is not None:
            return column.cast(pa.timestamp(kind.unit))  # the instant in UTC
        if pa.types.is_floating(kind):
            return pc.if_else(pc.is_nan(column), pa.scalar(None, kind), column)
        return column

    def _cut(self, column: Any) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        if pa.types.is_integer(column.type):
            column = self._since_1970(column)
        try:
            times = column.cast(pa.timestamp("us"), safe=False)  # of a time with a zone, the instant in UTC
        except pa.ArrowException as error:
            raise InputError(
                f"column {self.column!r} must hold times to be cut into {self.bucket}s; it holds {column.type}."
            ) from error
        cut = pc.floor_temporal(times, unit=self.bucket, week_starts_monday=True)
        return cut if self.bucket == "hour" else cut.cast(pa.date32())

    def _since_1970(self, column: Any) -> Any:
        """Return integers as times: the seconds of 1973 to 2286 are fewer than their milliseconds, and so on."""
        import pyarrow as pa
        import pyarrow.compute as pc

        ends = pc.min_max(column)
        least, most = ends["min"].as_py(), ends["max"].as_py()
        if least is None:
            return column.cast(pa.timestamp("s"))
        for unit, (low, high) in _EPOCHS.items():
            if low <= least and most < high:
                return column.cast(pa.int64()).cast(pa.timestamp(unit))
        raise InputError(
            f"column {self.column!r} must hold times to be cut into {self.bucket}s; integers count seconds, "
            f"milliseconds, microseconds or nanoseconds since 1970, all in one unit; got {least} to {most}. "
            "Store them as timestamps."
        )


def resolve(names: Sequence[str], types: Mapping[str, Any], where: str = "these outputs") -> list[Key]:
    """Return the keys that are meant by names, given the columns there are.

    Parameters
    ----------
    names
        Each a column, ``column:week`` (or hour, day, month), or ``week`` alone where there is one column of times and
        none of that name.
    types
        The Arrow type of each column to group by.
    where
        What has these columns, for errors.
    """
    keys = [_resolve(name, types, where) for name in names]
    if len({key.name for key in keys}) < len(keys):
        raise InputError(f"columns to group by must be distinct; got {', '.join(names)}.")
    return keys


def _resolve(name: str, types: Mapping[str, Any], where: str) -> Key:
    import pyarrow as pa

    if name in types:
        return Key(name, name)
    column, colon, bucket = name.rpartition(":")
    if colon and column in types:
        if bucket not in BUCKETS:
            raise InputError(f"times can be grouped by {', '.join(BUCKETS)}; got {name!r}.")
        return Key(name, column, bucket)
    if name in BUCKETS:
        times = [other for other, kind in types.items() if pa.types.is_timestamp(kind) or pa.types.is_date(kind)]
        if len(times) == 1:
            return Key(name, times[0], name)
        if times:
            raise InputError(f"{name!r} could be that of {' or '.join(times)}; say which, such as '{times[0]}:{name}'.")
    known = ", ".join(sorted(types)) or "none"
    raise InputError(f"column {column if colon else name!r} is not in {where}; metadata columns: {known}.")


class Groups:
    """Numbers for the groups of rows seen so far, in the order in which they were first seen."""

    def __init__(self, n_keys: int) -> None:
        self._columns = [_Index() for _ in range(n_keys)]
        self._pairs = [_Index() for _ in range(n_keys - 1)]

    def __len__(self) -> int:
        """Return how many groups there are."""
        last = (self._pairs or self._columns)[-1:]
        return len(last[0]) if last else 1

    def numbers(self, columns: Sequence[Any], n: int) -> NDArray[np.intp]:
        """Return the number of each row's group, shape (n,), given what each key's column holds."""
        import pyarrow as pa

        if not self._columns:
            return np.zeros(n, dtype=np.intp)
        found = self._columns[0].numbers(columns[0])
        for column, index, pairs in zip(columns[1:], self._columns[1:], self._pairs, strict=True):
            found = pairs.numbers(pa.array((found.astype(np.int64) << 32) | index.numbers(column)))
        return found

    def labels(self) -> list[tuple[Any, ...]]:
        """Return the values of each group, one for each key; None where the value is missing."""
        if not len(self):
            return []
        numbers = [np.arange(len(self))]
        for pairs in reversed(self._pairs):
            pair = pairs.values.to_numpy()[numbers[0]]
            numbers = [pair >> 32, pair & 0xFFFFFFFF, *numbers[1:]]
        values = [_python_values(index.values) for index in self._columns]
        if not values:
            return [()]
        return list(
            zip(*([known[i] for i in places] for known, places in zip(values, numbers, strict=True)), strict=True)
        )


def _python_values(values: Any) -> list[Any]:
    """Return an Arrow array as Python's own values; times with nanoseconds, which Python's lack, as NumPy's."""
    import pyarrow as pa

    if not pa.types.is_timestamp(values.type) or values.type.unit != "ns":
        return list(values.to_pylist())
    try:
        return list(values.cast(pa.timestamp("us", values.type.tz)).to_pylist())
    except pa.ArrowInvalid:
        return [None if np.isnat(value) else value for value in values.to_numpy(zero_copy_only=False)]


class _Index:
    """Numbers for distinct values, found by hashing whole columns at a time."""

    def __init__(self) -> None:
        self.values: Any = None

    def __len__(self) -> int:
        return 0 if self.values is None else len(self.values)

    def numbers(self, column: Any) -> NDArray[np.intp]:
        import pyarrow as pa
        import pyarrow.compute as pc

        if pa.types.is_dictionary(column.type):
            used = column.indices.unique()
            places = pc.index_in(column.indices, value_set=used).to_numpy(zero_copy_only=False)
            return np.asarray(self.numbers(column.dictionary.take(used))[places])
        if self.values is None:
            self.values = column.unique()
        try:
            column = column.cast(self.values.type)
        except pa.ArrowException as error:
            raise InputError(f"columns to group by must hold one type in all files ({one_line(error)}).") from error
        found = pc.index_in(column, value_set=self.values)
        if found.null_count:
            new = column.filter(found.is_null()).unique()
            self.values = pa.concat_arrays([self.values, new])
            found = pc.index_in(column, value_set=self.values)
        return np.asarray(found.to_numpy(zero_copy_only=False)).astype(np.intp)


def ordered(labels: Sequence[tuple[Any, ...]]) -> list[int]:
    """Return the places of labels in their order, missing values last."""
    return sorted(range(len(labels)), key=lambda i: [(value is None, value) for value in labels[i]])


def segment_rows(
    metadata: Mapping[str, NDArray[Any]], n_rows: int, by: Sequence[str]
) -> tuple[NDArray[np.intp], list[tuple[Any, ...]]]:
    """Return the number of each row's segment, shape (n,), and the values that make up each segment.

    Parameters
    ----------
    metadata
        Columns of shape (n,).
    n_rows
        The number of rows n.
    by
        Names, as :func:`resolve` understands them; with none, all rows are one segment.
    """
    if not by:
        return np.zeros(n_rows, dtype=np.intp), [()]
    import pyarrow as pa

    columns = {}
    for name, values in metadata.items():
        try:
            columns[name] = pa.array(storable(values), from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError):
            columns[name] = pa.nulls(n_rows, pa.list_(pa.null()))  # of no type to group by
    keys = resolve(by, {name: column.type for name, column in columns.items()})
    groups = Groups(len(keys))
    numbers = groups.numbers([key.values(columns[key.column]) for key in keys], n_rows)
    return numbers, groups.labels()
