"""Bounded samples of rows that merge over blocks: of one target, and of many groups at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from leadline import rowwise
from leadline.data.outputs import FloatArray, IntArray
from leadline.numeric import of_class

Array = NDArray[np.float64]

MOST_GROUP_VALUES = 1 << 23  # logits kept for all groups together: 32 MB in single precision
NO_LIMIT = np.iinfo(np.int64).max
_LEAST_PENDING = 1 << 20  # logits that wait before they are sorted in
_LARGEST = np.iinfo(np.uint64).max


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
        return cls.by(hashes(logits), logits, size)

    @classmethod
    def by(cls, keys: NDArray[np.uint64], logits: FloatArray, size: int) -> Self:
        """Keep the rows, shape (n, c), with the smallest keys, shape (n,), in place of hashes: equal rows have one."""
        found, first, counts = np.unique(keys, return_index=True, return_counts=True)
        return cls(size, found[:size], np.array(logits[first[:size]]), counts[:size].astype(np.float64))

    def __add__(self, other: Sample) -> Sample:
        """Merge the samples of two blocks; exact, in any order."""
        size = min(self.size, other.size)
        if len(self) >= size:  # most of what comes late is of no interest
            other = other.cut(int(np.searchsorted(other.keys, self.keys[size - 1], side="right")))
        keys = np.concatenate([self.keys, other.keys])
        found, first, places = np.unique(keys, return_index=True, return_inverse=True)
        counts = np.bincount(places.reshape(-1), weights=np.concatenate([self.counts, other.counts]))
        logits = np.concatenate([self.logits, other.logits])[first[:size]]
        return Sample(size, found[:size], logits, counts[:size].astype(np.float64))

    def __len__(self) -> int:
        """Return the number of distinct rows in the sample."""
        return len(self.keys)

    def cut(self, size: int) -> Sample:
        """Return the sample that a smaller one would have been."""
        return Sample(min(size, self.size), self.keys[:size], self.logits[:size], self.counts[:size])

    def draw(self, most: int | None = None) -> FloatArray:
        """Return rows as often as they were seen, shape (m, c); evenly thinned to at most ``most``."""
        counts = self.counts.astype(np.int64)
        total = int(counts.sum())
        wanted = total if most is None else min(total, most)
        places = np.arange(wanted) * total // max(wanted, 1)
        return np.asarray(self.logits[np.searchsorted(np.cumsum(counts), places, side="right")])


def hashes(logits: FloatArray) -> NDArray[np.uint64]:
    """Return a hash of each row's values in single precision, shape (n,): the same for equal rows on all machines."""
    factors: NDArray[np.uint64] = np.random.default_rng(0).integers(1 << 63, size=logits.shape[1:], dtype=np.uint64)
    factors |= np.uint64(1)
    if logits.size >= rowwise.WORTH_IT_FROM:
        return rowwise.hashes(logits, factors)
    # Adding zero makes -0 and 0 the same bits.
    bits = (np.ascontiguousarray(logits, dtype=np.float32) + np.float32(0.0)).view(np.uint32)
    mixed = np.zeros(len(bits), dtype=np.uint64)
    for column in range(len(factors)):
        mixed += bits[:, column] * factors[column]
        mixed ^= mixed >> np.uint64(29)
    return rowwise.spread(mixed)


def random_order(logits: FloatArray, labels: IntArray) -> NDArray[np.intp]:
    """Return the numbers of labelled rows in random order, shape (n,): the same rows for any order of rows and classes.

    Equal rows are spread over the order like all others: scores of two digits make hundreds of each.

    Examples
    --------
    >>> rows = np.repeat([[0.0, 1.0], [2.0, 0.0]], 500, axis=0)
    >>> first = random_order(rows, np.zeros(1000, dtype=np.int64))[:100]
    >>> bool(30 < np.count_nonzero(first < 500) < 70)
    True
    """
    keys, counts = hashes(np.sort(logits, axis=1)), np.bincount(labels, minlength=logits.shape[1])
    # Which of several equal rows is which must not depend on where they stand, nor on what classes are called.
    order = np.lexsort((counts[logits.argmax(axis=1)], counts[labels], of_class(logits, labels), keys))
    keys = keys[order]
    occurrence = (np.arange(len(keys)) - np.searchsorted(keys, keys)).astype(np.uint64)
    own = np.where(occurrence == 0, keys, rowwise.spread(keys + occurrence * np.uint64(0x9E3779B97F4A7C15)))
    return order[np.argsort(own, kind="stable")]


class GroupSamples:
    """What :class:`Sample` is for one group, for every group, within a memory cap for all of them together.

    Rows wait until there are as many as are kept already, and are then sorted in, so that each costs little. The more
    groups there are, the fewer rows of each are kept.

    Parameters
    ----------
    size
        The largest number of distinct rows for each group; 0 keeps none.
    most_values
        The largest number of logits for all groups together.
    """

    def __init__(self, size: int, most_values: int = MOST_GROUP_VALUES) -> None:
        self._size = size
        self._most_values = most_values
        self._limits = np.zeros(0, dtype=np.uint64)  # of each group, the largest hash that is still of interest
        self._kept: list[tuple[NDArray[np.intp], NDArray[np.uint64], NDArray[np.float64], FloatArray]] = []
        self._pending = 0

    def fresh(self) -> GroupSamples:
        """Return samples of nothing, to be merged into these: what could not stay here is not taken there either."""
        other = GroupSamples(self._size, self._most_values)
        other._limits = self._limits.copy()
        return other

    def add(self, logits: FloatArray, keys: NDArray[np.uint64], groups: NDArray[np.intp]) -> None:
        """Add rows, shape (n, c), with their hashes, shape (n,), to these groups, shape (n,)."""
        if self._size:
            self._add(groups, keys, None, logits)

    def merge(self, other: GroupSamples) -> None:
        """Add the samples of other blocks."""
        for part in other._kept:
            self._add(*part)

    def put(self, group: int, sample: Sample) -> None:
        """Add the sample of a group, as it was elsewhere."""
        self._add(np.full(len(sample), group), sample.keys, sample.counts, sample.logits)

    def size(self, n_groups: int, n_classes: int) -> int:
        """Return how many rows of each group are kept when there are so many groups."""
        return min(self._size, max(1, self._most_values // (n_classes * max(n_groups, 1))))

    def _add(
        self, groups: NDArray[np.intp], keys: NDArray[np.uint64], counts: NDArray[np.float64] | None, logits: FloatArray
    ) -> None:
        """Add rows that were seen so often each, or once."""
        missing = int(groups.max(initial=-1)) + 1 - len(self._limits)
        if missing > 0:
            self._limits = np.concatenate([self._limits, np.full(missing, _LARGEST)])
        alone = len(self._limits) == 1
        if alone and self._limits[0] == _LARGEST:
            # Without this, the first block of many would be sorted in whole.
            self._limits[0] = _smallest(keys, self.size(1, logits.shape[1]))
        near = np.flatnonzero(keys <= (self._limits[0] if alone else self._limits[groups]))
        if len(near):
            seen = np.ones(len(near)) if counts is None else counts[near]
            self._kept.append((groups[near], keys[near], seen, logits[near]))
            self._pending += len(near)
            if self._pending > max(_LEAST_PENDING // logits.shape[1], len(self._kept[0][0])):
                self._sort_in()

    def _sort_in(self) -> None:
        """Keep the smallest hashes of each group, each once."""
        groups, keys, counts = (np.concatenate([part[i] for part in self._kept]) for i in range(3))
        order = _by_group_and_key(groups, keys, len(self._limits))
        groups, keys, counts = groups[order], keys[order], counts[order]
        new = np.flatnonzero(np.concatenate([[True], (groups[1:] != groups[:-1]) | (keys[1:] != keys[:-1])]))
        counts = np.add.reduceat(counts, new)
        groups, keys, order = groups[new], keys[new], np.minimum.reduceat(order, new)  # of equal rows, the first
        places = np.arange(len(groups))
        starts = np.concatenate([[True], groups[1:] != groups[:-1]])
        rank = places - np.maximum.accumulate(np.where(starts, places, 0))
        size = self.size(len(self._limits), self._kept[0][3].shape[1])
        last = rank == size - 1
        self._limits[groups[last]] = keys[last]
        few = rank < size
        self._kept = [(groups[few], keys[few], counts[few], _rows_of([part[3] for part in self._kept], order[few]))]
        self._pending = 0

    def of(self, group: int) -> Sample | None:
        """Return the sample of a group; None where none was kept."""
        if self._pending:
            self._sort_in()
        if not self._kept:
            return None
        groups, keys, counts, logits = self._kept[0]
        size = self.size(len(self._limits), logits.shape[1])
        start, stop = np.searchsorted(groups, [group, group + 1])
        rows = slice(start, min(stop, start + size))
        return Sample(size, keys[rows], logits[rows], counts[rows]) if stop > start else None


def _by_group_and_key(groups: NDArray[np.intp], keys: NDArray[np.uint64], n_groups: int) -> NDArray[np.intp]:
    """Return the order of rows by group, below ``n_groups``, and in it by key, shapes (n,).

    One key is sorted by vector instructions, two are not: the group goes before the first digits of the key, and only
    where these are equal and the others are not does it take the two.
    """
    bits = np.uint64(int(n_groups - 1).bit_length())
    if not bits:
        return np.argsort(keys)
    both = (groups.astype(np.uint64) << (np.uint64(64) - bits)) | (keys >> bits)
    order = np.argsort(both)
    both, sorted_keys = both[order], keys[order]
    if np.any((both[1:] == both[:-1]) & (sorted_keys[1:] < sorted_keys[:-1])):
        return np.lexsort((keys, groups))
    return order


def _rows_of(parts: list[FloatArray], places: NDArray[np.intp]) -> FloatArray:
    """Return rows of arrays that follow one another, shapes (n, c), by their places in the whole."""
    starts = np.cumsum([0, *map(len, parts)])
    found = np.empty((len(places), parts[0].shape[1]), dtype=np.result_type(*parts))
    for part, start, stop in zip(parts, starts, starts[1:], strict=False):
        here = np.flatnonzero((places >= start) & (places < stop))
        found[here] = part[places[here] - start]
    return found


def _smallest(keys: NDArray[np.uint64], size: int) -> np.uint64:
    """Return a number that so many distinct hashes, shape (n,), are at or below; the largest there is if unknown."""
    if len(keys) < 4 * size:
        return np.uint64(_LARGEST)
    guess = np.uint64(int(2 * size / len(keys) * _LARGEST))  # hashes are spread evenly
    few = np.sort(keys[keys <= guess])
    distinct = few[np.concatenate([[True], few[1:] != few[:-1]])] if len(few) else few
    return distinct[size - 1] if len(distinct) >= size else np.uint64(_LARGEST)
