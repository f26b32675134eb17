"""Intervals of the judgement: how far they reach, and to which side."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

import leadline as ll
from leadline.numeric import normal_quantile
from leadline.shift.judgement import SKEW, judge


def rare_class(n: int, share: float, seed: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return logits and labels of a calibrated classifier that seldom dares to say 1, and of which ``share`` are 1."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(n) < share).astype(np.int64)
    score = rng.normal(2.0 * labels - 1.0, 1.4) / 0.98 - 2.2  # log-odds where a tenth is 1
    return np.stack([np.zeros(n), score], axis=1).astype(np.float32), labels


@pytest.mark.parametrize("share", [0.5, 0.6, 0.7])
def test_a_rare_class_that_becomes_common_is_within_reach(share: float) -> None:
    """Outputs do not tell label shift from harder rows, so that the interval reaches to what label shift would make."""
    model = ll.Auto().fit(*rare_class(20_000, 0.1, 0))
    logits, labels = rare_class(10_000, share, 1)
    found = model.estimate(logits)
    truth = float((logits.argmax(axis=1) == labels).mean())
    assert found.interval[0] <= truth <= found.interval[1]
    assert found.accuracy - found.interval[0] > found.interval[1] - found.accuracy


def test_nothing_moved_reaches_nearly_as_far_to_both_sides() -> None:
    """But for what a shift that is too small to be seen may do, which is more often for the worse."""
    model = ll.Auto().fit(*rare_class(20_000, 0.1, 0))
    found = model.estimate(rare_class(10_000, 0.1, 1)[0])
    down, up = found.accuracy - found.interval[0], found.interval[1] - found.accuracy
    assert up < down < up + 4e-3


def test_where_something_moved_the_interval_reaches_further_down() -> None:
    model = ll.Auto().fit(crowd(5_000, 0))
    found = model.estimate(0.8 * crowd(5_000, 1).logits)
    down, up = found.accuracy - found.interval[0], found.interval[1] - found.accuracy
    assert 1.2 * up < down < up * (1.0 + SKEW) / (1.0 - SKEW)


def test_parts_add_as_squares_each_on_its_side() -> None:
    model = ll.Auto().fit(*rare_class(2_000, 0.2, 0))
    judgement = judge(model.source_, rare_class(1_000, 0.2, 1)[0], 1_000)
    further, less = 0.04 * (1.0 + SKEW), 0.04 * (1.0 - SKEW)
    to_sides = ((0.0, 0.0, 0.0, 0.0), (-0.12, 0.0, 0.12, 0.0), (0.12, 0.0, 0.0, 0.12), (0.12, -0.1, 0.1, 0.12))
    for classes, drift, down, up in to_sides:
        parts = {"sampling": 0.03, "shift": 0.04, "classes": classes, "drift": drift}
        moved = replace(judgement, accuracy=0.5, parts=parts)
        for level in (0.5, 0.9):
            low, high = moved.interval(0.5, level)
            quantile = normal_quantile(0.5 + level / 2)
            assert 0.5 - low == pytest.approx(quantile * math.sqrt(0.03**2 + further**2 + down**2))
            assert high - 0.5 == pytest.approx(quantile * math.sqrt(0.03**2 + less**2 + up**2))


def crowd(n: int, seed: int, *, class_shares: tuple[float, ...] = (0.4, 0.3, 0.3), strange: float = 0.0) -> ll.Outputs:
    """Return an honest classifier of three classes; of a share of strange rows it says confident things at random."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(3, size=n, p=class_shares)
    logits = rng.normal(size=(n, 3)) + 1.2 * np.eye(3)[labels]
    odd = rng.random(n) < strange
    logits[odd] = 3.0 * np.eye(3)[rng.integers(0, 2, size=n)][odd]
    return ll.Outputs(logits.astype(np.float32), labels)


def test_a_target_that_moved_hides_mistakes() -> None:
    model = ll.Auto().fit(crowd(5_000, 0))
    found = [model.estimate(crowd(5_000, 1, strange=share)) for share in (0.0, 0.2, 0.5)]
    hidden = [each.diagnostics["hidden_mistakes"] for each in found]
    assert hidden[0] < 1e-3 < hidden[1] < hidden[2] < 0.02
    assert "more mistakes than their outputs show" in found[2].explain()
    assert "more mistakes than their outputs show" not in found[0].explain()
    assert found[2].correctness is not None
    assert float(found[2].correctness.mean()) == pytest.approx(found[2].accuracy)


@pytest.mark.parametrize("scale", [0.5, 1.0, 4.0])
def test_hidden_mistakes_are_a_share_of_those_that_show(scale: float) -> None:
    model = ll.Auto().fit(crowd(5_000, 0))
    found = model.estimate(scale * crowd(5_000, 1, strange=0.5).logits)
    hidden = found.diagnostics["hidden_mistakes"]
    shown = found.accuracy + hidden
    assert 0.0 < hidden < 0.085 * shown * (1.0 - shown)


@pytest.mark.parametrize("share", [0.5, 0.7])
def test_any_accuracy_reaches_to_what_label_shift_would_make_of_it(share: float) -> None:
    """The interval of a method that knows nothing of classes ends where that of the judgement does, or beyond."""
    model = ll.Auto().fit(*rare_class(20_000, 0.1, 0))
    judgement = judge(model.source_, rare_class(10_000, share, 1)[0], 10_000)
    believed = 1.0 - judgement.explained.collapse_weight
    for accuracy in (judgement.accuracy, judgement.accuracy + 0.1, 0.95):
        reached = accuracy + believed * (judgement.readings["reweighted"] - accuracy)
        assert judgement.interval(accuracy, 0.9)[0] <= reached
