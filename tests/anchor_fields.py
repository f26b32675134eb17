"""What the tests of the anchor kernels share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from leadline.estimators.alsa.kernels import AnchorField, Gradients, Kernel, get_kernel
from leadline.estimators.alsa.kernels.base import unit_rows
from reference import PlainALSA

Array = NDArray[Any]

#: Every way to compute an influence: the backends, and what CPUs do with few pairs.
ESTIMATING: dict[str, Callable[[], Kernel]] = {
    "numba": lambda: get_kernel("numba"),
    "plain": lambda: get_kernel("numba", pairs=1),
    "torch": lambda: get_kernel("torch"),
}

POWERS = pytest.mark.parametrize("power", [2, 1], ids=["gaussian", "exponential"])


def make_field(k: int, c: int, power: int = 2, seed: int = 0, width: float = 3.0) -> AnchorField[Array]:
    rng = np.random.default_rng(seed)
    return AnchorField(
        anchors=rng.normal(size=(k, c)).astype(np.float32) * 4,
        peaks=rng.normal(size=k).astype(np.float32),
        widths=rng.normal(width, width / 5, size=k).astype(np.float32),
        power=power,
    )


def make_logits(n: int, c: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).normal(size=(n, c)).astype(np.float32) * 3


def single_influences(logits: Array, field: AnchorField[Array]) -> NDArray[np.float64]:
    """Every anchor's influence on every row in float64, straight from the paper's formula, shape (n, k)."""
    z, a = logits.astype(np.float64), field.anchors.astype(np.float64)
    lengths = np.linalg.norm(z, axis=1)[:, None] * np.linalg.norm(a, axis=1)
    cosines = np.divide(z @ a.T, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    distances = np.maximum(1 - cosines, 0.0)
    influences: NDArray[np.float64] = field.peaks * np.exp(
        -np.square(field.widths.astype(np.float64)) * distances**field.power
    )
    return influences


def placed(kernel: Kernel, field: AnchorField[Array]) -> AnchorField[Any]:
    """Move a field to the backend."""
    return AnchorField(
        kernel.asarray(field.anchors), kernel.asarray(field.peaks), kernel.asarray(field.widths), field.power
    )


def autograd(logits: Array, correct: Array, field: AnchorField[Array]) -> tuple[float, dict[str, Array]]:
    """Loss and gradients by torch autograd in float64."""
    anchors, peaks, widths = (part.astype(np.float64) for part in (field.anchors, field.peaks, field.widths))
    model = PlainALSA(anchors, peaks, widths, field.power)
    loss = model.loss(torch.tensor(logits, dtype=torch.float64), torch.tensor(correct, dtype=torch.float64))
    loss.backward()  # type: ignore[no-untyped-call]
    return float(loss.detach()), {
        name: parameter.grad.numpy() for name, parameter in model.named_parameters() if parameter.grad is not None
    }


def batch_gradients(
    kernel: Kernel, logits: Array, correct: Array, field: AnchorField[Array]
) -> tuple[float, dict[str, Array]]:
    result: Gradients[Any] = kernel.gradients(
        kernel.asarray(unit_rows(logits)), kernel.asarray(correct), placed(kernel, field)
    )
    return result.loss, {name: kernel.to_numpy(getattr(result, name)) for name in ("anchors", "peaks", "widths")}
