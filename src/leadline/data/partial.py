"""Labels of some rows only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from leadline.data.arrays import as_column
from leadline.data.outputs import IntArray, as_labels

NOT_LABELLED = -1


def partial_labels(labels: Any, n_classes: int, classes: Sequence[str] | None) -> IntArray:
    """Return labels by index or name as indices, ``NOT_LABELLED`` where there is none (None or NaN).

    Parameters
    ----------
    labels
        Shape (n,), or what can be made one.
    n_classes
        The number of classes.
    classes
        Their names, where they have any.
    """
    given = as_column(labels, "labels")
    missing = np.array([value is None or (isinstance(value, float) and np.isnan(value)) for value in given.tolist()])
    indices = np.full(len(given), NOT_LABELLED, dtype=np.int64)
    values = given[~missing].tolist() if len(given) else []
    if values:
        # Of a column with gaps, NumPy has made 2 into 2.0.
        whole = [int(value) if isinstance(value, float) and value.is_integer() else value for value in values]
        indices[~missing] = as_labels(np.array(whole, dtype=object), np.zeros((len(whole), n_classes)), classes=classes)
    return indices
