"""What it costs to stream a prediction log, against reading it and against the bare method.

    python benchmarks/scale.py --rows 20000000 --methods ac,alsa-g

Writes a log in Parquet files to a folder (removed afterwards), then measures, each in a process of its own:

- read: all logits of the log through the same scanner, and nothing else;
- kernel: the method's ``reduce`` on blocks that are in memory already, on all cores, for as many rows;
- stream: ``leadline.engines.arrow.estimate_files``, whole and by 10,000 groups, with its peak memory;
- with ``--spark``, on Spark on this machine: reading alone, and reading with a copy of every row to Python, the best of
  three each; what they are apart is the cost of that copy. Processor time and memory are the Java machine's, not shown.

The aim: stream <= 2 (read + kernel), and less than 1 GB of memory. ``auto`` reads twice, which is counted so.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

BLOCK = 1 << 20  # values


def make_rows(n: int, c: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(c, size=n)
    logits = rng.standard_normal(size=(n, c), dtype=np.float32)
    logits[np.arange(n), labels] += 2.0
    return logits, labels


def write_log(folder: Path, rows: int, c: int, rows_per_file: int) -> int:
    """Write the log, and return its size in bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for i, start in enumerate(range(0, rows, rows_per_file)):
        n = min(rows_per_file, rows - start)
        logits, _ = make_rows(n, c, i)
        rng = np.random.default_rng(i)
        table = pa.table({
            "logits": pa.FixedSizeListArray.from_arrays(pa.array(logits.reshape(-1)), c),
            "week": pa.array(rng.integers(0, 50, n)),
            "segment": pa.array(rng.integers(0, 200, n)),
        })  # fmt: skip
        pq.write_table(table, folder / f"part-{i:05}.parquet", row_group_size=1 << 18)
    return sum(path.stat().st_size for path in folder.iterdir())


def read(folder: str, model: str) -> dict[str, float]:
    from leadline.data.arrow import list_matrix
    from leadline.engines.lake import find_files
    from leadline.engines.reading import scan_batches

    del model
    started, rows = time.perf_counter(), 0
    for file in find_files(folder):
        fragment = file.open()
        for batch in scan_batches(file, fragment, fragment.physical_schema, ["logits"], BLOCK // 10):
            if batch.num_rows:
                import pyarrow as pa

                rows += len(list_matrix(pa.chunked_array([batch.column("logits")])))
    return {"seconds": time.perf_counter() - started, "rows": rows}


def kernel(folder: str, model: str) -> dict[str, float]:
    import pyarrow.dataset as ds

    import leadline
    from leadline.estimators.groups import Block
    from leadline.estimators.passes import Pass, judge_rows
    from leadline.threads import core_count

    rows = ds.dataset(folder).count_rows()
    estimator = leadline.load(model)
    n = BLOCK // estimator.n_classes_
    block = Block(make_rows(n, estimator.n_classes_, 0)[0], np.zeros(n, dtype=np.intp))
    two = estimator.passes == "two"
    state = estimator.informed(judge_rows(estimator.source_, block.logits)) if two else estimator.start()
    one = Pass(estimator, grouped=True, shared=state)
    one.reduce(block)  # compiles
    started = time.perf_counter()
    with ThreadPoolExecutor(core_count()) as pool:
        for _ in pool.map(lambda _: one.reduce(block), range(-(-rows // n))):
            pass
    return {"seconds": (time.perf_counter() - started) * rows / (n * -(-rows // n)), "rows": rows}


def stream(folder: str, model: str, by: tuple[str, ...] = ()) -> dict[str, float]:
    import leadline
    from leadline.engines.arrow import estimate_files

    loaded, started = leadline.load(model), time.perf_counter()
    found = estimate_files(loaded, folder, by=by)
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "rows": found.overall.estimate.n_samples, "groups": len(found)}


def stream_grouped(folder: str, model: str) -> dict[str, float]:
    return stream(folder, model, ("week", "segment"))


def spark_read(folder: str, model: str) -> dict[str, float]:
    """Read all logits in the Java machine."""
    del model
    return _on_spark(folder, lambda df: df)


def spark_copy(folder: str, model: str) -> dict[str, float]:
    """Read all logits, and bring every row to Python."""
    del model

    def count(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        rows = sum(batch.num_rows for batch in batches)
        yield pa.RecordBatch.from_pydict({"rows": [rows]})

    return _on_spark(folder, lambda df: df.mapInArrow(count, "rows long"))


def _on_spark(folder: str, work: Callable[[Any], Any]) -> dict[str, float]:
    """Return the least seconds of three runs on Spark on this machine, after one that does not count."""
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    local = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.ui.enabled": "false"}
    session = builder.master("local[*]").config(map=local | {"spark.log.level": "OFF"}).getOrCreate()
    df = session.read.parquet(folder).select("logits")
    rows, seconds = df.count(), []
    for _ in range(4):
        started = time.perf_counter()
        work(df).write.format("noop").mode("overwrite").save()
        seconds.append(time.perf_counter() - started)
    session.stop()
    return {"seconds": min(seconds[1:]), "rows": rows}


def apart(work: Callable[[str, str], dict[str, float]], folder: Path, model: Path) -> dict[str, float]:
    """Run in a fresh process, and add its peak memory in bytes."""
    receive, send = multiprocessing.get_context("spawn").Pipe(duplex=False)
    process = multiprocessing.get_context("spawn").Process(target=_measure, args=(work, str(folder), str(model), send))
    process.start()
    send.close()
    result: dict[str, float] = receive.recv()
    process.join()
    return result


def _measure(work: Callable[[str, str], dict[str, float]], folder: str, model: str, send: Any) -> None:
    import resource

    cpu = time.process_time()
    result = work(folder, model)
    result["cpu_seconds"] = time.process_time() - cpu
    result["peak_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    send.send(result)


def main() -> None:
    import leadline
    from leadline.threads import core_count

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--rows-per-file", type=int, default=2_000_000)
    parser.add_argument("--methods", default="ac,alsa-g")
    parser.add_argument("--folder", type=Path, default=None, help="where to put the log; a temporary folder by default")
    parser.add_argument("--json", type=Path, default=None, help="write the measurements here too")
    parser.add_argument("--spark", action="store_true", help="also what Spark's copy of the rows to Python costs")
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="leadline-scale-", dir=options.folder))
    try:
        log = root / "log"
        log.mkdir()
        size = write_log(log, options.rows, options.classes, options.rows_per_file)
        logits, labels = make_rows(5_000, options.classes, 10**6)
        print(f"{options.rows:,} rows x {options.classes} classes, {size / 1e9:.2f} GB, {core_count()} cores")
        reading = apart(read, log, root)
        found: dict[str, Any] = {
            "rows": options.rows, "classes": options.classes, "bytes": size, "cores": core_count(), "read": reading,
        }  # fmt: skip
        report("read", reading, None)
        for name, work in (("spark read", spark_read), ("spark copy", spark_copy)) if options.spark else ():
            found[name] = apart(work, log, root)
            seconds = found[name]["seconds"]
            print(f"{name:32} {seconds:8.1f} s  {seconds / options.rows * 1e9:6.0f} ns a row")
        for method in options.methods.split(","):
            model = root / f"{method}.leadline"
            leadline.make(method).fit(logits, labels).save(model)
            bare = apart(kernel, log, model)
            report(f"{method} kernel", bare, None)
            floor = reads(model) * reading["seconds"] + bare["seconds"]
            found[method] = {"kernel": bare}
            for name, work in (("stream", stream), ("stream by 10,000 groups", stream_grouped)):
                found[method][name] = apart(work, log, model)
                report(f"{method} {name}", found[method][name], floor)
        if options.json is not None:
            options.json.write_text(json.dumps(found, indent=2) + "\n")
    finally:
        shutil.rmtree(root)


def reads(model: Path) -> int:
    """Return how often a method reads a log, of those that have one pass or two."""
    import leadline

    return 2 if leadline.load(model).passes == "two" else 1


def report(name: str, result: dict[str, float], floor: float | None) -> None:
    """Print one line."""
    seconds, rows = result["seconds"], result["rows"]
    print(
        f"{name:32} {seconds:8.1f} s  {rows / seconds / 1e6:6.2f} M rows/s  "
        f"{result['cpu_seconds'] / rows * 1e9:6.0f} ns of CPU a row  "
        f"{result['peak_bytes'] / 1e6:6.0f} MB"
        + ("" if floor is None else f"  {seconds / floor:5.2f} of read + kernel")
    )


if __name__ == "__main__":
    main()
