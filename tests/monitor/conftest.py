"""Small models and a monitor."""

from __future__ import annotations

from pathlib import Path

import pytest

import leadline as ll
from leadline.estimators import Estimator
from leadline.monitor.monitor import Monitor
from streams import NOW, draw


@pytest.fixture(scope="session")
def plain_model() -> Estimator:
    """A method of one pass."""
    return ll.make("ac").fit(*draw(2_000, 100))


@pytest.fixture(scope="session")
def auto_model() -> Estimator:
    return ll.Auto().fit(*draw(2_000, 100))


@pytest.fixture
def watch(tmp_path: Path, plain_model: Estimator) -> Monitor:
    """A monitor with a series x of daily windows by channel."""
    monitor = Monitor(tmp_path / "monitor.db", clock=lambda: NOW)
    monitor.register("x", plain_model, every="1d", by=["channel"])
    return monitor
