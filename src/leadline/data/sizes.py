"""What tables in files unpack to, told from their metadata before anything is unpacked."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from leadline.data.footers import Chunk
from leadline.data.memory import MemoryLimit

ARROW_MAGIC = b"ARROW1"
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
_OFFSET = 8  # bytes, at most, by which a row tells where its text or list begins
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3


# ---------------------------------------------------------------------------------------------- Parquet
def row_group_bytes(groups: Sequence[Sequence[Chunk]], columns: Collection[str] | None = None) -> list[int]:
    """Return how many bytes each row group of a Parquet file takes, without texts that are read as dictionaries.

    Parameters
    ----------
    groups
        Their columns, from :func:`leadline.data.footers.row_groups`.
    columns
        The columns that are read; None for all.
    """
    return [
        sum(_chunk_bytes(chunk) for chunk in group if columns is None or _name(chunk, columns) in columns)
        for group in groups
    ]


def dictionary_columns(groups: Sequence[Sequence[Chunk]], limit: MemoryLimit) -> list[str]:
    """Return the columns of text that are to be read as dictionaries, as they are stored.

    As plain texts they could take more than the limit: every row may have the longest value of the dictionary.
    """
    return sorted({
        chunk.path
        for group in groups
        for chunk in group
        if chunk.type == "BYTE_ARRAY" and chunk.has_dictionary and chunk.n_values * chunk.n_bytes > limit.size
    })  # fmt: skip


def _name(chunk: Chunk, columns: Collection[str]) -> str:
    """Return the column that a chunk belongs to: it may have a name with dots, or be a part of one that has parts."""
    return chunk.path if chunk.path in columns else chunk.path.partition(".")[0]


def _chunk_bytes(chunk: Chunk) -> int:
    """Return how many bytes the values of a leaf take."""
    if chunk.type != "BYTE_ARRAY":
        return chunk.n_values * (_WIDTHS.get(chunk.type, chunk.width) + _OFFSET)
    # Where values are told by what they share with the one before, each may be as long as all that is stored.
    return chunk.n_bytes * (chunk.n_values if chunk.has_prefixes else 1) + chunk.n_values * _OFFSET


# ------------------------------------------------------------------------------------------------ Arrow
@dataclass(frozen=True)
class BatchSize:
    """Bytes of a batch of an Arrow file: as it is stored, and what its compressed buffers unpack to."""

    stored: int
    unpacked: int


def arrow_batches(source: Any) -> Iterator[BatchSize]:
    """Yield the sizes of the batches and dictionaries of an Arrow IPC file or stream, a ``pyarrow.NativeFile``.

    Raises
    ------
    ValueError
        The metadata are damaged.
    """
    try:
        end = source.size()
        is_file = source.read_at(len(ARROW_MAGIC), 0) == ARROW_MAGIC
        for place in _file_blocks(source, end) if is_file else _stream_messages(source, end):
            yield from _batch_size(source, place)
    except (struct.error, IndexError) as error:
        raise ValueError("its metadata are damaged.") from error


def _file_blocks(source: Any, end: int) -> Iterator[int]:
    """Yield where the dictionaries and batches of a file begin, as its footer says."""
    tail = len(ARROW_MAGIC) + 4
    (length,) = struct.unpack("<i", source.read_at(4, end - tail))
    if not 0 < length <= end - tail:
        raise ValueError("its footer is damaged.")
    footer = _Record.root(source.read_at(length, end - tail - length))
    for field in (2, 3):  # dictionaries, batches
        for place in footer.vector(field, 24):
            yield struct.unpack_from("<q", footer.data, place)[0]


def _stream_messages(source: Any, end: int) -> Iterator[int]:
    """Yield where the messages of a stream begin."""
    place = 0
    while place + 8 <= end:
        begin, length = _prefix(source, place)
        if length <= 0:
            return
        yield place
        place = begin + length + max(0, _Record.root(source.read_at(length, begin)).number(3, "<q"))


def _batch_size(source: Any, place: int) -> Iterator[BatchSize]:
    """Yield the sizes of the batch at a place, if it is one."""
    begin, length = _prefix(source, place)
    message = _Record.root(source.read_at(max(0, length), begin))
    kind, body = message.number(1, "<B"), begin + length
    if kind not in (_DICTIONARY_BATCH, _RECORD_BATCH):
        return
    batch = message.record(2)
    if kind == _DICTIONARY_BATCH:
        batch = batch.record(1)
    unpacked = 0
    if batch.has(3):  # compressed: each buffer begins with the number of bytes that it unpacks to
        for at in batch.vector(2, 16):
            offset, size = struct.unpack_from("<qq", batch.data, at)
            if size >= 8:
                unpacked += max(0, struct.unpack("<q", source.read_at(8, body + offset))[0])
    yield BatchSize(message.number(3, "<q"), unpacked)


def _prefix(source: Any, place: int) -> tuple[int, int]:
    """Return where the metadata of a message begin, and how long they are."""
    mark, length = struct.unpack("<Ii", source.read_at(8, place))
    return (place + 8, length) if mark == 0xFFFFFFFF else (place + 4, int(mark))


class _Record:
    """A table of FlatBuffers: what Arrow's metadata are written in, as far as they are needed."""

    def __init__(self, data: bytes, place: int) -> None:
        self.data, self._place = data, place
        self._fields = place - self._at("<i", place)
        self._length = self._at("<H", self._fields)

    @classmethod
    def root(cls, data: bytes) -> _Record:
        return cls(data, struct.unpack_from("<I", data)[0])

    def has(self, field: int) -> bool:
        return self._find(field) is not None

    def number(self, field: int, form: str) -> int:
        place = self._find(field)
        return 0 if place is None else self._at(form, place)

    def record(self, field: int) -> _Record:
        place = self._find(field)
        if place is None:
            raise ValueError("its metadata lack a batch.")
        return _Record(self.data, place + self._at("<I", place))

    def vector(self, field: int, width: int) -> Sequence[int]:
        """Return where the items of a vector, each so many bytes wide, begin."""
        place = self._find(field)
        if place is None:
            return ()
        start = place + self._at("<I", place)
        count = self._at("<I", start)
        return range(start + 4, min(start + 4 + width * count, len(self.data)), width)

    def _find(self, field: int) -> int | None:
        slot = 4 + 2 * field
        offset = self._at("<H", self._fields + slot) if slot < self._length else 0
        return self._place + offset if offset else None

    def _at(self, form: str, place: int) -> int:
        if place < 0:
            raise IndexError(place)
        return int(struct.unpack_from(form, self.data, place)[0])
