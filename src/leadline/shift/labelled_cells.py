"""Labelled rows, ready to be counted by class, runner-up and confidence, whatever the edges of the bins."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray, IntArray
from leadline.numeric import Array
from leadline.shift.cells import TopTwo, bins_of
from leadline.shift.class_cells import ClassCells, DenseCells, SparseCells

_DENSE_CLASSES = 32  # below, a table of all labels by all cells is gone over sooner than a list of those that occur

_Pairs: TypeAlias = tuple[NDArray[np.intp], NDArray[np.intp]]


@dataclass(frozen=True, eq=False)
class LabelledCells:
    """Labelled rows as each of k moves leaves them.

    Attributes
    ----------
    tops
        Top class, runner-up and log-odds of the rows, shapes (n,), after each move.
    labels
        Shape (n,): the true classes of the rows.
    c
        Number of classes.
    """

    tops: tuple[TopTwo, ...]
    labels: IntArray
    c: int

    @cached_property
    def _odds(self) -> FloatArray:
        """Shape (k, n): the log-odds."""
        return np.stack([odds for *_, odds in self.tops])

    @cached_property
    def _places(self) -> NDArray[np.intp]:
        """Shape (k, 2, n): the place of each row's label and class in an array of shape (k, 2, c, c), in either table.

        The first table is of top classes, the second of runners-up.
        """
        classes = np.stack([(top, second) for top, second, _ in self.tops])
        moves, tables = np.arange(len(classes))[:, None, None], np.arange(2)[:, None]
        return np.asarray(((moves * 2 + tables) * self.c + self.labels) * self.c + classes)

    @cached_property
    def _pairs(self) -> _Pairs:
        """Which pairs there are of a move, a table, a label, and a class that its rows have in this table.

        Returns
        -------
        tuple
            The pairs, shape (p, 4); and which of them each row is in, shape (k, 2, n).
        """
        k, tables, _ = self._places.shape
        found, numbers = np.unique(self._places, return_inverse=True)
        pairs = np.stack(np.unravel_index(found, (k, tables, self.c, self.c)), axis=1)
        return pairs, numbers.reshape(self._places.shape)

    def counted(self, edges: Array) -> ClassCells:
        """Count the cells of each class after each move, given the edges of the bins."""
        n_bins, bins = len(edges) + 1, bins_of(self._odds, edges)[:, None].astype(np.intp)
        shape = (len(bins), 2, self.c)
        if self.c < _DENSE_CLASSES:
            size = int(np.prod(shape)) * self.c * n_bins
            counts = np.bincount((self._places * n_bins + bins).ravel(), minlength=size)
            return DenseCells(counts.reshape(*shape, self.c, n_bins), self.labels)
        pairs, numbers = self._pairs
        counts = np.bincount((numbers * n_bins + bins).ravel(), minlength=len(pairs) * n_bins)
        return SparseCells(pairs, counts.reshape(-1, n_bins), self.labels, shape)
