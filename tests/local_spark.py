"""Spark on this machine for as short as a test takes."""

from __future__ import annotations

import os
import shutil

import pytest

#: Time is saved where it goes: a Java machine that lives for a minute never earns back the code it optimises.
_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SETTINGS = {
    "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.ui.enabled": "false",
    "spark.log.level": "OFF", "spark.ui.showConsoleProgress": "false", "spark.sql.shuffle.partitions": "2",
    "spark.driver.extraJavaOptions": _JAVA_OPTIONS, "spark.executor.extraJavaOptions": _JAVA_OPTIONS,
}  # fmt: skip


def skip_without_spark(*, allow_module_level: bool = False) -> None:
    """Skip a test, or a module of tests, where PySpark or Java is missing."""
    pytest.importorskip("pyspark", reason="PySpark is not installed")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java, which is not on this machine", allow_module_level=allow_module_level)
