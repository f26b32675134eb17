"""Estimates through a Spark Connect server on this machine: a session without a context of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from local_spark import skip_without_spark

skip_without_spark(allow_module_level=True)
pytest.importorskip("grpc", reason="Spark Connect needs grpcio: pip install 'pyspark[connect]'")

CODE = """
import os, sys
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
from pyspark.sql import SparkSession
import leadline as ll
from leadline.engines.spark import estimate

folder = sys.argv[1]
os.environ["PYSPARK_PYTHON"] = sys.executable
rng = np.random.default_rng(0)
labels = rng.integers(4, size=1500)
logits = (rng.normal(size=(1500, 4)) + 2 * np.eye(4)[labels]).astype(np.float32)
for part in range(2):
    rows = slice(500 + 500 * part, 1000 + 500 * part)
    table = {"logits": pa.array(list(logits[rows]), pa.list_(pa.float32())), "country": ["de", "fr"] * 250}
    pq.write_table(pa.table(table), f"{folder}/{part}.parquet")
session = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "1").getOrCreate()
assert "connect" in type(session).__module__
for method in ("ac", "auto"):
    model = ll.make(method).fit(logits[:500], labels[:500])
    here = ll.estimate_files(model, folder, by=["country"])
    there = estimate(session.read.parquet(folder), model, logits="logits", by=["country"]).collect()
    expected = {row.group["country"]: row.estimate.accuracy for row in here.rows}
    found = {row["country"]: row["accuracy"] for row in there}
    assert found.keys() == expected.keys()
    np.testing.assert_allclose([found[name] for name in expected], list(expected.values()), atol=1e-6)
session.stop()
"""


def test_estimates_by_connect_are_the_local_ones(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path)], capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr[-3000:]
