"""The interface between ALSA and the hardware."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray

Array = TypeVar("Array")
Float32 = NDArray[np.float32]
Precision = type[np.float32] | type[np.float64]

# Widths are held here. Cosines in float64 are off by some 1e-16, and v^2 times that is still nothing; a reach of 1e-5
# radians is far below what any classifier means by its logits.
MAX_WIDTH = np.float32(1e5)
# The steepest influence that cosines in float32 serve: they are off by some 1e-7, and 128 times that is five digits.
_FLOAT32_SLOPE = 128.0
MEAN_DECAY, SQUARE_DECAY, ADAM_FLOOR = 0.9, 0.999, 1e-8  # of Adam, as published


@dataclass(frozen=True, eq=False)
class AnchorField(Generic[Array]):
    """A set of anchors, as arrays of a backend.

    Attributes
    ----------
    anchors
        Shape (k, c): positions.
    peaks
        Shape (k,): largest influence of each anchor, positive where predictions are right.
    widths
        Shape (k,): the larger, the shorter the reach.
    power
        2 for Gaussian influence, 1 for exponential.
    """

    anchors: Array
    peaks: Array
    widths: Array
    power: int


@dataclass(frozen=True, eq=False)
class Gradients(Generic[Array]):
    """Mean binary cross-entropy of a batch and its gradients, and the mean probability that its rows are right."""

    loss: float
    accuracy: float
    anchors: Array
    peaks: Array
    widths: Array


class Kernel(ABC):
    """Influence and gradients on one kind of hardware."""

    @abstractmethod
    def asarray(self, values: NDArray[Any]) -> Any:
        """Move values to the backend, as float32."""

    @abstractmethod
    def to_numpy(self, values: Any) -> NDArray[np.float32]:
        """Bring values back."""

    @abstractmethod
    def influence(self, logits: FloatArray, field: AnchorField[Any]) -> NDArray[np.float64]:
        """Return the total influence on each row, shape (n,)."""

    @abstractmethod
    def strongest(self, logits: FloatArray, field: AnchorField[Any]) -> NDArray[np.float64]:
        """Return the largest absolute influence of any single anchor on each row, shape (n,)."""

    @abstractmethod
    def gradients(self, units: Any, correct: Any, field: AnchorField[Any]) -> Gradients[Any]:
        """Return the loss on a batch and its gradients.

        Parameters
        ----------
        units
            Shape (b, c): backend array of logit vectors scaled to length 1.
        correct
            Shape (b,): backend array, 1 where the prediction is right, else 0.
        field
            The anchors.
        """

    @abstractmethod
    def descend(self, value: Any, gradient: Any, mean: Any, square: Any, rates: tuple[float, float]) -> None:
        """Take one step of Adam (Kingma & Ba, 2015), changing value, mean and square where they are.

        Parameters
        ----------
        value, gradient
            Backend arrays of one shape.
        mean, square
            Running means of the gradient and of its square, of that shape.
        rates
            The learning rate over ``1 - decay^t`` of the mean, and ``1 / (1 - decay^t)`` of the square, at step t.
        """


def unit_rows(vectors: FloatArray, precision: Precision = np.float32) -> NDArray[Any]:
    """Scale each row to length 1; a row of zeros stays, at distance 1 from everything."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    lengths[lengths == 0] = 1.0
    # the division stays in float32 where that is enough: it takes half the time
    working = np.result_type(vectors, precision)
    return np.asarray(vectors / lengths.astype(working)[:, None], dtype=precision)


def decay_rates(widths: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the factors -v^2 of the distances; widths are held at the limit."""
    return -np.square(np.minimum(np.abs(widths), MAX_WIDTH))


def precision_for(fastest_rate: float, power: int) -> Precision:
    """Return the precision in which cosines are to be computed.

    Parameters
    ----------
    fastest_rate
        The least of the rates -v^2.
    power
        2 for Gaussian influence, 1 for exponential.

    Notes
    -----
    The distance ``d = 1 - cos`` has the absolute error of the cosine, which an influence multiplies by its slope. The
    slope of ``exp(-v^2 d)`` is v^2 at most, that of ``exp(-v^2 d^2)`` is ``v sqrt(2 / e)``. Where that is too much for
    float32, the distance, and with it the influence, is exact to float32 when the cosine is computed in float64.
    """
    slope = -fastest_rate if power == 1 else np.sqrt(-fastest_rate * 2.0 / np.e)
    return np.float64 if slope > _FLOAT32_SLOPE else np.float32
