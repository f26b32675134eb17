"""Where logit vectors lie when their cosines are taken."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray
from leadline.estimators.alsa.constants import CONSTANTS

Geometry = Literal["lifted", "cosine"]


def lift_for(logits: FloatArray) -> float:
    """Return the lift of :func:`place_vectors` that suits a source, shape (n, c).

    The root mean square length of its centred logits, times a factor that fades as classes grow: with two classes
    cosines without it tell nothing but the predicted class, with many they tell enough, and length misleads.
    """
    centred = centre(logits)
    length = float(np.sqrt(np.einsum("ij,ij->", centred, centred, dtype=np.float64) / len(centred)))
    return length * float((2.0 / logits.shape[1]) ** CONSTANTS.lift_fall)


def centre(logits: FloatArray) -> FloatArray:
    """Return logits, shape (n, c), less the mean of each row: what softmax does not see either."""
    return np.asarray(logits - logits.mean(axis=1, keepdims=True, dtype=np.float64).astype(logits.dtype))


def place_vectors(logits: FloatArray, lift: float) -> FloatArray:
    """Return vectors whose cosines are to be taken: centred logits with one constant coordinate more, (n, c + 1).

    The constant makes the cosine see the length of a logit vector: the longer it is, the less it points that way.
    """
    return with_lift(centre(logits), lift)


def with_lift(positions: FloatArray, lift: float) -> FloatArray:
    """Return positions among centred logits, shape (n, c), with the constant coordinate, shape (n, c + 1)."""
    constant = np.full((len(positions), 1), lift, dtype=positions.dtype)
    return np.concatenate([positions, constant], axis=1)


def without_lift(vectors: FloatArray, lift: float) -> NDArray[np.float32]:
    """Return the positions, shape (n, c), of vectors of any length, shape (n, c + 1)."""
    return np.asarray(vectors[:, :-1].astype(np.float64) * (lift / vectors[:, -1:]), dtype=np.float32)
