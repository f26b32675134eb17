"""The plane that logits are looked at on: two classes as they are, three on their best-fit plane, more by pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray, IntArray
from leadline.errors import InputError
from leadline.numeric import log_softmax
from leadline.report.style import short


@dataclass(frozen=True, eq=False)
class Plane:
    """A plane in logit space, and the rows that are shown on it.

    Attributes
    ----------
    origin
        Shape (c,): the point with coordinates (0, 0).
    directions
        Shape (2, c): what one step along each coordinate adds to the logits.
    readers
        Shape (2, c): how a logit vector's coordinates are read off, ``(z - offset) @ readers.T``.
    offset
        Shape (c,).
    labels
        What the two axes are.
    classes
        The classes that the plane belongs to: two, or all three.
    """

    origin: NDArray[np.float64]
    directions: NDArray[np.float64]
    readers: NDArray[np.float64]
    offset: NDArray[np.float64]
    labels: tuple[str, str]
    classes: tuple[int, ...]

    def project(self, logits: FloatArray) -> NDArray[np.float64]:
        """Return the coordinates of logit vectors (n, c) on the plane, shape (n, 2)."""
        return (np.asarray(logits, dtype=np.float64) - self.offset) @ self.readers.T

    def lift(self, coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the logit vectors (n, c) at coordinates (n, 2) of the plane."""
        return self.origin + coordinates @ self.directions

    def shows(self, logits: FloatArray) -> NDArray[np.bool_]:
        """Say which rows belong on the plane: those predicted to be of its classes. Shape (n,)."""
        return np.isin(logits.argmax(axis=1), self.classes)


def find_plane(
    logits: FloatArray,
    labels: IntArray | None = None,
    *,
    pair: Sequence[int] | None = None,
    names: Sequence[str] | None = None,
) -> Plane:
    """Return the plane on which these logits are best looked at.

    Parameters
    ----------
    logits
        Shape (n, c).
    labels
        Shape (n,): true classes, to find the classes that are most often mistaken for each other; without them,
        the confidences say.
    pair
        Two classes to look at; None for both of two classes, the best-fit plane of three, and the most confused
        pair of more.
    names
        The names of the classes.

    Returns
    -------
    Plane
        With more than two classes and a pair, a point of the plane stands for the logit vector whose other entries
        are what a least-squares fit on the shown rows expects them to be.
    """
    n_classes = logits.shape[1]
    if pair is None and n_classes == 3:
        return _best_fit(logits)
    first, second = most_confused(logits, labels) if pair is None else checked_pair(pair, n_classes)
    axes = [f"logit of class {short(names[i] if names else str(i))}" for i in (first, second)]
    readers = np.zeros((2, n_classes))
    readers[0, first] = readers[1, second] = 1.0
    shown = np.asarray(logits[np.isin(logits.argmax(axis=1), (first, second))], dtype=np.float64)
    if len(shown) < 3:
        shown = np.asarray(logits, dtype=np.float64)
    design = np.column_stack([np.ones(len(shown)), shown[:, first], shown[:, second]])
    fitted = np.linalg.lstsq(design, shown, rcond=None)[0]
    fitted[:, [first, second]] = np.eye(3)[:, 1:]  # exactly, where least squares is near
    return Plane(
        fitted[0], fitted[1:].astype(np.float64), readers, np.zeros(n_classes), (axes[0], axes[1]), (first, second)
    )


def most_confused(logits: FloatArray, labels: IntArray | None = None) -> tuple[int, int]:
    """Return the two classes that are most often mistaken for each other.

    With labels, errors are counted; without them, or without errors, they are expected: the softmax of each class
    over the rows predicted as the other.

    Examples
    --------
    >>> most_confused(np.eye(3)[[0, 1, 2, 2]], np.array([0, 1, 1, 1]))
    (1, 2)
    """
    n_classes = logits.shape[1]
    predicted = logits.argmax(axis=1)
    confusion = np.zeros((n_classes, n_classes))
    if labels is not None:
        np.add.at(confusion, (predicted, labels), 1.0)
        np.fill_diagonal(confusion, 0.0)
    if not confusion.any():
        np.add.at(confusion, predicted, np.exp(log_softmax(logits)))
    both = np.triu(confusion + confusion.T, k=1)
    first, second = np.unravel_index(int(both.argmax()), both.shape)
    return (int(first), int(second)) if first != second else (0, 1)


def _best_fit(logits: FloatArray) -> Plane:
    """Return the plane of the two directions in which three logits vary most."""
    points = np.asarray(logits, dtype=np.float64)
    mean = points.mean(axis=0)
    directions = np.linalg.eigh(np.cov(points.T))[1].T[::-1][:2]
    directions = directions * np.sign(directions[np.arange(2), np.abs(directions).argmax(axis=1)])[:, None]
    labels = ("logits, along their widest spread", "logits, along their next widest spread")
    return Plane(mean, directions, directions, mean, labels, (0, 1, 2))


def checked_pair(pair: Sequence[int], n_classes: int) -> tuple[int, int]:
    """Return two distinct classes."""
    if len(pair) != 2 or pair[0] == pair[1] or not all(0 <= i < n_classes for i in pair):
        raise InputError(f"pair must be two different classes from 0 to {n_classes - 1}; got {tuple(pair)!r}.")
    return int(pair[0]), int(pair[1])
