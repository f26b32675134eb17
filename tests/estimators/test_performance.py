"""Precision and recall of a rare class, half of which looks like the common one: no distribution has such a shape."""

from __future__ import annotations

import numpy as np
import pytest

import leadline as ll
from leadline.estimators.auto import Auto


def half_hidden(n: int, seed: int, *, share: float = 0.04) -> ll.Outputs:
    """Return scores of two classes; of the second, three in ten look like the first."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(n) < share).astype(np.int64)
    shows = (labels == 1) & (rng.random(n) < 0.7)
    score = rng.normal(np.where(shows, 2.0, -2.5), 1.2)
    return ll.Outputs(np.stack([np.zeros(n), score], axis=1).astype(np.float32), labels)


@pytest.fixture(scope="module")
def model() -> Auto:
    return Auto().fit(half_hidden(20_000, 0))


def of_rare_class(target: ll.Outputs) -> tuple[float, float]:
    """Return the true precision and recall."""
    assert target.labels is not None
    predicted, rare = target.logits.argmax(axis=1) == 1, target.labels == 1
    return float(rare[predicted].mean()), float(predicted[rare].mean())


def test_where_nothing_moved_it_is_that_of_the_source(model: Auto) -> None:
    """Rows that clusters misread in the source are misread in the target: both are corrected."""
    truth = of_rare_class(half_hidden(400_000, 99))
    for seed in range(1, 7):
        found = model.performance(half_hidden(8_000, seed))
        assert abs(found.precision[1] - truth[0]) < 0.06
        assert abs(found.recall[1] - truth[1]) < 0.06


@pytest.mark.parametrize("share", [0.08, 0.16])
def test_a_rare_class_that_became_common_is_known_by_little(model: Auto, share: float) -> None:
    target = half_hidden(20_000, 7, share=share)
    found, truth = model.performance(target), of_rare_class(target)
    before = of_rare_class(half_hidden(20_000, 0))
    assert truth[0] > before[0] + 0.1
    assert abs(found.precision[1] - truth[0]) < 0.06
    assert abs(found.recall[1] - truth[1]) < 0.1
