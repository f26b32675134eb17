"""Spark on a real cluster of two executors on this machine: the local answers, also when an executor dies."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import leadline
from command_line import Run
from leadline import Outputs
from leadline.engines.arrow import estimate_files
from local_spark import SETTINGS, skip_without_spark

skip_without_spark(allow_module_level=True)
pytestmark = pytest.mark.filterwarnings(
    "ignore::FutureWarning", "ignore::ResourceWarning", "ignore::DeprecationWarning"
)

Maker = Callable[..., Outputs]
CLASSES, N_FILES, ROWS = 4, 6, 500


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    """Return a session on a cluster of two executors, bound to the loopback."""
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    settings = SETTINGS | {
        "spark.executor.memory": "512m", "spark.sql.files.maxPartitionBytes": "16k",
        "spark.sql.session.timeZone": "America/New_York",  # times must not depend on it
        "spark.task.maxFailures": "2",  # one executor dies; bad rows stay bad
    }  # fmt: skip
    builder: Any = SparkSession.builder
    builder = builder.master("local-cluster[2,1,1024]").appName("leadline-tests")
    session = builder.config(map=settings).getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, make_outputs: Maker) -> Path:
    """Return a folder of Parquet files with a column of lists, labels, times and countries.

    The times are in the first hours of days, when it is still the day before in New York.
    """
    root = tmp_path_factory.mktemp("lake")
    for i in range(N_FILES):
        outputs, rng = make_outputs(ROWS, CLASSES, seed=i, signal=1.5), np.random.default_rng(i)
        days, seconds = rng.integers(0, 20, ROWS), rng.integers(0, 4 * 3600, ROWS)
        times = np.datetime64("2026-01-01", "us") + (86400 * days + seconds).astype("timedelta64[s]")
        logits = pa.array(list(outputs.logits), pa.list_(pa.float32()))
        table = pa.table({"logits": logits, "label": outputs.labels, "time": times})
        (root / f"country={'de' if i % 2 else 'fr'}").mkdir(exist_ok=True)
        pq.write_table(table, root / f"country={'de' if i % 2 else 'fr'}" / f"{i}.parquet", row_group_size=100)
    return root


def fitted(method: str, make_outputs: Maker) -> leadline.Estimator:
    source = make_outputs(300, CLASSES, seed=99)
    return leadline.make(method).fit(source.logits, source.labels)


def as_groups(df: Any, *keys: str, lazy: bool = False) -> dict[Any, tuple[float, ...]]:
    """Return the result of Spark by group."""
    # A lazy result is worked out where no group sees the whole: its intervals cover sampling error only.
    names = ("accuracy", "n_samples", *(() if keys and lazy else ("interval_low", "interval_high")))
    return {tuple(row[key] for key in keys): tuple(row[name] for name in names) for row in df.collect()}


def local_groups(
    model: leadline.Estimator, lake: Path, *keys: str, together: bool = False
) -> dict[Any, tuple[float, ...]]:
    """Return the result of one machine by group."""
    found = estimate_files(model, str(lake), by=keys, together=together)
    rows = [(tuple(row.group.values()), row.estimate) for row in (found.rows if keys else [found.overall])]
    lazy = keys and model.passes == "one" and not together
    return {group: (one.accuracy, one.n_samples, *(() if lazy else one.interval)) for group, one in rows}


@pytest.mark.parametrize(
    ("method", "keys"),
    [
        ("ac", ()),
        ("ac", ("time:week", "country")),
        ("alsa-g", ("country", "time:hour")),
        ("cot", ()),
        ("auto", ("country", "time:week")),
    ],
)
def test_spark_is_local(method: str, keys: tuple[str, ...], spark: Any, lake: Path, make_outputs: Maker) -> None:
    from leadline.engines.spark import estimate

    model, df = fitted(method, make_outputs), spark.read.parquet(str(lake))
    df = df.coalesce(2) if model.passes == "many" else df  # each of its passes is a job, and a part of it a task
    found = as_groups(estimate(df, model, logits="logits", by=list(keys)), *keys, lazy=model.passes == "one")
    expected = local_groups(model, lake, *keys)
    assert found.keys() == expected.keys()
    for group, numbers in expected.items():
        np.testing.assert_allclose(found[group], numbers, atol=1e-6)


@pytest.mark.parametrize("method", ["ac", "auto"])
def test_intervals_that_hold_together_are_the_local_ones(
    method: str, spark: Any, lake: Path, make_outputs: Maker
) -> None:
    from leadline.engines.spark import estimate

    model, df = fitted(method, make_outputs), spark.read.parquet(str(lake)).coalesce(2)
    found = as_groups(estimate(df, model, logits="logits", by=["country"], together=True), "country")
    expected = local_groups(model, lake, "country", together=True)
    assert found.keys() == expected.keys()
    for group, numbers in expected.items():
        np.testing.assert_allclose(found[group], numbers, atol=1e-6)


def test_many_partitions_are_merged_as_a_tree(
    spark: Any, lake: Path, make_outputs: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two at a time: seven partitions take two levels before the last one."""
    from leadline.engines import spark as engine
    from leadline.engines.sparkworker import Orders

    monkeypatch.setattr(engine, "FAN_IN", 2)
    model, df = fitted("auto", make_outputs), spark.read.parquet(str(lake)).repartition(7)
    merged = engine.Job(df, model, "logits", ["country"])
    plan = merged._merged(merged._partial_sums(Orders(model.start(), {}), total=True), engine._adder(["country"], None))
    assert str(plan._jdf.queryExecution().logical()).count("FlatMapGroupsInArrow") == 2
    found = as_groups(engine.estimate(df, model, logits="logits", by=["country"]), "country")
    for group, numbers in local_groups(model, lake, "country").items():
        np.testing.assert_allclose(found[group], numbers, atol=1e-6)


def test_an_executor_dies_half_way(spark: Any, lake: Path, make_outputs: Maker) -> None:
    from leadline.engines.spark import estimate

    model = fitted("alsa-g", make_outputs)

    def slowly(batches: Iterator[Any]) -> Iterator[Any]:
        time.sleep(1.0)
        yield from batches

    df = spark.read.parquet(str(lake)).repartition(12)
    slow = df.mapInArrow(slowly, df.schema)
    results: list[Any] = []
    lazy = estimate(slow, model, by=["country"])
    job = threading.Thread(target=lambda: results.append(as_groups(lazy, "country", lazy=True)))
    before = executors()
    assert len(before) == 2
    job.start()
    tracker = spark.sparkContext.statusTracker()

    def finished() -> int:
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        return max((stage.numCompletedTasks for stage in stages if stage and stage.numTasks == 12), default=0)

    deadline = time.monotonic() + 120
    while not 2 <= finished() < 12:
        assert time.monotonic() < deadline
        assert job.is_alive()
        time.sleep(0.05)
    before[0].kill()
    job.join(timeout=240)
    assert not before[0].is_running()
    expected = local_groups(model, lake, "country")
    assert results[0].keys() == expected.keys()
    for group, numbers in expected.items():
        np.testing.assert_allclose(results[0][group], numbers, atol=1e-9)


def executors() -> list[psutil.Process]:
    """Return the executors that this process started."""
    found = []
    for child in psutil.Process().children(recursive=True):
        try:
            if any("ExecutorBackend" in word for word in child.cmdline()):
                found.append(child)
        except psutil.Error:  # ended meanwhile
            continue
    return found


def test_bad_rows(spark: Any, make_outputs: Maker) -> None:
    from pyspark.errors import PySparkException

    from leadline.engines.spark import estimate

    model = fitted("ac", make_outputs)
    rows = [([1.0, 2.0, 3.0, 4.0], "a", 3), ([1.0, float("nan"), 0.0, 0.0], "a", 0), (None, "b", 0)]
    df = spark.createDataFrame(rows, "logits array<double>, kind string, label int").coalesce(1)
    with pytest.raises(PySparkException, match="logits must be known and finite"):
        estimate(df, model).collect()
    (row,) = estimate(df, model, by=["kind"], label="label", skip_bad=True).collect()
    assert (row["kind"], row["n_samples"], row["n_left_out"], row["truth"]) == ("a", 1, 1, 1.0)
    with pytest.raises(PySparkException, match="logits must have 4 classes, as in fit; got 2"):
        estimate(spark.createDataFrame([([1.0, 2.0],)], "logits array<double>"), model).collect()


def test_wrong_columns(spark: Any, lake: Path, make_outputs: Maker) -> None:
    from leadline.engines.spark import estimate

    df, model = spark.read.parquet(str(lake)), fitted("ac", make_outputs)
    with pytest.raises(leadline.InputError, match="column 'scores' is not in the DataFrame"):
        estimate(df, model, logits="scores")
    with pytest.raises(leadline.InputError, match="column 'city' is not in the DataFrame"):
        estimate(df, model, by=["city"])
    renamed = df.withColumnRenamed("logits", "scores")
    assert estimate(renamed, model, logits="scores").collect()[0]["n_samples"] == N_FILES * ROWS


def test_command(spark: Any, lake: Path, make_outputs: Maker, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "doc.leadline"
    fitted("doc", make_outputs).save(path)
    of_late = ("--where", "time >= '2026-01-05'")
    words = ("estimate", path, lake, "--by", "week,country", "--together", *of_late, "--format", "json")
    here, there = run(*words).data, run(*words, "--engine", "spark").data
    assert [row["group"] for row in here] == [row["group"] for row in there]
    for one, other in zip(here, there, strict=True):
        np.testing.assert_allclose(other["accuracy"], one["accuracy"], atol=1e-9)
        np.testing.assert_allclose(other["interval"], one["interval"], atol=1e-6)
        assert (other["n_samples"], other["truth"], other["by_class"][0]["count"]) == (
            one["n_samples"], one["truth"], one["by_class"][0]["count"],
        )  # fmt: skip
    bad = lake / "country=de" / "7.parquet"
    bad.write_text("not a table")
    try:
        assert run("estimate", path, lake, "--engine", "spark").error.startswith(f"{bad}: cannot be read")
        skipped = run(*words, "--engine", "spark", "--skip-bad").data
        assert skipped[0]["diagnostics"]["left_out"] == {"files": 1, "rows": 0}
        assert skipped[0]["n_samples"] == here[0]["n_samples"]
    finally:
        bad.unlink()


def test_a_plan_of_labels_is_the_local_one(spark: Any, lake: Path, make_outputs: Maker) -> None:
    del spark  # it is the active session
    model = fitted("auto", make_outputs)
    local, remote = (leadline.Table(str(lake), engine=engine) for engine in ("arrow", "spark"))
    plan = leadline.plan_labels(model, local, budget=80, seed=3)
    assert leadline.plan_labels(model, remote, budget=80, seed=3).to_dict() == plan.to_dict()
    labels = np.arange(60) % CLASSES
    found, expected = (
        leadline.estimate_with_labels_by(model, table, plan, labels, ["country", "time:week"])
        for table in (remote, local)
    )
    assert len(found) >= 2
    assert found.overall.truth == expected.overall.truth is not None
    for one, other in zip((found.overall, *found), (expected.overall, *expected), strict=True):
        assert (one.group, one.truth) == (other.group, other.truth)
        assert one.estimate.interval == other.estimate.interval
        assert one.estimate.by_class == other.estimate.by_class
