"""Uncertainty of an estimate."""

from __future__ import annotations

import numpy as np

from leadline.numeric import normal_quantile

MODEL_ERROR = (
    "sampling error, and the error of the model under shift as far as the outputs show it; a classifier that is "
    "confidently wrong, or labels that mean something else now, show in no output, only in a few labels (leadline plan)"
)
SAMPLING_ONLY = "sampling error of source and target only; a shift that breaks the method's assumption is not covered"


def each_of(count: int, confidence_level: float) -> float:
    """Return the coverage that each of many intervals needs so that all of them hold together at a level.

    Šidák's correction, exact where they err independently and on the safe side where they err together.

    Examples
    --------
    >>> round(each_of(10, 0.9), 4)
    0.9895
    """
    return float(confidence_level ** (1.0 / max(count, 1)))


def sampling_interval(
    accuracy: float,
    *,
    target_variance: float,
    n_target: int,
    source_accuracy: float,
    n_source: int,
    confidence_level: float,
) -> tuple[float, float]:
    """Return the interval that the finite number of samples alone would explain.

    Parameters
    ----------
    accuracy
        The estimate in the middle.
    target_variance
        Variance of the per-sample values whose mean is the estimate.
    n_target, n_source
        Numbers of samples.
    source_accuracy
        Accuracy on the labelled source, which every method is tied to.
    confidence_level
        Nominal coverage, between 0 and 1.

    Notes
    -----
    Half-width ``z sqrt(s_T^2 / n_T + a_S (1 - a_S) / n_S)`` with both variances floored as if one more success and
    one more failure had been seen, so that an all-correct source of ten samples is not taken for certainty.
    """
    smoothed = (source_accuracy * n_source + 1) / (n_source + 2)
    source_part = smoothed * (1 - smoothed) / n_source
    target_part = max(target_variance, 1 / (n_target + 2)) / n_target
    half_width = float(normal_quantile(0.5 + confidence_level / 2) * np.sqrt(source_part + target_part))
    return max(0.0, accuracy - half_width), min(1.0, accuracy + half_width)


def hull(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """Return the smallest interval that holds two."""
    return min(one[0], other[0]), max(one[1], other[1])
