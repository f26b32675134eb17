"""Cross-fitting: several fits, each without one part of the source."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, zip_longest

import numpy as np
from numpy.typing import NDArray


def assign_folds(
    predicted: NDArray[np.intp], correct: NDArray[np.bool_], folds: int, rng: np.random.Generator
) -> list[NDArray[np.intp]]:
    """Return for each fit the numbers of the rows it leaves out, alike in predicted classes and errors.

    Parameters
    ----------
    predicted, correct
        Shapes (n,): the predicted class of each row, and whether it is right.
    folds
        Number of fits; a single one leaves nothing out.
    rng
        Which rows go where.
    """
    if folds == 1:
        return [np.empty(0, dtype=np.intp)]
    chance = rng.random(len(predicted))
    _, groups = np.unique(2 * predicted + correct, return_inverse=True)
    first = np.full(groups.max() + 1, np.inf)
    np.minimum.at(first, groups, chance)  # an order of the groups that does not depend on the order of the classes
    order = np.lexsort((chance, first[groups]))
    return [np.sort(order[start::folds]) for start in range(folds)]


def fold_slices(n_anchors: int, folds: int) -> list[slice]:
    """Return which of the anchors belong to each fit: as equal in number as can be, one after the other."""
    ends = np.linspace(0, n_anchors, folds + 1).round().astype(int)
    return [slice(int(start), int(stop)) for start, stop in pairwise(ends)]


def joined_history(histories: Sequence[list[dict[str, float]]]) -> list[dict[str, float]]:
    """Return the mean of what was noted of each epoch, over the fits that reached it."""
    epochs = ([entry for entry in entries if entry is not None] for entries in zip_longest(*histories))
    return [{name: float(np.mean([entry[name] for entry in entries])) for name in entries[0]} for entries in epochs]
