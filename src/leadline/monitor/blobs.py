"""Arrays as bytes in the store: safetensors, compressed."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.errors import InputError
from leadline.estimators.samples import Sample
from leadline.estimators.sums import Reduced


def pack(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return arrays as bytes."""
    from safetensors.numpy import save

    return zlib.compress(save({name: np.ascontiguousarray(array) for name, array in arrays.items()}), 1)


def unpack(data: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays that :func:`pack` took."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        return dict(load(zlib.decompress(data)))
    except (zlib.error, SafetensorError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"the store is damaged: arrays in it cannot be read ({error}).") from error


def pack_sums(reduced: Reduced) -> bytes:
    """Return sums as bytes."""
    return pack({name: np.asarray(amount) for name, amount in reduced.sums.items()})


def unpack_sums(data: bytes) -> Reduced:
    """Return the sums that :func:`pack_sums` took."""
    return Reduced(unpack(data))


def pack_sample(sample: Sample) -> bytes:
    """Return a sample as bytes."""
    counts = sample.counts.astype(np.uint32)
    return pack({"keys": sample.keys, "rows": sample.logits, "counts": counts, "size": np.array([sample.size])})


def unpack_sample(data: bytes) -> Sample:
    """Return the sample that :func:`pack_sample` took."""
    arrays = unpack(data)
    return Sample(int(arrays["size"][0]), arrays["keys"], arrays["rows"], arrays["counts"].astype(np.float64))
