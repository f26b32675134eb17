"""Arrays of the store that are not what they must be."""

from __future__ import annotations

import numpy as np
import pytest

from leadline import InputError
from leadline.monitor import blobs


@pytest.mark.parametrize("value", [np.nan, np.inf, -1e308, 1e100, np.float16(3), np.float32(3e38)])
def test_sums_that_no_rows_have_are_damage(value: float) -> None:
    sums = {name: np.array([3.0, 2.0]) for name in ("count", "value", "square")}
    assert blobs.unpack_sums(blobs.pack(sums)).n_rows == 5
    with pytest.raises(InputError, match="the store is damaged: arrays in it are not those of sums"):
        blobs.unpack_sums(blobs.pack(sums | {"square": np.array([value, value])}))  # twice that is no number
