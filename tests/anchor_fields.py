"""What the tests of the anchor kernels share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from leadline.estimators.alsa.kernels import AnchorField, Kernel, get_kernel
from reference import PlainALSA

Array = NDArray[Any]

#: Every way to compute an influence: the backends, and what CPUs do with few pairs.
ESTIMATING: dict[str, Callable[[], Kernel]] = {
    "numba": lambda: get_kernel("numba"),
    "plain": lambda: get_kernel("numba", pairs=1),
    "torch": lambda: get_kernel("torch"),
}

POWERS = pytest.mark.parametrize("power", [2, 1], ids=["gaussian", "exponential"])


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
