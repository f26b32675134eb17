"""Estimates over tables in files of any number and size, streamed through one machine in bounded memory."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from leadline.data.columns import Columns
from leadline.data.names import one_line
from leadline.data.outputs import NOT_PROBABILITIES, FloatArray, are_probabilities
from leadline.data.ranges import LARGEST
from leadline.data.segments import Groups, Key, resolve
from leadline.data.tables import CLASSES_KEY, parse_classes
from leadline.engines import where as conditions
from leadline.engines.blocks import good_rows, right_rows
from leadline.engines.lake import LakeFile, find_files
from leadline.engines.reading import Positions, scan_batches, with_partition_fields
from leadline.errors import InputError
from leadline.estimators.base import Estimator
from leadline.estimators.groups import Block, GroupSums, Partial
from leadline.estimators.passes import Pass, drive
from leadline.results.estimates import Estimates, LeftOut
from leadline.threads import core_count

_BLOCK_VALUES = 1 << 20  # logits in a block: 4 MB in single precision

#: Called now and then with files done, files in all, rows done and rows per second.
StreamProgress = Callable[[int, int, int, float], None]


class BadFileError(InputError):
    """A file, or a row of it, cannot be used; the message starts with its name."""


def estimate_files(
    model: Estimator,
    place: str,
    *,
    by: Sequence[str] = (),
    where: str | None = None,
    confidence_level: float = 0.9,
    together: bool = False,
    skip_bad: bool = False,
    classes: Sequence[str] | None = None,
    columns: Columns | None = None,
    memory_limit: int | str | None = None,
    progress: StreamProgress | None = None,
) -> Estimates:
    """Estimate the accuracy over a table in Parquet or Arrow files, larger than memory if need be.

    Parameters
    ----------
    model
        A fitted estimator.
    place
        A file, a folder, a pattern such as ``logs/**/*.parquet``, or such a thing as a URL.
    by
        Columns to group by; ``time:week`` (or hour, day, month) cuts times.
    where
        A condition that rows must meet, such as ``country = 'de' and time >= '2026-01-01'``. Parts of files that
        cannot meet it are not read.
    confidence_level
        Nominal coverage of the intervals.
    together
        Widen the intervals of the groups so that all of them together have that coverage.
    skip_bad
        Leave out files that cannot be read and rows that are not finite, and list them, instead of stopping.
    classes
        Names of the classes, for labels that are names; None for those that the model learned.
    columns
        Which columns hold what; None for what the model learned from the file that it was fitted on.
    memory_limit
        How much memory a row group or batch of a file may take, in bytes or as a text such as ``"8GB"``; None for half
        of the memory there is.
    progress
        Called now and then with files done, files in all, rows done and rows per second.

    Returns
    -------
    Estimates
        Of all rows together and of each group, in the order of its values.

    Notes
    -----
    Only the columns needed are read. Memory holds a few blocks, the sums of the groups and a bounded sample of rows.
    Methods of several passes read the files as often.
    """
    condition = None if where is None else conditions.parse(where)
    model._check_fitted()
    stream = Stream(
        find_files(place, memory_limit), model, by, condition, skip_bad=skip_bad, classes=classes,
        columns=mapping_of(model, columns), progress=progress,
    )  # fmt: skip
    while True:
        try:
            found = drive(model, stream.scan, grouped=bool(by))
        except _FilesChanged:
            continue  # a file went bad between passes: the sums of different rows do not fit together
        return found.estimates(
            [key.name for key in stream.keys],
            stream.groups.labels(),
            confidence_level=confidence_level,
            together=together,
            left_out=list(stream.left_out.values()),
        )


def mapping_of(model: Estimator, columns: Columns | None) -> Columns:
    """Return which columns of a table hold what: as given, or else as the model learned."""
    mapping = columns or model.columns_ or Columns()
    learned = model.source_.decision_threshold
    if mapping.threshold not in (None, learned):
        raise InputError(f"threshold of columns must be that of fit, {learned}; got {mapping.threshold}. Leave it out.")
    return mapping


class _FilesChanged(Exception):  # noqa: N818 - a signal, never shown
    """A file that an earlier pass read turned out bad."""


class Stream:
    """Files as blocks, over and over.

    Attributes
    ----------
    groups, keys
        Numbers for the groups seen so far, and what they are made by.
    left_out
        What was bad, by file.

    Notes
    -----
    Rows are numbered from file to file. Those that do not meet the condition count too, so that no row's number depends
    on it.
    """

    def __init__(
        self,
        files: list[LakeFile],
        model: Estimator,
        by: Sequence[str],
        condition: conditions.Condition | None,
        *,
        columns: Columns,
        skip_bad: bool = False,
        classes: Sequence[str] | None = None,
        progress: StreamProgress | None = None,
    ) -> None:
        self.files, self.model, self.by, self.condition = files, model, by, condition
        self.skip_bad, self.classes, self.columns, self.progress = skip_bad, classes, columns, progress
        self.groups = Groups(len(by))
        self.keys: list[Key] = []
        self.bad: set[str] = set()
        self.left_out: dict[str, LeftOut] = {}
        self.low, self.high, self.softmaxed = np.inf, -np.inf, True
        self._next_start = 0

    # ------------------------------------------------------------------------------------------------ one pass
    def scan(self, one: Pass) -> GroupSums:
        """Sum all files up, on all cores, in an order that does not depend on which core is faster."""
        first, known_bad = bool(one.sample_rows), len(self.bad)
        total, file = one.sums(), None
        part = total.fresh()
        started, rows, done = time.perf_counter(), 0, 0
        for of_file, result in _in_order(one.reduce, self._blocks()):
            if of_file is not file:
                total.merge(part)  # complete: a file that turns out bad half-way leaves nothing behind
                part, file, done = total.fresh(), of_file, done + 1
            if result is None:
                part = total.fresh()
                continue
            part.add(result)
            rows += len(result.block.logits)
            if self.progress is not None:
                self.progress(done, len(self.files), rows, rows / (time.perf_counter() - started))
        total.merge(part)
        if not total.n_rows:
            raise InputError("no rows are left: the files are empty, bad, or none of their rows meets the condition.")
        if self.low == self.high:
            raise InputError(f"logits must tell the classes apart; all values are {self.low + 0.0}.")
        if self.softmaxed:
            raise InputError(f"logits {NOT_PROBABILITIES}")
        if not first and len(self.bad) > known_bad:
            raise _FilesChanged
        return total

    def _blocks(self) -> Iterator[tuple[LakeFile, Block | None]]:
        """Yield the blocks of all files; None withdraws a file that turned out bad."""
        self._next_start = 0
        for file in self.files:
            if file.name in self.bad:
                continue
            try:
                for block in self._blocks_of(file):
                    yield file, block
            except BadFileError as fault:
                if not self.skip_bad:
                    raise BadFileError(f"{fault} Nothing was estimated; skip_bad=True leaves such out.") from fault
                self.bad.add(file.name)
                self.left_out[file.name] = LeftOut(file.name, None, str(fault))
                yield file, None

    def _blocks_of(self, file: LakeFile) -> Iterator[Block]:
        """Yield the blocks of a file."""
        import pyarrow as pa

        try:
            yield from self._read(file)
        except BadFileError:
            raise
        except InputError as error:
            raise BadFileError(f"{file.name}: {error}") from error
        except FileNotFoundError as error:
            raise BadFileError(f"{file.name}: does not exist any more.") from error
        except PermissionError as error:
            raise BadFileError(f"{file.name}: cannot be read: permission denied.") from error
        except (pa.ArrowException, OSError, ValueError, TypeError) as error:
            raise BadFileError(f"{file.name}: cannot be read; is it complete? ({one_line(error)}).") from error

    # ------------------------------------------------------------------------------------------------ one file
    def _read(self, file: LakeFile) -> Iterator[Block]:
        import pyarrow as pa

        fragment = file.open()
        schema = with_partition_fields(fragment.physical_schema, file)
        logits, label = self.columns.find(schema.names), self.columns.label_in(schema.names)
        taken = {*logits, label}
        types = {name: schema.field(name).type for name in schema.names if name not in taken}
        keys = resolve(self.by, types, "this file")
        self.keys = self.keys or keys
        classes = self._class_names(schema, logits)
        expression, needed = None, {*logits, *(key.column for key in keys), *([label] if label else [])}
        if self.condition is not None:
            expression = conditions.to_arrow(self.condition, schema)
            needed |= conditions.columns(self.condition)
            if hasattr(fragment, "row_groups"):
                fragment = fragment.subset(filter=expression, schema=schema)
        start, positions = self._next_start, Positions(fragment)
        names = [name for name in schema.names if name in needed]
        skipped, n_read = 0, 0
        for batch in scan_batches(file, fragment, schema, names, max(1, _BLOCK_VALUES // self.model.n_classes_)):
            table, rows = pa.Table.from_batches([batch]), positions.take(batch.num_rows)
            if expression is not None:
                table = table.append_column("", [rows]).filter(expression)
                rows, table = table.column("").to_numpy(), table.drop_columns([""])
            if not table.num_rows:
                continue
            n_read += table.num_rows
            found, left = self._clean(file, table, logits, rows)
            skipped += left
            if found is not None:
                table, matrix, kept = found
                yield self._block(table, matrix, start + kept, keys, label, classes)
        self._next_start += positions.n_rows
        if skipped:
            self.left_out[file.name] = LeftOut(file.name, skipped, f"{file.name}: {skipped:,} of {n_read:,} rows.")

    def _clean(
        self, file: LakeFile, table: Any, logits: list[str], rows: Any
    ) -> tuple[tuple[Any, FloatArray, Any] | None, int]:
        """Return a table, its logits and its rows' numbers without bad rows, and how many these were.

        Without leave to skip it, a bad row stops.
        """
        matrix, good = good_rows(table, logits, self.model, self.columns)
        left = 0
        if good is not None:
            if not self.skip_bad:
                row = int(rows[int(np.argmin(good))])
                raise BadFileError(
                    f"{file.name}: logits must be known and finite (not null, NaN or infinity), one for each class, "
                    f"at most {LARGEST:g} in size; row {row} breaks this."
                )
            table, rows, left = table.filter(good), rows[good], int(np.count_nonzero(~good))
        if not len(matrix):
            return None, left
        self.low, self.high = min(self.low, float(matrix.min())), max(self.high, float(matrix.max()))
        self.softmaxed = self.softmaxed and are_probabilities(matrix)
        return (table, matrix, rows), left

    def _block(
        self, table: Any, matrix: FloatArray, rows: Any, keys: list[Key], label: str | None, classes: Any
    ) -> Block:
        right = None if label is None else right_rows(table.column(label), matrix, classes)
        numbers = self.groups.numbers([key.values(table.column(key.column)) for key in keys], len(matrix))
        return Block(matrix, numbers, right, rows)

    def _class_names(self, schema: Any, found: Sequence[str]) -> Sequence[str] | None:
        """Return the names of the classes: those in the file, those given, or those that the model learned."""
        stored = (schema.metadata or {}).get(CLASSES_KEY.encode())
        names = (self.classes or self.columns.classes(found)) if stored is None else parse_classes(stored)
        self.model._check_classes(names)
        return self.model.class_names if names is None else names


def _in_order(
    work: Callable[[Block], Partial], items: Iterable[tuple[LakeFile, Block | None]]
) -> Iterator[tuple[LakeFile, Partial | None]]:
    """Do work on all cores while the next items are read; yield results in the order of the items."""
    cores = core_count()
    pending: deque[tuple[LakeFile, Future[Partial] | None]] = deque()
    with ThreadPoolExecutor(cores, thread_name_prefix="leadline-stream") as pool:
        try:
            for file, block in items:
                pending.append((file, None if block is None else pool.submit(work, block)))
                if len(pending) > cores + 1:
                    first, future = pending.popleft()
                    yield first, None if future is None else future.result()
            while pending:
                first, future = pending.popleft()
                yield first, None if future is None else future.result()
        finally:
            for _, future in pending:
                if future is not None:
                    future.cancel()
