"""From tables of rows to blocks of good ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.data.arrow import column_values, known_rows, table_matrix
from leadline.data.columns import Columns, complete_labels, named_labels
from leadline.data.outputs import FloatArray, as_labels
from leadline.data.ranges import is_usable
from leadline.errors import InputError
from leadline.estimators.base import Estimator


def good_rows(
    table: Any, names: list[str], model: Estimator, columns: Columns
) -> tuple[FloatArray, NDArray[np.bool_] | None]:
    """Return the rows that have values, all finite, as a model takes them, and which rows these are.

    Parameters
    ----------
    table
        An Arrow table with at least one row.
    names
        A list column, one column for each class, or the one of a score.
    model
        A fitted estimator; another number of classes than its c is an error.
    columns
        What the values are.

    Returns
    -------
    tuple
        Shape (m, c), and shape (n,), or None if all rows are good.
    """
    good = known_rows(table, names, columns.width or model.n_classes_)
    matrix = _matrix(table if good is None else table.filter(good), names)
    if len(matrix) and matrix.shape[1] != (columns.width or model.n_classes_):
        raise InputError(f"{columns.kind} must have {model.n_classes_} classes, as in fit; got {matrix.shape[1]}.")
    # The extremes are NaN or too large if any value is, and finding them needs no memory.
    plain = columns.kind == "logits" and len(matrix) and is_usable(np.array([matrix.min(), matrix.max()])).all()
    finite = None if plain or not len(matrix) else columns.good_rows(matrix)
    if finite is None or finite.all():
        return _as_rows(matrix, model, columns), good
    if good is None:
        return _as_rows(matrix[finite], model, columns), np.asarray(finite)
    good[np.flatnonzero(good)[~finite]] = False
    return _as_rows(matrix[finite], model, columns), good


def right_rows(column: Any, matrix: FloatArray, classes: Sequence[str] | None) -> NDArray[np.bool_] | None:
    """Return in which rows, shape (m, c), a column of labels has the predicted class; None where labels are missing."""
    values = complete_labels(column_values(column))
    if values is None:
        return None
    labels = as_labels(named_labels(values, classes), matrix, classes=classes)
    return np.asarray(matrix.argmax(axis=1) == labels)


def _as_rows(matrix: FloatArray, model: Estimator, columns: Columns) -> FloatArray:
    """Return values as rows, shape (m, c), where there are any."""
    return model.source_.rows(columns.to_logits(matrix)) if len(matrix) else np.empty((0, model.n_classes_))


def _matrix(table: Any, names: list[str]) -> FloatArray:
    """Return the logits of a table as float32 or float64, shape (n, c)."""
    matrix = table_matrix(table, names)
    if matrix.dtype in (np.float32, np.float64):
        return np.asarray(matrix)
    return np.asarray(matrix, dtype=np.float32 if matrix.dtype == np.float16 else np.float64)
