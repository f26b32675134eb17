"""Strata of the estimated correctness, how many labels each gets, and an order of which every beginning is a sample."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from leadline.estimators.draws import mix
from leadline.numeric import Array

IntArray = NDArray[np.int64]

_MOST_STRATA = 4  # twice as many make intervals narrower by a hundredth (docs/studies/labels.py)
_LEAST_LABELS = 10  # of each stratum
_PROPORTIONAL = 2 / 3  # of the labels go by rows, the rest by expected deviation, where the correctness may be wrong
_LEAST_VARIANCE = 0.01  # of a row's correctness
_STARTS = np.uint64(1 << 63)  # numbers that no row has


def cut_points(correctness: Array, budget: int) -> Array:
    """Return the values of the correctness between the strata: each gets about as many labels.

    Parameters
    ----------
    correctness
        Shape (n,): the estimated probability that each prediction is right, of all rows or of a sample of them.
    budget
        How many labels there will be.

    Returns
    -------
    ndarray
        Shape (h - 1,), rising; empty where few labels or equal values make one stratum.
    """
    wanted = int(np.clip(budget // _LEAST_LABELS, 1, _MOST_STRATA))
    order = np.argsort(correctness, kind="stable")
    deviation = _deviation(correctness)[order]
    spent = np.cumsum(_PROPORTIONAL / len(order) + (1.0 - _PROPORTIONAL) * deviation / deviation.sum())
    places = np.searchsorted(spent, np.arange(1, wanted) / wanted)
    cuts = np.unique(correctness[order][np.minimum(places, len(order) - 1)])
    return np.asarray(cuts[cuts > correctness.min()])


def allocate(correctness: Array, strata: NDArray[np.intp], sizes: IntArray, budget: int) -> IntArray:
    """Return how many labels each stratum gets, shape (h,): at least one, at most as many as it has rows.

    Two thirds in proportion to its rows and a third to its rows' expected standard deviation, sqrt(c (1 - c)), which
    alone would be best if the correctness c were right, and starve the very rows that it is wrong about if not.

    Parameters
    ----------
    correctness, strata
        Shape (n,): of all rows or of a sample of them.
    sizes
        Shape (h,): how many rows each stratum has in all.
    budget
        How many labels there will be, at most as many as there are rows.
    """
    sampled = np.bincount(strata, minlength=len(sizes))
    deviation = sizes * np.bincount(strata, _deviation(correctness), len(sizes)) / np.maximum(sampled, 1)
    exact = budget * (_PROPORTIONAL * sizes / sizes.sum() + (1.0 - _PROPORTIONAL) * deviation / deviation.sum())
    given = np.clip(np.floor(exact), 1, sizes)
    while (gap := budget - int(given.sum())) != 0:
        # One at a time to (or from) the stratum that is farthest from its share.
        short = (
            np.where(given < sizes, exact - given, -np.inf) if gap > 0 else np.where(given > 1, given - exact, -np.inf)
        )
        given[int(short.argmax())] += np.sign(gap)
    return np.asarray(given, dtype=np.int64)


def arrange(chosen: Sequence[IntArray], seed: int) -> IntArray:
    """Return rows in the order in which to label them, shape (budget,).

    The strata take turns at a steady rate, each from a random start. Within each the rows are a simple random sample in
    random order, so that the first k rows hold a simple random sample of each stratum, its size in proportion.

    Parameters
    ----------
    chosen
        The rows drawn from each stratum, in random order.
    seed
        Of the starts.
    """
    order = turns(np.array([len(of_stratum) for of_stratum in chosen]), seed)
    rows = np.empty(len(order), dtype=np.int64)
    for h, of_stratum in enumerate(chosen):
        rows[order == h] = of_stratum
    return rows


def turns(counts: IntArray, seed: int) -> IntArray:
    """Return the stratum of each place in the order of :func:`arrange`, shape (budget,)."""
    starts = mix(np.arange(len(counts), dtype=np.uint64) + _STARTS, seed) / 2.0**64
    when = np.concatenate([(np.arange(count) + start) / count for count, start in zip(counts, starts, strict=True)])
    return np.repeat(np.arange(len(counts)), counts)[np.argsort(when, kind="stable")]


def _deviation(correctness: Array) -> Array:
    """Return the standard deviation of each row's being right, shape (n,)."""
    return np.asarray(np.sqrt(np.maximum(correctness * (1.0 - correctness), _LEAST_VARIANCE)))
