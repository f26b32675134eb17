"""A package of somebody else, installed by pip: its methods work wherever Leadline's own do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import leadline
from command_line import Result, Run
from leadline import read_outputs
from local_spark import SETTINGS, skip_without_spark

PLUGIN = Path(__file__).parent / "plugin"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder into which pip has installed the toy package, apart from the environment of the tests."""
    root = tmp_path_factory.mktemp("plugin")
    shutil.copytree(PLUGIN, root / "source")  # a build leaves files beside its source
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
    options = ["--no-deps", "--no-build-isolation", "--target", str(root / "installed"), str(root / "source")]
    subprocess.run([*pip, *options], check=True)
    return root / "installed"


@pytest.fixture(scope="module")
def python(place: Path) -> Callable[..., Result]:
    """Return Python as a function of its words, in a process that finds the toy package and this Leadline."""
    paths = [place, Path(leadline.__file__).parents[1]]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))}

    def call(*words: object) -> Result:
        done = subprocess.run(
            [sys.executable, *map(str, words)], capture_output=True, text=True, check=False, env=environment
        )
        return Result(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture
def command(python: Callable[..., Result], folder: Path) -> Run:
    """Return the command, in a folder with outputs."""

    def call(*words: object) -> Result:
        result = python("-m", "leadline", *words)
        assert (result.code, result.err) == (0, ""), result
        return result

    return call


def test_the_package_is_not_there_without_its_folder() -> None:
    assert "coin" not in leadline.METHODS


def test_methods_are_listed_after_leadlines_own(command: Run) -> None:
    rows = command("methods", "--format", "json").data
    assert [row["method"] for row in rows] == [*leadline.METHODS, "class-share", "coin"]
    described = {row.pop("method"): row for row in rows}
    assert described["coin"] == {
        "summary": "Share of the rows whose confidence is above one half.", "assumption": "", "reference": "",
        "options": {},
    }  # fmt: skip
    assert described["class-share"] == {
        "summary": "source accuracy of each predicted class",
        "assumption": "predictions of a class stay as accurate as they were",
        "reference": "nobody yet",
        "options": {"prior": 1.0},
    }


def test_fit_and_estimate(command: Run) -> None:
    fitted = command("fit", "source.npz", "--method", "class-share", "--option", "prior=0", "-o", "m.leadline",
                     "--format", "json").data  # fmt: skip
    assert fitted["options"] == {"prior": 0.0}
    # Without a prior, the estimate on the source itself is the accuracy on it.
    (row,) = command("estimate", "m.leadline", "source.npz", "--format", "json").data
    assert row["method"] == "class-share"
    assert row["accuracy"] == pytest.approx(row["truth"], abs=1e-12)
    text = command("estimate", "m.leadline", "plain.npz").out
    assert "class-share assumes: predictions of a class stay as accurate as they were." in text


def test_streams_give_what_memory_gives(command: Run) -> None:
    command("fit", "source.npz", "--method", "class-share", "-o", "m.leadline")
    words = ("estimate", "m.leadline", "traffic.parquet", "--by", "channel", "--format", "json")
    whole, stream = command(*words).data, command(*words, "--engine", "arrow").data
    assert [row["group"] for row in whole] == [None, *({"channel": name} for name in ("app", "mail", "web"))]
    assert [row["group"] for row in stream] == [row["group"] for row in whole]
    accuracies = [[row["accuracy"] for row in rows] for rows in (stream, whole)]
    assert accuracies[0] == pytest.approx(accuracies[1], abs=1e-12)


def test_compare(command: Run) -> None:
    data = command("compare", "source.npz", "labelled.npz", "--methods", "coin,ac,class-share", "--format", "json").data
    assert list(data["mean_absolute_errors"]) == ["coin", "ac", "class-share"]
    expected = leadline.compare(read_outputs("source.npz"), {"labelled": read_outputs("labelled.npz")}, methods=["ac"])
    assert data["rows"][1]["accuracy"] == expected.rows[0].accuracy


def test_report(command: Run) -> None:
    words = ("report", "source.npz", "labelled.npz", "--method", "coin", "--methods", "coin,class-share,ac", "--format")
    (target,) = command(*words, "json").data["targets"]
    assert target["method"] == "coin"
    assert [row["method"] for row in target["methods"]] == ["coin", "class-share", "ac"]
    text = command(*words, "md").out
    assert "| class-share | source accuracy of each predicted class | nobody yet |" in text
    assert "| coin | Share of the rows whose confidence is above one half. | not stated |" in text


CHECK = """
import sys
import numpy as np
import leadline as ll
from leadline.checks import check_estimator

for name in ("coin", "class-share"):
    check_estimator(ll.make(name))
outputs = ll.read_outputs("source.npz")
model = ll.make("class-share", prior=2.0).fit(outputs.logits, outputs.labels)
model.save("m.leadline")
running = ll.Accumulator(ll.load("m.leadline"))
for block in np.array_split(outputs.logits, 4):
    running.update(block)
np.testing.assert_allclose(running.estimate().accuracy, model.estimate(outputs.logits).accuracy, atol=1e-12)
print(sys.modules[type(model).__module__].__file__)
"""


def test_the_library_and_its_contract_checks(python: Callable[..., Result], folder: Path, place: Path) -> None:
    result = python("-c", CHECK)
    assert (result.code, result.err) == (0, "")
    assert result.out.strip() == str(place / "leadline_toy.py")


SPARK = f"""
import os, sys
os.environ |= {{"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}}
from pyspark.sql import SparkSession
from leadline.engines.spark import estimate

session = SparkSession.builder.master("local[1]").config(map={SETTINGS!r}).getOrCreate()
result = estimate(session.read.parquet("traffic.parquet"), "m.leadline")
print(result.toArrow().column("accuracy")[0].as_py())
"""


def test_workers_of_spark_find_the_package(python: Callable[..., Result], command: Run) -> None:
    skip_without_spark()
    command("fit", "source.npz", "--method", "class-share", "-o", "m.leadline")
    result = python("-W", "ignore", "-c", SPARK)  # Java may have something to say on standard error
    assert result.code == 0, result.err
    (row,) = command("estimate", "m.leadline", "traffic.parquet", "--format", "json").data
    assert float(result.out) == pytest.approx(row["accuracy"], abs=1e-12)
