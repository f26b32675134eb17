"""What labels of earlier targets say of the next one: as much as it looks like them.

A labelled target shows how much the method misses there, its gap. The gaps of all possible targets are taken for a
Gaussian process over what targets look like (kriging): near a labelled target its gap is expected again, as far as its
labels tell it from noise, and far from all of them none. How large gaps are is not known beforehand, and differs: a
method that is right to a point has small ones, one that is confidently wrong misses half of everything. So several
sizes are held likely, and the labels choose between them: a gap that noise could have made is taken for noise, and a
gap beyond it is believed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray
from leadline.data.partial import NOT_LABELLED, partial_labels
from leadline.errors import InputError
from leadline.estimators.groups import ALL
from leadline.estimators.scans import InMemory
from leadline.estimators.sums import Array
from leadline.numeric import with_mean
from leadline.results.estimate import Estimate

if TYPE_CHECKING:
    from leadline.estimators.base import Estimator

#: Of one labelled target: the gap, its variance, and the shares of its rows by confidence.
Batch = Array
NO_BATCHES: NDArray[np.float64] = np.zeros((0, 12))

# Other sets of several sizes, and a reach of 0.07, do alike, leave-one-family-out (docs/studies/next_batch.py).
_SIZES = (0.01, 0.03, 0.1, 0.3)  # standard deviations of the gaps, each as likely as the others before labels
_REACH = 0.1  # Hellinger distance at which targets are much alike
_PSEUDO_SQUARE = 0.25  # of one more row: a few labels that happen to agree do not know the gap
_LEAST_VARIANCE = 1e-6  # of a gap: who labels every row knows it, but not that of the next target to more than this


def batch_of(gap: float, variance: float, confidences: Array) -> Batch:
    """Return what is kept of a labelled target, shape (2 + bins,)."""
    return np.concatenate([[gap, variance], confidences])


def batch_of_rows(right: NDArray[np.bool_], correctness: Array, confidences: Array) -> Batch:
    """Return what is kept of a target, given whether some random rows, shape (k,), are right, and how likely."""
    missed = right - correctness
    variance = (np.sum((missed - missed.mean()) ** 2) + _PSEUDO_SQUARE) / len(missed) ** 2
    return batch_of(float(missed.mean()), float(variance), confidences)


def learn_batch(estimator: Estimator, rows: FloatArray, labels: Any) -> Batch:
    """Return what is kept of a target of which some random rows are labelled.

    Parameters
    ----------
    estimator
        A fitted estimator.
    rows
        Shape (n, c): of the target, as the estimator takes them.
    labels
        Shape (n,): by index or name, None where there is none.
    """
    known = partial_labels([] if labels is None else labels, estimator.n_classes_, estimator.class_names)
    chosen = known != NOT_LABELLED
    if len(known) != len(rows) or not chosen.any():
        raise InputError(
            f"labels must be one for each of the {len(rows):,} rows, None where there is none, and some must be known; "
            f"got {len(known):,}, of which {int(chosen.sum()):,} are known."
        )
    in_memory = InMemory(rows)
    driven = estimator._drive(in_memory)
    assert driven.whole is not None
    state, total = driven.done[ALL]
    values = in_memory.values if total.values is None else total.values
    correctness = np.full(len(rows), estimator.accuracy_of(state, total))
    if values is not None:
        correctness = estimator._corrected(values, state, total)
    return batch_of_rows(rows[chosen].argmax(axis=1) == known[chosen], correctness[chosen], driven.whole.confidences)


def expected_gap(batches: NDArray[np.float64], confidences: Array) -> float:
    """Return how much a method is expected to miss of the accuracy on a target.

    Parameters
    ----------
    batches
        Shape (b, 2 + bins): labelled targets.
    confidences
        Shape (bins,): shares of the target's rows by confidence.

    Notes
    -----
    The gaps of targets whose confidences are a Hellinger distance d apart have the covariance
    ``s^2 exp(-d^2 / (2 0.1^2))``. For a size s, ``k' (K + diag(variances))^-1 gaps`` is expected; over the sizes 0.01,
    0.03, 0.1 and 0.3 the mean is taken, weighted by how likely the gaps are with each.

    Examples
    --------
    >>> shares = np.array([0.0, 0.2, 0.8])
    >>> batches = batch_of(-0.1, 0.0025, shares)[None]
    >>> round(expected_gap(batches, shares), 3), abs(round(expected_gap(batches, shares[::-1]), 3))
    (-0.056, 0.0)
    """
    gaps, variances, known = batches[:, 0], np.maximum(batches[:, 1], _LEAST_VARIANCE), batches[:, 2:]
    alike, near = _likeness(known, known), _likeness(known, confidences[None])[:, 0]
    expected, evidence = [], []
    for size in _SIZES:
        covariance = size**2 * alike + np.diag(variances)
        solved = np.linalg.solve(covariance, gaps)
        expected.append(size**2 * near @ solved)
        evidence.append(-0.5 * (gaps @ solved + np.linalg.slogdet(covariance)[1]))
    weights = np.exp(np.array(evidence) - max(evidence))
    return float(weights @ expected / weights.sum())


def _likeness(one: Array, other: Array) -> Array:
    """Return how much targets with these shares are alike, from 0 to 1, shapes (a, bins), (b, bins) -> (a, b)."""
    square = np.maximum(1.0 - np.sqrt(one[:, None] * other[None]).sum(axis=2), 0.0)
    return np.asarray(np.exp(-square / (2 * _REACH**2)))


def moved(estimate: Estimate, gap: float) -> Estimate:
    """Return an estimate that is higher by what its method is expected to miss, rows and classes in proportion."""
    accuracy = float(np.clip(estimate.accuracy + gap, 0.0, 1.0))
    by, (low, high) = accuracy - estimate.accuracy, estimate.interval

    def towards(values: Array) -> Array:
        return with_mean(values, estimate.accuracy, accuracy)

    return replace(
        estimate,
        accuracy=accuracy,
        interval=(max(0.0, low + by), min(1.0, high + by)),
        correctness=None if estimate.correctness is None else towards(estimate.correctness),
        by_class=tuple(
            one if one.accuracy is None else replace(one, accuracy=float(towards(np.array(one.accuracy))))
            for one in estimate.by_class
        ),
        diagnostics={**estimate.diagnostics, "expected_gap": gap},
    )
