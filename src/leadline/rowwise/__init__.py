"""Softmax and what is read off it row by row, for many rows: compiled loops on all cores.

Everything here has a plain counterpart in :mod:`leadline.numeric`, which is as good for few rows and does not load a
compiler. Logits, float32 or float64, are read where they are; sums are in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leadline.compiled import load_loops
from leadline.threads import slices, team

Array = NDArray[np.float64]
Matrix = NDArray[np.floating[Any]]

_LOOPS, _CLUSTER_LOOPS = "leadline.rowwise.loops", "leadline.rowwise.clusters"
WORTH_IT_FROM = 1 << 17  # values; below, NumPy is done before the compiled loops are loaded
LEAST_EXPONENT = -708.0  # exponentials of less are held at that of this one, 3e-308: no logarithm is infinite
_SLICE_VALUES = 1 << 16  # a quarter of a megabyte or a half: a thread's share at a time


class Reading(NamedTuple):
    """What softmax says of one class of each row, shapes (n,).

    Attributes
    ----------
    classes
        The class.
    own
        Its exponent, that of the likeliest class being zero.
    others
        The sum of the exponentials of all other classes.
    negative_entropy
        The sum of p log p; empty where it was not asked for.
    """

    classes: NDArray[np.intp]
    own: Array
    others: Array
    negative_entropy: Array

    @property
    def probability(self) -> Array:
        """The probability of the class."""
        amount = self._amount
        return np.asarray(amount / (amount + self.others))

    @property
    def improbability(self) -> Array:
        """One less the probability, with all digits where that is near one."""
        return np.asarray(self.others / (self._amount + self.others))

    @property
    def _amount(self) -> Array | float:
        """The exponential of the class itself."""
        return np.exp(self.own) if self.own.any() else 1.0

    @property
    def log_probability(self) -> Array:
        """Its logarithm, which tells 1 - 1e-20 from 1 - 1e-30."""
        return np.asarray(self.own - np.log1p(self.others + np.expm1(self.own)))

    @property
    def log_odds(self) -> Array:
        """The log-odds of the class against all others."""
        return np.asarray(self.own - np.log(self.others))


def read(
    logits: Matrix,
    temperature: float = 1.0,
    *,
    bias: Array | None = None,
    classes: NDArray[np.intp] | None = None,
    entropy: bool = False,
) -> Reading:
    """Read softmax(logits / temperature + bias) at one class of each row.

    Parameters
    ----------
    logits
        Shape (n, c).
    temperature
        Of the softmax.
    bias
        Shape (c,); none by default.
    classes
        Shape (n,): the classes; those of the largest values by default.
    entropy
        Whether minus the entropy is wanted.
    """
    loops = load_loops(_LOOPS)

    n, c = logits.shape
    added = np.zeros(c) if bias is None else np.asarray(bias, dtype=np.float64)
    found = Reading(
        np.empty(n, dtype=np.intp) if classes is None else np.array(classes, dtype=np.intp),
        np.empty(n),
        np.empty(n),
        np.empty(n if entropy else 0),
    )

    def work(rows: slice) -> None:
        parts = (part[rows] for part in found)
        loops.read(np.ascontiguousarray(logits[rows]), 1.0 / temperature, added, classes is not None, *parts)

    _over_rows(work, n, c)
    return found


def log_softmax(logits: Matrix, temperature: float = 1.0) -> Array:
    """Return log softmax(logits / temperature), shape (n, c)."""
    loops = load_loops(_LOOPS)

    result = np.empty(logits.shape)

    def work(rows: slice) -> None:
        loops.log_softmax(np.ascontiguousarray(logits[rows]), 1.0 / temperature, result[rows])

    _over_rows(work, *logits.shape)
    return result


def softmax(
    logits: Matrix, temperature: float = 1.0, *, bias: Array | None = None, result: Matrix | None = None
) -> tuple[Matrix, Array]:
    """Return softmax(logits / temperature + bias), shape (n, c), and the logarithms of its denominators, shape (n,).

    Parameters
    ----------
    logits
        Shape (n, c).
    temperature
        Of the softmax.
    bias
        Shape (c,); none by default.
    result
        Shape (n, c): memory for the softmax; by default new memory of the precision of the logits.
    """
    loops = load_loops(_LOOPS)

    n, c = logits.shape
    added = np.zeros(c) if bias is None else np.asarray(bias, dtype=np.float64)
    shares: Matrix = np.empty(logits.shape, dtype=logits.dtype) if result is None else result
    log_total = np.empty(n)

    def work(rows: slice) -> None:
        part = np.ascontiguousarray(logits[rows])
        loops.softmax(part, 1.0 / temperature, added, shares[rows], log_total[rows])

    _over_rows(work, n, c)
    return shares, log_total


def top_two(
    logits: Matrix, classes: NDArray[np.intp] | None = None
) -> tuple[NDArray[np.intp], NDArray[np.intp], Matrix]:
    """Return what :func:`leadline.numeric.top_two` does."""
    loops = load_loops(_LOOPS)

    n, c = logits.shape
    top = np.empty(n, dtype=np.intp) if classes is None else np.array(classes, dtype=np.intp)
    second, odds = np.empty(n, dtype=np.intp), np.empty(n, dtype=logits.dtype)

    def work(rows: slice) -> None:
        loops.top_two(np.ascontiguousarray(logits[rows]), classes is not None, top[rows], second[rows], odds[rows])

    _over_rows(work, n, c)
    return top, second, odds


class Assigned(NamedTuple):
    """The label of each row with the largest p + potential, shapes (n,).

    Attributes
    ----------
    labels
        The labels.
    kept
        p at that label.
    reduced
        The largest value of p + potential.
    margins
        By how much it is above the next one.
    """

    labels: NDArray[np.intp]
    kept: Array
    reduced: Array
    margins: Array


def assign(logits: Matrix, temperature: float, potentials: Array) -> Assigned:
    """Send each row, shape (n, c), to the label with the largest softmax(logits / temperature) + potential."""
    loops = load_loops(_LOOPS)

    n, c = logits.shape
    found = Assigned(np.empty(n, dtype=np.intp), np.empty(n), np.empty(n), np.empty(n))

    def work(rows: slice) -> None:
        parts = (part[rows] for part in found)
        loops.assign(np.ascontiguousarray(logits[rows]), 1.0 / temperature, potentials, *parts)

    _over_rows(work, n, c)
    return found


class Densities(NamedTuple):
    """Clusters of points as t distributions, each a power of 1 + squared distance x scale.

    Attributes
    ----------
    centres
        Shape (c, k).
    scales, weights
        Shapes (c,): of the squared distances, and what the clusters count for.
    power
        The exponent, in halves.
    least
        What no density is held to be less of than that of the likeliest cluster.
    """

    centres: Array
    scales: Array
    weights: Array
    power: int
    least: float


def cluster_probabilities(
    rows: Matrix, whitening: Array, densities: Sequence[Densities], classes: NDArray[np.intp]
) -> list[Array]:
    """Return the probability of the class of each row, shape (n,), among each of several sets of clusters.

    Parameters
    ----------
    rows, classes
        Shapes (n, c) and (n,).
    whitening
        Shape (c, k): makes points of rows.
    densities
        The sets of clusters, one for each class.
    """
    loops = load_loops(_CLUSTER_LOOPS)

    found = [np.empty(len(rows)) for _ in densities]
    norms = [np.einsum("jk,jk->j", each.centres, each.centres) for each in densities]

    def work(part: slice) -> None:
        points = np.asarray(rows[part] @ whitening, dtype=np.float64)
        for (centres, scales, weights, power, least), norm, probable in zip(densities, norms, found, strict=True):
            held, products = least ** (1.0 / power), points @ centres.T
            loops.probability(points, products, norm, scales, weights, power, held, classes[part], probable[part])

    _over_rows(work, *rows.shape)
    return found


def hashes(logits: Matrix, factors: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return 64 bits mixed of each row's values in single precision and the odd factors, and spread, shape (n,)."""
    loops = load_loops(_LOOPS)

    mixed = np.empty(len(logits), dtype=np.uint64)

    def work(rows: slice) -> None:
        # Adding zero makes -0 and 0 the same bits.
        bits = (np.ascontiguousarray(logits[rows], dtype=np.float32) + np.float32(0.0)).view(np.uint32)
        loops.hashes(bits, factors, mixed[rows])
        mixed[rows] = spread(mixed[rows])

    _over_rows(work, *logits.shape)
    return mixed


def spread(mixed: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return numbers mixed by the last steps of SplitMix64, which spread what products leave in the upper bits."""
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def _over_rows(work: Callable[[slice], None], n: int, c: int) -> None:
    """Do the work on slices of n rows of c values, on all cores if there are several slices."""
    cuts = slices(n, max(1, _SLICE_VALUES // c))
    with team(worth_it=len(cuts) > 1) as workers:
        workers.run(work, cuts)
