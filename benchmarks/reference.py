"""ALSA in plain PyTorch, as the paper writes it down: what the speed benchmark compares with."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import NDArray
from torch import Tensor


class PlainALSA(torch.nn.Module):
    """Anchors as parameters; autograd does the rest.

    Parameters
    ----------
    anchors, peaks, widths
        Shapes (k, c), (k,) and (k,): initial values, copied in their own precision.
    power
        2 for Gaussian influence, 1 for exponential.
    """

    def __init__(
        self,
        anchors: NDArray[np.floating],
        peaks: NDArray[np.floating],
        widths: NDArray[np.floating],
        power: int = 2,
    ) -> None:
        super().__init__()
        self.anchors = torch.nn.Parameter(torch.tensor(anchors))
        self.peaks = torch.nn.Parameter(torch.tensor(peaks))
        self.widths = torch.nn.Parameter(torch.tensor(widths))
        self.power = power

    def forward(self, logits: Tensor) -> Tensor:
        """Return the total influence on each row, shape (n,)."""
        distances = 1.0 - F.normalize(logits, dim=1) @ F.normalize(self.anchors, dim=1).T
        return (self.peaks * torch.exp(-(self.widths**2) * distances**self.power)).sum(dim=1)

    def loss(self, logits: Tensor, correct: Tensor) -> Tensor:
        """Return the mean binary cross-entropy."""
        return F.binary_cross_entropy_with_logits(self(logits), correct)


def train(
    model: PlainALSA, logits: Tensor, correct: Tensor, *, epochs: int, batch_size: int, learning_rate: float
) -> list[float]:
    """Train with Adam on shuffled batches, and return the mean loss of each epoch."""
    optimiser = torch.optim.Adam(model.parameters(), lr=learning_rate)
    shuffle = torch.Generator().manual_seed(0)
    losses = []
    for _ in range(epochs):
        total = 0.0
        order = torch.randperm(len(logits), generator=shuffle)
        for start in range(0, len(logits), batch_size):
            batch = order[start : start + batch_size]
            optimiser.zero_grad()
            loss = model.loss(logits[batch], correct[batch])
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            total += float(loss.detach()) * len(batch)
        losses.append(total / len(logits))
    return losses
