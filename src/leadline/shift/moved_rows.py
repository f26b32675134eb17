"""The labelled source after moves: what its rows become when logits are flattened, sharpened and mixed with noise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray, IntArray
from leadline.numeric import Array, top_two
from leadline.shift.cells import N_BINS, TopTwo, bins_of
from leadline.shift.class_cells import ClassCells, DenseCells, SparseCells
from leadline.shift.priors import Exponentials

SCALES = (0.25, 0.4, 0.55, 0.75, 1.0, 1.3)  # logits flatter or sharper than the source's
NOISES = (0.0, 0.4)  # share of another row's logits mixed in

_MOST_KEPT = 80_000  # values of the source's rows that are kept as each move leaves them: 15 MB in all
_DENSE_CLASSES = 32  # below, a table of all labels by all cells is gone over sooner than a list of those that occur


@dataclass(frozen=True, eq=False)
class MovedRows:
    """Labelled rows of the source, and what they become when logits are flattened, sharpened and mixed with noise.

    Moves are numbered: all scales without noise, then all scales with it.

    Attributes
    ----------
    scores
        Shape (n, c): calibrated log-probabilities.
    labels
        Shape (n,): their classes.
    others
        Shape (n, c): for each of them another row's centred scores, to serve as noise.
    """

    scores: FloatArray
    labels: IntArray
    others: FloatArray

    @cached_property
    def marginal(self) -> Array:
        """Shape (c,): the class shares."""
        return np.asarray(np.bincount(self.labels, minlength=self.scores.shape[1]) / len(self.labels))

    @cached_property
    def odds(self) -> FloatArray:
        """Shape (n,): log-odds of the rows as they are, in rising order, in which quantiles are found soonest."""
        return np.sort(self._odds[SCALES.index(1.0)])

    def at(self, noise: float, scale: float) -> Exponentials:
        """Return the rows with noise, flatter or sharper; they are kept where that takes little memory."""
        if self.scores.size > _MOST_KEPT:
            return self._moved(noise, scale)
        return self._kept[noise, scale]

    @cached_property
    def _kept(self) -> dict[tuple[float, float], Exponentials]:
        """The rows after each move."""
        return {move: self._moved(*move) for move in product(NOISES, SCALES)}

    def _moved(self, noise: float, scale: float) -> Exponentials:
        scores = scale * (self.scores + noise * self.others) if noise else scale * self.scores
        return Exponentials.of(scores, np.zeros(scores.shape[1]))

    @cached_property
    def _tops(self) -> list[TopTwo]:
        """Top class, runner-up and log-odds of the rows after each move."""
        return [top_two(self.at(*move).logits) for move in product(NOISES, SCALES)]

    @property
    def as_they_are(self) -> TopTwo:
        """Top class, runner-up and log-odds of the rows, shapes (n,), without any move."""
        return self._tops[SCALES.index(1.0)]

    @cached_property
    def _odds(self) -> FloatArray:
        """Shape (moves, n): the log-odds."""
        return np.stack([odds for *_, odds in self._tops])

    @cached_property
    def _cells(self) -> NDArray[np.intp]:
        """Shape (moves, 2, n): of each row, the first cell of its label and its class, in either table of every move.

        Cells are numbered as in an array of shape (moves, 2, c, c, N_BINS), by label and class.
        """
        c = self.scores.shape[1]
        classes = np.stack([(top, second) for top, second, _ in self._tops])
        moves, tables = np.arange(len(classes))[:, None, None], np.arange(2)[:, None]
        return np.asarray((((moves * 2 + tables) * c + self.labels) * c + classes) * N_BINS)

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Which pairs there are of a move, a table, a label, and a class that its rows have in this table.

        Returns
        -------
        tuple
            The pairs, shape (p, 4); and of each row, the first cell of its pair, shape (moves, 2, n).
        """
        k, tables, _ = self._cells.shape
        c = self.scores.shape[1]
        found, places = np.unique(self._cells // N_BINS, return_inverse=True)
        pairs = np.stack(np.unravel_index(found, (k, tables, c, c)), axis=1)
        return pairs, places.reshape(self._cells.shape) * N_BINS

    def class_cells(self, edges: Array) -> ClassCells:
        """Count the cells of each class after each move, given the edges of the bins."""
        c, bins = self.scores.shape[1], bins_of(self._odds, edges)[:, None].astype(np.intp)
        if c < _DENSE_CLASSES:
            shape = (len(bins), 2, c, c, N_BINS)
            counts = np.bincount((self._cells + bins).ravel(), minlength=int(np.prod(shape)))
            return DenseCells(counts.reshape(shape), self.labels)
        pairs, cells = self._pairs
        counts = np.bincount((cells + bins).ravel(), minlength=len(pairs) * N_BINS)
        return SparseCells(pairs, counts.reshape(-1, N_BINS), self.labels, (len(bins), 2, c))
