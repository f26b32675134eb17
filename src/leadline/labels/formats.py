"""Files that people edit: tables of text, read whatever a spreadsheet has made of them."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from leadline.data.arrow import column_values
from leadline.data.files import write_bytes
from leadline.data.memory import MemoryLimit
from leadline.data.names import brief, one_line
from leadline.data.tables import parquet_table
from leadline.data.texts import csv_text
from leadline.errors import InputError

Columns = Mapping[str, Sequence[str]]

# What a table of text grows to when it is read, measured and rounded up: bytes for each byte, line and cell.
_BYTE, _LINE, _CELL = 8, 420, 80
_SEPARATORS = (b",", b";", b"\t")


@dataclass(frozen=True, eq=False)
class Line:
    """A line of a table: its number in the file, and its cells by column, without spaces around them."""

    number: int
    cells: Mapping[str, str]


def read_lines(path: Path, needed: Sequence[str], memory_limit: int | str | None = None) -> list[Line]:
    """Read the lines of a table that are not empty.

    Parameters
    ----------
    path
        The file. CSV may have a byte-order mark, and semicolons or tabs in place of commas.
    needed
        Columns that there must be.
    memory_limit
        How much memory the file may take, as for ``read_outputs``.
    """
    reader = _FORMATS[_suffix(path)][0]
    if not path.is_file():
        raise InputError("does not exist.")
    rows = reader(path, MemoryLimit.of(memory_limit))
    header = [cell.strip() for cell in rows[0]] if rows else []
    for column in needed:
        if header.count(column) != 1:
            raise InputError(f"must have one column {column!r}; its columns are: {brief(header) or 'none'}.")
    cells = (dict(zip(header, (cell.strip() for cell in row), strict=False)) for row in rows[1:])
    return [Line(number, line) for number, line in enumerate(cells, start=2) if any(line.values())]


def write_table(path: str | Path, columns: Columns, *, force: bool) -> None:
    """Write columns of text.

    Parameters
    ----------
    path
        The file, CSV or Parquet by its suffix.
    columns
        Of equal length.
    force
        Overwrite a file that exists.
    """
    write_bytes(path, _FORMATS[_suffix(Path(path))][1](columns), force=force)


def _suffix(path: Path) -> str:
    if path.suffix.lower() not in _FORMATS:
        raise InputError(f"rows to label are kept in {', '.join(_FORMATS)} files; got {str(path)!r}.")
    return path.suffix.lower()


def _csv(columns: Columns) -> bytes:
    return csv_text([columns, *zip(*columns.values(), strict=True)]).encode()


def _parquet(columns: Columns) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    sink = pa.BufferOutputStream()
    parquet.write_table(pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()}), sink)
    return bytes(sink.getvalue())


def _csv_lines(path: Path, limit: MemoryLimit) -> list[list[str]]:
    size = path.stat().st_size
    limit.require(_BYTE * size, "it")
    data = path.read_bytes()
    cells = sum(map(data.count, _SEPARATORS))
    limit.require(_BYTE * size + _LINE * data.count(b"\n") + _CELL * cells, "it")
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise InputError("is not text in UTF-8; save the file in that encoding.") from error
    first, _, rest = text.partition("\n")
    if first.strip().lower().startswith("sep="):  # a line by which spreadsheets tell each other the separator
        first, text = rest.partition("\n")[0], rest
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=first.count)))


def _parquet_lines(path: Path, limit: MemoryLimit) -> list[list[str]]:
    import pyarrow as pa

    try:
        table = parquet_table(path, limit)
        limit.require(_LINE * table.num_rows + _CELL * table.num_rows * table.num_columns + table.nbytes, "it")
        # Of a dictionary, rows share the texts.
        cells = [
            column_values(column).tolist() if pa.types.is_dictionary(column.type) else column.to_pylist()
            for column in table.columns
        ]
        rows = zip(*cells, strict=True)
        return [table.column_names, *(["" if cell is None else str(cell) for cell in row] for row in rows)]
    # Texts that are no UTF-8, and times after the year 9999, are found late.
    except (pa.ArrowException, OSError, UnicodeDecodeError, OverflowError) as error:
        raise InputError(f"cannot be read as .parquet ({one_line(error)}).") from error


_FORMATS: dict[str, tuple[Callable[[Path, MemoryLimit], list[list[str]]], Callable[[Columns], bytes]]] = {
    ".csv": (_csv_lines, _csv),
    ".parquet": (_parquet_lines, _parquet),
}
