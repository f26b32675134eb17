"""How classes look in histograms of predictions, and which class shares explain a histogram."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import IntArray
from leadline.numeric import Array


def template_rows(c: int) -> float:
    """Return how many pseudo-rows of the average class are added to each of c: rare and absent ones borrow from it.

    One half for each class there is, ten at most: of few classes, each of many rows, ten would make another class.
    """
    return min(0.5 * c, 10.0)


class _Template(NamedTuple):
    """The average class after each of k moves, for either table.

    Attributes
    ----------
    hit, miss
        Shapes (k, 2, bins): shares of the bins where the cell is of the class itself, and where it is of another.
    to
        Shape (k, 2, c): which other one it is.
    scale
        Shape (k, 2, c): what makes up for not being oneself.
    """

    hit: Array
    miss: Array
    to: Array
    scale: Array

    @classmethod
    def of(cls, hits: NDArray[Any], misses: NDArray[Any], elsewhere: NDArray[Any], n: int) -> Self:
        """Divide the numbers of n rows that each of these has."""
        # Two pseudo-rows over the bins of both cases: no cell of the target is impossible under every class.
        hit, miss = ((found + 1.0 / hits.shape[-1]) / (2.0 * (n + 2)) for found in (hits, misses))
        to = elsewhere + 0.5
        to /= to.sum(axis=2, keepdims=True)
        return cls(hit, miss, to, 1.0 / (1.0 - np.minimum(to, 1.0 - 1e-9)))


class ClassCells(ABC):
    """P(cell | class) from labelled rows, smoothed by the average class.

    Of the rows as they are after each of k moves, all at once: with few classes, the calls cost more than the work.

    Parameters
    ----------
    moves
        Their number k.
    labels
        Shape (n,): the classes of the rows.
    c
        Number of classes.
    """

    def __init__(self, moves: int, labels: IntArray, c: int) -> None:
        self.moves = moves
        self._template_rows = template_rows(c)
        self.denominator = np.bincount(labels, minlength=c) + self._template_rows

    @abstractmethod
    def mix(self, marginals: Array) -> Array:
        """Return the cells of populations with these class shares, shapes (k, 2, c * bins) and (k, c)."""

    @abstractmethod
    def expected(self, ratio: Array) -> Array:
        """Return the expectation of quantities per cell for each class, shapes (k, c) and (k, 2, c * bins)."""

    def fit_marginals(self, target: Array, start: Array, iterations: int = 100) -> tuple[Array, Array]:
        """Return by EM the class shares after each move that explain the target's cells best, and the cells they give.

        Parameters
        ----------
        target
            Shape (2, c * bins): shares of the target's cells.
        start
            Shape (c,): class shares to begin with.
        iterations
            The most.

        Returns
        -------
        tuple
            Class shares of shape (k, c), cells of shape (k, 2, c * bins).
        """
        marginal = np.maximum(start, 1e-4 / len(start))  # EM never leaves zero
        marginals = np.tile(marginal / marginal.sum(), (self.moves, 1))
        moving = np.ones(self.moves, dtype=bool)
        for _ in range(iterations):
            updated = marginals * self.expected(target / np.maximum(self.mix(marginals), 1e-15))
            updated = updated / updated.sum(axis=1, keepdims=True)
            steps = np.abs(updated - marginals).max(axis=1)
            np.copyto(marginals, updated, where=moving[:, None])
            moving &= steps >= 1e-5
            if not moving.any():
                break
        return marginals, self.mix(marginals)


class DenseCells(ClassCells):
    """The cells of few classes: a table of all classes by all cells.

    Parameters
    ----------
    counts
        Shape (k, 2, c, c, bins): how many rows there are by move, table, label, class and bin.
    labels
        Shape (n,): the classes of the rows.
    """

    def __init__(self, counts: NDArray[np.intp], labels: IntArray) -> None:
        k, _, c, _, _ = counts.shape
        super().__init__(k, labels, c)
        own = np.einsum("ktccb->ktcb", counts)
        hits = own.sum(axis=2)
        template = _Template.of(
            hits,
            counts.sum(axis=(2, 3)) - hits,
            counts.sum(axis=(2, 4)) - own.sum(axis=3),
            len(labels),
        )
        others = template.to[..., None] * template.miss[:, :, None]
        smoothed = template.scale[..., None, None] * others[:, :, None]
        np.einsum("ktccb->ktcb", smoothed)[:] = template.hit[:, :, None]
        # Each row has two cells, of one half each.
        table = (0.5 * counts + self._template_rows * smoothed) / self.denominator[:, None, None]
        self._table = np.moveaxis(table, 2, 1).reshape(k, c, -1)

    def mix(self, marginals: Array) -> Array:
        """Return the cells of populations with these class shares, shapes (k, 2, c * bins) and (k, c)."""
        return np.asarray(np.matmul(marginals[:, None], self._table).reshape(self.moves, 2, -1))

    def expected(self, ratio: Array) -> Array:
        """Return the expectation of quantities per cell for each class, shapes (k, c) and (k, 2, c * bins)."""
        return np.asarray(np.matmul(self._table, ratio.reshape(self.moves, -1, 1))[..., 0])


class SparseCells(ClassCells):
    """The cells of many classes: a list of those that occur, and the average class.

    Parameters
    ----------
    pairs
        Shape (p, 4): move, table, label and class, in rising order.
    counts
        Shape (p, bins): how many rows each pair has in each bin.
    labels
        Shape (n,): the classes of the rows.
    shape
        The numbers of moves, tables and classes.
    """

    def __init__(
        self, pairs: NDArray[np.intp], counts: NDArray[np.intp], labels: IntArray, shape: tuple[int, int, int]
    ) -> None:
        move, table, label, cls = pairs.T
        k, _, c = shape
        super().__init__(k, labels, c)
        n_bins = counts.shape[1]
        self._shape = (*shape, n_bins)
        # Which cells the rows of which class are in, and how often; each row has two cells, of one half each.
        filled, bins = np.nonzero(counts)
        self._classes = (move * c + label)[filled]
        self._cells = (((move * 2 + table) * c + cls) * n_bins)[filled] + bins
        self._counts = 0.5 * counts[filled, bins]
        own, tables = cls == label, move * 2 + table
        first = np.searchsorted(tables, np.arange(2 * k))  # every table of every move has all rows
        hits, misses = (
            np.add.reduceat(np.where(kept[:, None], counts, 0), first).reshape(k, 2, n_bins) for kept in (own, ~own)
        )
        elsewhere = np.bincount(
            tables * c + cls, weights=np.where(own, 0, counts.sum(axis=1)), minlength=2 * k * c
        ).reshape(shape)
        self._template = _Template.of(hits, misses, elsewhere, len(labels))

    def mix(self, marginals: Array) -> Array:
        """Return the cells of populations with these class shares, shapes (k, 2, c * bins) and (k, c)."""
        hit, miss, to, scale = self._template
        weights = marginals / self.denominator
        template = (weights * self._template_rows)[:, None]
        scaled = template * scale
        others = to * (scaled.sum(axis=2, keepdims=True) - scaled)
        smoothed = template[..., None] * hit[:, :, None] + others[..., None] * miss[:, :, None]
        of_pairs = self._counts * weights.ravel()[self._classes]
        own = np.bincount(self._cells, weights=of_pairs, minlength=smoothed.size)
        return np.asarray((own.reshape(self._shape) + smoothed).reshape(self.moves, 2, -1))

    def expected(self, ratio: Array) -> Array:
        """Return the expectation of quantities per cell for each class, shapes (k, c) and (k, 2, c * bins)."""
        hit, miss, to, scale = self._template
        k, _, c, _ = self._shape
        of_pairs = self._counts * ratio.ravel()[self._cells]
        found = np.bincount(self._classes, weights=of_pairs, minlength=k * c).reshape(k, c)
        of_cells = ratio.reshape(self._shape)
        as_hit, as_miss = (np.matmul(of_cells, shares[..., None])[..., 0] for shares in (hit, miss))
        elsewhere = to * as_miss
        template = as_hit + scale * (elsewhere.sum(axis=2, keepdims=True) - elsewhere)
        return np.asarray((found + self._template_rows * template.sum(axis=1)) / self.denominator)
