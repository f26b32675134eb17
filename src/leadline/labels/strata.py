"""Strata of the estimated correctness, how many labels each gets, and an order of which every beginning is a sample."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
        Shape (n,): the estimated probability that each prediction is right.
    budget
        How many labels there will be.

    Returns
    -------
    ndarray
        Shape (h - 1,), rising; empty where few labels or equal values make one stratum.
    """
    wanted = int(np.clip(budget // _LEAST_LABELS, 1, _MOST_STRATA))
    order = np.argsort(correctness, kind="stable")
    spent = np.cumsum(_weights(correctness)[order])
    places = np.searchsorted(spent, np.arange(1, wanted) / wanted)
    cuts = np.unique(correctness[order][np.minimum(places, len(order) - 1)])
    return np.asarray(cuts[cuts > correctness.min()])


def strata_of(correctness: Array, cuts: Array) -> IntArray:
    """Return the stratum of each row, shape (n,)."""
    return np.searchsorted(cuts, correctness, side="right").astype(np.int64)


def allocate(correctness: Array, strata: IntArray, budget: int) -> IntArray:
    """Return how many labels each stratum gets, shape (h,): at least one, at most as many as it has rows.

    Two thirds in proportion to its rows and a third to its rows' expected standard deviation, sqrt(c (1 - c)), which
    alone would be best if the correctness c were right, and starve the very rows that it is wrong about if not.
    """
    sizes = np.bincount(strata)
    exact = budget * np.bincount(strata, weights=_weights(correctness))
    given = np.clip(np.floor(exact), 1, sizes)
    while (gap := budget - int(given.sum())) != 0:
        # One at a time to (or from) the stratum that is farthest from its share.
        short = (
            np.where(given < sizes, exact - given, -np.inf) if gap > 0 else np.where(given > 1, given - exact, -np.inf)
        )
        given[int(short.argmax())] += np.sign(gap)
    return given.astype(np.int64)


def draw(strata: IntArray, counts: IntArray, seed: int) -> IntArray:
    """Return rows in the order in which to label them, shape (budget,).

    Within each stratum they are a simple random sample in random order, those with the smallest keyed hashes of their
    row numbers; the strata take turns at a steady rate, each from a random start. So the first k rows hold a simple
    random sample of each stratum, its size in proportion.

    Parameters
    ----------
    strata
        Shape (n,): the stratum of each row.
    counts
        Shape (h,): how many rows of each stratum.
    seed
        The key of the hashes.
    """
    keys = _keys(np.arange(len(strata), dtype=np.uint64), seed)
    chosen = [_smallest(np.flatnonzero(strata == h), keys, int(count)) for h, count in enumerate(counts)]
    order = turns(counts, seed)
    rows = np.empty(len(order), dtype=np.int64)
    for h, of_stratum in enumerate(chosen):
        rows[order == h] = of_stratum
    return rows


def turns(counts: IntArray, seed: int) -> IntArray:
    """Return the stratum of each place in the order of :func:`draw`, shape (budget,)."""
    starts = _keys(np.arange(len(counts), dtype=np.uint64) + _STARTS, seed) / 2.0**64
    when = np.concatenate([(np.arange(count) + start) / count for count, start in zip(counts, starts, strict=True)])
    return np.repeat(np.arange(len(counts)), counts)[np.argsort(when, kind="stable")]


def _smallest(rows: IntArray, keys: NDArray[np.uint64], count: int) -> IntArray:
    """Return so many of the rows, those with the smallest keys, in the order of the keys."""
    return rows[np.argsort(keys[rows], kind="stable")[:count]]


def _keys(numbers: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """Return random-looking integers for numbers, the same everywhere: SplitMix64, keyed by a seed."""
    mixed = numbers
    for key in (np.uint64(seed % 2**64), np.uint64(0x632BE59BD9B4E019)):
        mixed = (mixed ^ key) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed = mixed ^ (mixed >> np.uint64(31))
    return mixed


def _weights(correctness: Array) -> Array:
    """Return each row's share of the labels, shape (n,)."""
    deviation = np.sqrt(np.maximum(correctness * (1.0 - correctness), _LEAST_VARIANCE))
    return np.asarray(_PROPORTIONAL / len(correctness) + (1.0 - _PROPORTIONAL) * deviation / deviation.sum())
