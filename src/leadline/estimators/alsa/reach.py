"""Which samples are out of the anchors' reach: the rectification threshold."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from leadline.estimators.alsa.constants import CONSTANTS
from leadline.numeric import sigmoid


def rectification_threshold(alpha: float, influence: Literal["gaussian", "exponential"]) -> float:
    """Return the influence below which a sample counts as out of reach.

    The value of an influence with the unified peak 6 where a share ``alpha`` of the area under it lies nearer:
    ``6 exp(-erfinv(alpha)^2)`` for the Gaussian influence, ``6 (1 - alpha)`` for the exponential one (the paper's
    appendix on the unified threshold).

    Examples
    --------
    >>> round(rectification_threshold(0.9, "gaussian"), 2), round(rectification_threshold(0.9, "exponential"), 2)
    (1.55, 0.6)
    """
    from scipy.special import erfinv

    if influence == "gaussian":
        return float(CONSTANTS.unified_peak * np.exp(-np.square(erfinv(alpha))))
    return CONSTANTS.unified_peak * (1.0 - alpha)


def harmless_threshold(
    total: NDArray[np.float64], felt: NDArray[np.float64], n_classes: int, highest: float, tolerance: float
) -> float:
    """Return the highest threshold whose rectification changes the mean correctness by the tolerance at most.

    It lies halfway between two rows: at a row, the last digit would decide whether that one is rectified.

    Parameters
    ----------
    total
        Shape (n,): total influence on the source rows.
    felt
        Shape (n,): the influence that is compared with the threshold.
    n_classes
        Rectified rows count one over this.
    highest
        Never more than this.
    tolerance
        How much the mean may change.
    """
    order = np.argsort(felt)
    change = np.abs(np.cumsum(sigmoid(total[order]) - 1.0 / n_classes)) / len(total)
    too_many = np.flatnonzero(change > tolerance)
    if not len(too_many):
        return highest
    harmless = np.concatenate([[0.0], felt[order]])[too_many[0]]
    return float(min((harmless + felt[order[too_many[0]]]) / 2, highest))


def alpha_of_threshold(threshold: float, influence: Literal["gaussian", "exponential"]) -> float:
    """Invert :func:`rectification_threshold`."""
    from scipy.special import erf

    share = threshold / CONSTANTS.unified_peak
    with np.errstate(divide="ignore"):  # where influence underflows to zero, alpha is 1
        return float(erf(np.sqrt(-np.log(share)))) if influence == "gaussian" else 1.0 - share
