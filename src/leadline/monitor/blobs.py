"""Arrays as bytes in the store: safetensors, compressed."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.data.names import one_line
from leadline.data.ranges import LARGEST
from leadline.errors import InputError
from leadline.estimators.samples import Sample
from leadline.estimators.sums import Reduced

_WIDTH = 8  # bytes of a number in a sum
_LARGEST_SUM = LARGEST**3  # of squares of the largest values, over more rows than there will be


def pack(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return arrays as bytes."""
    from safetensors.numpy import save

    return zlib.compress(save({name: np.asarray(array, order="C") for name, array in arrays.items()}), 1)


def unpack(data: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays that :func:`pack` took."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        return dict(load(zlib.decompress(data)))
    except (zlib.error, SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"the store is damaged: arrays in it cannot be read ({one_line(error)}).") from error


def pack_sums(reduced: Reduced) -> bytes:
    """Return sums as bytes."""
    return pack({name: np.asarray(amount) for name, amount in reduced.sums.items()})


def unpack_sums(data: bytes) -> Reduced:
    """Return the sums that :func:`pack_sums` took."""
    arrays = unpack(data)
    needed = [arrays.get(name) for name in ("count", "value", "square")]
    shapes = {None if array is None else array.shape for array in needed}
    numbers = all(
        array.dtype.kind in "iuf" and array.itemsize == _WIDTH and (abs(array) <= _LARGEST_SUM).all()
        for array in arrays.values()
    )
    require(len(shapes) == 1 and shapes != {None} and numbers, "sums")
    return Reduced(arrays)


def pack_sample(sample: Sample) -> bytes:
    """Return a sample as bytes."""
    counts = sample.counts.astype(np.uint32)
    return pack({"keys": sample.keys, "rows": sample.logits, "counts": counts, "size": np.array([sample.size])})


def unpack_sample(data: bytes) -> Sample:
    """Return the sample that :func:`pack_sample` took."""
    arrays = unpack(data)
    kinds = {name: (array.dtype.kind, array.ndim) for name, array in arrays.items()}
    require(kinds == {"keys": ("u", 1), "rows": ("f", 2), "counts": ("u", 1), "size": ("i", 1)}, "a sample")
    size, keys, rows, counts = (arrays[name] for name in ("size", "keys", "rows", "counts"))
    lengths = len(size) == 1 and len(keys) == len(rows) == len(counts) <= size[0]
    require(lengths and bool(np.isfinite(rows).all()), "a sample")
    return Sample(int(size[0]), keys, rows, counts.astype(np.float64))


def require(condition: bool, what: str) -> None:
    """Refuse arrays of a store that are not what they must be."""
    if not condition:
        raise InputError(f"the store is damaged: arrays in it are not those of {what}.")
