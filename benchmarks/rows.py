"""Rows that the measurements of speed are made on; loads NumPy alone, so that other packages are given the same."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Logits = NDArray[np.float32]


def make_target(n: int, c: int, seed: int) -> tuple[Logits, NDArray[np.int64]]:
    """Logits of a classifier that is right four times in five; with a seed, those of a class are too large."""
    rng = np.random.default_rng([seed, c])
    labels, rows = rng.integers(c, size=n), np.arange(n)
    logits = rng.standard_normal(size=(n, c), dtype=np.float32)
    logits[rows, labels] += 3.0
    logits[rows, (labels + 1) % c] += rng.uniform(0.0, 3.0, size=n).astype(np.float32)
    logits[:, 0] += 0.3 * bool(seed)
    return logits, labels


def source_size(c: int) -> int:
    """Return how many labelled rows estimators are fitted on: of very many classes, as many as there are classes."""
    return 5_000 if c < 1_000 else 10_000


def softmax(logits: Logits) -> NDArray[np.float64]:
    """Return softmax over the classes, shape (n, c)."""
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True), dtype=np.float64)
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))
