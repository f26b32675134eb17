"""More than accuracy: an estimated confusion matrix and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Performance:
    """How a classifier does class by class, as far as its own outputs tell.

    Attributes
    ----------
    confusion
        Shape (c, c): expected number of samples by true class (row) and predicted class (column).
    classes
        The names of the classes, or their numbers; None where they are not known.

    Examples
    --------
    >>> Performance(np.array([[8.0, 2.0], [1.0, 9.0]])).recall
    array([0.8, 0.9])
    """

    confusion: Array
    classes: tuple[str | int, ...] | None = None

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

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON; what cannot be told is None."""
        return {
            "accuracy": self.accuracy,
            "confusion": self.confusion.tolist(),
            **{name: _plain(getattr(self, name)) for name in ("precision", "recall", "f1")},
        }

    def _repr_html_(self) -> str:
        """Return a notebook's view."""
        from leadline.results.views import performance_view

        return performance_view(self)


def _ratio(part: Array, whole: Array) -> Array:
    return np.asarray(np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0))


def _plain(values: Array) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]
