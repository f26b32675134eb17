"""Which explanation of a target is believed, and what it says of the class frequencies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import leadline as ll
from leadline.numeric import softmax
from leadline.shift.judgement import Judgement, judge
from leadline.shift.priors import restoring_bias, reweighting_bias

Array = NDArray[np.float64]
COMMON = (0.6, 0.25, 0.15)


def three_classes(n: int, seed: int, *, shares: tuple[float, ...] = (1 / 3, 1 / 3, 1 / 3)) -> ll.Outputs:
    """Return the log-posteriors of Gaussian classes, calibrated for equal shares, where classes are so frequent."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(3, size=n, p=shares)
    return ll.Outputs(1.5 * (rng.normal(size=(n, 3)) + 1.5 * np.eye(3)[labels]), labels)


def judged(target: NDArray[np.floating[Any]]) -> Judgement:
    model = ll.Auto().fit(three_classes(5_000, 0))
    return judge(model.source_, target.astype(np.float32), len(target))


def beliefs(judgement: Judgement) -> Array:
    """Return the beliefs in label shift, in label shift and more, and in collapse."""
    found = judgement.explained
    return np.array(
        [found.label_shift_weight, 1.0 - found.label_shift_weight - found.collapse_weight, found.collapse_weight]
    )


def test_other_class_frequencies_and_nothing_else_are_label_shift() -> None:
    found = judged(three_classes(5_000, 1, shares=COMMON).logits)
    assert beliefs(found)[0] > 0.9
    np.testing.assert_allclose(found.explained.label_marginal, COMMON, atol=0.04)


def test_other_class_frequencies_and_unsure_rows_are_label_shift_and_more() -> None:
    found = judged(0.4 * three_classes(5_000, 1, shares=COMMON).logits)
    assert beliefs(found).argmax() == 1


def test_a_bias_is_collapse() -> None:
    found = judged(0.5 * three_classes(5_000, 1).logits + np.array([2.0, 0.0, 0.0]))
    assert beliefs(found)[2] > 0.9


@pytest.mark.parametrize("shares", [(1 / 3, 1 / 3, 1 / 3), COMMON])
def test_under_label_shift_reweighted_confidence_is_right(shares: tuple[float, ...]) -> None:
    target = three_classes(20_000, 1, shares=shares)
    assert judged(target.logits).readings["reweighted"] == pytest.approx(target.accuracy, abs=0.015)


@pytest.mark.parametrize("n_source", [100, 1_000])
def test_class_frequencies_stay_where_sampling_explains_their_change(n_source: int) -> None:
    """Of twenty samples of the source's own kind, hardly any is said to have other class frequencies."""
    model = ll.Auto().fit(three_classes(n_source, 0))
    marginal = model.source_.moved_rows.marginal
    moved = []
    for seed in range(1, 21):
        target = three_classes(200, seed).logits.astype(np.float32)
        found = judge(model.source_, target, len(target)).explained.label_marginal
        moved.append(0.5 * np.abs(found - marginal).sum())
    assert np.median(moved) == 0.0
    assert np.mean(moved) < 0.02


def test_under_label_shift_both_biases_are_one() -> None:
    """Calibrated outputs of a label-shifted target get its class frequencies from Bayes' theorem."""
    source, shares = np.full(3, 1 / 3), np.array(COMMON)
    logits = three_classes(200_000, 1, shares=COMMON).logits
    bias = reweighting_bias(source, shares)
    np.testing.assert_allclose(softmax(logits + bias).mean(axis=0), shares, atol=0.005)
    np.testing.assert_allclose(restoring_bias(logits, shares), bias - bias.mean(), atol=0.05)


def test_a_class_that_neither_has_needs_no_bias() -> None:
    shares = np.array([0.5, 0.5, 0.0])
    np.testing.assert_array_equal(reweighting_bias(shares, shares), np.zeros(3))
    assert np.isfinite(reweighting_bias(shares, shares[::-1])).all()
