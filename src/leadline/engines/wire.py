"""Sums as bytes, to travel between machines; no pickle."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.estimators.base import Reduced
from leadline.estimators.sums import Sample

_COUNTS, _SAMPLE, _SUMS = "counts", "sample.", "sums."
_PARTS = ("keys", "logits", "counts")


def pack(reduced: Reduced, counts: NDArray[np.float64]) -> bytes:
    """Return the sums and the counts of a group as bytes (safetensors)."""
    from safetensors.numpy import save

    arrays: dict[str, NDArray[Any]] = {_SUMS + name: np.asarray(v, order="C") for name, v in reduced.sums.items()}
    if reduced.sample is not None:
        arrays |= {_SAMPLE + part: np.ascontiguousarray(getattr(reduced.sample, part)) for part in _PARTS}
        arrays[_SAMPLE + "size"] = np.array([reduced.sample.size])
    return bytes(save(arrays | {_COUNTS: np.ascontiguousarray(counts)}))


def unpack(data: bytes) -> tuple[Reduced, NDArray[np.float64]]:
    """Undo :func:`pack`."""
    from safetensors.numpy import load

    arrays = load(data)
    sample = None
    if _SAMPLE + "size" in arrays:
        keys, logits, counts = (arrays[_SAMPLE + part] for part in _PARTS)
        sample = Sample(int(arrays[_SAMPLE + "size"][0]), keys, logits, counts)
    sums = {name.removeprefix(_SUMS): array for name, array in arrays.items() if name.startswith(_SUMS)}
    return Reduced(sums, sample=sample), arrays[_COUNTS]


def merge(packed: Iterable[bytes]) -> tuple[Reduced, NDArray[np.float64]]:
    """Return the sum of sums, added in an order that does not depend on which came first."""
    first, *rest = (unpack(data) for data in sorted(packed))
    total, counts = first
    for reduced, more in rest:
        total, counts = total + reduced, counts + more
    return total, counts
