"""The e-detector: its formula, its promise, its list of segments, its numbers."""

from __future__ import annotations

from collections.abc import Callable
from math import comb
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from leadline.monitor.alarms.detector import FALLS, Span, accumulate, e_bh, log_bets, spans
from leadline.monitor.alarms.falls import coin_evidence
from leadline.monitor.alarms.tracks import Coins

Floats = NDArray[np.float64]


def found(right: Any, count: Any, tau: float, every: float) -> list[Span]:
    """Spans of one track whose every window counts."""
    coins = Coins(np.asarray(right, dtype=float)[:, None], np.asarray(count - right, dtype=float)[:, None])
    return list(
        spans(
            coin_evidence(coins, np.full_like(coins.right, tau), np.ones_like(coins.right), np.ones_like(coins.right)),
            every,
        )
    )


def test_bets_on_labels_are_the_product_of_the_bets_on_each() -> None:
    rng, tau = np.random.default_rng(0), 0.8
    z = rng.random(300) < 0.7
    stakes = FALLS / (1 - tau)
    np.testing.assert_allclose(
        log_bets(np.array(z.sum()), np.array((~z).sum()), tau),
        np.log1p(stakes[:, None] * (tau - z)).sum(axis=1),
        rtol=1e-12,
    )


def test_bets_on_estimates_never_win_more_than_the_product_over_the_rows() -> None:
    rng, tau = np.random.default_rng(0), 0.8
    c = rng.beta(4, 1, size=300)
    product = np.log1p(FALLS[:, None] / (1 - tau) * (tau - c)).sum(axis=1)
    assert (log_bets(c.sum(), (1 - c).sum(), tau) <= product).all()


def test_a_fair_bet_neither_wins_nor_loses() -> None:
    counts = np.arange(31.0)
    chance = np.array([comb(30, k) * 0.8**k * 0.2 ** (30 - k) for k in range(31)])
    np.testing.assert_allclose(chance @ np.exp(log_bets(counts, 30 - counts, 0.8)), 1.0, rtol=1e-9)


def test_accumulation_is_the_recursion() -> None:
    rng = np.random.default_rng(0)
    bets, weights = rng.normal(size=(50, 3, 2)), rng.random((50, 3, 1))
    value = np.zeros((3, 2))
    for place, log_m in enumerate(accumulate(bets, weights, np.full((3, 2), -np.inf))):
        value = (value + weights[place]) * np.exp(bets[place])
        np.testing.assert_allclose(np.exp(log_m), value, rtol=1e-9)


def steady(rng: np.random.Generator, windows: int, tau: float) -> Floats:
    return np.full(windows, tau)


def seasonal(rng: np.random.Generator, windows: int, tau: float) -> Floats:
    return np.asarray(tau + 0.05 * (np.arange(windows) % 7 >= 5))


def wandering(rng: np.random.Generator, windows: int, tau: float) -> Floats:
    """Accuracies that depend on all those before, and never have a mean below tau."""
    return np.asarray(tau + 0.04 * np.abs(np.sin(np.cumsum(rng.normal(scale=0.3, size=windows)))))


@pytest.mark.parametrize("n_rows", [1, 100, 10_000])
@pytest.mark.parametrize("accuracy", [steady, seasonal, wandering])
def test_false_alarms_are_as_rare_as_promised_even_at_the_level_itself(
    n_rows: int, accuracy: Callable[[np.random.Generator, int, float], Floats]
) -> None:
    every, windows, tau, streams = 20.0, 200, 0.85, 100
    rng = np.random.default_rng(n_rows)
    lengths = []
    for _ in range(streams):
        right = rng.binomial(n_rows, accuracy(rng, windows, tau))
        raised = found(right, n_rows, tau, every)
        lengths.append(raised[0].raised + 1 if raised else windows)
    assert np.mean(lengths) > every - 2 * np.std(lengths) / streams**0.5


def test_batches_that_err_together_are_covered_by_counting_rows_as_coins() -> None:
    """Estimates of unchanged windows vary by 1 point, twice what 1,000 rows alone explain: no alarm in ten years."""
    rng = np.random.default_rng(0)
    estimate = 0.9 + rng.normal(scale=0.01, size=3_650)
    assert not found(1_000 * estimate, 1_000, 0.88, 1_000.0)


@pytest.mark.parametrize(
    ("fall", "n_rows", "within"), [(0.05, 1_000, 3), (0.05, 100, 40), (0.1, 100, 8), (0.03, 5_000, 8)]
)
def test_falls_are_found_soon(fall: float, n_rows: int, within: int) -> None:
    rng, delays = np.random.default_rng(0), []
    for _ in range(30):
        right = rng.binomial(n_rows, np.repeat([0.9, 0.9 - fall], 100))
        delays.append(found(right, n_rows, 0.88, 1_000.0)[0].raised - 99)
    assert min(delays) > 0
    assert np.mean(delays) <= within


def test_a_standing_difference_below_the_tolerance_never_alarms() -> None:
    right = np.random.default_rng(0).binomial(1_000, 0.885, size=3_650)
    assert not found(right, 1_000, 0.88, 1_000.0)


def test_onset_and_end_of_a_fall_are_where_they_were() -> None:
    accuracy = np.repeat([0.9, 0.8, 0.9], [100, 30, 70])
    (span,) = found(1_000 * accuracy, 1_000, 0.88, 1_000.0)
    assert (span.onset, span.until, span.open) == (100, 129, False)
    assert 100 <= span.raised <= 101
    assert 130 <= span.last <= 140


def test_a_few_lucky_windows_do_not_end_an_alarm() -> None:
    accuracy = np.repeat([0.9, 0.8], 100)
    accuracy[120::10] = 0.885
    (span,) = found(1_000 * accuracy, 1_000, 0.88, 1_000.0)
    assert span.open


def test_noise_below_the_level_does_not_end_an_alarm_oftener_than_said() -> None:
    rng, ends = np.random.default_rng(0), 0
    for _ in range(50):
        right = rng.binomial(100, np.repeat([0.9, 0.85], [20, 200]))
        ends += sum(not span.open for span in found(right, 100, 0.88, 1_000.0))
    assert ends < 50 * 200 / 20


def test_the_detector_starts_anew_after_an_alarm() -> None:
    accuracy = np.tile(np.repeat([0.9, 0.8], [50, 20]), 3)
    falls = found(1_000 * accuracy, 1_000, 0.88, 1_000.0)
    assert [span.onset for span in falls] == [50, 120, 190]
    assert [span.open for span in falls] == [False, False, True]


def test_windows_without_evidence_raise_nothing() -> None:
    coins = Coins(np.zeros((3_000, 1)), np.zeros((3_000, 1)))
    evidence = coin_evidence(coins, np.full((3_000, 1), 0.9), np.zeros((3_000, 1)), np.ones((3_000, 1)))
    assert not list(spans(evidence, 100.0))


@pytest.mark.parametrize("tau", [0.0, 1e-9, 0.5, 1 - 1e-9, 1.0])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_numbers_stay_finite(tau: float, share: float) -> None:
    right = np.full(800, 1e6 * share)
    for span in found(right, 1e6, tau, 1e6):
        assert np.isfinite(span.log_evidence)
        assert span.log_evidence >= np.log(1e6)


def test_a_million_wrong_rows_in_one_window_are_one_alarm_at_once() -> None:
    (span,) = found(np.zeros(1), 1e6, 0.9, 1e9)
    assert (span.raised, span.last, span.open) == (0, 0, True)


def test_histories_longer_than_a_chunk_are_judged_as_in_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    right = rng.binomial(200, np.tile(np.repeat([0.9, 0.83], [150, 60]), 6))
    pieces = [vars(span) for span in found(right, 200, 0.88, 1_000.0)]
    monkeypatch.setattr("leadline.monitor.alarms.detector._CHUNK", 10**6)
    for one, other in zip(found(right, 200, 0.88, 1_000.0), pieces, strict=True):
        assert (one.raised, one.last, one.onset, one.until) == tuple(
            other[n] for n in ("raised", "last", "onset", "until")
        )


def test_e_bh_takes_the_largest_k_that_are_large_enough() -> None:
    log_e = np.log([1.0, 45.0, 300.0, 24.0, 2.0])
    # 5 hypotheses, alpha .1: one needs 50, two 25 each, three 16.7 each
    assert e_bh(log_e).tolist() == [2, 1, 3]
    assert e_bh(np.log([45.0, 1.0, 1.0, 1.0, 1.0])).tolist() == []
    assert e_bh(np.array([])).tolist() == []


def test_listed_segments_are_false_as_rarely_as_promised() -> None:
    """Segments at their very level, some of which fell: of those listed, at most a tenth are wrong on average."""
    rng, n_rows, tau, windows, k = np.random.default_rng(0), 100, 0.88, 60, 40
    wrongly, hits = [], []
    for _ in range(60):
        accuracy = np.full((windows, k + 1), tau)
        accuracy[30:, 1:6] -= 0.15
        right = rng.binomial(n_rows, accuracy).astype(float)
        coins = Coins(right, n_rows - right)
        shares = np.full_like(right, 0.5 / k)
        shares[:, 0] = 0.5
        for span in list(spans(coin_evidence(coins, np.full_like(right, tau), np.ones_like(right), shares), 200.0))[:1]:
            wrongly.append(float(np.mean(span.listed > 5)) if len(span.listed) else 0.0)
            hits.append(np.isin(np.arange(1, 6), span.listed).mean())
    assert len(hits) > 50
    assert np.mean(hits) > 0.9
    assert np.mean(wrongly) < 0.1
