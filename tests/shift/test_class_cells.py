"""P(cell | class): the two ways to hold it against its definition, and the class shares that are found with it."""

from __future__ import annotations

import numpy as np
import pytest

from leadline.numeric import top_two
from leadline.shift.cells import N_BINS, bin_edges, histogram
from leadline.shift.class_cells import ClassCells, DenseCells, SparseCells, template_rows
from leadline.shift.moved_rows import UNMOVED, MovedRows

_MOVES, _CLASSES = 3, 4


def _counts() -> tuple[np.ndarray, np.ndarray]:
    """Return how many rows there are by move, table, label, class and bin, and the labels of 200 rows."""
    rng = np.random.default_rng(0)
    labels = rng.choice(_CLASSES, p=[0.6, 0.3, 0.1, 0.0], size=200)
    counts = np.zeros((_MOVES, 2, _CLASSES, _CLASSES, N_BINS), dtype=np.intp)
    for move in range(_MOVES):
        for label in labels:
            top, second = rng.choice(_CLASSES, p=np.where(np.arange(4) == label, 0.7, 0.1), size=2, replace=False)
            cell = rng.integers(N_BINS)
            counts[move, 0, label, top, cell] += 1
            counts[move, 1, label, second, cell] += 1
    return counts, labels


def _dense() -> DenseCells:
    return DenseCells(*_counts())


def _sparse() -> SparseCells:
    counts, labels = _counts()
    pairs = np.argwhere(counts.sum(axis=-1) > 0)
    return SparseCells(pairs, counts[tuple(pairs.T)], labels, (_MOVES, 2, _CLASSES))


@pytest.fixture(params=[_dense, _sparse])
def cells(request: pytest.FixtureRequest) -> ClassCells:
    """Return the cells in either way."""
    found: ClassCells = request.param()
    return found


def test_cells_of_a_class_are_its_rows_and_some_of_the_average_class(cells: ClassCells) -> None:
    counts, labels = _counts()
    wanted = np.zeros((_MOVES, _CLASSES, 2, _CLASSES, N_BINS))
    for move, table, label in np.ndindex(_MOVES, 2, _CLASSES):
        of_table = counts[move, table]
        own = sum(of_table[i, i] for i in range(_CLASSES))
        hit, miss = ((found + 1 / N_BINS) / (2 * (len(labels) + 2)) for found in (own, of_table.sum((0, 1)) - own))
        wrong = of_table.sum(axis=(0, 2)) - of_table.sum(axis=2).diagonal() + 0.5
        others = np.where(np.arange(_CLASSES) == label, 0.0, wrong)
        template = np.outer(others / others.sum(), miss)
        template[label] = hit
        rows = 0.5 * of_table[label] + template_rows(_CLASSES) * template
        wanted[move, label, table] = rows / (np.sum(labels == label) + template_rows(_CLASSES))
    for label in range(_CLASSES):
        alone = np.tile(np.eye(_CLASSES)[label], (_MOVES, 1))
        np.testing.assert_allclose(cells.mix(alone), wanted[:, label].reshape(_MOVES, 2, -1), rtol=1e-12)
    np.testing.assert_allclose(wanted.sum(axis=(2, 3, 4)), 1.0)


def test_expectations_of_classes_add_up_to_that_of_the_mixture(cells: ClassCells) -> None:
    rng = np.random.default_rng(1)
    shares, amounts = rng.dirichlet(np.ones(_CLASSES), _MOVES), rng.random((_MOVES, 2, _CLASSES * N_BINS))
    of_mixture = (cells.mix(shares) * amounts).sum(axis=(1, 2))
    np.testing.assert_allclose((shares * cells.expected(amounts)).sum(axis=1), of_mixture, rtol=1e-12)


def test_both_ways_find_the_same_class_shares() -> None:
    rng = np.random.default_rng(2)
    target, start = rng.dirichlet(np.ones(2 * _CLASSES * N_BINS)).reshape(2, -1), np.full(_CLASSES, 0.25)
    found = (cells.fit_marginals(target, start) for cells in (_dense(), _sparse()))
    for of_dense, of_sparse in zip(*found, strict=True):
        np.testing.assert_allclose(of_dense, of_sparse, atol=1e-12)


@pytest.mark.parametrize("c", [3, 40])
def test_class_shares_of_a_target_are_found(c: int) -> None:
    rng = np.random.default_rng(c)

    def rows(shares: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
        labels = rng.choice(c, p=shares, size=n)
        return rng.normal(size=(n, c)) + 5.0 * np.eye(c)[labels], labels

    uniform, shifted = np.full(c, 1 / c), rng.dirichlet(np.ones(c))
    scores, labels = rows(uniform, 4000)
    source = MovedRows(scores, labels, np.roll(scores, 7, axis=0))
    target, of_target = rows(shifted, 4000)
    found = top_two(target)
    edges = bin_edges(found[2], source.odds)
    marginals, _ = source.cells.counted(edges).fit_marginals(histogram(found, edges, c), source.marginal)
    observed = np.bincount(of_target, minlength=c) / 4000
    assert np.abs(marginals[UNMOVED] - observed).sum() / 2 < 0.05
