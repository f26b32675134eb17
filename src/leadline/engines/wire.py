"""Sums as bytes, to travel between machines; no pickle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.estimators.samples import Sample
from leadline.estimators.sums import Reduced

_COUNTS, _SAMPLE, _KEPT, _SUMS = "counts", "sample.", "kept.", "sums."
_PARTS = ("keys", "logits", "counts")


@dataclass(frozen=True, eq=False)
class Parcel:
    """What is known of a group after a pass over some of its rows.

    Attributes
    ----------
    counts
        Shape (4,): as :meth:`leadline.estimators.groups.GroupSums.counts` has them.
    reduced
        The sums; None in a pass that makes none.
    sample
        Rows that were kept; None for none.
    """

    counts: NDArray[np.float64]
    reduced: Reduced | None = None
    sample: Sample | None = None

    def __add__(self, other: Parcel) -> Parcel:
        """Merge what is known of other rows of the group."""
        reduced = self.reduced + other.reduced if self.reduced and other.reduced else self.reduced or other.reduced
        sample = self.sample + other.sample if self.sample and other.sample else self.sample or other.sample
        return Parcel(self.counts + other.counts, reduced, sample)

    def with_sample_of(self, size: int) -> Parcel:
        """Return the same with at most so many rows kept; 0 keeps none."""
        return replace(self, sample=None if self.sample is None or not size else self.sample.cut(size))


def pack(parcel: Parcel) -> bytes:
    """Return a parcel as bytes (safetensors)."""
    from safetensors.numpy import save

    arrays: dict[str, NDArray[Any]] = {_COUNTS: np.ascontiguousarray(parcel.counts)}
    if parcel.reduced is not None:
        arrays |= {_SUMS + name: np.asarray(amount, order="C") for name, amount in parcel.reduced.sums.items()}
        arrays |= _arrays(_KEPT, parcel.reduced.kept)
    return bytes(save(arrays | _arrays(_SAMPLE, parcel.sample)))


def unpack(data: bytes) -> Parcel:
    """Undo :func:`pack`."""
    from safetensors.numpy import load

    arrays = load(data)
    sums = {name.removeprefix(_SUMS): array for name, array in arrays.items() if name.startswith(_SUMS)}
    reduced = Reduced(sums, kept=_sample(_KEPT, arrays)) if sums else None
    return Parcel(arrays[_COUNTS], reduced, _sample(_SAMPLE, arrays))


def _arrays(prefix: str, sample: Sample | None) -> dict[str, NDArray[Any]]:
    """Return a sample as arrays whose names begin in one way; none for none."""
    if sample is None:
        return {}
    arrays = {prefix + part: np.ascontiguousarray(getattr(sample, part)) for part in _PARTS}
    return arrays | {prefix + "size": np.array([sample.size])}


def _sample(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> Sample | None:
    """Undo :func:`_arrays`."""
    if prefix + "size" not in arrays:
        return None
    keys, logits, counts = (arrays[prefix + part] for part in _PARTS)
    return Sample(int(arrays[prefix + "size"][0]), keys, logits, counts)


def merge(packed: Iterable[bytes]) -> Parcel:
    """Return the sum of parcels, added in an order that does not depend on which came first."""
    first, *rest = (unpack(data) for data in sorted(packed))
    return sum(rest, first)
