"""Classes as clusters of logits: a second opinion of every row, which can follow clusters to where they have moved.

The softmax asks how far a row lies from the borders between classes; clusters ask how far it lies from where rows of
each class were seen. A row that is like none of them is doubtful to clusters, however sure the softmax is of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from leadline import rowwise
from leadline.data.outputs import FloatArray, IntArray
from leadline.numeric import Array, of_class
from leadline.rowwise import WORTH_IT_FROM, Densities
from leadline.shift.priors import restoring_bias

MOST_ROWS = 5_000  # of a source that clusters are learned from; more only say how well they know it
PRIOR_ROWS = 10.0  # rows that the average of all classes counts as in what is said of one
_FREEDOM = 5  # of the t distributions: outliers of a class are common; 3 and 10 do alike
_FOLDS = 5
_ROWS = 1_000  # of a target, that clusters are adapted to
_FITS, _MOVES, _RESHARINGS = 5, 25, 30  # steps of expectation maximisation
_HELD = 0.2  # what clusters as they were count for, as a share of the rows that move them; with .03 two classes stray
_HELD_SHARES = 0.02  # the same of class shares
_LEAST_VARIANCE = 1e-6  # within classes, as a share of the whole
_LEAST_SHARE, _LEAST_DENSITY = 1e-9, 1e-100  # no logarithm is infinite, and no sum of beliefs zero


class Clusters(NamedTuple):
    """One cluster for each class: t distributions of the same shape, in coordinates in which they are round.

    Attributes
    ----------
    centres
        Shape (c, k).
    spreads
        Shape (c,): variance along any axis.
    shares
        Shape (c,): how frequent the classes are.
    """

    centres: Array
    spreads: Array
    shares: Array

    def mixed(self, other: Clusters, share: float) -> Clusters:
        """Return these clusters on the way to others, of which ``share`` counts."""
        return Clusters(*((1.0 - share) * mine + share * theirs for mine, theirs in zip(self, other, strict=True)))

    def beliefs(self, points: Array) -> Array:
        """Return the probability of each class for each point, shapes (n, k) and (n, c)."""
        return self._beliefs(_squared_distances(points, _lengths(points), self.centres))

    def _beliefs(self, squares: Array) -> Array:
        """Return the probability of each class by the squared distances from the centres, both of shape (n, c)."""
        _, scales, weights, power, least = self.densities
        apart = 1.0 + squares * scales
        exponents = 0.5 * power * np.log(apart.min(axis=1, keepdims=True) / apart)
        beliefs = weights * np.exp(np.maximum(exponents, np.log(least)))
        return np.asarray(beliefs / beliefs.sum(axis=1, keepdims=True))

    @property
    def densities(self) -> Densities:
        """The clusters as the t distributions that they are."""
        axes = len(self.shares) - 1
        heights = np.log(np.maximum(self.shares, _LEAST_SHARE)) - 0.5 * axes * np.log(self.spreads)
        weights = np.maximum(np.exp(heights - heights.max()), _LEAST_DENSITY)
        return Densities(self.centres, 1.0 / (_FREEDOM * self.spreads), weights, _FREEDOM + axes, _LEAST_DENSITY)

    def reshared(self, points: Array) -> Clusters:
        """Return clusters as frequent as points, shape (n, k), say: only how frequent the classes are has changed."""
        equal = np.full_like(self.shares, 1.0 / len(self.shares))
        likelihoods, shares = self._replace(shares=equal).beliefs(points), self.shares
        for _ in range(_RESHARINGS):
            beliefs = likelihoods * shares
            beliefs /= beliefs.sum(axis=1, keepdims=True)
            shares = (beliefs.mean(axis=0) + _HELD_SHARES * self.shares) / (1.0 + _HELD_SHARES)
        return self._replace(shares=shares)

    def followed(self, points: Array) -> Clusters:
        """Return clusters where points, shape (n, k), say that they are now; how frequent the classes are is known."""
        moved, axes, lengths = self, len(self.shares) - 1, _lengths(points)
        held = _HELD * len(points) / len(self.shares)
        for _ in range(_MOVES):
            squares = _squared_distances(points, lengths, moved.centres)
            beliefs = moved._beliefs(squares)
            # As t distributions are fitted: what lies far out counts for less.
            weights = beliefs * ((_FREEDOM + axes) / (_FREEDOM + squares / moved.spreads))
            total, sums = weights.sum(axis=0), weights.T @ points
            centres = (sums + held * self.centres) / (total + held)[:, None]
            along = 2.0 * np.einsum("jk,jk->j", sums, centres) - total * _lengths(centres)
            spreads = np.maximum(lengths @ weights - along, 0.0) / axes + held * self.spreads
            moved = Clusters(centres, spreads / (beliefs.sum(axis=0) + held), self.shares)
        return moved

    def restored(self, points: Array, shares: Array) -> Clusters:
        """Return clusters so frequent that by them the classes of points, shape (n, k), have these shares."""
        frequent = self.shares * np.exp(restoring_bias(np.log(self.beliefs(points)), shares))
        return self._replace(shares=frequent / frequent.sum())


class Adapted(NamedTuple):
    """Clusters as a target shows them under either explanation: label shift, and collapse."""

    reshared: Clusters
    followed: Clusters

    @classmethod
    def to(cls, points: Array, clusters: Clusters) -> Self:
        """Adapt clusters to points, shape (n, k)."""
        return cls(clusters.reshared(points), clusters.followed(points))


@dataclass(frozen=True, eq=False)
class ClusteredSource:
    """Where the classes of a labelled source lie.

    Attributes
    ----------
    whitening
        Shape (c, k): makes points of rows.
    clusters
        Of the points.
    own
        The clusters adapted to the source itself: classes are no t distributions, and what they are mistaken for moves
        clusters even where nothing has moved.
    believed
        Shape (c,): how frequent the classes of the source are by the clusters as they are.
    gap
        The source's accuracy less the mean probability of its predicted classes, by clusters that their rows are not
        part of.
    """

    whitening: Array
    clusters: Clusters
    own: Adapted
    believed: Array
    gap: float

    @classmethod
    def learn(cls, rows: FloatArray, labels: IntArray, predicted: NDArray[np.intp]) -> Self:
        """Learn from labelled rows in random order.

        Parameters
        ----------
        rows
            Shape (n, c): logits or log-probabilities; a constant added to a row changes nothing, nor does a scale.
        labels, predicted
            Shapes (n,): true and predicted classes.
        """
        some, classes = rows[:MOST_ROWS], labels[:MOST_ROWS]
        whitening, clusters = _learned(some, classes)
        points, fold = _points(rows, whitening), np.arange(len(some)) % _FOLDS
        probable = of_class(clusters.beliefs(points), predicted)
        for number in range(_FOLDS):
            left_out = np.flatnonzero(fold == number)
            known, there = _learned(some[fold != number], classes[fold != number])
            probable[left_out] = of_class(there.beliefs(_points(rows[left_out], known)), predicted[left_out])
        own, gap = _some(points), float(np.mean((predicted == labels) - probable))
        return cls(whitening, clusters, Adapted.to(own, clusters), clusters.beliefs(own).mean(axis=0), gap)

    def points(self, rows: FloatArray) -> Array:
        """Return the points of rows, shapes (n, k) and (n, c)."""
        return _points(rows, self.whitening)

    def probabilities(self, rows: FloatArray, adapted: Adapted, predicted: NDArray[np.intp]) -> list[Array]:
        """Return the probability of the predicted class of each row, shape (n,): by clusters as they are, and adapted.

        Parameters
        ----------
        rows, predicted
            Shapes (n, c) and (n,).
        adapted
            The clusters in the target.
        """
        clusters = self.clusters, *adapted
        if rows.size >= WORTH_IT_FROM:
            densities = [each.densities for each in clusters]
            return rowwise.cluster_probabilities(rows, self.whitening, densities, predicted)
        points = self.points(rows)
        return [of_class(each.beliefs(points), predicted) for each in clusters]

    def adapted(self, points: Array) -> Adapted:
        """Return the clusters as points of a target, shape (n, k), show them: moved as the source does not show."""
        some = _some(points)
        there = Adapted.to(some, self.clusters)
        shares = self.clusters.shares * there.reshared.shares / np.maximum(self.own.reshared.shares, _LEAST_SHARE)
        followed = self.clusters._replace(
            centres=self.clusters.centres + there.followed.centres - self.own.followed.centres,
            spreads=self.clusters.spreads * there.followed.spreads / self.own.followed.spreads,
        )
        reshared = self.clusters._replace(shares=shares / shares.sum())
        return Adapted(reshared, followed.restored(some, self.believed))


def _learned(rows: FloatArray, labels: IntArray) -> tuple[Array, Clusters]:
    """Return the whitening of labelled rows, shapes (n, c) and (n,), and their clusters."""
    order = np.argsort(labels, kind="stable")
    rows, labels, (n, c) = rows[order], labels[order], rows.shape
    counts = np.bincount(labels, minlength=c)
    centred = np.asarray(rows - rows.mean(axis=1, keepdims=True), dtype=np.float64)
    centres = _means(centred, counts, np.ones(n))
    apart, freedom = centred - centres[labels], max(n - np.count_nonzero(counts), 1)
    within = apart.T @ apart
    variance = max(float(np.trace(within)) / freedom, _LEAST_VARIANCE * float(centred.var(axis=0).sum())) or 1.0
    # A round prior, worth as many rows as there are axes: few rows do not tell what shape clusters have.
    whitening = np.linalg.inv(np.linalg.cholesky((within + variance * np.eye(c)) / (freedom + c - 1))).T
    whitening -= whitening.mean(axis=0)  # a constant added to a row changes nothing
    points = centred @ whitening
    centres, weights, spreads = centres @ whitening, np.ones(n), np.ones(c)
    without_own = (counts / np.maximum(counts - 1, 1))[labels]  # squared distances from a centre without the row
    lengths = _lengths(points)
    for _ in range(_FITS):
        along = np.einsum("ik,ik->i", points, centres[labels])
        squares = np.maximum(lengths - 2.0 * along + _lengths(centres)[labels], 0.0) * without_own / (c - 1)
        by_class = np.bincount(labels, weights=weights * squares, minlength=c)
        spreads = (by_class + PRIOR_ROWS * by_class.sum() / n) / (counts + PRIOR_ROWS)
        spreads = np.maximum(spreads, _LEAST_VARIANCE)
        weights = (_FREEDOM + c - 1) / (_FREEDOM + (c - 1) * squares / spreads[labels])
        centres = _means(points, counts, weights)
    # A centre is known the less well, the fewer rows it is the mean of.
    return whitening, Clusters(centres, spreads * (1.0 + 1.0 / np.maximum(counts, 1)), counts / n)


def _means(points: Array, counts: NDArray[np.intp], weights: Array) -> Array:
    """Return the weighted mean of each class of points, which stand in the order of classes: shape (c, k).

    Parameters
    ----------
    points, weights
        Shapes (n, k) and (n,).
    counts
        Shape (c,): how many points each class has; one without any has the mean of all.
    """
    means = np.tile(points.mean(axis=0), (len(counts), 1))
    present = np.flatnonzero(counts)
    starts = np.cumsum(counts[present]) - counts[present]
    sums, totals = (np.add.reduceat(amounts, starts) for amounts in (weights[:, None] * points, weights))
    means[present] = sums / totals[:, None]
    return means


def _some(points: Array) -> Array:
    """Return as many points, spread evenly, as clusters are adapted to."""
    return points if len(points) <= _ROWS else points[np.arange(_ROWS) * len(points) // _ROWS]


def _points(rows: FloatArray, whitening: Array) -> Array:
    return np.asarray(rows @ whitening, dtype=np.float64)


def _lengths(points: Array) -> Array:
    """Return the squared lengths of points, shapes (n,) and (n, k)."""
    return np.asarray(np.einsum("ik,ik->i", points, points))


def _squared_distances(points: Array, lengths: Array, centres: Array) -> Array:
    """Return the squared distances of points, shape (n, k), of these squared lengths, from centres: shape (n, c).

    By columns: along short rows NumPy takes ten times as long.
    """
    return np.asarray(np.maximum(lengths - 2.0 * (centres @ points.T) + _lengths(centres)[:, None], 0.0).T)
