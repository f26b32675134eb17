"""Two methods of somebody else, written as CONTRIBUTING.md tells: one bare class, one with options and descriptions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import leadline as ll


class SurerThanACoin(ll.Estimator):
    """Share of the rows whose confidence is above one half.

    The table of methods shows the line above, and not this one.
    """

    method = "coin"

    def _fit(self, logits: NDArray[Any], labels: NDArray[Any]) -> None:
        """Learn nothing."""

    def reduce(self, logits: NDArray[Any], state: Any) -> ll.Reduced:
        """Count."""
        shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
        return ll.Reduced.from_values(logits, (1 / shifted.sum(axis=1) > 0.5).astype(float))


class ClassShare(ll.Estimator):
    """The source accuracy of each predicted class, drawn towards one half by so many rows as ``prior`` says."""

    method = "class-share"
    share_: NDArray[np.float64]

    def __init__(self, *, prior: float = 1.0) -> None:
        self.prior = prior

    def _fit(self, logits: NDArray[Any], labels: NDArray[Any]) -> None:
        """Count hits by predicted class."""
        predicted = logits.argmax(axis=1)
        counts = np.bincount(predicted, minlength=self.n_classes_)
        right = np.bincount(predicted, weights=predicted == labels, minlength=self.n_classes_)
        self.share_ = (right + self.prior) / (counts + 2 * self.prior)

    def reduce(self, logits: NDArray[Any], state: Any) -> ll.Reduced:
        """Look up the class."""
        return ll.Reduced.from_values(logits, self.share_[logits.argmax(axis=1)])


CLASS_SHARE = ll.Method(
    ClassShare,
    summary="source accuracy of each predicted class",
    assumption="predictions of a class stay as accurate as they were",
    reference="nobody yet",
)
