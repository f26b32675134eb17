"""Optional packages are optional: everything else works where they are missing, and what needs them says so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import leadline
from command_line import Result

OPTIONAL = ("sklearn", "torch", "matplotlib", "pandas", "polars", "pyspark", "torchmetrics", "transformers", "fsspec")

#: Run first in a process: some packages cannot be found there, as if they were not installed.
BLOCK = """
import sys

class Without:
    def __init__(self, finder):
        self.finder = finder

    def __getattr__(self, name):
        return getattr(self.finder, name)

    def find_spec(self, name, *more):
        return None if name.split(".")[0] in {names!r} else self.finder.find_spec(name, *more)

sys.meta_path[:] = map(Without, sys.meta_path)
"""

LIBRARY = """
import numpy as np
import leadline as ll

rng = np.random.default_rng(0)
labels = rng.integers(4, size=400)
logits = rng.normal(size=(400, 4)) + 2 * np.eye(4)[labels]
for name in ll.METHODS:
    model = ll.make(name).fit(logits[:200], labels[:200])
    model.save(name + ".leadline")
    assert 0 < ll.load(name + ".leadline").estimate(logits[200:]).accuracy < 1
print(len(ll.compare((logits[:200], labels[:200]), {"new": logits[200:]}, methods=["auto", "ac"])))
"""

COMMAND = "from leadline.cli import main; sys.exit(main({words!r}))"


def run(folder: Path, code: str, *missing: str) -> Result:
    """Run code in a new process in which some packages are missing."""
    environment = os.environ | {"PYTHONPATH": str(Path(leadline.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", BLOCK.format(names=missing) + code],
        capture_output=True, text=True, check=False, cwd=folder, env=environment,
    )  # fmt: skip
    return Result(done.returncode, done.stdout, done.stderr)


def command(folder: Path, *words: str, missing: tuple[str, ...] = OPTIONAL) -> Result:
    return run(folder, COMMAND.format(words=list(words)), *missing)


@pytest.mark.parametrize("name", OPTIONAL)
def test_the_block_works(name: str, tmp_path: Path) -> None:
    assert f"No module named '{name}'" in run(tmp_path, f"import {name}", name).err


def test_every_method_fits_and_estimates_without_them(tmp_path: Path) -> None:
    assert run(tmp_path, LIBRARY, *OPTIONAL) == Result(0, "2\n", "")


def test_the_command_fits_and_estimates_without_them(folder: Path) -> None:
    assert command(folder, "fit", "source.npz", "--method", "auto", "-o", "m.leadline").code == 0
    for target in ("plain.npz", "traffic.parquet"):
        result = command(folder, "estimate", "m.leadline", target, "--format", "json")
        assert (result.code, result.err) == (0, "")
        assert result.data[0]["n_samples"] == 300
    assert command(folder, "compare", "source.npz", "plain.npz", "--methods", "ac,cot").code == 0
    assert command(folder, "methods").code == 0


def test_the_contract_checks_run_without_them(tmp_path: Path) -> None:
    code = "import leadline as ll\nfrom leadline.checks import check_estimator\ncheck_estimator(ll.make('ac'))"
    assert run(tmp_path, code, *OPTIONAL) == Result(0, "", "")


def test_the_demo_says_what_to_install(tmp_path: Path) -> None:
    error = command(tmp_path, "demo", "-o", "d", missing=("sklearn",)).error
    assert error == "the demo needs scikit-learn, which is not installed; run pip install 'leadline[demo]'."
    assert not list(tmp_path.iterdir())


def test_the_monitor_says_what_to_install(tmp_path: Path) -> None:
    error = command(tmp_path, "monitor", "status", "monitor.db", missing=("sqlalchemy",)).error
    assert error == "the monitor needs SQLAlchemy, which is not installed; run pip install 'leadline[monitor]'."


def test_the_report_says_what_to_install(folder: Path) -> None:
    assert "leadline[report]" in command(folder, "report", "source.npz", "plain.npz", "-o", "page.html").error


def test_the_benchmark_says_what_to_install(tmp_path: Path) -> None:
    code = "from leadline.bench.optional import need\nneed('sklearn.linear_model', 'logistic regression')"
    assert "needed for logistic regression: pip install scikit-learn\n" in run(tmp_path, code, "sklearn").err
