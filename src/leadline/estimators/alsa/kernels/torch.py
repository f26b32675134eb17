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
    precision_for,
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
        # Apple's GPUs have no float64: sums do without, and cosines that need it are computed on the CPU
        has_float64 = self.device.type != "mps"
        self.wide = torch.float64 if has_float64 else torch.float32
        self.home = {
            np.float32: (self.device, torch.float32),
            np.float64: (self.device if has_float64 else torch.device("cpu"), torch.float64),
        }

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
        rates = _rates(field)
        precision = precision_for(float(rates.min()), field.power)
        device, dtype = self.home[precision]
        directions, _ = _units(field.anchors.to(device).to(dtype))
        rows = max(1, self.pairs // len(rates))
        for start in range(0, len(logits), rows):
            units = torch.tensor(unit_rows(logits[start : start + rows], precision), device=device)
            distances = (1.0 - units @ directions.T).clamp_min_(0.0).float().to(self.device)
            yield distances.pow_(field.power).mul_(rates).exp_()

    @torch.no_grad()
    def gradients(self, units: Tensor, correct: Tensor, field: Field) -> Gradients[Tensor]:
        """Return the loss on a batch and its gradients."""
        rates, power, k = _rates(field), field.power, len(field.peaks)
        device, dtype = self.home[precision_for(float(rates.min()), power)]
        directions, lengths = _units(field.anchors.to(device).to(dtype))
        of_peak, of_rate = torch.zeros(2, k, device=self.device)
        along, pull = torch.zeros_like(lengths), torch.zeros_like(directions)
        loss, right = torch.zeros(2, dtype=self.wide, device=self.device)
        rows = max(1, self.pairs // k)
        for start in range(0, len(units), rows):
            part, truth = units[start : start + rows], correct[start : start + rows]
            if dtype == torch.float64:  # rows of length 1 in float32 are not quite that in float64
                part, _ = _units(part.to(device).to(dtype))
            cosines = part @ directions.T
            distances = (1.0 - cosines).clamp_min_(0.0).float().to(self.device)
            reaches = distances.square() if power == 2 else distances
            weights = (reaches * rates).exp_()
            total = (weights * field.peaks).sum(dim=1, dtype=self.wide)
            loss += torch.nn.functional.binary_cross_entropy_with_logits(total, truth.to(self.wide), reduction="sum")
            probability = total.sigmoid()
            right += probability.sum()
            weights *= (probability - truth).float()[:, None]
            of_peak += weights.sum(dim=0)
            of_rate += (weights * reaches).sum(dim=0)
            if power == 2:
                weights *= 2.0 * distances
            weights = weights.to(device).to(dtype)
            along += (weights * cosines).sum(dim=0)
            pull += weights.T @ part
        n = len(units)
        pull -= along[:, None] * directions
        pull = pull.float().to(self.device)
        pull *= (-rates * field.peaks / (lengths.float().to(self.device) * n))[:, None]
        return Gradients(
            loss=float(loss) / n,
            accuracy=float(right) / n,
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


def _units(vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Return the rows scaled to length 1, and their lengths, 1 for a row of zeros."""
    lengths = torch.linalg.vector_norm(vectors, dim=1)
    lengths = torch.where(lengths == 0, 1.0, lengths)
    return vectors / lengths[:, None], lengths


def _rates(field: Field) -> Tensor:
    """Return -v^2, finite."""
    limit = float(MAX_WIDTH)
    return -field.widths.clamp(-limit, limit).square()
