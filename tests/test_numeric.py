"""Numbers that other parts rest on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from leadline.numeric import find_root, limited, top_two, top_two_of_weights

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


@pytest.mark.parametrize("c", [2, 3, 10, 40])
def test_top_class_and_runner_up_in_every_order_of_memory(c: int) -> None:
    logits = np.random.default_rng(c).normal(scale=3.0, size=(200, c))
    logits[:20, 1] = logits[:20, 0] = 9.0  # the first of two that are equal is the top one
    order = np.argsort(-logits, axis=1, kind="stable")
    others = np.exp(logits)
    others[np.arange(200), order[:, 0]] = 0.0
    odds = logits.max(axis=1) - np.log(others.sum(axis=1))
    for rows in (logits, np.asfortranarray(logits)):
        top, second, found = top_two(rows)
        np.testing.assert_array_equal(top, order[:, 0])
        np.testing.assert_array_equal(second, order[:, 1])
        np.testing.assert_allclose(found, odds, atol=1e-12)
    top, second, found = top_two_of_weights(np.exp(logits))
    np.testing.assert_array_equal(top, order[:, 0])
    np.testing.assert_array_equal(second, order[:, 1])
    np.testing.assert_allclose(found, odds, atol=1e-12)


def test_log_odds_of_a_given_class_are_negative_where_another_is_likelier() -> None:
    given = np.array([0, 1])
    top, second, odds = top_two(np.array([[2.0, 0.0], [3.0, -1.0]]), given)
    np.testing.assert_array_equal(top, given)
    np.testing.assert_array_equal(second, [1, 0])
    np.testing.assert_array_equal(odds, [2.0, -4.0])


def test_limits_hold_numbers_and_leave_what_is_none() -> None:
    assert [limited(value) for value in (-1.0, 0.5, 2.0)] == [0.0, 0.5, 1.0]
    assert np.isnan(limited(np.nan))
