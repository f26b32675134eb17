"""Biases that give a target other class shares: two classes, rows that no bias moves, and steps that need no check."""

from __future__ import annotations

import numpy as np
import pytest

from leadline.numeric import softmax
from leadline.shift.priors import _FALL, _SURE_STEP, restoring_bias


@pytest.mark.parametrize("spread", [0.1, 3.0, 30.0])
@pytest.mark.parametrize("share", [1e-4, 0.3, 0.98])
def test_two_classes_get_the_shares_wanted(spread: float, share: float) -> None:
    logits = np.random.default_rng(0).normal(scale=spread, size=(2000, 2))
    bias = restoring_bias(logits, np.array([1.0 - share, share]))
    np.testing.assert_allclose(softmax(logits + bias).mean(axis=0), [1.0 - share, share], atol=1e-6)
    np.testing.assert_allclose(bias.sum(), 0.0, atol=1e-12)


def test_two_classes_are_three_of_which_one_never_occurs() -> None:
    logits = np.random.default_rng(1).normal(scale=2.0, size=(2000, 3))
    logits[:, 2] = -40.0
    of_three = restoring_bias(logits, np.array([0.2, 0.8, 0.0]), iterations=400, tolerance=1e-7)
    of_two = restoring_bias(logits[:, :2], np.array([0.2, 0.8]), tolerance=1e-9)
    np.testing.assert_allclose(of_two[1] - of_two[0], of_three[1] - of_three[0], atol=1e-4)


def test_certain_rows_of_two_classes_leave_the_bias_finite() -> None:
    certain = np.array([[0.0, 1e4], [1e4, 0.0], [0.0, 3e4]])
    assert np.isfinite(restoring_bias(certain, np.array([0.9, 0.1]))).all()


@pytest.mark.parametrize("n", [1, 2, 50])
@pytest.mark.parametrize("c", [2, 3, 8])
def test_a_short_newton_step_falls_as_far_as_it_must(c: int, n: int) -> None:
    """With one row and the logits at random, the bound is nearly met: the worst that data can do."""
    rng = np.random.default_rng(c)
    for _ in range(300):
        logits, wanted = rng.normal(scale=rng.choice([0.3, 3.0]), size=(n, c)), rng.dirichlet(np.ones(c))
        shares = softmax(logits)
        gradient = shares.mean(axis=0) - wanted
        curvature = np.diag(shares.mean(axis=0)) - shares.T @ shares / n
        step = np.linalg.lstsq(curvature, -gradient, rcond=None)[0]
        step *= min(1.0, _SURE_STEP / np.ptp(step))

        def value(bias: np.ndarray, logits: np.ndarray = logits, wanted: np.ndarray = wanted) -> float:
            return float(np.log(np.exp(logits + bias).sum(axis=1)).mean() - wanted @ bias)

        assert value(step) <= value(np.zeros(c)) + _FALL * gradient @ step + 1e-12
