"""The compiled loops against the plain functions that serve small arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from leadline import numeric, rowwise


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "c"), [(1, 2), (37, 3), (1000, 10), (130, 90)])
def test_compiled_loops_say_what_plain_functions_say(n: int, c: int, dtype: Any) -> None:
    rng = np.random.default_rng(c)
    logits = rng.normal(scale=8.0, size=(n, c)).astype(dtype)
    logits[0, 0] += 2000.0  # saturated beyond any exponential
    assert logits.size < rowwise.WORTH_IT_FROM
    bias, classes = rng.normal(size=c), rng.integers(c, size=n)
    for options in ({"entropy": True}, {"bias": bias, "classes": classes}):
        compiled, plain = (read(logits, 1.7, **options) for read in (rowwise.read, numeric.read))
        for one, other in zip(compiled, plain, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-300)
        np.testing.assert_allclose(compiled.probability + compiled.improbability, 1.0, rtol=1e-14)
    wide = logits.astype(np.float64)
    np.testing.assert_allclose(
        rowwise.log_softmax(logits, 1.7), numeric.log_softmax(logits, 1.7), rtol=1e-12, atol=1e-300
    )
    np.testing.assert_allclose(
        rowwise.softmax(wide, bias=bias)[0], numeric.softmax(wide + bias), rtol=1e-12, atol=1e-300
    )
    for one, other in zip(rowwise.top_two(wide, classes), numeric.top_two(wide, classes), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    for one, other in zip(rowwise.assign(logits, 1.7, bias), numeric.assign(logits, 1.7, bias), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-13)


def test_a_row_has_the_same_digits_wherever_it_stands() -> None:
    logits = np.random.default_rng(0).normal(size=(20_001, 10)).astype(np.float32)
    whole = rowwise.read(logits)
    part = rowwise.read(logits[7:19_000:3])
    np.testing.assert_array_equal(part.others, whole.others[7:19_000:3])
