"""Intervals for the accuracy on N rows of which some, drawn at random, were labelled: valid under any shift."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leadline.numeric import Array

_STEPS = 28  # halvings: to the seventh digit
_FARTHEST = 30.0  # of the search, in units of asinh(multiplier / labels)
# Right and wrong each, in every stratum (Jeffreys): one without an error so far may have some.
_PSEUDO_LABELS = 0.5


def exact_interval(right: int, labelled: int, n_rows: int, confidence_level: float) -> tuple[float, float]:
    """Return an interval from a simple random sample that covers at least as often as it says, always.

    Parameters
    ----------
    right, labelled
        How many labelled rows were predicted right, of how many.
    n_rows
        How many rows there are, N.
    confidence_level
        The least coverage.

    Notes
    -----
    Clopper-Pearson for a finite number of rows: all numbers K of right rows for which neither as many right labels as
    were seen, nor as few, have a probability of (1 - confidence_level) / 2 or less, where the number of right labels is
    hypergeometric.

    Examples
    --------
    >>> low, high = exact_interval(90, 100, 10**6, 0.9)
    >>> round(low, 3), round(high, 3)
    (0.836, 0.945)
    >>> exact_interval(9, 10, 10, 0.9)
    (0.9, 0.9)
    """
    return (
        _least_right(right, labelled, n_rows, confidence_level) / n_rows,
        1.0 - _least_right(labelled - right, labelled, n_rows, confidence_level) / n_rows,
    )


def _least_right(right: int, labelled: int, n_rows: int, confidence_level: float) -> int:
    """Return the smallest number of right rows that makes so many right labels likely enough."""
    from scipy.stats import hypergeom

    tail = (1.0 - confidence_level) / 2.0
    low, high = right, n_rows - (labelled - right)
    while low < high:
        middle = (low + high) // 2
        if hypergeom.sf(right - 1, n_rows, middle, labelled) > tail:
            high = middle
        else:
            low = middle + 1
    return low


def stratified_accuracy(right: ArrayLike, labelled: ArrayLike, sizes: ArrayLike) -> Array:
    """Return the estimate from a stratified sample: the strata's shares of right labels, weighted by their sizes.

    Parameters
    ----------
    right
        Shape (..., h): right labels in each stratum.
    labelled, sizes
        Shape (h,): labels and rows in each stratum. Strata without labels count as the others do together.
    """
    right, labelled, sizes = (np.asarray(values, dtype=np.float64) for values in (right, labelled, sizes))
    seen = labelled > 0
    return np.asarray((right[..., seen] / labelled[seen]) @ (sizes[seen] / sizes[seen].sum()))


def stratified_interval(
    right: ArrayLike, labelled: ArrayLike, sizes: ArrayLike, confidence_level: float
) -> tuple[Array, Array]:
    """Return lower and upper ends of intervals from stratified samples, each of shape (...).

    Parameters
    ----------
    right
        Shape (..., h): right labels in each stratum, of one or many samples.
    labelled, sizes
        Shape (h,): labels and rows in each stratum. Within a stratum, the labelled rows are a simple random sample.
    confidence_level
        Nominal coverage.

    Notes
    -----
    Of each possible accuracy m it is asked how likely the observed estimate x is, or one farther away. The strata's own
    accuracies that are most likely given the labels, if they make up m together, say what variance V(m) the estimate
    then has; it is counted as that of m (1 - m) / V(m) independent labels, and m belongs to the interval unless the
    binomial tail at x is below (1 - confidence_level) / 2. With a single stratum that is Clopper and Pearson's
    interval. Korn and Graubard (1998) count the estimate so by one variance, estimated from the sample; on real targets
    both were about as wide and covered as often (docs/studies/labels.py). A stratum that is labelled whole is known,
    one without labels may be anything.
    """
    right, labelled, sizes = (np.asarray(values, dtype=np.float64) for values in (right, labelled, sizes))
    weights = sizes / sizes.sum()
    known, unknown = labelled >= sizes, labelled == 0
    settled = right[..., known].sum(axis=-1) / sizes.sum()
    unsettled = float(weights[unknown & ~known].sum())
    low = high = settled
    open_ = ~known & ~unknown
    if open_.any():
        share = float(weights[open_].sum())
        ends = _open_interval(right[..., open_], labelled[open_], sizes[open_], confidence_level)
        low, high = settled + share * ends[0], settled + share * ends[1]
    # What has been labelled is known, whatever the rest turns out to be.
    least, most = right.sum(axis=-1) / sizes.sum(), 1.0 - (labelled - right).sum(axis=-1) / sizes.sum()
    return np.clip(low, least, most), np.clip(high + unsettled, least, most)


def _open_interval(right: Array, labelled: Array, sizes: Array, confidence_level: float) -> tuple[Array, Array]:
    """Return the ends for strata that are labelled in part."""
    tail = (1.0 - confidence_level) / 2.0
    observed = stratified_accuracy(right, labelled, sizes)
    low = _end(right, labelled, sizes, tail)
    high = 1.0 - _end(labelled - right, labelled, sizes, tail)
    return np.where(observed <= 0.0, 0.0, low), np.where(observed >= 1.0, 1.0, high)


def _end(right: Array, labelled: Array, sizes: Array, tail: float) -> Array:
    """Return the smallest accuracy under which an estimate as high as the observed one is likely enough."""
    from scipy.special import betainc

    weights = sizes / sizes.sum()
    observed = stratified_accuracy(right, labelled, sizes)
    shape = observed.shape
    smoothed, total = right + _PSEUDO_LABELS, labelled + 2 * _PSEUDO_LABELS
    of_estimate = weights**2 * (sizes - labelled) / (np.maximum(sizes - 1.0, 1.0) * labelled)

    def accuracy_and_tail(multiplier: Array) -> tuple[Array, Array]:
        shares = _most_likely(multiplier[..., None] * weights, smoothed, total)
        accuracy = np.clip(shares @ weights, 1e-12, 1.0 - 1e-12)
        variance = (shares * (1.0 - shares)) @ of_estimate
        worth = accuracy * (1.0 - accuracy) / np.maximum(variance, 1e-300)
        seen = np.clip(observed * worth, 1e-12, worth)
        return accuracy, np.asarray(betainc(seen, worth - seen + 1.0, accuracy))

    near, far = np.full(shape, -_FARTHEST), np.full(shape, _FARTHEST)
    scale = float(labelled.sum())
    for _ in range(_STEPS):
        middle = (near + far) / 2.0
        unlikely = accuracy_and_tail(scale * np.sinh(middle))[1] < tail
        near, far = np.where(unlikely, near, middle), np.where(unlikely, middle, far)
    return accuracy_and_tail(scale * np.sinh(near))[0]


def _most_likely(pull: Array, right: Array, total: Array) -> NDArray[Any]:
    """Return the strata's accuracies p that maximise right log p + (total - right) log(1 - p) - pull p.

    The root in [0, 1] of pull p^2 - (total + pull) p + right = 0, in the form that loses no digits.
    """
    linear = total + pull
    root = np.sqrt((total - pull) ** 2 + 4.0 * pull * (total - right))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(linear > 0.0, 2.0 * right / (linear + root), (linear - root) / (2.0 * pull))


def labels_needed(
    right: ArrayLike, labelled: ArrayLike, sizes: ArrayLike, half_width: float, confidence_level: float
) -> int:
    """Return how many labels, spread over the strata as those at hand, an interval of this half-width takes.

    Parameters
    ----------
    right, labelled, sizes
        Shape (h,): right labels, labels and rows in each stratum.
    half_width
        Half the difference of the interval's ends.
    confidence_level
        Of the interval.
    """
    right, labelled, sizes = (np.asarray(values, dtype=np.float64) for values in (right, labelled, sizes))
    shares = (right + _PSEUDO_LABELS) / (labelled + 2 * _PSEUDO_LABELS)
    low, high, step = 1, int(sizes.sum()), 0
    guess = float(labelled.sum())
    while low < high:
        # Widths fall about as the root of the number of labels: most guesses from that are near, and halving ends it.
        step += 1
        middle = (low + high) // 2 if step % 3 == 0 else int(np.clip(np.ceil(guess), low, high - 1))
        spread = np.minimum(middle * labelled / labelled.sum(), sizes)
        ends = stratified_interval(shares * spread, spread, sizes, confidence_level)
        share_of_width = float(ends[1] - ends[0]) / (2.0 * half_width)
        guess = middle * share_of_width**2
        if share_of_width <= 1.0:
            high = middle
        else:
            low = middle + 1
    return low
