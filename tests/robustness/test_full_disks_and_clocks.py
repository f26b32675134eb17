"""Disks that are full and clocks that jump: what was there before stays, and numbers do not change."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

import leadline
from leadline import Estimator, InputError, Monitor, Outputs
from leadline.data.files import FORMATS, write_outputs
from streams import NOW, draw, stream

MakeOutputs = Callable[..., Outputs]


@contextmanager
def disk_full_after(size: int) -> Iterator[None]:
    """Let no file grow beyond a size, as a full disk would."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_full_disk_leaves_the_file_as_it_was(suffix: str, tmp_path: Path, make_outputs: MakeOutputs) -> None:
    path = tmp_path / f"a{suffix}"
    write_outputs(Outputs(make_outputs(20).logits), path)
    before = path.read_bytes()
    with disk_full_after(4096), pytest.raises(InputError, match=r"cannot be written"):
        write_outputs(Outputs(make_outputs(5_000).logits), path, force=True)
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == [path.name]


def test_a_full_disk_leaves_the_model_as_it_was(tmp_path: Path, make_outputs: MakeOutputs) -> None:
    path = tmp_path / "model.leadline"
    leadline.make("ac").fit(make_outputs(200)).save(path)
    before = path.read_bytes()
    with disk_full_after(4096), pytest.raises(InputError, match="cannot be written"):
        leadline.make("doc").fit(make_outputs(2_000)).save(path, force=True)
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == [path.name]


@pytest.fixture(scope="module")
def model() -> Estimator:
    return leadline.make("ac").fit(*draw(500, 100))


def test_a_full_disk_loses_no_batch_and_adds_none_in_part(tmp_path: Path, model: Estimator) -> None:
    path = tmp_path / "monitor.db"
    with Monitor(path, clock=lambda: NOW) as monitor:
        monitor.register("x", model, every="1d")
        monitor.add("x", stream(200, 1), batch="first")
        with disk_full_after(path.stat().st_size), pytest.raises(InputError):
            monitor.add("x", stream(5_000, 2), batch="second")
    with Monitor(path, clock=lambda: NOW) as monitor:
        assert not monitor.verify()
        assert sum(row.estimate.n_samples for row in monitor.history("x")) == 200
        monitor.add("x", stream(300, 2), batch="second")
        assert sum(row.estimate.n_samples for row in monitor.history("x")) == 500


def test_a_clock_that_jumps_changes_no_estimate(tmp_path: Path, model: Estimator) -> None:
    def history(name: str, jumps: list[timedelta]) -> list[tuple[float, int]]:
        remaining = list(jumps)
        now = [NOW]

        def clock() -> object:
            if remaining:
                now[0] += remaining.pop(0)
            return now[0]

        with Monitor(tmp_path / name, clock=clock) as monitor:  # type: ignore[arg-type]
            monitor.register("x", model, every="1d")
            for seed in (1, 2, 3):
                monitor.add("x", stream(200, seed), batch=str(seed))
                monitor.add("x", stream(200, seed), batch=str(seed))  # a retry
            return [(row.estimate.accuracy, row.estimate.n_samples) for row in monitor.history("x")]

    year = timedelta(days=365)
    steady = history("steady.db", [])
    assert sum(n for _, n in steady) == 600
    np.testing.assert_allclose(history("jumps.db", [-year, 2 * year, -year] * 10), steady, atol=1e-12)
