"""Estimates on an Apache Spark cluster: rows are reduced where they are, and only sums travel.

Every partition becomes one row of sums for each group (``mapInArrow``), which a shuffle brings together by group. The
executors need Leadline installed; the model is sent to them once.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.data.arrays import column_values, logit_columns
from leadline.data.outputs import as_labels
from leadline.data.segments import Groups, Key, resolve
from leadline.engines.blocks import good_logits
from leadline.engines.groups import ALL, Block, GroupSums, Passes
from leadline.engines.wire import merge, pack, unpack
from leadline.errors import InputError
from leadline.estimators.base import Estimator, State
from leadline.estimators.persistence import load

try:
    from pyspark.sql import DataFrame, SparkSession, functions
    from pyspark.sql import types as sql
    from pyspark.sql.pandas.types import to_arrow_type
except ModuleNotFoundError as error:
    raise InputError(
        "engine 'spark' needs PySpark, which is not installed; run pip install 'leadline[spark]'."
    ) from error

if TYPE_CHECKING:
    import pyarrow as pa

_IS_ALL, _SUMS = "leadline_all", "leadline_sums"
FILE, ROW = "leadline_file", "leadline_row"  # where a row came from, for messages
_RESULT = (
    ("accuracy", sql.DoubleType()), ("interval_low", sql.DoubleType()), ("interval_high", sql.DoubleType()),
    ("n_samples", sql.LongType()), ("n_left_out", sql.LongType()), ("truth", sql.DoubleType()),
    ("method", sql.StringType()),
)  # fmt: skip
Label = tuple[Any, ...] | None


def estimate(
    df: DataFrame,
    model: Estimator | str | Path,
    logits: str | Sequence[str] = "logits",
    by: Sequence[str] = (),
    *,
    label: str | None = None,
    level: float = 0.9,
    skip_bad: bool = False,
) -> DataFrame:
    """Estimate the accuracy over a Spark DataFrame, by group.

    Parameters
    ----------
    df
        One row for each prediction.
    model
        A fitted estimator, or the file of one.
    logits
        A column of arrays of c numbers, or c columns of numbers in the order of the classes.
    by
        Columns to group by; ``time:week`` (or hour, day, month) cuts times. Without any, all rows are one group.
    label
        A column with the true classes as integers, where they are known: for ``truth`` only.
    level
        Nominal coverage of the intervals.
    skip_bad
        Leave out rows with logits that are missing or not finite, and count them, instead of failing.

    Returns
    -------
    DataFrame
        One row for each group: the columns of ``by``, ``accuracy``, ``interval_low``, ``interval_high``,
        ``n_samples``, ``n_left_out``, ``truth`` (null without labels) and ``method``.

    Notes
    -----
    For methods of one pass the result is lazy: nothing runs until it is used, and nothing passes through the driver.
    Methods of several passes (COT, COTT) run now: after each pass the driver gets one row of sums for each group. If
    the input is expensive to compute, ``df.cache()`` it first.
    """
    job = Job(df, model, logits, by, label=label, skip_bad=skip_bad)
    if job.passes.once:
        return job.lazy(level)
    passes, sums, labels = job.run(total=not by)
    rows = []
    for number in sums.numbers()[bool(by) :]:
        values = () if number == ALL else labels[number]
        rows.append((*values, *_result_row(passes.estimate(number, level), sums, number)))
    with without_pandas_warning():
        return job.session.createDataFrame(rows, job.result_schema())


@contextmanager
def without_pandas_warning() -> Iterator[None]:
    """Keep PySpark from warning of versions of pandas, which is not used here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        yield


class Job:
    """A DataFrame to estimate on, and how."""

    def __init__(
        self,
        df: DataFrame,
        model: Estimator | str | Path,
        logits: str | Sequence[str],
        by: Sequence[str],
        *,
        label: str | None = None,
        skip_bad: bool = False,
    ) -> None:
        self.columns = _logit_names(df.columns, logits)
        missing = [name for name in (*self.columns, *([label] if label else [])) if name not in df.columns]
        if missing:
            raise InputError(f"column {missing[0]!r} is not in the DataFrame; it has {', '.join(df.columns)}.")
        others = {name: to_arrow_type(df.schema[name].dataType) for name in df.columns if name not in self.columns}
        self.keys = resolve(by, others, "the DataFrame")
        self.session, self.label, self.skip_bad = df.sparkSession, label, skip_bad
        needed = {*self.columns, *(key.column for key in self.keys), *([label] if label else []), FILE, ROW}
        self.df = df.select(*[name for name in df.columns if name in needed])
        self.key_fields = [sql.StructField(key.name, _key_type(df, key)) for key in self.keys]
        self.data = _model_bytes(model)
        self.passes = Passes(_load(self.data), grouped=bool(by))
        self._model = _share(self.session, self.data)

    def partial_sums(self, states: Mapping[Label, State] | None, *, total: bool, groups: bool) -> DataFrame:
        """Return one row of sums for each group of each partition.

        Parameters
        ----------
        states
            The states of this pass; None for the first.
        total, groups
            Whether to sum all rows, and each group.
        """
        schema = self._sums_schema()
        shared = None if states is None else _share(self.session, states)
        model, keys, names, label, skip_bad = self._model, self.keys, self.columns, self.label, self.skip_bad

        def reduce(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            worker = _Worker(_load(model()), keys, None if shared is None else shared(), grouped=groups)
            for batch in batches:
                worker.add(batch, names, label, skip_bad=skip_bad)
            yield from worker.result(schema, total=total)

        with without_pandas_warning():
            return self.df.mapInArrow(reduce, schema)

    def _sums_schema(self) -> sql.StructType:
        more = [sql.StructField(_IS_ALL, sql.BooleanType()), sql.StructField(_SUMS, sql.BinaryType())]
        return sql.StructType([*self.key_fields, *more])

    def result_schema(self) -> sql.StructType:
        """Return the columns of the result."""
        return sql.StructType([*self.key_fields, *(sql.StructField(name, kind) for name, kind in _RESULT)])

    def _apply(self, partial: DataFrame, work: Callable[[pa.Table], pa.Table], schema: sql.StructType) -> DataFrame:
        """Return what becomes of the rows of each group."""
        grouped = partial.groupBy(_IS_ALL, *(functions.col(f"`{key.name}`") for key in self.keys))
        with without_pandas_warning():
            return grouped.applyInArrow(work, schema)

    def lazy(self, level: float) -> DataFrame:
        """Return the estimates of a method of one pass, to be worked out on the cluster."""
        partial = self.partial_sums(None, total=not self.keys, groups=bool(self.keys))
        schema, model, keys = self.result_schema(), self._model, [key.name for key in self.keys]

        def conclude(table: pa.Table) -> pa.Table:
            total, counts = merge(table.column(_SUMS).to_pylist())
            estimator = _load(model())
            sums = GroupSums()
            sums.put(0, total, counts)
            found = estimator.conclude(estimator.start(), total, confidence_level=level)
            values = [table.column(name)[0].as_py() for name in keys]
            return _table([(*values, *_result_row(found, sums, 0))], schema)

        return self._apply(partial, conclude, schema)

    def run(self, *, total: bool = True) -> tuple[Passes, GroupSums, list[tuple[Any, ...]]]:
        """Make all passes; return the states, the sums of the last pass, and the values of each group."""
        schema = self._sums_schema()
        numbers: dict[tuple[Any, ...], int] = {}
        states: dict[Label, State] | None = None
        whole = GroupSums(grouped=bool(self.keys))

        def add_up(table: pa.Table) -> pa.Table:
            return table.slice(0, 1).set_column(
                table.column_names.index(_SUMS), _SUMS, [[pack(*merge(table.column(_SUMS).to_pylist()))]]
            )

        while True:
            partial = self.partial_sums(states, total=total or bool(self.keys), groups=bool(self.keys))
            rows = self._apply(partial, add_up, schema).toArrow().to_pylist()
            if not rows:
                raise InputError("no rows are left: the table is empty, or none of its rows meets --where.")
            sums = GroupSums(grouped=bool(self.keys))
            for row in rows:
                reduced, counts = unpack(row[_SUMS])
                values = tuple(row[key.name] for key in self.keys)
                number = ALL if row[_IS_ALL] else numbers.setdefault(values, len(numbers))
                sums.put(number, reduced, counts)
            whole = whole if whole.n_rows else sums
            if not self.passes.advance(sums):
                return self.passes, whole, list(numbers)
            names = {number: values for values, number in numbers.items()}
            states = {names.get(number): state for number, state in self.passes.states().items()}


class _Worker:
    """The sums of one partition."""

    def __init__(
        self, estimator: Estimator, keys: Sequence[Key], states: Mapping[Label, State] | None, *, grouped: bool
    ) -> None:
        self.keys, self.groups = keys, Groups(len(keys))
        self.passes = _NamedPasses(estimator, self.groups, states, grouped=grouped)
        # Samples of many groups would be most of their rows, and travel: only that of all rows is kept.
        self.sums = GroupSums(grouped=grouped, sample_rows=self.passes.sample_rows, sample_groups=False)

    def add(self, batch: Any, names: list[str], label: str | None, *, skip_bad: bool) -> None:
        """Add a record batch."""
        import pyarrow as pa

        table = pa.Table.from_batches([batch])
        if not table.num_rows:
            return
        matrix, good = good_logits(table, names, self.passes.estimator.n_classes_)
        groups = self.groups.numbers([key.values(table.column(key.column)) for key in self.keys], table.num_rows)
        if good is not None:
            if not skip_bad:
                raise InputError(f"{_place(table, int(np.argmin(good)))}: logits must be known and finite.")
            self.sums.leave_out(groups[~good])
            table, groups = table.filter(good), groups[good]
        if len(matrix):
            right = None
            if label is not None:
                right = matrix.argmax(axis=1) == as_labels(column_values(table.column(label)), matrix)
            self.sums.add(self.passes.partial(Block(matrix, groups, right)))

    def result(self, schema: sql.StructType, *, total: bool) -> Iterator[Any]:
        """Yield the sums of each group, and of all rows if wanted, as a record batch."""
        labels, rows = self.groups.labels(), []
        for number in self.sums.numbers() if self.sums.n_rows else []:
            if (number == ALL and not total) or self.passes.state(number) is None:
                continue
            values = (None,) * len(self.keys) if number == ALL else labels[number]
            rows.append((*values, number == ALL, pack(self.sums.of(number), self.sums.counts(number))))
        yield from _table(rows, schema).to_batches()


class _NamedPasses(Passes):
    """Passes on an executor, where states come by the values of the groups."""

    def __init__(
        self, estimator: Estimator, groups: Groups, states: Mapping[Label, State] | None, *, grouped: bool
    ) -> None:
        super().__init__(estimator, grouped=grouped)
        self.first = states is None
        self._groups, self._named, self._labels = groups, states or {}, groups.labels()

    def state(self, group: int) -> State | None:
        """Return the state of a group in this pass."""
        if self.first:
            return self.estimator.start()
        if group >= len(self._labels):
            self._labels = self._groups.labels()
        return self._named.get(None if group == ALL else self._labels[group])


def _result_row(found: Any, sums: GroupSums, number: int) -> tuple[Any, ...]:
    """Return the columns of :data:`_RESULT`."""
    return (
        *(found.accuracy, *found.interval, found.n_samples),
        int(sums.counts(number)[3]),
        sums.truth(number),
        found.method,
    )


def _table(rows: Sequence[tuple[Any, ...]], schema: sql.StructType) -> Any:
    """Return rows as an Arrow table of a Spark schema."""
    import pyarrow as pa

    columns: list[Sequence[Any]] = [list(column) for column in zip(*rows, strict=True)] or [[]] * len(schema.fields)
    arrays = [pa.array(values, to_arrow_type(field.dataType)) for values, field in zip(columns, schema, strict=True)]
    return pa.table(arrays, names=schema.names)


# ------------------------------------------------------------------------------------------------------- the model
def _model_bytes(model: Estimator | str | Path) -> bytes:
    """Return the file of a fitted estimator."""
    if not isinstance(model, Estimator):
        load(model)
        return Path(model).read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.leadline"
        model.save(path)
        return path.read_bytes()


@lru_cache(maxsize=4)
def _load(data: bytes) -> Estimator:
    """Return the estimator in the bytes of a model file; a worker that serves many partitions keeps it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.leadline"
        path.write_bytes(data)
        return load(path)


def _share(session: SparkSession, value: Any) -> Callable[[], Any]:
    """Return a function that gives a value on the executors: broadcast, or carried along where Connect has no such."""
    try:
        broadcast = session.sparkContext.broadcast(value)
    except Exception as error:  # each kind of Connect session has its own way to say that it has no context
        if "sparkContext" not in str(error) and "JVM" not in str(error) and "CONNECT" not in str(error).upper():
            raise
        return lambda: value
    return lambda: broadcast.value


# -------------------------------------------------------------------------------------------------------- the rows
def _logit_names(columns: Sequence[str], logits: str | Sequence[str]) -> list[str]:
    """Return the columns that hold the logits."""
    if not isinstance(logits, str):
        return list(logits)
    return logit_columns(columns) if logits == "logits" and logits not in columns else [logits]


def _key_type(df: DataFrame, key: Key) -> sql.DataType:
    """Return the type of the values of a key."""
    kind = df.schema[key.column].dataType
    if key.bucket is not None:
        return sql.TimestampNTZType() if key.bucket == "hour" else sql.DateType()
    return sql.TimestampNTZType() if isinstance(kind, sql.TimestampType) else kind


def _place(table: Any, row: int) -> str:
    """Return where a row came from, as far as that is known."""
    if FILE in table.column_names:
        number = f", row {table.column(ROW)[row].as_py()}" if ROW in table.column_names else ""
        return f"{table.column(FILE)[row].as_py()}{number}"
    return "a row of the DataFrame"
