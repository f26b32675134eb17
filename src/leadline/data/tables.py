"""Outputs as Arrow tables, and the files that hold tables: CSV, Parquet, Arrow."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.data.arrow import column_values, known_rows, table_matrix, text_bytes
from leadline.data.columns import Columns
from leadline.data.footers import row_groups
from leadline.data.memory import MemoryLimit
from leadline.data.outputs import Outputs
from leadline.data.sizes import ARROW_MAGIC, arrow_batches, dictionary_columns, row_group_bytes
from leadline.data.texts import parse_json
from leadline.errors import InputError

CLASSES_KEY = "leadline.classes"  # in the metadata of an Arrow schema: JSON list of the names of the classes
_POINTER, _COLUMN = 8, 4096  # bytes that a value takes at least, and a column whatever it holds
_ARROW_UNITS = {
    "M": {"Y": "D", "M": "D", "W": "D", "h": "s", "m": "s"},
    "m": {"W": "s", "D": "s", "h": "s", "m": "s"},
}


@dataclass(frozen=True, eq=False)
class Contents:
    """What a file holds, before it is checked and becomes :class:`leadline.Outputs`.

    Attributes
    ----------
    values
        Shape (n, c): logits or probabilities; shape (n,) or (n, 1) for a score.
    labels, metadata, classes, predictions
        As ``Outputs`` takes them, not yet checked.
    n_left_out
        Bad rows that were left out.
    """

    values: NDArray[Any]
    labels: NDArray[Any] | None = None
    metadata: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    classes: Sequence[str] | None = None
    predictions: NDArray[Any] | None = None
    n_left_out: int = 0


@dataclass(frozen=True)
class Reading:
    """How a file is read: how much memory it may take, and whether bad rows are left out or stop."""

    limit: MemoryLimit
    skip_bad: bool = False


def from_table(table: Any, columns: Columns, reading: Reading | None = None, *, n_left_out: int = 0) -> Contents:
    """Split an Arrow table into values, labels and everything else.

    Parameters
    ----------
    table
        An Arrow table.
    columns
        Which of its columns hold what.
    reading
        How the file is read that the table comes from; None for one that was in memory.
    n_left_out
        Rows that have been left out.
    """
    names = table.column_names
    found, label, prediction = columns.find(names), columns.label_in(names), columns.prediction_in(names)
    if reading is not None:  # an array of nothing, or of one value in many places, takes no room in Arrow
        room = sum(_POINTER * table.num_rows + text_bytes(column) for column in table.columns)
        reading.limit.require(room, f"{table.num_rows:,} rows")
    if reading is not None and reading.skip_bad and table.num_rows:
        known = known_rows(table, found)
        if known is not None:
            table, n_left_out = table.filter(known), n_left_out + int(np.count_nonzero(~known))
    stored, taken = (table.schema.metadata or {}).get(CLASSES_KEY.encode()), {*found, label}
    return Contents(
        values=table_matrix(table, found, columns.kind),
        labels=None if label is None else column_values(table.column(label)),
        metadata={name: column_values(table.column(name)) for name in names if name not in taken},
        classes=columns.classes(found) if stored is None else parse_classes(stored),
        predictions=None if prediction is None else column_values(table.column(prediction)),
        n_left_out=n_left_out,
    )


def to_table(outputs: Outputs) -> Any:
    """Return outputs as an Arrow table with a list column ``logits``, without copying the logits."""
    import pyarrow as pa

    flat = pa.array(np.ascontiguousarray(outputs.logits).reshape(-1))
    columns = {
        "logits": pa.FixedSizeListArray.from_arrays(flat, outputs.n_classes),
        **_other_columns(outputs),
    }
    table = pa.table(columns)
    if outputs.classes is None:
        return table
    return table.replace_schema_metadata({CLASSES_KEY: json.dumps(outputs.classes)})


def parse_classes(text: str | bytes) -> list[str]:
    """Read the names of the classes from JSON."""
    names = parse_json(text)
    if not isinstance(names, list) or not all(isinstance(item, str) for item in names):
        raise InputError("the stored names of the classes must be a JSON list of texts.")
    return names


def _other_columns(outputs: Outputs) -> dict[str, Any]:
    """Return labels and metadata as Arrow arrays."""
    import pyarrow as pa

    columns = {} if outputs.labels is None else {"label": pa.array(outputs.labels)}
    for name, values in outputs.metadata.items():
        try:
            columns[name] = pa.array(storable(values))
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise InputError(
                f"metadata column {name!r} must hold values of one type to be stored ({error})."
            ) from error
    return columns


def storable(values: NDArray[Any]) -> NDArray[Any]:
    """Return texts as objects and times in a unit that Arrow has; other values as they are."""
    kind = values.dtype.kind
    if kind in "mM":
        unit = np.datetime_data(values.dtype)[0]
        return values.astype(f"{kind}8[{_ARROW_UNITS[kind].get(unit, unit)}]")
    return values.astype(object) if kind in "UT" else values


# ------------------------------------------------------------------------------------------------ files
def read_csv(path: Path, columns: Columns, reading: Reading) -> Contents:
    """Read a CSV file with a header line."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    # One block, so that types are inferred from all rows and not from the first megabyte.
    options = arrow_csv.ReadOptions(block_size=min(path.stat().st_size + 1, 2**31 - 1))
    with path.open(encoding="utf-8-sig", newline="") as text:
        names = next(csv.reader(text), [])
    reading.limit.require(_csv_bytes(path, len(names), reading.limit), "it")
    ragged: list[int] = []

    def skip(row: Any) -> str:
        ragged.append(row.number)
        return "skip" if reading.skip_bad else "error"

    table = arrow_csv.read_csv(
        path,
        read_options=options,
        parse_options=arrow_csv.ParseOptions(newlines_in_values=True, invalid_row_handler=skip),
        # "NA" can name a class or a country: only an empty cell is missing, and "" in quotes is a text.
        convert_options=arrow_csv.ConvertOptions(
            column_types={name: pa.float64() for name in _number_columns(names, columns)},
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    for column in table.schema:
        if pa.types.is_binary(column.type):
            raise InputError(f"column {column.name!r} is not text in UTF-8; save the file in that encoding.")
    return from_table(table, columns, reading, n_left_out=len(ragged))


def _csv_bytes(path: Path, n_columns: int, limit: MemoryLimit) -> int:
    """Return how many bytes a CSV file takes, its text and a number for each cell; at least, where it is small."""
    size = path.stat().st_size
    columns = n_columns * _COLUMN
    if (1 + _POINTER) * size + columns <= limit.size:  # a cell and its comma take one byte at least
        return columns
    with path.open("rb") as stream:
        lines = sum(block.count(b"\n") for block in iter(lambda: stream.read(1 << 20), b""))
    return size + columns + _POINTER * n_columns * lines


def _number_columns(names: Sequence[str], columns: Columns) -> list[str]:
    """Return the columns that must be read as numbers: all that hold values, but a single one that may hold lists."""
    try:
        found = columns.find(names)
    except InputError:
        return []  # said again, with the table's own names, once it has been read
    return found if len(found) > 1 or columns.width == 1 else []


def write_csv(outputs: Outputs, path: Path) -> None:
    """Write a CSV file with columns ``logit_0``, ``logit_1``, ...; names of classes have no place in it."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    # Doubles, because the shortest text of a float32 is another number when read as a double.
    logits = {f"logit_{i}": pa.array(column.astype(np.float64)) for i, column in enumerate(outputs.logits.T)}
    arrow_csv.write_csv(pa.table(logits | _other_columns(outputs)), path)


def read_parquet(path: Path, columns: Columns, reading: Reading) -> Contents:
    """Read a Parquet file."""
    return from_table(parquet_table(path, reading.limit), columns, reading)


def parquet_table(path: Path, limit: MemoryLimit) -> Any:
    """Read a Parquet file as an Arrow table, after a look at what it unpacks to."""
    from pyarrow import parquet

    with parquet.ParquetFile(path, memory_map=True) as file, path.open("rb") as stored:
        groups = row_groups(stored, file.metadata)
        limit.require(max(sum(row_group_bytes(groups)), file.metadata.num_rows), "it")
        texts = dictionary_columns(groups, limit)
    with parquet.ParquetFile(path, memory_map=True, read_dictionary=texts) as file:
        # What is noted with the columns is stored twice, and streams see this copy.
        return file.read().replace_schema_metadata(file.schema_arrow.metadata)


def write_parquet(outputs: Outputs, path: Path) -> None:
    """Write a Parquet file."""
    from pyarrow import parquet

    parquet.write_table(to_table(outputs), path)


def read_arrow(path: Path, columns: Columns, reading: Reading) -> Contents:
    """Read an Arrow IPC file (also known as Feather) or stream; uncompressed logits stay on disk, mapped."""
    import pyarrow as pa

    with pa.memory_map(str(path)) as source:
        reading.limit.require(sum(batch.unpacked for batch in arrow_batches(source)), "it")
        is_file = source.read(len(ARROW_MAGIC)) == ARROW_MAGIC
        source.seek(0)
        with (pa.ipc.open_file if is_file else pa.ipc.open_stream)(source) as reader:
            table = reader.read_all()
    table.validate(full=True)  # the reader takes offsets on trust, and a wrong one points outside the file
    return from_table(table, columns, reading)


def write_arrow(outputs: Outputs, path: Path) -> None:
    """Write an Arrow IPC file."""
    import pyarrow as pa

    table = to_table(outputs)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
