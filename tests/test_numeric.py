"""Numbers that other parts rest on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from leadline.numeric import find_root

MONOTONE: dict[str, Callable[[float], float]] = {
    "line": lambda x: 2.0 * x - 1.0,
    "steep": lambda x: float(np.tanh(40.0 * (x - 0.31))),
    "flat at the root": lambda x: (x - 0.7) ** 5,
    "flat at one end": lambda x: float(np.exp(-np.exp(8.0 * (x - 0.5)))) - 0.02,
    "falling": lambda x: float(np.exp(-3.0 * x)) - 0.4,
    "a step": lambda x: 1.0 if x > 0.123456789 else -1.0,
}


@pytest.mark.parametrize("name", MONOTONE)
def test_roots_are_found_in_few_evaluations(name: str) -> None:
    from scipy.optimize import brentq

    calls: list[float] = []

    def function(x: float) -> float:
        calls.append(x)
        return MONOTONE[name](x)

    found = find_root(function, -1.0, 2.0)
    assert abs(found - brentq(MONOTONE[name], -1.0, 2.0)) < (1e-2 if name == "flat at the root" else 2e-9)
    # Bisection takes 34 to come so near; where there is nothing to interpolate, nothing else can be better.
    assert len(calls) <= (40 if name in ("a step", "flat at the root") else 17)
    assert all(-1.0 <= x <= 2.0 for x in calls)


@pytest.mark.parametrize(("function", "end"), [(lambda x: x + 5.0, -1.0), (lambda x: x - 5.0, 2.0)])
def test_without_a_root_the_nearer_end_is_returned(function: Callable[[float], float], end: float) -> None:
    assert find_root(function, -1.0, 2.0) == end


def test_a_root_at_an_end_is_found() -> None:
    assert find_root(lambda x: x, 0.0, 1.0) == 0.0
    assert find_root(lambda x: x - 1.0, 0.0, 1.0) == 1.0
