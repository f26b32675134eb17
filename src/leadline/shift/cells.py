"""Histograms of predictions, top class and runner-up by confidence: how far two are apart, how classes look in them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray, IntArray
from leadline.numeric import Array, top_two
from leadline.shift.calibration import ROUNDING
from leadline.shift.priors import Exponentials

SCALES = (0.25, 0.4, 0.55, 0.75, 1.0, 1.3)  # logits flatter or sharper than the source's
NOISES = (0.0, 0.4)  # share of another row's logits mixed in
N_BINS = 4  # confidence quartiles: 2 lose power, 8 only add cells to estimate
# Pseudo-rows of the average class that are added to each: rare and absent classes borrow from it. One half for each
# class there is, ten at most: of few classes, each of many rows, ten would make another class.
TEMPLATE_SHARE, TEMPLATE_MOST = 0.5, 10.0

_MOST_KEPT = 80_000  # values of the source's rows that are kept as each move leaves them: 15 MB in all

TopTwo = tuple[NDArray[np.intp], NDArray[np.intp], FloatArray]


def bin_edges(*odds: FloatArray) -> Array:
    """Return the log-odds that cut rows of all these log-odds, shapes (n,), together into bins of equal size."""
    return np.asarray(np.quantile(np.concatenate(odds), np.arange(1, N_BINS) / N_BINS))


def bins_of(odds: FloatArray, edges: Array) -> NDArray[np.intp]:
    """Return the bin of log-odds of any shape; those at an edge are below it, and those next to it by rounding."""
    bins = np.zeros(odds.shape, dtype=np.intp)
    for edge in edges:
        bins += odds > edge + ROUNDING * abs(edge)
    return bins


def histogram(rows: TopTwo, edges: Array, c: int) -> Array:
    """Return shares of the cells, shape (2, c * N_BINS): top classes, runners-up; each table sums to one half."""
    top, second, odds = rows
    bins = bins_of(odds, edges)
    tables = [np.bincount(classes * N_BINS + bins, minlength=c * N_BINS) for classes in (top, second)]
    return np.stack(tables) / (2 * len(top))


def squared_distance(target: Array, model: Array) -> Array:
    """Return the squared Hellinger distance of histograms, shapes (..., 2, cells), from one another, shape (...)."""
    return np.asarray(1.0 - np.sqrt(target * model).sum(axis=(-2, -1)))


def noise_floor(target: Array, model: Array, n_target: float, n_model: Array | float) -> Array:
    """Return the expected squared Hellinger distance if both histograms were samples of their pool.

    ``E[1 - sum sqrt(p q)]`` with independent Poisson counts: exact for sparse cells, where the familiar
    cells / 8 (1/n + 1/m) is not. The two tables hold the same rows, so their floors average.

    Parameters
    ----------
    target
        Shape (2, cells).
    model
        Shape (..., 2, cells).
    n_target, n_model
        Numbers of rows; of the model one, or shape (...).
    """
    of_model = np.asarray(n_model)[..., None, None]
    pooled = 2.0 * (target * n_target + model * of_model) / (n_target + of_model)
    kept = (pooled * _root_efficiency(n_target * pooled) * _root_efficiency(of_model * pooled)).sum(axis=-1)
    return np.asarray((1.0 - kept).mean(axis=-1))


def _root_efficiency(mean: Array) -> Array:
    """Return ``E sqrt(N) / sqrt(mean)`` for Poisson N."""
    log_mean, table = _poisson_roots()
    inside = np.interp(np.log(np.maximum(mean, 1e-4)), log_mean, table)
    return np.asarray(np.where(mean > 400.0, 1.0 - 1.0 / (8.0 * np.maximum(mean, 1.0)), inside))


@lru_cache(maxsize=1)
def _poisson_roots() -> tuple[Array, Array]:
    """Return the logarithms of means and the efficiency of the root at them."""
    mean = np.exp(np.linspace(np.log(1e-4), np.log(400.0), 400))
    counts = np.arange(900)
    log_factorials = np.concatenate([[0.0], np.cumsum(np.log(counts[1:]))])
    log_mass = counts * np.log(mean)[:, None] - mean[:, None] - log_factorials
    return np.log(mean), (np.sqrt(counts) * np.exp(log_mass)).sum(axis=1) / np.sqrt(mean)


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

    @property
    def odds(self) -> FloatArray:
        """Shape (n,): log-odds of the rows as they are."""
        return np.asarray(self._odds[SCALES.index(1.0)])

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

    @cached_property
    def _odds(self) -> FloatArray:
        """Shape (moves, n): the log-odds."""
        return np.stack([odds for *_, odds in self._tops])

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Which pairs there are of a move, a table, a label, and a class that its rows have in this table.

        Returns
        -------
        tuple
            The pairs, shape (p, 4); and which of them each row is in, shape (moves, 2, n).
        """
        n, c = self.scores.shape
        classes = np.stack([(top, second) for top, second, _ in self._tops])
        moves, tables = np.arange(len(classes))[:, None, None], np.arange(2)[:, None]
        numbers = ((moves * 2 + tables) * c + self.labels) * c + classes
        found, places = np.unique(numbers, return_inverse=True)
        pairs = np.stack(np.unravel_index(found, (len(classes), 2, c, c)), axis=1)
        return pairs, places.reshape(len(classes), 2, n)

    def class_cells(self, edges: Array) -> ClassCells:
        """Count the cells of each class after each move, given the edges of the bins."""
        pairs, places = self._pairs
        bins = bins_of(self._odds, edges)[:, None]
        counts = np.bincount((places * N_BINS + bins).ravel(), minlength=len(pairs) * N_BINS)
        return ClassCells(pairs, counts.reshape(-1, N_BINS), self.labels, self.scores.shape[1])


class ClassCells:
    """P(cell | class) from labelled rows, smoothed by the average class, without a dense table of classes by cells.

    Of the rows as they are after each of k moves, all at once: with few classes, the calls cost more than the work.

    Parameters
    ----------
    pairs
        Shape (p, 4): move, table, label and class.
    counts
        Shape (p, N_BINS): how many rows each pair has in each bin.
    labels
        Shape (n,): the classes of the rows.
    c
        Number of classes.
    """

    def __init__(self, pairs: NDArray[np.intp], counts: NDArray[np.intp], labels: IntArray, c: int) -> None:
        move, table, label, cls = pairs.T
        k = len(NOISES) * len(SCALES)
        self._shape = (k, 2, c, N_BINS)
        self._template_rows = min(TEMPLATE_SHARE * c, TEMPLATE_MOST)
        self.denominator = np.bincount(labels, minlength=c) + self._template_rows
        # Which cells the rows of which class are in, and how often; each row has two cells, of one half each.
        filled, bins = np.nonzero(counts)
        self._classes = (move * c + label)[filled]
        self._cells = (((move * 2 + table) * c + cls) * N_BINS)[filled] + bins
        self._counts = 0.5 * counts[filled, bins]
        # The average class, for either table: shares of the bins where the cell is of the class itself and where it is
        # of another, which other one it is, and what makes up for not being oneself.
        own, tables, total = cls == label, move * 2 + table, 2.0 * (len(labels) + 2)

        def by_bin(kept: NDArray[np.bool_]) -> Array:
            found = np.zeros((2 * k, N_BINS))
            np.add.at(found, tables[kept], counts[kept])
            # Two pseudo-rows over the bins of both cases: no cell of the target is impossible under every class.
            return (found.reshape(k, 2, N_BINS) + 1.0 / N_BINS) / total

        self._hit, self._miss = by_bin(own), by_bin(~own)
        elsewhere = np.where(own, 0, counts.sum(axis=1))
        to = np.bincount(tables * c + cls, weights=elsewhere, minlength=2 * k * c).reshape(k, 2, c) + 0.5
        self._to = to / to.sum(axis=2, keepdims=True)
        self._scale = 1.0 / (1.0 - np.minimum(self._to, 1.0 - 1e-9))

    def mix(self, marginals: Array) -> Array:
        """Return the cells of populations with these class shares, shapes (k, 2, c * N_BINS) and (k, c)."""
        k, _, c, _ = self._shape
        weights = marginals / self.denominator
        template = (weights * self._template_rows)[:, None]
        scaled = template * self._scale
        others = self._to * (scaled.sum(axis=2, keepdims=True) - scaled)
        smoothed = template[..., None] * self._hit[:, :, None] + others[..., None] * self._miss[:, :, None]
        of_pairs = self._counts * weights.ravel()[self._classes]
        own = np.bincount(self._cells, weights=of_pairs, minlength=smoothed.size)
        return np.asarray((own.reshape(self._shape) + smoothed).reshape(k, 2, c * N_BINS))

    def _expected(self, ratio: Array) -> Array:
        """Return the expectation of quantities per cell for each class, shapes (k, c) and (k, 2, c * N_BINS)."""
        k, _, c, _ = self._shape
        of_pairs = self._counts * ratio.ravel()[self._cells]
        found = np.bincount(self._classes, weights=of_pairs, minlength=k * c).reshape(k, c)
        of_cells = ratio.reshape(self._shape)
        hit, miss = (np.matmul(of_cells, shares[..., None])[..., 0] for shares in (self._hit, self._miss))
        elsewhere = self._to * miss
        template = hit + self._scale * (elsewhere.sum(axis=2, keepdims=True) - elsewhere)
        return np.asarray((found + self._template_rows * template.sum(axis=1)) / self.denominator)

    def fit_marginals(self, target: Array, start: Array, iterations: int = 100) -> tuple[Array, Array]:
        """Return by EM the class shares after each move that explain the target's cells best, and the cells they give.

        Parameters
        ----------
        target
            Shape (2, c * N_BINS): shares of the target's cells.
        start
            Shape (c,): class shares to begin with.
        iterations
            The most.

        Returns
        -------
        tuple
            Class shares of shape (k, c), cells of shape (k, 2, c * N_BINS).
        """
        k, _, c, _ = self._shape
        marginal = np.maximum(start, 1e-4 / c)  # EM never leaves zero
        marginals = np.tile(marginal / marginal.sum(), (k, 1))
        moving = np.ones(k, dtype=bool)
        for _ in range(iterations):
            updated = marginals * self._expected(target / np.maximum(self.mix(marginals), 1e-15))
            updated = updated / updated.sum(axis=1, keepdims=True)
            steps = np.abs(updated - marginals).max(axis=1)
            marginals[moving] = updated[moving]
            moving &= steps >= 1e-5
            if not moving.any():
                break
        return marginals, self.mix(marginals)
