"""Arrow files as batches of rows, each checked before anything looks at what it holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from leadline.data.memory import MemoryLimit
from leadline.data.sizes import ARROW_MAGIC, arrow_batches


@dataclass(frozen=True)
class ArrowFragment:
    """An Arrow IPC file (also known as Feather) or stream.

    The scanner of ``pyarrow.dataset`` takes offsets on trust and reads ahead in threads, so that a damaged file ends
    the process now and then; here a batch is read, checked and only then given away.

    Attributes
    ----------
    path
        Where its filesystem has it.
    filesystem
        A ``pyarrow.fs.FileSystem``.
    partitions
        Values of columns that the folders state.
    limit
        Of the memory that a batch may take.
    """

    path: str
    filesystem: Any
    partitions: Mapping[str, Any]
    limit: MemoryLimit

    @property
    def physical_schema(self) -> Any:
        """The columns of the file itself."""
        with self._opened() as reader:
            return reader.schema

    def count_rows(self) -> int:
        """Return how many rows the file has."""
        with self._opened([0]) as reader:
            return sum(batch.num_rows for batch in _batches(reader))

    def batches(self, schema: Any, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """Yield some of the schema's columns in batches of so many rows at most."""
        import pyarrow as pa

        own = self.physical_schema.names
        wanted = pa.schema([schema.field(name) for name in columns])
        stored = [own.index(name) for name in columns if name in own]
        with self.filesystem.open_input_file(self.path) as source:
            for size in arrow_batches(source):
                self.limit.require(max(size.stored, size.unpacked), "one of its batches")
        with self._opened(stored or [0]) as reader:
            for batch in _batches(reader):
                batch.validate(full=True)
                n = batch.num_rows
                arrays = [
                    batch.column(name) if name in own else pa.repeat(pa.scalar(self.partitions[name], kind.type), n)
                    for name, kind in zip(columns, wanted, strict=True)
                ]
                checked = pa.RecordBatch.from_arrays(arrays, schema=wanted)
                for start in range(0, n, rows):
                    yield checked.slice(start, rows)

    @contextmanager
    def _opened(self, fields: Sequence[int] | None = None) -> Iterator[Any]:
        """Give a reader of all columns, or of those with these numbers."""
        import pyarrow as pa

        options = pa.ipc.IpcReadOptions(use_threads=False, included_fields=fields)
        with self.filesystem.open_input_file(self.path) as source:
            is_file = source.read(len(ARROW_MAGIC)) == ARROW_MAGIC
            source.seek(0)
            with (pa.ipc.open_file if is_file else pa.ipc.open_stream)(source, options=options) as reader:
                yield reader


def _batches(reader: Any) -> Iterator[Any]:
    """Yield the batches of a file or stream."""
    import pyarrow as pa

    if isinstance(reader, pa.RecordBatchFileReader):
        yield from (reader.get_batch(i) for i in range(reader.num_record_batches))
    else:
        yield from reader
