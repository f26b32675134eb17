"""The accumulator as a metric of TorchMetrics, where that is installed."""

from __future__ import annotations

from typing import Any

import numpy as np

from leadline.errors import InputError
from leadline.estimators.base import Estimator
from leadline.estimators.sums import Reduced

try:
    import torch
    from torchmetrics import Metric
except ModuleNotFoundError as error:
    raise InputError(
        "AccuracyEstimate needs TorchMetrics, which is not installed; run pip install torchmetrics."
    ) from error


class AccuracyEstimate(Metric):  # type: ignore[misc, unused-ignore]
    """The estimated accuracy, as a metric that needs no labels.

    Sums are states of the metric, so that they are reset, moved, saved and added up over processes as those of any
    other metric are.

    Parameters
    ----------
    model
        A fitted estimator of one pass over the rows; ``auto``, COT and COTT need several.
    """

    full_state_update = False
    is_differentiable = False
    higher_is_better = True

    def __init__(self, model: Estimator, **options: Any) -> None:
        super().__init__(**options)
        n_classes = model._check_fitted()
        if model.passes != "one":
            raise InputError(f"method {model.method} needs several passes over the data; use one that needs one.")
        self.model = model
        # The sums of any row tell which there are and how large.
        row = np.linspace(0.0, 1.0, n_classes, dtype=np.float32)[None]
        self._names = tuple(model.reduce(row, model.start()).sums)
        for name, amount in model.reduce(row, model.start()).sums.items():
            zeros = torch.zeros(amount.shape, dtype=torch.float64)
            self.add_state(f"sum_{name}", default=zeros, dist_reduce_fx="sum")

    def update(self, logits: Any) -> None:
        """Take more rows, shape (n, c)."""
        block = self.model.rows_of(logits, partial=True)
        if not len(block):
            return
        for name, amount in self.model.reduce(block, self.model.start()).sums.items():
            state = getattr(self, f"sum_{name}")
            setattr(self, f"sum_{name}", state + torch.as_tensor(amount).to(state))

    def compute(self) -> Any:
        """Return the estimated accuracy of all rows taken so far, a tensor without dimensions."""
        sums = {name: getattr(self, f"sum_{name}").detach().cpu().double().numpy() for name in self._names}
        if not sums["count"].sum():
            raise InputError("there is nothing to estimate yet; call update(logits) first.")
        return torch.tensor(self.model.conclude(self.model.start(), Reduced(sums)).accuracy)
