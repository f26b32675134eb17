"""Which numbers methods can compute with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGEST = 1e30  # in size; no model's output is near it, and single precision has room to compare such values


def is_usable(values: NDArray[np.floating[Any]]) -> NDArray[np.bool_]:
    """Say of each value whether it is finite and of a size that methods can compute with."""
    if values.dtype == np.float16:  # has no number as large
        return np.asarray(np.isfinite(values))
    return np.asarray(np.abs(values) <= LARGEST)  # NaN is not
