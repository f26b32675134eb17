"""Histograms of predictions, top class and runner-up by confidence, and how far two are apart."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray
from leadline.numeric import Array
from leadline.shift.calibration import ROUNDING

N_BINS = 4  # confidence quartiles: 2 lose power, 8 only add cells to estimate

TopTwo = tuple[NDArray[np.intp], NDArray[np.intp], FloatArray]


def bin_edges(*odds: FloatArray, n_bins: int = N_BINS) -> Array:
    """Return the log-odds that cut rows of all these log-odds, shapes (n,), together into bins of equal size."""
    return np.asarray(np.quantile(np.concatenate(odds), np.arange(1, n_bins) / n_bins))


def bins_of(odds: FloatArray, edges: Array) -> NDArray[np.int8]:
    """Return the bin of log-odds of any shape; those at an edge are below it, and those next to it by rounding."""
    bins = np.zeros(odds.shape, dtype=np.int8)
    for edge in edges:
        bins += (odds > edge + ROUNDING * abs(edge)).view(np.int8)
    return bins


def histogram(rows: TopTwo, edges: Array, c: int) -> Array:
    """Return shares of the cells, shape (2, c * bins): top classes, runners-up; each table sums to one half."""
    top, second, odds = rows
    bins, n_bins = bins_of(odds, edges), len(edges) + 1
    tables = [np.bincount(classes * n_bins + bins, minlength=c * n_bins) for classes in (top, second)]
    return np.array(tables) / (2 * len(top))


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
