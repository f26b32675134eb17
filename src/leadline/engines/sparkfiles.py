"""Estimates on a Spark cluster over tables in files, for the command."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from leadline.data.columns import Columns
from leadline.data.names import one_line
from leadline.engines import where as conditions
from leadline.engines.arrow import BadFileError
from leadline.engines.lake import LakeFile, find_files, is_url
from leadline.engines.spark import Job, without_pandas_warning
from leadline.engines.sparkworker import FILE, ROW, file_key
from leadline.engines.table import Table, TableRows
from leadline.errors import InputError
from leadline.estimators.base import Estimator
from leadline.estimators.groups import ALL, GroupSums
from leadline.estimators.passes import Pass
from leadline.results.estimates import Estimates, LeftOut

DEFAULT_MASTER = "local[*]"


def estimate_place(
    estimator: Estimator,
    place: str,
    *,
    master: str | None = None,
    by: Sequence[str] = (),
    where: str | None = None,
    confidence_level: float = 0.9,
    together: bool = False,
    skip_bad: bool = False,
) -> Estimates:
    """Estimate the accuracy over a table in Parquet files on a Spark cluster.

    Parameters
    ----------
    estimator
        A fitted estimator.
    place
        A file, folder, pattern or URL that driver and executors can reach.
    master
        The URL of the cluster (``spark://...``, ``yarn``, ``local[4]``, or ``sc://...`` for Spark Connect).
    by, where, confidence_level, together, skip_bad
        As for :func:`leadline.engines.arrow.estimate_files`.

    Returns
    -------
    Estimates
        Of all rows together and of each group, and what was left out.

    Notes
    -----
    The driver reads the footer of each file first, so that a bad file is named before any work begins.
    """
    condition = None if where is None else conditions.parse(where)
    files, left_out = _readable(find_files(place), estimator.columns_ or Columns(), skip_bad=skip_bad)
    with _session(master) as session, _clear_errors(place):
        job = Job(_read(session, files, condition), estimator, None, by, skip_bad=skip_bad)
        found = job.run()
    bad_rows = int(found.sums.counts(ALL)[3])
    if bad_rows:
        left_out.append(LeftOut(place, bad_rows, f"{place}: {bad_rows:,} rows."))
    return found.estimates(
        [key.name for key in job.keys],
        job.labels(),
        confidence_level=confidence_level,
        together=together,
        left_out=left_out,
    )


def _readable(files: Sequence[LakeFile], columns: Columns, *, skip_bad: bool) -> tuple[list[LakeFile], list[LeftOut]]:
    """Return the files whose footer makes sense, and the others as left out; without leave, a bad one stops."""
    import pyarrow as pa

    good, bad = [], []
    for file in files:
        try:
            if not file.path.lower().endswith(".parquet"):
                raise InputError("engine 'spark' reads .parquet files.")
            columns.find(file.open().physical_schema.names)
            good.append(file)
        except (pa.ArrowException, OSError, InputError) as error:
            reason = f"{file.name}: cannot be read; is it complete? ({one_line(error)})."
            if not skip_bad:
                raise BadFileError(f"{reason} Nothing was estimated; skip_bad=True leaves such out.") from error
            bad.append(LeftOut(file.name, None, reason))
    if not good:
        raise InputError("no file is left: all are bad.")
    return good, bad


class SparkRows(TableRows):
    """The rows of a table in Parquet files, gone over on a cluster."""

    def __init__(self, table: Table, model: Estimator, session: Any) -> None:
        super().__init__(table, model)
        if table.columns is not None:
            self.model = copy(model)
            self.model.columns_ = table.columns
        self.files, _ = _readable(self.files, self.columns, skip_bad=False)
        self._df, self._place = _read(session, self.files, self.condition), table.place

    def scan(self, one: Pass, by: Sequence[str]) -> tuple[GroupSums, list[tuple[Any, ...]]]:
        """Make one pass."""
        starts = {file_key(_url(file)): start for file, start in zip(self.files, self.starts.tolist(), strict=True)}
        with _clear_errors(self._place):
            job = Job(self._df, self.model, None, by, starts=starts)
            return job.scan(one), job.labels()

    def count(self, column: str, values: NDArray[Any]) -> int:
        """Return how many rows have one of these values in a column."""
        with _clear_errors(self._place):
            return int(self._df.where(self._df[column].isin(values.tolist())).count())


@contextmanager
def opened_rows(table: Table, model: Estimator) -> Iterator[SparkRows]:
    """Give the rows of a table on a cluster."""
    with _session(table.master) as session, _clear_errors(table.place):
        yield SparkRows(table, model, session)


def _url(file: LakeFile) -> str:
    """Return where Spark finds a file."""
    return file.name if is_url(file.name) else f"file://{Path(file.path).absolute()}"


def _read(session: Any, files: Sequence[LakeFile], condition: conditions.Condition | None) -> Any:
    """Return the files as a DataFrame, with the columns that folders state and where each row came from."""
    paths = [_url(file) for file in files]
    reader = session.read
    if any(file.partitions for file in files):
        reader = reader.option("basePath", re.split(r"/[^/=]+=", paths[0])[0])
    df = reader.parquet(*paths)
    df = df.select("*", df["_metadata.file_path"].alias(FILE), df["_metadata.row_index"].alias(ROW))
    if condition is None:
        return df
    unknown = conditions.columns(condition) - set(df.columns)
    if unknown:
        raise InputError(f"column {min(unknown)!r} of the condition is not in the table.")
    return df.where(conditions.to_sql(condition))


@contextmanager
def _session(master: str | None) -> Iterator[Any]:
    """Give a session on a cluster and end it, unless there was one before."""
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    url = master or DEFAULT_MASTER
    builder: Any = SparkSession.builder
    if url.startswith("sc://"):
        builder = builder.remote(url)
    else:
        builder = builder.master(url).appName("leadline").config("spark.ui.enabled", "false")
        builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.log.level", "OFF")
        if url.startswith("local"):
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # where Leadline is; a cluster has its own setting
            builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    try:
        with without_pandas_warning():
            session = builder.getOrCreate()
    except Exception as error:  # Java missing, cluster out of reach, wrong URL: each from another layer
        raise InputError(f"Spark at {url} cannot be reached; it needs Java 17 ({one_line(error)}).") from error
    try:
        yield session
    finally:
        session.stop()


@contextmanager
def _clear_errors(place: str) -> Iterator[None]:
    """Turn a failed job into one line: what Leadline said on an executor, else what Spark says."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        said = re.search(r"InputError: ([^\n]+)", str(error))
        if said:
            raise BadFileError(f"{said[1]} Nothing was estimated.") from error
        lines = [line for line in str(error).splitlines() if re.match(r"[\w.]+(Error|Exception): ", line)]
        raise InputError(f"Spark could not read {place} ({one_line(lines[-1] if lines else error)}).") from error
