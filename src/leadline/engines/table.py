"""Tables in files as targets whose rows have numbers: gone over by an engine, and looked up one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from leadline.data.arrow import column_values
from leadline.data.columns import Columns
from leadline.data.names import brief
from leadline.data.outputs import FloatArray
from leadline.data.segments import resolve
from leadline.data.tables import storable
from leadline.engines import ENGINES
from leadline.engines import where as conditions
from leadline.engines.arrow import Stream, StreamProgress, mapping_of
from leadline.engines.blocks import good_rows
from leadline.engines.lake import LakeFile, find_files
from leadline.engines.reading import Positions, scan_batches, with_partition_fields
from leadline.errors import InputError
from leadline.estimators.base import Estimator
from leadline.estimators.groups import GroupSums
from leadline.estimators.passes import Pass

_LOOKED_UP = 1 << 14  # rows at a time


@dataclass(frozen=True)
class Table:
    """A table in Parquet or Arrow files, larger than memory if need be, as a target.

    Attributes
    ----------
    place
        A file, a folder, a pattern such as ``logs/**/*.parquet``, or such a thing as a URL.
    where
        A condition that rows must meet, such as ``country = 'de' and time >= '2026-01-01'``.
    classes
        Names of the classes, where they are to be checked against those of the model.
    columns
        Which columns hold what; None for what the model learned from the file that it was fitted on.
    engine
        "arrow": streamed through this machine. "spark": on a cluster.
    master
        The URL of the cluster; None for all cores of this machine.
    memory_limit
        How much memory a row group or batch of a file may take on this machine, as for ``estimate_files``.
    """

    place: str
    where: str | None = None
    classes: Sequence[str] | None = None
    columns: Columns | None = None
    engine: str = "arrow"
    master: str | None = None
    memory_limit: int | str | None = None

    def __post_init__(self) -> None:
        """Refuse engines that there are not."""
        if self.engine not in ENGINES:
            raise InputError(f"engine must be one of {', '.join(ENGINES)}; got {self.engine!r}.")


@dataclass(frozen=True, eq=False)
class Taken:
    """Some rows of a target.

    Attributes
    ----------
    logits
        Shape (k, c), as the model takes them.
    metadata
        Columns of shape (k,).
    """

    logits: FloatArray
    metadata: Mapping[str, NDArray[Any]]

    def __len__(self) -> int:
        """Return how many rows there are."""
        return len(self.logits)


class NumberedRows(Protocol):
    """The rows of a target, each with a number that stays the same from pass to pass."""

    def scan(self, one: Pass, by: Sequence[str]) -> tuple[GroupSums, list[tuple[Any, ...]]]:
        """Make one pass over all rows, grouped by these columns; return the sums and the values of each group."""

    def take(self, rows: NDArray[np.int64], columns: Sequence[str], by: Sequence[str]) -> Taken:
        """Return rows by their numbers, in this order, with some columns and those that it takes to group by these."""

    def count(self, column: str, values: NDArray[Any]) -> int:
        """Return how many rows have one of these values in a column."""


class TableRows:
    """The rows of a table in files, looked up by their numbers.

    Parameters
    ----------
    table
        Which table.
    model
        A fitted estimator.
    """

    def __init__(self, table: Table, model: Estimator) -> None:
        model._check_fitted()
        self.model, self.files = model, find_files(table.place, table.memory_limit)
        self.columns = mapping_of(model, table.columns)
        self.condition = None if table.where is None else conditions.parse(table.where)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """The number of the first row of each file, shape (files,)."""
        ends = np.cumsum([file.open().count_rows() for file in self.files])
        return np.concatenate([[0], ends[:-1]])

    def take(self, rows: NDArray[np.int64], columns: Sequence[str], by: Sequence[str]) -> Taken:
        """Return rows by their numbers, in this order, with some columns and those that it takes to group by these."""
        import pyarrow as pa

        columns = list(dict.fromkeys([*columns, *self._needed_for(by)]))
        of_file = np.searchsorted(self.starts, rows, side="right") - 1
        logits: list[FloatArray] = []
        cells: dict[str, list[Any]] = {name: [] for name in columns}
        places = []
        for number in np.unique(of_file).tolist():
            here = np.flatnonzero(of_file == number)
            table = _rows_of(self.files[number], rows[here] - self.starts[number], self.columns, columns)
            logits.append(good_rows(table, self.columns.find(table.column_names), self.model, self.columns)[0])
            for name, values in cells.items():
                values.extend(table.column(name).chunks)
            places.append(here[np.argsort(rows[here])])
        order = np.argsort(np.concatenate(places))
        metadata = {name: column_values(pa.chunked_array(_alike(values)))[order] for name, values in cells.items()}
        return Taken(np.concatenate(logits)[order], metadata)

    def _needed_for(self, by: Sequence[str]) -> list[str]:
        """Return the columns of the table that are needed to group by these."""
        schema = with_partition_fields(self.files[0].open().physical_schema, self.files[0])
        taken = (*self.columns.find(schema.names), self.columns.label_in(schema.names))
        types = {name: schema.field(name).type for name in schema.names if name not in taken}
        return [key.column for key in resolve(by, types, "the table")]


class StreamedRows(TableRows):
    """The rows of a table, streamed through this machine."""

    def __init__(self, table: Table, model: Estimator, progress: StreamProgress | None = None) -> None:
        super().__init__(table, model)
        self._classes, self._progress = table.classes, progress

    def scan(self, one: Pass, by: Sequence[str]) -> tuple[GroupSums, list[tuple[Any, ...]]]:
        """Make one pass."""
        stream = Stream(
            self.files, self.model, by, self.condition, columns=self.columns, classes=self._classes,
            progress=self._progress,
        )  # fmt: skip
        return stream.scan(one), stream.groups.labels()

    def count(self, column: str, values: NDArray[Any]) -> int:
        """Return how many rows have one of these values in a column."""
        import pyarrow as pa
        import pyarrow.compute as pc

        total = 0
        for file in self.files:
            fragment = file.open()
            schema = with_partition_fields(fragment.physical_schema, file)
            wanted = pa.array(storable(values)).cast(schema.field(column).type)
            for batch in scan_batches(file, fragment, schema, [column], _LOOKED_UP):
                total += pc.sum(pc.is_in(batch.column(0), value_set=wanted)).as_py() or 0
        return total


@contextmanager
def opened_table(table: Table, model: Estimator, progress: StreamProgress | None = None) -> Iterator[NumberedRows]:
    """Give the rows of a table, for a fitted estimator; a cluster that was not there before is left at the end."""
    if table.engine == "spark":
        from leadline.engines.sparkfiles import opened_rows

        with opened_rows(table, model) as rows:
            yield rows
    else:
        yield StreamedRows(table, model, progress)


def _rows_of(file: LakeFile, rows: NDArray[np.int64], mapping: Columns, columns: Sequence[str]) -> Any:
    """Return rows of a file, by their numbers in it, as an Arrow table in the order of the file."""
    import pyarrow as pa

    fragment = file.open()
    schema = with_partition_fields(fragment.physical_schema, file)
    unknown = [name for name in columns if name not in schema.names]
    if unknown:
        raise InputError(f"column {unknown[0]!r} is not in the target; its columns: {brief(schema.names)}.")
    if hasattr(fragment, "row_groups"):
        ends = np.cumsum([fragment.metadata.row_group(i).num_rows for i in range(fragment.metadata.num_row_groups)])
        needed = np.unique(np.searchsorted(ends, rows, side="right"))
        fragment = fragment.subset(row_group_ids=needed.tolist())
    positions, names = Positions(fragment), list(dict.fromkeys([*mapping.find(schema.names), *columns]))
    tables = []
    for batch in scan_batches(file, fragment, schema, names, _LOOKED_UP):
        chosen = np.isin(positions.take(batch.num_rows), rows)
        if chosen.any():
            tables.append(pa.Table.from_batches([batch]).filter(chosen))
    return pa.concat_tables(tables)


def _alike(chunks: Sequence[Any]) -> list[Any]:
    """Return chunks of a column from several files in the type of the first."""
    return [chunk.cast(chunks[0].type) for chunk in chunks]
