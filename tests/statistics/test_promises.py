"""What is promised of chance, measured at length: make test-long.

Each test asks whether the measured frequency could come from a method that keeps its promise. A right method fails
one of them once in a million runs (``ERROR``); the seeds are fixed, so that a test that passes goes on passing.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, norm

import leadline
from fuzz.numbers import OPTIONS
from leadline.labels.intervals import exact_interval, stratified_interval
from leadline.monitor.alarms.detector import spans
from leadline.monitor.alarms.falls import coin_evidence
from leadline.monitor.alarms.tracks import Coins

pytestmark = pytest.mark.long
ERROR = 1e-6


def require_at_least(hits: int, trials: int, share: float) -> None:
    """Refuse so few hits as a method of this share has once in a million runs."""
    chance = binom.cdf(hits, trials, share)
    assert chance > ERROR, f"{hits} of {trials} is too few for {share:.0%}"


def draw(rng: np.random.Generator, n: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return logits of a calibrated classifier of four classes, and labels drawn from its probabilities."""
    logits = rng.normal(scale=1.5, size=(n, 4))
    weights = np.exp(logits)
    sums = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)
    return logits, np.minimum((rng.random((n, 1)) > sums).sum(axis=1), 3)


@pytest.mark.parametrize("method", leadline.METHODS)
def test_intervals_hold_the_accuracy_where_nothing_shifted(method: str) -> None:
    rng, trials, held = np.random.default_rng(0), 100, 0
    for _ in range(trials):
        model = leadline.make(method, **OPTIONS.get(method, {})).fit(*draw(rng, 300))
        logits, labels = draw(rng, 200)
        low, high = model.estimate(logits, confidence_level=0.9).interval
        held += bool(low <= np.mean(logits.argmax(axis=1) == labels) <= high)
    require_at_least(held, trials, 0.9)


@pytest.mark.parametrize("shares", [[0.5, 0.7, 0.9, 1.0], [0.0, 0.1, 0.9, 1.0], [0.97, 0.98, 0.99, 1.0]], ids=str)
def test_intervals_from_planned_labels_hold_the_accuracy(shares: list[float]) -> None:
    rng, trials, sizes, labelled = np.random.default_rng(0), 10_000, np.full(4, 250), np.full(4, 25)
    good = np.round(np.array(shares) * sizes).astype(int)
    right = np.stack(
        [rng.hypergeometric(g, n - g, k, trials) for g, n, k in zip(good, sizes, labelled, strict=True)], 1
    )
    low, high = stratified_interval(right, labelled, sizes, 0.9)
    truth = good.sum() / sizes.sum()
    require_at_least(int(np.sum((low <= truth + 1e-12) & (truth <= high + 1e-12))), trials, 0.9)


def test_intervals_from_labels_at_random_hold_the_accuracy() -> None:
    rng, trials, n_rows, n = np.random.default_rng(0), 20_000, 400, 30
    ends = [exact_interval(right, n, n_rows, 0.9) for right in range(n + 1)]
    for good in (0, 4, 200, 390, 400):
        right = rng.hypergeometric(good, n_rows - good, n, trials)
        held = sum(ends[k][0] <= good / n_rows + 1e-12 and good / n_rows <= ends[k][1] + 1e-12 for k in right)
        require_at_least(held, trials, 0.9)


@pytest.mark.parametrize("n_rows", [1, 30, 1_000])
def test_false_alarms_are_as_rare_as_promised(n_rows: int) -> None:
    """Streams at the very level at which an alarm would be false: the mean time to the first one is as set, or more."""
    every, windows, tau, streams = 20.0, 200, 0.85, 1_000
    rng = np.random.default_rng(n_rows)
    right = rng.binomial(n_rows, tau, size=(streams, windows)).astype(float)
    lengths = np.array([_first_alarm(stream, n_rows, tau, every) for stream in right])
    least = every + norm.ppf(ERROR) * lengths.std() / streams**0.5
    assert lengths.mean() > least, f"{lengths.mean():.1f} windows to a false alarm in place of {every}"


def _first_alarm(right: NDArray[np.float64], n_rows: int, tau: float, every: float) -> int:
    """Return how many windows pass until the first alarm, or how many there are."""
    coins = Coins(right[:, None], n_rows - right[:, None])
    ones = np.ones_like(coins.right)
    raised = next(iter(spans(coin_evidence(coins, tau * ones, ones, ones), every)), None)
    return len(right) if raised is None else raised.raised + 1
