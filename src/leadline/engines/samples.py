"""Bounded samples of the rows of many groups at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray
from leadline.estimators.sums import Sample

_MOST_VALUES = 1 << 25  # logits kept for all groups together: 128 MB in single precision
_MOST_GROUPS = 200  # judging a group by its sample takes a while
_LEAST_PENDING = 1 << 16
_LARGEST = np.iinfo(np.uint64).max


class GroupSamples:
    """What :class:`leadline.estimators.sums.Sample` is for one group, for every group.

    Rows wait until there are as many as are kept already, and are then sorted in, so that each costs little. When the
    groups become more than 200, or their samples too large for memory, none is kept (:attr:`full`).

    Parameters
    ----------
    size
        The largest number of distinct rows for each group; 0 keeps none.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.full = False
        self._limits = np.zeros(0, dtype=np.uint64)  # of each group, the largest hash that is still of interest
        self._kept: list[tuple[NDArray[np.intp], NDArray[np.uint64], NDArray[np.float64], FloatArray]] = []
        self._pending = 0

    def fresh(self) -> GroupSamples:
        """Return samples of nothing, to be merged into these: what could not stay here is not taken there either."""
        other = GroupSamples(self.size)
        other.full, other._limits = self.full, self._limits.copy()
        return other

    def add(self, logits: FloatArray, keys: NDArray[np.uint64], groups: NDArray[np.intp]) -> None:
        """Add rows, shape (n, c), with their hashes, shape (n,), to these groups, shape (n,)."""
        if self.size and not self.full:
            self._add(groups, keys, np.ones(len(keys)), logits)

    def merge(self, other: GroupSamples) -> None:
        """Add the samples of other blocks."""
        if other.full:
            self.full, self._kept, self._pending = True, [], 0
        for part in other._kept:
            if not self.full:
                self._add(*part)

    def _add(
        self, groups: NDArray[np.intp], keys: NDArray[np.uint64], counts: NDArray[np.float64], logits: FloatArray
    ) -> None:
        missing = int(groups.max(initial=-1)) + 1 - len(self._limits)
        if len(self._limits) + max(missing, 0) > _MOST_GROUPS:
            self.full, self._kept, self._pending = True, [], 0
            return
        if missing > 0:
            self._limits = np.concatenate([self._limits, np.full(missing, _LARGEST)])
        near = keys <= self._limits[groups]
        if near.any():
            self._kept.append((groups[near], keys[near], counts[near], logits[near]))
            self._pending += int(np.count_nonzero(near))
            if self._pending > max(_LEAST_PENDING, len(self._kept[0][0])):
                self._sort_in()

    def _sort_in(self) -> None:
        """Keep the smallest hashes of each group, each once."""
        groups, keys, counts = (np.concatenate([part[i] for part in self._kept]) for i in range(3))
        order = np.lexsort((keys, groups))
        groups, keys, counts = groups[order], keys[order], counts[order]
        new = np.flatnonzero(np.concatenate([[True], (np.diff(groups) != 0) | (keys[1:] != keys[:-1])]))
        counts = np.add.reduceat(counts, new)
        groups, keys, order = groups[new], keys[new], order[new]
        first = np.searchsorted(groups, groups)
        rank = np.arange(len(groups)) - first
        last = rank == self.size - 1
        self._limits[groups[last]] = keys[last]
        few = rank < self.size
        logits = np.concatenate([part[3] for part in self._kept])[order[few]]
        self.full = logits.size > _MOST_VALUES
        self._kept = [] if self.full else [(groups[few], keys[few], counts[few], logits)]
        self._pending = 0

    def of(self, group: int) -> Sample | None:
        """Return the sample of a group; None where none was kept."""
        if self._pending:
            self._sort_in()
        if not self._kept:
            return None
        groups, keys, counts, logits = self._kept[0]
        rows = slice(*np.searchsorted(groups, [group, group + 1]))
        return Sample(self.size, keys[rows], logits[rows], counts[rows]) if rows.stop > rows.start else None
