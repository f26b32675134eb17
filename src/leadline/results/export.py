"""Results in files, in the format of their suffix."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from leadline.errors import InputError
from leadline.results.render import Document, flat, render

_PARQUET = "parquet"
#: Suffix to format, of :data:`leadline.results.render.RENDERERS` or Parquet.
SUFFIXES = {".csv": "csv", ".json": "json", ".md": "md", ".txt": "table", ".parquet": _PARQUET}
_LINE = 100  # characters of a table in a file


def file_format(path: str, format: str | None = None) -> str:
    """Return the format of a file: the one asked for, or that of its suffix.

    Examples
    --------
    >>> file_format("monday.csv"), file_format("monday.log", "json")
    ('csv', 'json')
    """
    suffix = Path(path).suffix.lower()
    if format is None and suffix not in SUFFIXES:
        raise InputError(f"a result is kept in {', '.join(SUFFIXES)} files, or in a stated format; got {path!r}.")
    return format or SUFFIXES[suffix]


def to_bytes(document: Document, format: str) -> bytes:
    """Return what a file of a format holds."""
    if format == _PARQUET:
        return _parquet(document.records)
    return render(document, format, Console(file=io.StringIO(), width=_LINE)).encode()


def _parquet(records: Sequence[Mapping[str, Any]]) -> bytes:
    """Return the records of CSV with types."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pylist([flat(record) for record in records])
    sink = pa.BufferOutputStream()
    pq.write_table(table.cast(pa.schema([_typed(field) for field in table.schema])), sink)
    return bytes(sink.getvalue())


def _typed(field: Any) -> Any:
    """Return a column in which nothing is known with the type that it has in other files."""
    import pyarrow as pa

    if not pa.types.is_null(field.type):
        return field
    numbers = {"truth": pa.float64(), "error": pa.float64(), "lower_bound": pa.float64(), "seed": pa.int64()}
    return field.with_type(numbers.get(field.name, pa.string()))
