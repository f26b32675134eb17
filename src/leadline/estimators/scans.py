"""Passes over rows that are in memory, or that come in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray, row_blocks
from leadline.errors import InputError
from leadline.estimators.groups import Block, GroupSums
from leadline.estimators.passes import Pass, Scan
from leadline.estimators.sums import Array


class InMemory:
    """Rows that are all in memory, as a source of passes.

    Parameters
    ----------
    logits
        Shape (n, c), validated.
    groups
        Shape (n,): the number of each row's group; None where there are none.
    right
        Shape (n,): whether each prediction is right, where the labels are known; else None.
    """

    def __init__(
        self, logits: FloatArray, groups: NDArray[np.intp] | None = None, right: NDArray[np.bool_] | None = None
    ) -> None:
        self.logits, self.groups, self.right = logits, groups, right
        self._values: list[Array | None] = []

    def by_group(self) -> Iterator[tuple[int, NDArray[np.intp]]]:
        """Yield the number of each group and its rows."""
        if self.groups is None:
            return
        order = np.argsort(self.groups, kind="stable")
        bounds = np.searchsorted(self.groups[order], np.arange(int(self.groups.max()) + 2))
        yield from ((group, order[bounds[group] : bounds[group + 1]]) for group in range(len(bounds) - 1))

    def scan(self, one: Pass) -> GroupSums:
        """Make one pass."""
        sums = one.sums()
        self._values, start = [], 0
        for logits in row_blocks(self.logits):
            rows = slice(start, start + len(logits))
            start += len(logits)
            groups = None if self.groups is None else self.groups[rows]
            right = None if self.right is None else self.right[rows]
            partial = one.reduce(Block(logits, groups, right, np.arange(rows.start, rows.stop)))
            sums.add(partial)
            self._values.append(partial.values)
        return sums

    @property
    def values(self) -> Array | None:
        """The per-sample values of the last pass, shape (n,); None where the method has none."""
        known = [part for part in self._values if part is not None]
        return np.concatenate(known) if known and len(known) == len(self._values) else None


def scan_blocks(blocks: Callable[[], Iterable[FloatArray]]) -> Scan:
    """Return what makes passes over rows that come in blocks, one in memory at a time.

    Parameters
    ----------
    blocks
        Called once for each pass; gives validated arrays of shape (any, c), the same rows every time.
    """
    before: list[int] = []

    def scan(one: Pass) -> GroupSums:
        sums = one.sums()
        for logits in blocks():
            if len(logits):
                sums.add(one.reduce(Block(logits)))
        n = sums.n_rows
        if before and before[0] != n:
            raise InputError(f"blocks must give the same rows every time it is called; got {before[0]}, then {n}.")
        if not n:
            raise InputError("blocks must give at least one row; got none.")
        before[:] = [n]
        return sums

    return scan
