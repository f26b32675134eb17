"""Anchors on any device that PyTorch knows, block of rows by block of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray
from leadline.errors import InputError
from leadline.estimators.alsa.kernels.base import (
    ADAM_FLOOR,
    MAX_WIDTH,
    MEAN_DECAY,
    SQUARE_DECAY,
    AnchorField,
    Gradients,
    Kernel,
    unit_rows,
)

try:
    import torch
    from torch import Tensor
except ModuleNotFoundError as error:
    raise InputError(
        "backend 'torch' needs PyTorch, which is not installed; run pip install 'leadline[torch]'."
    ) from error

Field = AnchorField[Tensor]

_BLOCK_PAIRS = {"cpu": 1 << 20}  # 4 MB at a time stay in the caches of a CPU
_BLOCK_PAIRS_ELSEWHERE = 1 << 26  # 256 MB keep every core of an accelerator busy


class TorchKernel(Kernel):
    """Anchors on a torch device.

    Parameters
    ----------
    device
        Such as "cpu", "cuda:0" or "mps"; None for "cpu".
    """

    def __init__(self, device: str | None = None) -> None:
        """Find the device, or say why not."""
        try:
            self.device = torch.device(device or "cpu")
            torch.empty(1, device=self.device)
        except (RuntimeError, AssertionError) as error:
            reason = str(error).splitlines()[0]
            raise InputError(
                f"device must be one that this installation of PyTorch can use; got {device!r} ({reason})."
            ) from error
        self.pairs = _BLOCK_PAIRS.get(self.device.type, _BLOCK_PAIRS_ELSEWHERE)
        # Apple's GPUs have no float64
        self.wide = torch.float32 if self.device.type == "mps" else torch.float64

    def asarray(self, values: NDArray[Any]) -> Tensor:
        """Copy values to the device, as float32."""
        return torch.tensor(np.asarray(values, dtype=np.float32), device=self.device)

    def to_numpy(self, values: Tensor) -> NDArray[np.float32]:
        """Bring values back."""
        array: NDArray[np.float32] = values.detach().cpu().numpy()
        return array

    @torch.no_grad()
    def influence(self, logits: FloatArray, field: Field) -> NDArray[np.float64]:
        """Return the total influence on each row, shape (n,)."""
        parts = [(decays * field.peaks).sum(dim=1, dtype=self.wide).cpu() for decays in self._decays(logits, field)]
        return torch.cat(parts).double().numpy()

    @torch.no_grad()
    def strongest(self, logits: FloatArray, field: Field) -> NDArray[np.float64]:
        """Return the largest absolute influence of any single anchor on each row, shape (n,)."""
        sizes = field.peaks.abs()
        parts = [(decays * sizes).amax(dim=1).cpu() for decays in self._decays(logits, field)]
        return torch.cat(parts).double().numpy()

    def _decays(self, logits: FloatArray, field: Field) -> Iterator[Tensor]:
        """Yield exp(-v^2 d^power) of one block of rows after the other, shape (rows, k)."""
        directions, _ = _unit_anchors(field)
        rates = _rates(field)
        rows = max(1, self.pairs // len(rates))
        for start in range(0, len(logits), rows):
            units = self.asarray(unit_rows(logits[start : start + rows]))
            distances = (1.0 - units @ directions.T).clamp_min_(0.0)
            yield distances.pow_(field.power).mul_(rates).exp_()

    @torch.no_grad()
    def gradients(self, units: Tensor, correct: Tensor, field: Field) -> Gradients[Tensor]:
        """Return the loss on a batch and its gradients."""
        directions, lengths = _unit_anchors(field)
        rates, power, k = _rates(field), field.power, len(field.peaks)
        of_peak, of_rate, along = torch.zeros(3, k, device=self.device)
        pull = torch.zeros_like(field.anchors)
        loss = torch.zeros((), dtype=self.wide, device=self.device)
        rows = max(1, self.pairs // k)
        for start in range(0, len(units), rows):
            part, truth = units[start : start + rows], correct[start : start + rows]
            cosines = part @ directions.T
            distances = (1.0 - cosines).clamp_min_(0.0)
            reaches = distances.square() if power == 2 else distances
            weights = (reaches * rates).exp_()
            total = (weights * field.peaks).sum(dim=1, dtype=self.wide)
            loss += torch.nn.functional.binary_cross_entropy_with_logits(total, truth.to(self.wide), reduction="sum")
            weights *= (total.sigmoid() - truth).float()[:, None]
            of_peak += weights.sum(dim=0)
            of_rate += (weights * reaches).sum(dim=0)
            if power == 2:
                weights *= 2.0 * distances
            along += (weights * cosines).sum(dim=0)
            pull += weights.T @ part
        n = len(units)
        pull -= along[:, None] * directions
        pull *= (-rates * field.peaks / (lengths * n))[:, None]
        return Gradients(
            loss=float(loss) / n,
            anchors=pull,
            peaks=of_peak / n,
            widths=of_rate * field.peaks * field.widths * (-2.0 / n),
        )

    @torch.no_grad()
    def descend(
        self, value: Tensor, gradient: Tensor, mean: Tensor, square: Tensor, rates: tuple[float, float]
    ) -> None:
        """Take one step of Adam."""
        mean.lerp_(gradient, 1.0 - MEAN_DECAY)
        square.mul_(SQUARE_DECAY).addcmul_(gradient, gradient, value=1.0 - SQUARE_DECAY)
        value.addcdiv_(mean, (square * rates[1]).sqrt_().add_(ADAM_FLOOR), value=-rates[0])


def _unit_anchors(field: Field) -> tuple[Tensor, Tensor]:
    """Return the directions of the anchors and their lengths, 1 for an anchor at zero."""
    lengths = torch.linalg.vector_norm(field.anchors, dim=1)
    lengths = torch.where(lengths == 0, 1.0, lengths)
    return field.anchors / lengths[:, None], lengths


def _rates(field: Field) -> Tensor:
    """Return -v^2, finite."""
    limit = float(MAX_WIDTH)
    return -field.widths.clamp(-limit, limit).square()
