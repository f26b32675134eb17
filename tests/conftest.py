"""What several test modules share: a random generator, synthetic outputs and the way to the real data."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leadline
from command_line import Result, Run
from leadline.cli import main
from leadline.data.files import write_outputs
from leadline.data.outputs import Outputs

# A package to be installed, and not a part of the tests.
collect_ignore = ["plugin"]

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
DATA = Path(os.environ.get("LEADLINE_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def make_outputs() -> Callable[..., Outputs]:
    """Return a maker of labelled outputs: Gaussian noise plus ``signal`` in the column of the true class.

    Session-wide, so that a hypothesis test may use it too.
    """

    def make(
        n: int = 300, c: int = 5, seed: int = 0, *, signal: float = 2.0, dtype: Any = np.float32, **more: Any
    ) -> Outputs:
        generator = np.random.default_rng(seed)
        labels = generator.integers(c, size=n)
        logits = generator.normal(size=(n, c))
        logits[np.arange(n), labels] += signal
        return Outputs(logits.astype(dtype), labels, **more)

    return make


@pytest.fixture(scope="session")
def data_root() -> Path:
    """Return the folder with the real logits and raw data, or skip."""
    if not (DATA / "logits").is_dir():
        pytest.skip(f"the real data is not at {DATA}; set LEADLINE_DATA to its folder")
    return DATA


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Return the command as a function of its words, in this process."""

    def call(*words: object) -> Result:
        capsys.readouterr()
        code = main([str(word) for word in words])
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return call


@pytest.fixture
def folder(tmp_path: Path, make_outputs: Callable[..., Outputs], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, with a source, two targets, a target with segments, and a model of `ac`."""
    monkeypatch.chdir(tmp_path)
    source = make_outputs(seed=0)
    assert source.labels is not None
    write_outputs(source, "source.npz")
    write_outputs(Outputs(make_outputs(seed=1).logits), "plain.npz")
    write_outputs(make_outputs(seed=2, signal=1.0), "labelled.npz")
    segments = np.array(["web", "app", "mail"])[np.arange(300) % 3]
    write_outputs(make_outputs(seed=3, metadata={"channel": segments}), "traffic.parquet")
    leadline.make("ac").fit(source.logits, source.labels).save("ac.leadline")
    return tmp_path


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Debian's Chromium with an empty profile, or skip."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("chromium is not installed; run `sh tests/install_chromium.sh`")
    with playwright.sync_playwright() as running:
        profile = tmp_path_factory.mktemp("chromium")
        context = running.chromium.launch_persistent_context(
            profile, executable_path=program, args=FLAGS, headless=True
        )
        yield context
        context.close()
