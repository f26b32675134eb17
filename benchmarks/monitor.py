"""What the monitor costs: a year of daily windows with 100 segments, and a million rows in one night.

    python benchmarks/monitor.py --out benchmarks/results/monitor.json

Each part runs in a process of its own and is measured once. The year is added month by month, as a backfill; then one
more day is added, as every night. Made-up outputs of five classes, estimated by ``auto``; stores in SQLite on the local
disk.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

CLASSES, SEGMENTS, DAY_ROWS, DAYS, NIGHT_ROWS, LABELLED = 5, 100, 5_000, 365, 1_000_000, 5_000
FIRST = np.datetime64("2025-01-01")
DAY = np.timedelta64(1, "D")


def make_rows(n: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(CLASSES, size=n)
    logits = rng.standard_normal(size=(n, CLASSES), dtype=np.float32)
    logits[np.arange(n), labels] += 2.5
    return logits, labels


def outputs(days: range, n: int, *, segments: int) -> tuple[Any, Any]:
    """Return n rows a day with times, ids and segments, and their labels."""
    import leadline as ll

    logits, labels = make_rows(len(days) * n, days.start)
    rows = np.arange(len(labels))
    metadata = {
        "ts": FIRST + (days.start + rows // n) * DAY,
        "id": days.start * n + rows,
        "segment": np.random.default_rng(days.start).integers(0, segments, len(rows)),
    }
    return ll.Outputs(logits, metadata=metadata), labels


def fitted() -> Any:
    import leadline as ll

    return ll.Auto().fit(*make_rows(3_000, 10**6))


@contextmanager
def timed(found: dict[str, float], name: str) -> Iterator[None]:
    start, cpu = time.perf_counter(), time.process_time()
    yield
    found[f"{name}_seconds"] = time.perf_counter() - start
    found[f"{name}_cpu_seconds"] = time.process_time() - cpu


def year(folder: str, days: int) -> dict[str, float]:
    """Return what a year of daily windows by segment costs."""
    from leadline.monitor.monitor import Monitor
    from leadline.monitor.showing import EVERY_SEGMENT

    found: dict[str, float] = {}
    monitor = Monitor(Path(folder) / "year.db")
    monitor.register("x", fitted(), every="1d", by=["segment"])
    with timed(found, "backfill"):
        for start in range(0, days - 1, 31):
            monitor.add("x", outputs(range(start, min(start + 31, days - 1)), DAY_ROWS, segments=SEGMENTS)[0])
    last, labels = outputs(range(days - 1, days), DAY_ROWS, segments=SEGMENTS)
    with timed(found, "add_a_day"):
        monitor.add("x", last)
    with timed(found, "add_it_again"):
        assert not monitor.add("x", last).new
    with timed(found, "labels_of_a_day"):
        monitor.add_labels("x", last.metadata["id"], labels)
    with timed(found, "history"):
        windows = monitor.history("x")
    with timed(found, "history_of_all_segments"):
        cells = monitor.history("x", EVERY_SEGMENT)
    with timed(found, "alarms"):
        monitor.alarms("x")
    with timed(found, "weeks"):
        monitor.history("x", every="1w")
    page = Path(folder) / "page.html"
    with timed(found, "page"):
        monitor.page(page)
    found |= {
        "windows": len(windows.rows), "cells": len(cells.rows), "store_mb": monitor.store.size() / 1e6,
        "page_mb": page.stat().st_size / 1e6,
    }  # fmt: skip
    monitor.prune("x", FIRST + (days + 1) * DAY)
    return found | {"pruned_store_mb": monitor.store.size() / 1e6, "peak_memory_mb": peak()}


def night(folder: str, rows: int) -> dict[str, float]:
    """Return what a night of many rows costs, and labels of some of them."""
    from leadline.monitor.monitor import Monitor

    found: dict[str, float] = {}
    monitor = Monitor(Path(folder) / "night.db")
    monitor.register("x", fitted(), every="1d", by=["segment"])
    batch, labels = outputs(range(1), rows, segments=SEGMENTS)
    found["rows_mb"] = (batch.logits.nbytes + sum(np.asarray(one).nbytes for one in batch.metadata.values())) / 1e6
    found["memory_before_mb"] = peak()
    with timed(found, "add"):
        monitor.add("x", batch)
    found["memory_of_add_mb"] = peak()
    chosen = np.random.default_rng(0).permutation(rows)[:LABELLED]
    with timed(found, "labels"):
        joined = monitor.add_labels("x", batch.metadata["id"][chosen], labels[chosen])
    assert joined.joined == len(chosen)
    return found | {
        "rows": rows,
        "labels": len(chosen),
        "store_mb": monitor.store.size() / 1e6,
        "peak_memory_mb": peak(),
    }


def peak() -> float:
    """Return the most memory that this process has had, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def apart(part: Callable[[str, int], dict[str, float]], amount: int) -> dict[str, float]:
    """Run a part in a process and a folder of its own."""
    with tempfile.TemporaryDirectory() as folder, multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.apply(part, (folder, amount))
    return {name: round(value, 3) for name, value in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--days", type=int, default=DAYS)
    parser.add_argument("--rows", type=int, default=NIGHT_ROWS)
    options = parser.parse_args()
    import leadline as ll

    load = os.getloadavg()[0]
    result = {
        "version": ll.__version__,
        "machine": {"cores": os.cpu_count(), "load_before": round(load, 1), "python": platform.python_version()},
        "busy": load > 0.5,
        "settings": {"classes": CLASSES, "segments": SEGMENTS, "rows_a_day": DAY_ROWS, "method": "auto"},
        "year": apart(year, options.days),
        "night": apart(night, options.rows),
    }
    options.out.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
