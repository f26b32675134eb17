"""How far logits stray from the hyperplane that they lie around (Proposition 1 of the paper)."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np

from leadline.data.outputs import as_logits, row_blocks
from leadline.errors import InputError


def band_width(logits: Any, confidence: float = 0.999) -> float:
    """Measure the width of the band of logits along the all-ones direction.

    Softmax does not see what is added to all logits of a sample, so that training leaves the component along
    (1, ..., 1) near where the initialisation put it: logits lie in a band around a hyperplane.

    Parameters
    ----------
    logits
        Shape (n, c): a classifier's outputs before softmax.
    confidence
        Share of a normal distribution that the band is to hold, between 0 and 1.

    Returns
    -------
    float
        The width, in units of the logits.

    Notes
    -----
    ``2 z std(l)`` with the projections ``l_i = sum_k z_ik / sqrt(c)`` and the two-sided normal quantile ``z``
    of ``confidence``, as in the proof of Proposition 1: the width of an interval around the mean that holds
    that share of normally distributed projections. :func:`band_width_bound` bounds it at initialisation.

    Examples
    --------
    >>> round(band_width([[1.0, -1.0], [3.0, 1.0], [2.0, 0.0]], confidence=0.9), 2)
    3.8
    """
    array = as_logits(logits)
    quantile = _two_sided_quantile(confidence)
    projections = np.concatenate([block.sum(axis=1, dtype=np.float64) for block in row_blocks(array)])
    return float(2.0 * quantile * projections.std() / np.sqrt(array.shape[1]))


def band_width_bound(m: int, c: int, confidence: float = 0.999) -> float:
    """Return the bound on the band width of a freshly initialised classifier.

    Parameters
    ----------
    m
        Width of the embedding that the last linear layer reads.
    c
        Number of classes.
    confidence
        Share of a normal distribution that the band is to hold, between 0 and 1.

    Notes
    -----
    Proposition 1: ``4 z sqrt(1 / (m + c))`` with the two-sided normal quantile ``z``, for Xavier-initialised
    weights of variance ``2 / (m + c)``, no bias, and embeddings of variance at most ``2 / m``.

    Examples
    --------
    >>> round(band_width_bound(128, 10, 0.999), 2)
    1.12
    """
    for name, value, least in (("m", m, 1), ("c", c, 2)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise InputError(f"{name} must be a whole number, at least {least}; got {value!r}.")
    return float(4.0 * _two_sided_quantile(confidence) / np.sqrt(int(m) + int(c)))


def _two_sided_quantile(confidence: float) -> float:
    """Return z such that a standard normal variable lies within -z and z with probability ``confidence``."""
    real = isinstance(confidence, (int, float, np.integer, np.floating)) and not isinstance(confidence, bool)
    if not real or not 0.0 < confidence < 1.0:
        raise InputError(
            f"confidence must be between 0 and 1, such as 0.999; got {confidence!r}. Give a fraction, not a percentage."
        )
    return NormalDist().inv_cdf(0.5 + float(confidence) / 2.0)
