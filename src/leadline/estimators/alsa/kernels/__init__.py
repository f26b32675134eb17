"""The mathematics of anchors, on any backend.

An anchor j is a position ``a_j`` in logit space, a peak ``p_j`` and a width ``v_j``. With the cosine distance
``d = 1 - cos(z, a_j)`` its influence on a logit vector ``z`` is ``p_j exp(-v_j^2 d^power)``: power 2 is the
paper's Gaussian influence, power 1 its exponential one. A backend computes total influences and the gradients
of the binary cross-entropy; nothing else in the project knows which backend runs.
"""

from __future__ import annotations

from leadline.errors import InputError
from leadline.estimators.alsa.kernels.base import AnchorField, Gradients, Kernel

__all__ = ["BACKENDS", "AnchorField", "Gradients", "Kernel", "get_kernel"]

BACKENDS = ("numba", "torch")


def get_kernel(backend: str, device: str | None = None, *, pairs: int | None = None) -> Kernel:
    """Return the kernel of that name; imports what it needs only now.

    Parameters
    ----------
    backend
        "numba" for CPUs, "torch" for any device that torch knows.
    device
        A torch device such as "cuda:0"; only for the torch backend.
    pairs
        How many pairs of row and anchor there are to go over, None for many: CPUs take few without a compiler.
    """
    if backend == "numba":
        if device not in (None, "cpu"):
            raise InputError(f"backend 'numba' runs on the CPU; got device {device!r}. Use backend='torch'.")
        from leadline.estimators.alsa.kernels.cpu import CPUKernel

        return CPUKernel(pairs)
    if backend == "torch":
        from leadline.estimators.alsa.kernels.torch import TorchKernel

        return TorchKernel(device)
    raise InputError(f"backend must be one of {', '.join(BACKENDS)}; got {backend!r}.")
