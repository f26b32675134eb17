"""Softmax in log space and temperature scaling, against SciPy and the mathematics."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import optimize, special

from leadline import make
from leadline.data.outputs import Outputs
from leadline.data.ranges import LARGEST
from leadline.numeric import log_softmax, sigmoid
from leadline.shift.calibration import TEMPERATURE_RANGE, fit_gaps, fit_temperature, gaps_at

MakeOutputs = Callable[..., Outputs]


def labelled(outputs: Outputs) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    assert outputs.labels is not None
    return outputs.logits.astype(np.float64), outputs.labels


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 1000),
    scale=st.floats(1e-3, 1e3),
    temperature=st.floats(*TEMPERATURE_RANGE),
    c=st.integers(2, 50),
)
def test_log_softmax_is_that_of_scipy(seed: int, scale: float, temperature: float, c: int) -> None:
    logits = scale * np.random.default_rng(seed).normal(size=(20, c))
    expected = special.log_softmax(logits / temperature, axis=1)
    np.testing.assert_allclose(log_softmax(logits, temperature), expected, rtol=1e-9, atol=1e-12)


def test_log_softmax_tells_saturated_confidences_apart() -> None:
    logits = np.array([[40.0, 0.0], [80.0, 0.0], [600.0, 0.0]])
    assert np.all(np.exp(log_softmax(logits)).max(axis=1) == 1.0)
    np.testing.assert_allclose(log_softmax(logits).max(axis=1), -np.exp([-40.0, -80.0, -600.0]), rtol=1e-12)


def test_log_softmax_leaves_its_input_alone() -> None:
    logits = np.array([[1.0, 2.0], [3.0, -4.0]])
    before = logits.copy()
    log_softmax(logits, 2.0)
    np.testing.assert_array_equal(logits, before)


@pytest.mark.parametrize("true_temperature", [0.3, 1.0, 4.0])
def test_temperature_of_calibrated_labels_is_found(true_temperature: float, rng: np.random.Generator) -> None:
    """Labels drawn from softmax(z / T) have their minimum at T, but for the noise of 20,000 draws."""
    logits = 3 * rng.normal(size=(20_000, 5))
    probabilities = special.softmax(logits / true_temperature, axis=1)
    labels = (probabilities.cumsum(axis=1) < rng.random((len(logits), 1))).sum(axis=1)
    assert fit_temperature(logits, labels) == pytest.approx(true_temperature, rel=0.05)


def test_temperature_is_where_the_derivative_vanishes(make_outputs: MakeOutputs) -> None:
    """The derivative of the loss in 1/T is the mean of E_p[z] - z_label: a root of an increasing function."""
    logits, labels = labelled(make_outputs(n=500, signal=1.5))

    def slope(inverse: float) -> float:
        p = special.softmax(inverse * logits, axis=1)
        return float(((p * logits).sum(axis=1) - logits[np.arange(len(labels)), labels]).mean())

    inverse = optimize.brentq(slope, 1e-2, 1e2, xtol=1e-12)
    assert fit_temperature(logits, labels) == pytest.approx(1 / inverse, rel=1e-4)


@pytest.mark.parametrize(("wrong", "bound"), [(False, 0), (True, 1)])
def test_sources_without_a_minimum_end_at_a_bound(wrong: bool, bound: int, rng: np.random.Generator) -> None:
    logits = rng.normal(size=(200, 3))
    labels = (logits.argmin if wrong else logits.argmax)(axis=1)
    assert fit_temperature(logits, labels) == pytest.approx(TEMPERATURE_RANGE[bound], rel=1e-3)


def test_temperature_leaves_predictions_alone_and_lowers_the_loss(make_outputs: MakeOutputs) -> None:
    logits, labels = labelled(make_outputs(n=500, signal=1.0))
    overconfident = 5 * logits
    temperature = fit_temperature(overconfident, labels)
    scaled = log_softmax(overconfident, temperature)
    np.testing.assert_array_equal(scaled.argmax(axis=1), logits.argmax(axis=1))
    rows = np.arange(len(labels))
    assert -scaled[rows, labels].mean() < -log_softmax(overconfident)[rows, labels].mean() - 0.1
    assert temperature == pytest.approx(5 * fit_temperature(logits, labels), rel=1e-3)


def test_estimators_apply_the_temperature_they_fit(make_outputs: MakeOutputs) -> None:
    """Scaling all logits by one factor, on source and target alike, is undone."""
    logits, labels = labelled(make_outputs(n=500, signal=1.5))
    target = labelled(make_outputs(n=300, seed=1))[0]
    for method in ("ac", "doc", "im", "atc-mc", "atc-ne", "cot", "cott"):
        plain = make(method).fit(logits, labels).estimate(target).accuracy
        scaled = make(method).fit(7 * logits, labels).estimate(7 * target).accuracy
        assert scaled == pytest.approx(plain, abs=1e-5), method


def test_temperature_scaling_can_be_switched_off(make_outputs: MakeOutputs) -> None:
    logits, labels = labelled(make_outputs(n=500, signal=1.5))
    confidence = special.softmax(5 * logits, axis=1).max(axis=1).mean()
    raw = make("ac", temperature_scaling=False).fit(5 * logits, labels)
    assert raw.estimate(5 * logits).accuracy == pytest.approx(confidence, abs=1e-12)
    assert raw.estimate(5 * logits).diagnostics["temperature"] == 1.0
    assert make("ac").fit(5 * logits, labels).estimate(5 * logits).accuracy < confidence - 0.1


def test_gaps_say_what_no_temperature_can() -> None:
    """Right 97 times of 100 however sure: confidence is moved to it at each level."""
    rng = np.random.default_rng(0)
    odds = rng.normal(3.0, 3.0, 20_000)
    truth = np.clip(sigmoid(odds), 0.03, 0.97)
    correct = rng.random(20_000) < truth
    calibrated = sigmoid(odds) + gaps_at(odds, *fit_gaps(odds, correct))
    np.testing.assert_allclose(calibrated.mean(), correct.mean(), atol=1e-12)
    for some in (odds > 5.0, odds < 0.0, (odds > 1.0) & (odds < 4.0)):
        np.testing.assert_allclose(calibrated[some].mean(), truth[some].mean(), atol=0.015)
    sure = odds > 5.0
    assert sigmoid(odds)[sure].mean() - truth[sure].mean() > 0.025


def test_few_rows_have_one_gap() -> None:
    odds = np.linspace(-1.0, 4.0, 12)
    correct = np.arange(12) > 2
    edges, gaps = fit_gaps(odds, correct)
    assert (edges.shape, gaps.shape) == ((0,), (1,))
    np.testing.assert_allclose(gaps, correct.mean() - sigmoid(odds).mean())


def test_bins_that_equal_scores_leave_empty_have_the_gap_of_all() -> None:
    odds = np.repeat([1.0, 3.0], 500)
    correct = np.arange(1000) % 4 > 0
    edges, gaps = fit_gaps(odds, correct)
    empty = np.bincount(np.searchsorted(edges, odds), minlength=len(gaps)) == 0
    assert empty.any()
    np.testing.assert_allclose(gaps[empty], correct.mean() - sigmoid(odds).mean())


def test_gaps_of_the_largest_log_odds_can_be_kept() -> None:
    """Odds of the largest logits, over a small temperature, are larger than any number that a model file may hold."""
    odds = np.linspace(-1.0, 4.0, 200) * 1e3 * LARGEST
    edges, gaps = fit_gaps(odds, np.arange(200) > 40)
    assert np.abs(edges).max() <= LARGEST
    assert np.isfinite(gaps_at(odds, edges, gaps)).all()
