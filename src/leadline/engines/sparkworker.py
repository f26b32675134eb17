"""What an executor of a Spark cluster does with its part of the rows: one row of sums for each group."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray
from pyspark import TaskContext
from pyspark.sql import types as sql
from pyspark.sql.pandas.types import to_arrow_type

from leadline.data.columns import Columns
from leadline.data.segments import Groups, Key
from leadline.engines.blocks import good_rows, right_rows
from leadline.engines.wire import Parcel, pack
from leadline.errors import InputError
from leadline.estimators.base import Estimator
from leadline.estimators.draws import Draw
from leadline.estimators.groups import ALL, Block
from leadline.estimators.passes import Pass
from leadline.estimators.sums import State

IS_ALL, PART, ROWS, SUMS = "leadline_all", "leadline_part", "leadline_rows", "leadline_sums"
NODE = "leadline_node"  # of the tree that sums are merged by: at first the number of the partition
FILE, ROW = "leadline_file", "leadline_row"  # where a row came from
Label = tuple[Any, ...] | None
_SCHEME = re.compile(r"^[a-zA-Z][\w+.-]*:")


@dataclass(frozen=True)
class Orders:
    """What executors are told of a pass.

    Attributes
    ----------
    shared, own
        The state that groups share, and those of groups by their values.
    grouped, sample_rows, summed, draw
        As :class:`leadline.estimators.passes.Pass` has them.
    starts
        The number of the first row of each file, by :func:`file_key`, where rows are drawn.
    """

    shared: State | None
    own: Mapping[Label, State]
    sample_rows: int = 0
    summed: bool = True
    grouped: bool = False
    draw: Draw | None = None
    starts: Mapping[str, int] = field(default_factory=dict)


class Worker:
    """The sums of one partition."""

    def __init__(self, estimator: Estimator, keys: Sequence[Key], orders: Orders) -> None:
        self.keys, self.groups, self.orders = keys, Groups(len(keys)), orders
        self._own = {ALL: orders.own[None]} if None in orders.own else {}
        self._n_known = 0
        self.one = Pass(
            estimator, orders.grouped, orders.shared, self._own, orders.sample_rows, orders.summed, orders.draw
        )
        self.sums = self.one.sums()

    def _find_states(self) -> None:
        """Find the states, by their values, of groups that have been seen for the first time."""
        labels = self.groups.labels() if self.orders.own else []
        for group in range(self._n_known, len(labels)):
            if labels[group] in self.orders.own:
                self._own[group] = self.orders.own[labels[group]]
        self._n_known = len(labels)

    def add(self, batch: Any, names: list[str], label: str | None, *, skip_bad: bool) -> None:
        """Add a record batch."""
        import pyarrow as pa

        table = pa.Table.from_batches([batch])
        if not table.num_rows:
            return
        estimator = self.one.estimator
        matrix, good = good_rows(table, names, estimator, estimator.columns_ or Columns())
        groups = self.groups.numbers([key.values(table.column(key.column)) for key in self.keys], table.num_rows)
        self._find_states()
        if good is not None:
            if not skip_bad:
                raise InputError(
                    f"{_place(table, int(np.argmin(good)))}: logits must be known and finite, one for each class."
                )
            self.sums.leave_out(groups[~good])
            table, groups = table.filter(good), groups[good]
        if len(matrix):
            right = None if label is None else right_rows(table.column(label), matrix, estimator.class_names)
            rows = None if self.orders.draw is None else self._rows(table)
            self.sums.add(self.one.reduce(Block(matrix, groups if self.keys else None, right, rows)))

    def _rows(self, table: Any) -> NDArray[np.int64]:
        """Return the number of each row, shape (n,)."""
        files = table.column(FILE).combine_chunks().dictionary_encode()
        starts = np.array([self.orders.starts[file_key(unquote(name))] for name in files.dictionary.to_pylist()])
        return np.asarray(starts[files.indices.to_numpy()] + table.column(ROW).to_numpy(), dtype=np.int64)

    def result(self, schema: sql.StructType, *, total: bool) -> Iterator[Any]:
        """Yield the sums of each group, and of all rows if wanted, as a record batch."""
        context = TaskContext.get()
        labels, rows, node = self.groups.labels(), [], 0 if context is None else context.partitionId()
        first = bool(self.orders.sample_rows) or self.orders.shared is not None
        for number in self.sums.numbers() if self.sums.n_rows else []:
            reduced = self.sums.of(number)
            if (number == ALL and not total) or not (first or reduced.sums):
                continue
            group, part = (ALL, 0) if number == ALL else divmod(number, self.one.parts)
            values = (None,) * len(self.keys) if group == ALL else labels[group]
            counts = self.sums.counts(number)
            parcel = Parcel(counts, reduced if reduced.sums else None, self.sums.sample(number))
            rows.append((*values, number == ALL, part, node, int(counts[0]), pack(parcel)))
        yield from as_table(rows, schema).to_batches()


def as_table(rows: Sequence[tuple[Any, ...]], schema: sql.StructType) -> Any:
    """Return rows as an Arrow table of a Spark schema."""
    import pyarrow as pa

    columns: list[Sequence[Any]] = [list(column) for column in zip(*rows, strict=True)] or [[]] * len(schema.fields)
    arrays = [pa.array(values, to_arrow_type(field.dataType)) for values, field in zip(columns, schema, strict=True)]
    return pa.table(arrays, names=schema.names)


def _place(table: Any, row: int) -> str:
    """Return where a row came from, as far as that is known."""
    if FILE in table.column_names:
        number = f", row {table.column(ROW)[row].as_py()}" if ROW in table.column_names else ""
        return f"{table.column(FILE)[row].as_py()}{number}"
    return "a row of the DataFrame"


def file_key(name: str) -> str:
    """Return where a file is without the scheme, which Spark may write in its own way."""
    return _SCHEME.sub("", name).lstrip("/")
