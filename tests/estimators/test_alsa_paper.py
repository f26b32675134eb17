"""``ALSA.paper``: the paper's own choices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from leadline import ALSA, InputError, Outputs


@pytest.mark.parametrize("influence", ["gaussian", "exponential"])
def test_the_papers_choices_in_one_word(influence: Any, make_outputs: Callable[..., Outputs]) -> None:
    source = make_outputs(400, 4)
    model = ALSA.paper(influence, learn=(), max_epochs=1, seed=3).fit(source)
    rows = np.abs(model.anchors_[:, None] - source.logits).max(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(model.anchors_, source.logits[rows])  # as they are, not of length 1
    correct = source.logits.argmax(axis=1) == source.labels
    np.testing.assert_allclose(model.peaks_, np.where(correct[rows], 0.05, -0.05), rtol=1e-6)
    assert abs(model.widths_.mean() - 10) < 1.0
    assert 1.0 < model.widths_.std() < 3.0
    assert model.alpha_ == {"gaussian": 0.98, "exponential": 0.9}[influence]
    assert model.width_search_ == "given"
    trained = ALSA.paper(influence).fit(source)
    assert abs(trained.estimate(source).accuracy - (source.accuracy or 0.0)) < 0.05


def test_the_papers_numbers_of_anchors() -> None:
    assert ALSA.paper(dataset="imagenet").n_anchors == 20_000
    assert ALSA.paper(dataset="office31", n_anchors=7).n_anchors == 7
    with pytest.raises(InputError, match=r"dataset must be one of cifar10, .*; got 'arxiv'"):
        ALSA.paper(dataset="arxiv")
    with pytest.raises(InputError, match="influence must be one of gaussian, exponential; got 'cubic'"):
        ALSA.paper("cubic")  # type: ignore[arg-type]
