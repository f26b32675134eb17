"""The loops of an estimate in NumPy, for targets so small that loading the compiled ones would take longest.

Each does what its namesake in ``loops.py`` does, with the same arguments and to rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.estimators.alsa.kernels.base import Float32

_LEAST = np.float32(-50.0)  # exponents are held here, as in the compiled loops: denormal numbers are slow


def add_influence(
    cosines: NDArray[Any], peaks: Float32, rates: Float32, power: int, total: NDArray[np.float64]
) -> None:
    """Add the influence of a tile of anchors to the total of each row; rates are -widths^2."""
    total += _decays(cosines, rates, power) @ peaks


def raise_strongest(
    cosines: NDArray[Any], peaks: Float32, rates: Float32, power: int, strongest: NDArray[np.float64]
) -> None:
    """Raise the largest single influence on each row by those of a tile of anchors."""
    decays = _decays(cosines, rates, power)
    decays *= np.abs(peaks)
    np.maximum(strongest, decays.max(axis=1), out=strongest)


def _decays(cosines: NDArray[Any], rates: Float32, power: int) -> Float32:
    """Return exp(-v^2 d^power), shape (n, k); the distances keep the precision of the cosines."""
    values = np.asarray(1.0 - cosines, dtype=np.float32)
    if power == 2:
        np.square(values, out=values)
    else:
        np.maximum(values, 0.0, out=values)
    values *= rates
    np.maximum(values, _LEAST, out=values)
    return np.exp(values, out=values)
