"""Probabilities and scores as logits: checked, clipped, and their logarithms taken; never guessed from values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.errors import InputError

Matrix = NDArray[np.floating[Any]]

LEAST = 1e-6  # zero has no logarithm; single precision tells no smaller distance of a probability from one anyway
_SUM_TOLERANCE = 0.02  # half precision with a thousand classes is off by as much; percentages and logits by far more


def log_probabilities(values: NDArray[Any], name: str = "probabilities") -> tuple[Matrix, int]:
    """Return the logarithms of probabilities, shape (n, c), and how many rows hold one of exactly 0 or 1.

    Parameters
    ----------
    values
        Shape (n, c).
    name
        What to call them in an error.
    """
    if values.ndim != 2:
        raise InputError(
            f"{name} must have shape (samples, classes); got {values.ndim} dimension(s), {values.shape}. "
            "One score for each sample of a binary model is Outputs.from_scores."
        )
    array = _numbers(values, name)
    if not len(array):
        raise InputError(f"{name} must have at least one row; got none.")
    off = np.flatnonzero(~have_sum_one(array))
    if len(off):
        row = int(off[0])
        total = float(array[row].sum(dtype=np.float64))
        raise InputError(f"{name} must have a sum of 1 in each row; row {row} has {total:.6g}. " + _remedy(total))
    saturated = int(np.count_nonzero(((array <= 0.0) | (array >= 1.0)).any(axis=1)))
    return np.log(np.maximum(array, LEAST)), saturated


def are_fractions(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Say of each value whether it is from 0 to 1, as far as rounding allows."""
    return np.asarray((values >= -LEAST) & (values <= 1.0 + LEAST))


def have_sum_one(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Say of each row, shape (n, c), whether it has a sum of 1, as far as rounding allows."""
    return np.asarray(np.abs(values.sum(axis=1, dtype=np.float64) - 1.0) <= _SUM_TOLERANCE)


def two_columns(values: NDArray[Any], name: str = "scores") -> Matrix:
    """Return the probabilities of both classes, shape (n, 2), given that of the second, shape (n,)."""
    if values.ndim != 1:
        raise InputError(
            f"{name} must have shape (samples,), the probability of the second of two classes; got {values.shape}. "
            "One column for each class is Outputs.from_probabilities."
        )
    scores = _numbers(values, name)
    return np.stack([1.0 - scores, scores], axis=1)


def _numbers(values: NDArray[Any], name: str) -> Matrix:
    """Return values as finite floating-point numbers from 0 to 1, or say which is not."""
    if values.dtype.kind not in "fiu":
        raise InputError(f"{name} must be real numbers from 0 to 1; got dtype {values.dtype}.")
    narrow = values.dtype.kind == "f" and values.dtype.itemsize <= 4
    array: Matrix = values.astype(np.float32 if narrow else np.float64, copy=False)
    wrong = np.argwhere(~are_fractions(array))
    if len(wrong):
        value, row = float(array[tuple(wrong[0])]), int(wrong[0][0])
        raise InputError(f"{name} must be from 0 to 1; got {value:.6g} at row {row}. " + _remedy(value))
    return np.clip(array, 0.0, 1.0)


def _remedy(found: float) -> str:
    """Return what to do about a value or a sum that no probabilities have."""
    if np.isnan(found):
        return "Remove or repair such rows."
    if 1.0 < found <= 101.0:
        return "Divide percentages by 100; give outputs before softmax as logits."
    if found < 0.0:
        return "Negative values are logits or log-probabilities: give them as logits."
    return "Give the probabilities of all classes, or one score as scores."
