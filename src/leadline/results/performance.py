"""More than accuracy: an estimated confusion matrix and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from leadline.numeric import normal_quantile

Array = NDArray[np.float64]
Measure = Literal["accuracy", "macro_f1", "precision", "recall", "f1"]

# By measure of a class, the axes of the confusion matrix along which its samples are counted: precision's are the
# predicted ones, recall's the true ones.
_COUNTED: Mapping[str, tuple[int, ...]] = MappingProxyType({"precision": (0,), "recall": (1,), "f1": (0, 1)})
_MOST_SCALED = 1e6  # no classifier is so sure and so wrong that its mistakes are more frequent by this factor
_CLASS_SHARE = 1.5  # the margin of one class, in margins of the accuracy


def matched(confusion: Array, accuracy: float) -> Array:
    """Return a confusion matrix, shape (c, c), with the given accuracy: all mistakes more, or less, frequent alike.

    Parameters
    ----------
    confusion
        Expected numbers by true class (row) and predicted class (column); the numbers of each prediction stay.
    accuracy
        The share of the diagonal; without a single mistake in the matrix there is nothing to scale.
    """
    predicted = confusion.sum(axis=0)
    mistakes = predicted - np.diag(confusion)
    wanted = (1.0 - accuracy) * predicted.sum()
    low, high = 0.0, _MOST_SCALED
    for _ in range(60):  # a prediction cannot be wrong more often than it is made, so that this is no mere ratio
        middle = (low + high) / 2
        low, high = (middle, high) if np.minimum(middle * mistakes, predicted).sum() < wanted else (low, middle)
    scaled = np.minimum(high * mistakes, predicted)
    found = confusion * np.divide(scaled, mistakes, out=np.ones_like(scaled), where=mistakes > 0)
    np.fill_diagonal(found, predicted - scaled)
    return np.asarray(found)


def expected_auc(scores: Array, positive: Array) -> float | None:
    """Return the expected area under the ROC curve; None where one of the two classes has no mass.

    Parameters
    ----------
    scores
        Shape (n,): larger for the positive class.
    positive
        Shape (n,): the probability that each row is positive; labels give the plain area.
    """
    _, places = np.unique(scores, return_inverse=True)
    right, wrong = (np.bincount(places, weights=weights) for weights in (positive, 1.0 - positive))
    mass = right.sum() * wrong.sum()
    below = np.cumsum(wrong) - wrong / 2.0  # ties count half
    return float(right @ below / mass) if mass > 0 else None


@dataclass(frozen=True, eq=False)
class Performance:
    """How a classifier does class by class, as far as its own outputs tell.

    Attributes
    ----------
    confusion
        Shape (c, c): expected number of samples by true class (row) and predicted class (column).
    classes
        The names of the classes, or their numbers; None where they are not known.
    roc_auc
        Of two classes, the estimated area under the ROC curve of the second; None of more.
    margin
        Half-width of the interval of the accuracy.
    confidence_level
        Nominal coverage of the intervals.

    Examples
    --------
    >>> Performance(np.array([[8.0, 2.0], [1.0, 9.0]])).recall
    array([0.8, 0.9])
    """

    confusion: Array
    classes: tuple[str | int, ...] | None = None
    roc_auc: float | None = None
    margin: float = 0.0
    confidence_level: float = 0.9

    @property
    def accuracy(self) -> float:
        """Share of the expected mass on the diagonal."""
        return float(np.trace(self.confusion) / self.confusion.sum())

    @property
    def precision(self) -> Array:
        """Shape (c,): share of the samples predicted to be of each class that are; NaN where never predicted."""
        return _ratio(np.diag(self.confusion), self.confusion.sum(axis=0))

    @property
    def recall(self) -> Array:
        """Shape (c,): share of the samples of each class that are predicted so; NaN where there seem to be none."""
        return _ratio(np.diag(self.confusion), self.confusion.sum(axis=1))

    @property
    def f1(self) -> Array:
        """Shape (c,): harmonic mean of precision and recall."""
        return _ratio(2 * np.diag(self.confusion), self.confusion.sum(axis=0) + self.confusion.sum(axis=1))

    @property
    def macro_f1(self) -> float:
        """Mean F1 over the classes that are predicted or seem to be there."""
        return float(np.nanmean(self.f1))

    def interval(self, measure: Measure) -> tuple[Array, Array]:
        """Return the lower and upper ends of the intervals of a measure.

        Parameters
        ----------
        measure
            "accuracy" or "macro_f1", for ends of shape (); "precision", "recall" or "f1", for ends of shape (c,), NaN
            where the measure is.

        Notes
        -----
        The macro-F1 is as uncertain as the accuracy; a class is half as uncertain again, and has its own sampling error
        (measured on real shifts: docs/which-method.md).
        """
        value = np.asarray(getattr(self, measure))
        half_width: float | Array = self.margin
        if measure in _COUNTED:
            rows = np.maximum(
                sum(self.confusion.sum(axis=axis) for axis in _COUNTED[measure]) / len(_COUNTED[measure]), 1
            )
            sampling = normal_quantile(0.5 + self.confidence_level / 2) * np.sqrt(0.25 / rows)
            half_width = np.hypot(_CLASS_SHARE * self.margin, sampling)
        return np.maximum(value - half_width, 0.0), np.minimum(value + half_width, 1.0)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON; what cannot be told is None."""
        return {
            "accuracy": self.accuracy,
            "macro_f1": self.macro_f1,
            "roc_auc": self.roc_auc,
            "confusion": self.confusion.tolist(),
            **{name: _plain(getattr(self, name)) for name in _COUNTED},
        }

    def _repr_html_(self) -> str:
        """Return a notebook's view."""
        from leadline.results.views import performance_view

        return performance_view(self)


def _ratio(part: Array, whole: Array) -> Array:
    return np.asarray(np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0))


def _plain(values: Array) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]
