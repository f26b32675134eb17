"""The rows of one file, read a few at a time, and their numbers in it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from leadline.data.footers import row_groups
from leadline.data.sizes import row_group_bytes
from leadline.engines.ipc import ArrowFragment
from leadline.engines.lake import LakeFile

_AHEAD = 3  # blocks being read, in the scanner
_PART_BYTES = 64 << 20  # of a file that are read as one, unless a row group has more


def scan_batches(file: LakeFile, fragment: Any, schema: Any, columns: list[str], rows: int) -> Iterator[Any]:
    """Yield some columns of an opened file, or of a part of it, in batches of so many rows at most."""
    if isinstance(fragment, ArrowFragment):
        yield from fragment.batches(schema, columns, rows)
        return
    with fragment.open() as stored:
        sizes = row_group_bytes(row_groups(stored, fragment.metadata), columns)
    for group in fragment.row_groups:  # each is unpacked whole
        file.limit.require(sizes[group.id], f"row group {group.id}")
    for part in _parts(fragment, sizes):
        scanner = part.scanner(
            schema=schema, columns=columns, batch_size=rows, batch_readahead=_AHEAD, fragment_readahead=1
        )
        yield from scanner.to_batches()


def _parts(fragment: Any, sizes: Sequence[int]) -> Iterator[Any]:
    """Yield a file in parts of whole row groups, whose sizes are given: Arrow keeps all that it reads of a fragment."""
    chosen: list[int] = []
    room = 0
    for group in fragment.row_groups:
        if chosen and room + sizes[group.id] > _PART_BYTES:
            yield fragment.subset(row_group_ids=chosen)
            chosen, room = [], 0
        chosen.append(group.id)
        room += sizes[group.id]
    if chosen:
        yield fragment.subset(row_group_ids=chosen)


class Positions:
    """The number, in the file, of each row that a scan gives."""

    def __init__(self, fragment: Any) -> None:
        self._ranges: deque[tuple[int, int]] | None = None
        self._next = 0
        self._in_file: int | None = None
        if hasattr(fragment, "row_groups"):
            sizes = [fragment.metadata.row_group(i).num_rows for i in range(fragment.metadata.num_row_groups)]
            starts = np.concatenate([[0], np.cumsum(sizes)])
            self._in_file = int(starts[-1])
            self._ranges = deque((int(starts[group.id]), sizes[group.id]) for group in fragment.row_groups)

    def take(self, n: int) -> Any:
        """Return the numbers of the next n rows, shape (n,)."""
        if self._ranges is None:
            self._next += n
            return np.arange(self._next - n, self._next)
        parts = []
        while n:
            start, size = self._ranges.popleft()
            used = min(n, size)
            parts.append(np.arange(start, start + used))
            if used < size:
                self._ranges.appendleft((start + used, size - used))
            n -= used
        return np.concatenate(parts) if parts else np.arange(0)

    @property
    def n_rows(self) -> int:
        """How many rows the file has, once all of the scan has been taken."""
        return self._next if self._in_file is None else self._in_file


def with_partition_fields(schema: Any, file: LakeFile) -> Any:
    """Return the schema of a file with the columns that its folders state."""
    import pyarrow as pa

    for name, value in file.partitions.items():
        if name not in schema.names:
            schema = schema.append(pa.field(name, pa.int64() if isinstance(value, int) else pa.string()))
    return schema
