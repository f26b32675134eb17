"""The sums of the smoothed dual against the same in plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from leadline.estimators.dual import Problem


@pytest.mark.parametrize("c", [1, 2, 7, 300])
@pytest.mark.parametrize("epsilon", [0.3, 0.02, 1e-3, 1e-6])
def test_sums_are_those_of_shares_worked_out_one_by_one(c: int, epsilon: float) -> None:
    rng = np.random.default_rng(c)
    rows = rng.dirichlet(np.full(c, 0.2), size=400)
    rows[:50] = rows[0]  # ties
    rows[50:60] = 1.0 / c
    weights, settled = rng.integers(1, 4, size=400).astype(float), rng.uniform(size=c)
    potentials = rng.normal(scale=0.05, size=c)
    found = Problem(rows, weights, np.full(c, 1.0 / c), settled).sums(potentials, epsilon)

    scores = (rows + potentials) / epsilon
    highest = scores.max(axis=1, keepdims=True)
    shares = np.exp(scores - highest)
    mass = shares.sum(axis=1, keepdims=True)
    shares /= mass
    exponents = scores - highest
    drift = weights @ (shares * (exponents - (shares * exponents).sum(axis=1, keepdims=True)))
    smooth = epsilon * (weights @ (highest + np.log(mass)))[0] + settled @ potentials
    overlap = np.tril((weights[:, None] * shares).T @ shares, -1)
    negligible = 1e-6 * weights.sum()  # on the way, shares of 1e-8 of a row are left out
    np.testing.assert_allclose(found.share, weights @ shares + settled, atol=negligible)
    np.testing.assert_allclose(found.drift, drift, atol=20 * negligible)
    np.testing.assert_allclose(found.smooth, smooth, rtol=1e-6)
    # On the way, probabilities that differ by a tenth of epsilon count as equal in products of two shares.
    exact = epsilon <= 1e-3
    np.testing.assert_allclose(found.overlap, overlap, rtol=1e-9 if exact else np.expm1(0.2), atol=1e-9)


def test_rows_far_from_every_border_are_settled_where_they_go() -> None:
    rng = np.random.default_rng(0)
    rows, potentials = rng.dirichlet(np.ones(5), size=1_000), rng.normal(scale=0.1, size=5)
    weights = rng.integers(1, 4, size=1_000).astype(float)
    problem = Problem(rows, weights, np.full(5, 0.2), np.zeros(5))
    near = problem.near(potentials)
    ordered = np.sort(rows + potentials, axis=1)
    alone = ordered[:, -1] - ordered[:, -2] > 0.04
    np.testing.assert_array_equal(near.probabilities, rows[~alone])
    np.testing.assert_array_equal(near.weights, weights[~alone])
    labels = (rows + potentials).argmax(axis=1)[alone]
    np.testing.assert_allclose(near.settled, np.bincount(labels, weights=weights[alone], minlength=5))
    assert near.n == problem.n


def test_neither_the_order_of_rows_nor_that_of_labels_changes_the_sums() -> None:
    rng = np.random.default_rng(1)
    rows, potentials = rng.dirichlet(np.full(40, 0.3), size=3_000), rng.normal(scale=0.05, size=40)
    order, labels = rng.permutation(3_000), rng.permutation(40)
    one, other = (
        Problem(some, np.ones(3_000), np.full(40, 1 / 40), np.zeros(40)).sums(some_potentials, 0.01)
        for some, some_potentials in ((rows, potentials), (rows[order][:, labels], potentials[labels]))
    )
    np.testing.assert_allclose(other.share, one.share[labels], rtol=1e-10)
    whole = one.overlap + one.overlap.T
    np.testing.assert_allclose(other.overlap, np.tril(whole[labels][:, labels], -1), rtol=1e-9, atol=1e-12)
