"""What single rows add to the sums of a block, and a bounded sample of rows; both merge over blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Tally:
    """A histogram to which every row adds one.

    Attributes
    ----------
    places
        Shape (n,): the bin of each row.
    size
        The number of bins.
    """

    places: NDArray[np.intp]
    size: int


@dataclass(frozen=True, eq=False)
class Rows:
    """What each row of a block adds to the sums, so that the sums can be taken by any grouping of the rows.

    Attributes
    ----------
    predicted
        Shape (n,): the predicted class of each row.
    n_classes
        The number of classes c.
    values
        Shape (n,): the per-sample values.
    more
        Further sums by name: amounts of shape (n,), or a :class:`Tally`.
    """

    predicted: NDArray[np.intp]
    n_classes: int
    values: Array
    more: Mapping[str, Array | Tally] = field(default_factory=dict)

    def empty(self, n_groups: int) -> dict[str, Array]:
        """Return sums of no rows: shapes (n_groups, c), (n_groups,) or (n_groups, bins)."""
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("count", "value", "square"), (self.n_classes,))
        shapes |= {name: (amount.size,) if isinstance(amount, Tally) else () for name, amount in self.more.items()}
        return {name: np.zeros((n_groups, *shape)) for name, shape in shapes.items()}

    def add_to(self, sums: Mapping[str, Array], groups: NDArray[np.intp]) -> None:
        """Add every row to the sums of its group, in place.

        Parameters
        ----------
        sums
            From :meth:`empty`.
        groups
            Shape (n,): the number of each row's group.
        """
        cells = groups * self.n_classes + self.predicted
        np.add.at(sums["count"].reshape(-1), cells, 1.0)
        np.add.at(sums["value"].reshape(-1), cells, self.values)
        np.add.at(sums["square"].reshape(-1), cells, self.values * self.values)
        for name, amount in self.more.items():
            if isinstance(amount, Tally):
                np.add.at(sums[name].reshape(-1), groups * amount.size + amount.places, 1.0)
            else:
                np.add.at(sums[name], groups, amount)

    def sums(self) -> dict[str, Array]:
        """Return the sums over all rows: shapes (c,), () and (bins,)."""
        c = self.n_classes
        sums = {
            "count": np.bincount(self.predicted, minlength=c),
            "value": np.bincount(self.predicted, weights=self.values, minlength=c),
            "square": np.bincount(self.predicted, weights=self.values * self.values, minlength=c),
        }
        for name, amount in self.more.items():
            if isinstance(amount, Tally):
                sums[name] = np.bincount(amount.places, minlength=amount.size)
            else:
                sums[name] = np.asarray(amount.sum())
        return {name: amount.astype(np.float64) for name, amount in sums.items()}


@dataclass(frozen=True, eq=False)
class Sample:
    """A uniform sample of the distinct rows seen, with how often each was seen: the rows with the smallest hashes.

    A row's hash depends on its values alone, so that samples of blocks merge to the sample of the whole, whatever the
    blocks and their order. A row that is in the sample of the whole is in that of each block which has it, so that
    the counts are exact.

    Attributes
    ----------
    size
        The largest number of distinct rows k.
    keys
        Shape (m,), m <= k: the hashes, in rising order.
    logits
        Shape (m, c): the rows.
    counts
        Shape (m,): how often each row was seen.

    Examples
    --------
    >>> rows = np.arange(200.0).reshape(100, 2)
    >>> whole = Sample.of(rows, 10)
    >>> parts = Sample.of(rows[60:], 10) + Sample.of(rows[:60], 10)
    >>> len(whole), bool((whole.logits == parts.logits).all())
    (10, True)
    """

    size: int
    keys: NDArray[np.uint64]
    logits: FloatArray
    counts: Array

    @classmethod
    def of(cls, logits: FloatArray, size: int) -> Self:
        """Sample a block of rows, shape (n, c)."""
        keys = hashes(logits)
        found, first, counts = np.unique(keys, return_index=True, return_counts=True)
        return cls(size, found[:size], np.array(logits[first[:size]]), counts[:size].astype(np.float64))

    def __add__(self, other: Sample) -> Sample:
        """Merge the samples of two blocks; exact, in any order."""
        keys = np.concatenate([self.keys, other.keys])
        found, first, places = np.unique(keys, return_index=True, return_inverse=True)
        counts = np.bincount(places.reshape(-1), weights=np.concatenate([self.counts, other.counts]))
        size = min(self.size, other.size)
        logits = np.concatenate([self.logits, other.logits])[first[:size]]
        return Sample(size, found[:size], logits, counts[:size].astype(np.float64))

    def __len__(self) -> int:
        """Return the number of distinct rows in the sample."""
        return len(self.keys)

    def draw(self, most: int | None = None) -> FloatArray:
        """Return rows as often as they were seen, shape (m, c); evenly thinned to at most ``most``."""
        counts = self.counts.astype(np.int64)
        total = int(counts.sum())
        wanted = total if most is None else min(total, most)
        places = np.arange(wanted) * total // max(wanted, 1)
        return np.asarray(self.logits[np.searchsorted(np.cumsum(counts), places, side="right")])


def hashes(logits: FloatArray) -> NDArray[np.uint64]:
    """Return a hash of each row's values in single precision, shape (n,): the same for equal rows on all machines."""
    # Adding zero makes -0 and 0 the same bits.
    bits = (np.ascontiguousarray(logits, dtype=np.float32) + np.float32(0.0)).view(np.uint32)
    factors: NDArray[np.uint64] = np.random.default_rng(0).integers(1 << 63, size=bits.shape[1:], dtype=np.uint64)
    mixed = np.zeros(len(bits), dtype=np.uint64)
    for column in range(len(factors)):
        mixed += bits[:, column] * (factors[column] | np.uint64(1))
        mixed ^= mixed >> np.uint64(29)
    # The last steps of SplitMix64 spread what the products left in the upper bits.
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))
