"""Estimates on an Apache Spark cluster: rows are reduced where they are, and only sums travel.

Every partition becomes one row of sums for each group (``mapInArrow``), which shuffles bring together by group, those
of many partitions as a tree. The executors need Leadline installed; the model is sent to them once.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline.data.columns import Columns
from leadline.data.names import logit_columns
from leadline.data.segments import Key, resolve
from leadline.engines.wire import merge, pack, unpack
from leadline.errors import InputError
from leadline.estimators.base import Estimator
from leadline.estimators.groups import ALL, GroupSums, largest_groups
from leadline.estimators.passes import MOST_JUDGED, Driven, Pass, drive, judge_sample
from leadline.estimators.persistence import from_bytes, load, to_bytes
from leadline.estimators.samples import GroupSamples
from leadline.results.estimate import Estimate
from leadline.shift.intervals import each_of
from leadline.shift.source import sample_size

try:
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame, SparkSession, functions
    from pyspark.sql import types as sql
    from pyspark.sql.pandas.types import to_arrow_type

    from leadline.engines.sparkworker import FILE, IS_ALL, NODE, PART, ROW, ROWS, SUMS, Label, Orders, Worker, as_table
except ModuleNotFoundError as error:
    raise InputError(
        "engine 'spark' needs PySpark, which is not installed; run pip install 'leadline[spark]'."
    ) from error

if TYPE_CHECKING:
    import pyarrow as pa

FAN_IN = 64  # sums of partitions that one task merges: with a sample of all rows, a megabyte each

_RESULT = (
    ("accuracy", sql.DoubleType()), ("interval_low", sql.DoubleType()), ("interval_high", sql.DoubleType()),
    ("n_samples", sql.LongType()), ("n_left_out", sql.LongType()), ("truth", sql.DoubleType()),
    ("method", sql.StringType()),
)  # fmt: skip


def estimate(
    df: DataFrame,
    model: Estimator | str | Path,
    logits: str | Sequence[str] | None = None,
    by: Sequence[str] = (),
    *,
    label: str | None = None,
    confidence_level: float = 0.9,
    together: bool = False,
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
        A column of arrays of c numbers, or c columns of numbers in the order of the classes; None for the columns that
        the model learned from the file that it was fitted on.
    by
        Columns to group by; ``time:week`` (or hour, day, month) cuts times. Without any, all rows are one group.
    label
        A column with the true classes as integers, where they are known: for ``truth`` only.
    confidence_level
        Nominal coverage of the intervals.
    together
        Widen the intervals of the groups so that all of them together have that coverage.
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
    The intervals of groups then cover sampling error only, as no group sees the whole. Methods of several passes
    (``auto``, COT, COTT), and all methods with ``together``, run now: after each pass the driver gets one row of sums
    for each group. If the input is expensive to compute, ``df.cache()`` it first.
    """
    job = Job(df, model, logits, by, label=label, skip_bad=skip_bad)
    if job.estimator.passes == "one" and not together:
        return job.lazy(confidence_level)
    found = job.run()
    rows, numbers = [], found.sums.numbers()[bool(by) :]
    level = each_of(len(numbers), confidence_level) if together else confidence_level
    for number in numbers:
        values = () if number == ALL else job.labels()[number]
        rows.append((*values, *_result_row(found.estimate(number, level), found.sums, number)))
    with without_pandas_warning():
        return job.session.createDataFrame(rows, job.result_schema())


@contextmanager
def without_pandas_warning() -> Iterator[None]:
    """Keep PySpark from warning of versions of pandas, which is not used here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        yield


class Job:
    """A DataFrame to estimate on, and how; ``starts`` as :class:`leadline.engines.sparkworker.Orders` has it."""

    def __init__(
        self,
        df: DataFrame,
        model: Estimator | str | Path,
        logits: str | Sequence[str] | None,
        by: Sequence[str],
        *,
        label: str | None = None,
        skip_bad: bool = False,
        starts: Mapping[str, int] | None = None,
    ) -> None:
        self.estimator = model if isinstance(model, Estimator) else load(model)
        self.mapping = self.estimator.columns_ or Columns()
        self.columns = self.mapping.find(df.columns) if logits is None else _logit_names(df.columns, logits)
        label = self.mapping.label_in(df.columns) if label is None and logits is None else label
        missing = [name for name in (*self.columns, *([label] if label else [])) if name not in df.columns]
        if missing:
            raise InputError(f"column {missing[0]!r} is not in the DataFrame; it has {', '.join(df.columns)}.")
        others = {name: to_arrow_type(df.schema[name].dataType) for name in df.columns if name not in self.columns}
        self.keys = resolve(by, others, "the DataFrame")
        self.session, self.label, self.skip_bad, self.starts = df.sparkSession, label, skip_bad, starts or {}
        needed = {*self.columns, *(key.column for key in self.keys), *([label] if label else []), FILE, ROW}
        self.df = df.select(*[name for name in df.columns if name in needed])
        self.key_fields = [sql.StructField(key.name, _key_type(df, key)) for key in self.keys]
        self._model = _share(self.session, to_bytes(self.estimator))
        self._numbers: dict[tuple[Any, ...], int] = {}

    def labels(self) -> list[tuple[Any, ...]]:
        """Return the values of each group, by its number."""
        return list(self._numbers)

    def run(self) -> Driven:
        """Make all passes."""
        return drive(self.estimator, self.scan, grouped=bool(self.keys))

    def lazy(self, confidence_level: float) -> DataFrame:
        """Return the estimates of a method of one pass, to be worked out on the cluster."""
        kept = 0 if self.keys else sample_size(self.estimator.n_classes_)
        one = Orders(self.estimator.start(), {}, sample_rows=kept, grouped=bool(self.keys))
        schema, model, keys = self.result_schema(), self._model, [key.name for key in self.keys]

        def conclude(table: pa.Table) -> pa.Table:
            parcel, estimator = merge(table.column(SUMS).to_pylist()), _load(model())
            sums = GroupSums()
            sums.put(0, parcel.reduced, parcel.counts, None)
            judgement = None
            if parcel.sample is not None:
                judgement = judge_sample(estimator.source_, parcel.sample, sums.n_rows)
            found = estimator.conclude(
                estimator.start(), sums.of(0), judgement=judgement, confidence_level=confidence_level
            )
            values = [table.column(name)[0].as_py() for name in keys]
            return as_table([(*values, *_result_row(found, sums, 0))], schema)

        partial = self._merged(self._partial_sums(one, total=not self.keys), _adder(keys, None))
        return self._apply(partial, conclude, schema)

    def scan(self, one: Pass) -> GroupSums:
        """Make one pass on the cluster; one row of sums for each group comes back."""
        numbers: dict[Label, int] = {None: ALL}
        numbers.update(self._numbers)
        own = {label: state for label, number in numbers.items() if (state := one.own.get(number)) is not None}
        orders = Orders(
            one.shared, own, sample_rows=one.sample_rows, summed=one.summed, grouped=one.grouped, draw=one.draw,
            starts=self.starts if one.draw is not None else {},
        )  # fmt: skip
        partial = self._partial_sums(orders, total=True)
        chosen: Mapping[tuple[Any, ...], int] | None = None
        if one.sample_rows and self.keys:
            partial = partial.persist()
            chosen = self._sampled_groups(partial, one.sample_rows)
        add_up = _adder([key.name for key in self.keys], chosen)
        found = self._apply(self._merged(partial, add_up), add_up, self._sums_schema())
        sums = one.sums()
        for row in found.toArrow().to_pylist():
            parcel = unpack(row[SUMS])
            values = tuple(row[key.name] for key in self.keys)
            group = ALL if row[IS_ALL] else self._numbers.setdefault(values, len(self._numbers))
            sums.put(
                ALL if group == ALL else group * one.parts + row[PART], parcel.reduced, parcel.counts, parcel.sample
            )
        if one.sample_rows and self.keys:
            partial.unpersist()
        if not sums.n_rows:
            raise InputError("no rows are left: the table is empty, or none of its rows meets the condition.")
        return sums

    def _sampled_groups(self, partial: DataFrame, most: int) -> Mapping[tuple[Any, ...], int]:
        """Return how many rows to keep of the groups that are worth it: what any engine would keep."""
        names = [key.name for key in self.keys]
        of_groups = partial.where(f"not {IS_ALL}").groupBy(*(functions.col(f"`{name}`") for name in names))
        counts = of_groups.agg(functions.sum(ROWS).alias(ROWS)).toArrow().to_pylist()
        labels = [tuple(row[name] for name in names) for row in counts]
        # Methods of many passes begin with the sample of each group; for judging, the largest groups are enough.
        most_groups = len(labels) if self.estimator.passes == "many" else MOST_JUDGED
        largest = largest_groups({i: row[ROWS] for i, row in enumerate(counts)}, most_groups)
        size = GroupSamples(most).size(len(labels), self.estimator.n_classes_)
        return {labels[i]: size for i in largest}

    def _partial_sums(self, orders: Orders, *, total: bool) -> DataFrame:
        """Return one row of sums for each group of each partition, and for all its rows if wanted."""
        schema, shared = self._sums_schema(), _share(self.session, orders)
        model, keys, names, label, skip_bad = self._model, self.keys, self.columns, self.label, self.skip_bad

        def reduce(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            worker = Worker(_load(model()), keys, shared())
            for batch in batches:
                worker.add(batch, names, label, skip_bad=skip_bad)
            yield from worker.result(schema, total=total)

        with without_pandas_warning():
            return self.df.mapInArrow(reduce, schema)

    def _sums_schema(self) -> sql.StructType:
        more = (
            (IS_ALL, sql.BooleanType()), (PART, sql.LongType()), (NODE, sql.LongType()), (ROWS, sql.LongType()),
            (SUMS, sql.BinaryType()),
        )  # fmt: skip
        return sql.StructType([*self.key_fields, *(sql.StructField(name, kind) for name, kind in more)])

    def result_schema(self) -> sql.StructType:
        """Return the columns of the result."""
        return sql.StructType([*self.key_fields, *(sql.StructField(name, kind) for name, kind in _RESULT)])

    def _merged(self, partial: DataFrame, add_up: Callable[[pa.Table], pa.Table]) -> DataFrame:
        """Return sums of partitions merged as a tree, until no group has more than a few: no task holds them all."""
        partitions = _partition_count(self.df)
        while partitions > FAN_IN:
            near = partial.withColumn(NODE, functions.floor(functions.col(NODE) / FAN_IN).cast("long"))
            partial = self._apply(near, add_up, self._sums_schema(), NODE)
            partitions = -(-partitions // FAN_IN)
        return partial

    def _apply(
        self, partial: DataFrame, work: Callable[[pa.Table], pa.Table], schema: sql.StructType, *more: str
    ) -> DataFrame:
        """Return what becomes of the rows of each group, and of further columns."""
        grouped = partial.groupBy(IS_ALL, PART, *more, *(functions.col(f"`{key.name}`") for key in self.keys))
        with without_pandas_warning():
            return grouped.applyInArrow(work, schema)


def _partition_count(df: DataFrame) -> int:
    """Return the number of partitions; the most that are provided for where a session cannot tell (Spark Connect)."""
    try:
        return int(df.rdd.getNumPartitions())
    except PySparkException:
        return FAN_IN**3


def _adder(names: list[str], chosen: Mapping[tuple[Any, ...], int] | None) -> Callable[[pa.Table], pa.Table]:
    """Return what adds up the sums of one group, and keeps as many of its rows as were chosen; None for all."""

    def add_up(table: pa.Table) -> pa.Table:
        parcel = merge(table.column(SUMS).to_pylist())
        if chosen is not None and not table.column(IS_ALL)[0].as_py():
            label = tuple(table.column(name)[0].as_py() for name in names)
            parcel = parcel.with_sample_of(chosen.get(label, 0))
        return table.slice(0, 1).set_column(table.column_names.index(SUMS), SUMS, [[pack(parcel)]])

    return add_up


def _result_row(found: Estimate, sums: GroupSums, number: int) -> tuple[Any, ...]:
    """Return the columns of :data:`_RESULT`."""
    return (
        *(found.accuracy, *found.interval, found.n_samples),
        int(sums.counts(number)[3]),
        sums.truth(number),
        found.method,
    )


# ------------------------------------------------------------------------------------------------------- the model
@lru_cache(maxsize=4)
def _load(data: bytes) -> Estimator:
    """Return the estimator in the bytes of a model file; a worker that serves many partitions keeps it."""
    return from_bytes(data)


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
