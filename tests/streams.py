"""Streams of a small classifier, for the tests of the monitor."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

import leadline as ll

DAY = np.timedelta64(1, "D")
FIRST = np.datetime64("2026-03-02")  # a Monday
NOW = datetime(2026, 6, 1, tzinfo=UTC)


def draw(n: int, seed: int, strength: float = 2.5) -> tuple[NDArray[np.float32], NDArray[Any]]:
    """Return logits and labels of three classes; the weaker, the more mistakes."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n)
    logits = rng.normal(size=(n, 3)).astype(np.float32)
    logits[np.arange(n), labels] += np.float32(strength)
    return logits, labels


def stream(n: int, seed: int, days: int = 4, *, strength: float = 2.5, first: np.datetime64 = FIRST) -> ll.Outputs:
    """Return outputs with times, ids and a channel; the labels are in the metadata column ``truth``."""
    logits, labels = draw(n, seed, strength)
    rows = np.arange(n)
    return ll.Outputs(
        logits,
        metadata={
            "ts": first + rows * days // n * DAY,
            "channel": np.where(rows % 3, "web", "app"),
            "id": np.array([f"{seed}-{row}" for row in rows]),
            "truth": labels,
        },
    )
