"""The estimate as a metric of TorchMetrics."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import leadline
from leadline import InputError, Outputs

Maker = Callable[..., Outputs]


def fitted(method: str, make_outputs: Maker) -> leadline.Estimator:
    return leadline.make(method).fit(make_outputs(400, seed=0))


def test_metric(make_outputs: Maker) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("torchmetrics")
    from leadline.integrations.torchmetrics import AccuracyEstimate

    model, logits = fitted("alsa-g", make_outputs), make_outputs(300, seed=1).logits
    metric = AccuracyEstimate(model)
    for block in np.array_split(logits, 4):
        metric.update(torch.tensor(block, requires_grad=True))
    np.testing.assert_allclose(float(metric.compute()), model.estimate(logits).accuracy, atol=1e-6)
    metric.reset()
    assert float(metric(torch.tensor(logits[:50]))) == pytest.approx(model.estimate(logits[:50]).accuracy, abs=1e-6)
    with pytest.raises(InputError, match="several passes"):
        AccuracyEstimate(fitted("cot", make_outputs))
