"""Windows: stretches of time, or of rows, that a series is cut into."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.errors import InputError
from leadline.monitor.records import IntArray, Window

Times = NDArray[np.datetime64]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MONDAY = np.timedelta64(4, "D")  # the first Monday of 1970 was the fifth of January
_UNITS = {"h": "1h", "hour": "1h", "d": "1d", "day": "1d", "w": "1w", "week": "1w", "mo": "1mo", "month": "1mo"}
_FINER = {"1h": {"1h"}, "1d": {"1h", "1d"}, "1w": {"1h", "1d", "1w"}, "1mo": {"1h", "1d", "1mo"}}
_ROWS = re.compile(r"(\d{1,12})\s*rows?", re.ASCII)
_TIMED = re.compile(r"1?\s*([a-z]+)", re.ASCII)


@dataclass(frozen=True)
class Every:
    """How long windows are.

    Attributes
    ----------
    name
        ``1h``, ``1d``, ``1w`` (from Monday), ``1mo``, all in UTC, or a number of rows such as ``5000 rows``.

    Examples
    --------
    >>> Every.parse("day").name, Every.parse(5000).name, Every.parse("5000 rows").n_rows
    ('1d', '5000 rows', 5000)
    """

    name: str

    @classmethod
    def parse(cls, value: str | int) -> Every:
        """Return what is meant by a text or a number of rows."""
        text = f"{value} rows" if isinstance(value, int) and not isinstance(value, bool) else str(value).strip()
        rows = _ROWS.fullmatch(text)
        if rows and int(rows[1]) > 0:
            return cls(f"{int(rows[1])} rows")
        timed = _TIMED.fullmatch(text.lower())
        if not timed or timed[1] not in _UNITS:
            raise InputError(
                f"every must be 1h, 1d, 1w, 1mo, or a number of rows such as '5000 rows'; got {str(value)!r}."
            )
        return cls(_UNITS[timed[1]])

    @property
    def n_rows(self) -> int | None:
        """Rows of a window; None for windows of time."""
        found = _ROWS.fullmatch(self.name)
        return int(found[1]) if found else None

    def numbers(self, times: Times) -> IntArray:
        """Return the number of each time's window, shape (n,)."""
        if self.name == "1w":
            return np.asarray((times - _MONDAY).astype("datetime64[D]").astype(np.int64) // 7, dtype=np.int64)
        unit = {"1h": "h", "1d": "D", "1mo": "M"}[self.name]
        return np.asarray(times.astype(f"datetime64[{unit}]").astype(np.int64))

    def window(self, number: int) -> Window:
        """Return a window of time by its number."""
        return Window(number, self._start(number), self._start(number + 1))

    def _start(self, number: int) -> datetime:
        if self.name == "1mo":
            return datetime(1970 + number // 12, 1 + number % 12, 1, tzinfo=UTC)
        if self.name == "1w":
            return _EPOCH + timedelta(days=4, weeks=number)
        return _EPOCH + number * (timedelta(hours=1) if self.name == "1h" else timedelta(days=1))

    def check_coarser(self, than: Every) -> None:
        """Refuse windows that are not made up of whole other ones."""
        if self.name not in _FINER or than.name not in _FINER[self.name]:
            raise InputError(f"windows of {than.name} cannot be merged to windows of {self.name}.")


def read_times(values: Any, column: str) -> Times:
    """Return a column as times in UTC, in microseconds, shape (n,).

    Times, dates and texts such as ``2026-11-18T02:00:00+01:00`` are taken; numbers are not, as nobody can know their
    unit.
    """
    import pyarrow as pa

    from leadline.data.tables import storable

    try:
        array = pa.array(storable(np.asarray(values)), from_pandas=True)
        if pa.types.is_integer(array.type) or pa.types.is_floating(array.type) or pa.types.is_boolean(array.type):
            raise InputError(
                f"column {column!r} must hold times; it holds numbers, of an unknown unit. "
                "Make them times first, such as with numpy.datetime64(0, 's') + seconds."
            )
        if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
            array = _from_text(array)
        times: Times = array.cast(pa.timestamp("us"), safe=False).to_numpy(zero_copy_only=False)
    except (pa.ArrowException, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"column {column!r} must hold times; it holds {np.asarray(values).flat[0]!r}.") from error
    missing = np.flatnonzero(np.isnat(times))
    if len(missing):
        raise InputError(
            f"column {column!r} must hold a time for each row; {len(missing)} have none, row {missing[0]}."
        )
    return times


def _from_text(array: Any) -> Any:
    """Return texts as times: with a zone as instants, without one as UTC."""
    import pyarrow as pa

    try:
        return array.cast(pa.timestamp("us", "UTC"))  # refuses texts without a zone
    except pa.ArrowInvalid:
        return array.cast(pa.timestamp("us"))


def microseconds(time: datetime) -> int:
    """Return a time as microseconds since 1970 in UTC, which is how the store has it."""
    aware = time.replace(tzinfo=UTC) if time.tzinfo is None else time
    return (aware - _EPOCH) // timedelta(microseconds=1)


def from_microseconds(value: int) -> datetime:
    """Return the time that :func:`microseconds` gave."""
    return _EPOCH + timedelta(microseconds=value)


def as_time(value: datetime | np.datetime64) -> datetime:
    """Return a single time, in UTC; one without a zone is in UTC."""
    if isinstance(value, np.datetime64):
        return from_microseconds(int(value.astype("datetime64[us]").astype(np.int64)))
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
