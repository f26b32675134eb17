"""What a classifier gave out: logits, labels where they are known, and columns that came along.

Everything that enters Leadline passes through :func:`as_logits` and :func:`as_labels`, in memory or from a file
(:mod:`leadline.files`), so that the rules for good input stand in one place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.errors import InputError

FloatArray = NDArray[np.floating[Any]]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Outputs:
    """A classifier's outputs on a set of samples.

    Parameters
    ----------
    logits
        Shape (n, c): one row per sample, one column per class, before softmax.
    labels
        Shape (n,): the true class of each sample as an index into the columns, or None where nobody knows.
    metadata
        Further columns, each of shape (n,): time, segment, anything to group by.
    classes
        Names of the columns, in their order; None for 0, 1, ..., c - 1. String labels need them.

    Examples
    --------
    >>> Outputs([[2.0, 0.5], [0.1, 1.4]], labels=["dog", "cat"], classes=["dog", "cat"]).accuracy
    1.0
    """

    logits: FloatArray
    labels: IntArray | None = None
    metadata: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    classes: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Validate, and keep arrays of one kind only."""
        logits = as_logits(self.logits)
        classes = None if self.classes is None else as_classes(self.classes, logits.shape[1])
        labels = None if self.labels is None else as_labels(self.labels, logits, classes=classes)
        metadata = {name: np.asarray(column) for name, column in self.metadata.items()}
        for name, column in metadata.items():
            if column.shape != (len(logits),):
                raise InputError(
                    f"metadata column {name!r} must have one value for each of the {len(logits)} rows; "
                    f"got shape {column.shape}."
                )
        for attribute, value in (
            ("logits", logits), ("labels", labels), ("metadata", metadata), ("classes", classes),
        ):  # fmt: skip
            object.__setattr__(self, attribute, value)

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.logits)

    @property
    def n_classes(self) -> int:
        """The number of classes, c."""
        return int(self.logits.shape[1])

    @property
    def accuracy(self) -> float | None:
        """The true accuracy, where the labels are known."""
        if self.labels is None:
            return None
        return float(np.mean(self.logits.argmax(axis=1) == self.labels))

    def groups(self, column: str) -> dict[Any, NDArray[np.intp]]:
        """Return the row numbers of each value of a metadata column, in the order of the values."""
        if column not in self.metadata:
            known = ", ".join(sorted(self.metadata)) or "none"
            raise InputError(f"column {column!r} is not in these outputs; metadata columns: {known}.")
        values, inverse = np.unique(self.metadata[column], return_inverse=True)
        order = np.argsort(inverse, kind="stable")
        bounds = np.searchsorted(inverse[order], np.arange(len(values) + 1))
        return {value.item(): order[bounds[i] : bounds[i + 1]] for i, value in enumerate(values)}


def as_logits(value: Any, *, name: str = "logits", n_classes: int | None = None) -> FloatArray:
    """Return ``value`` as a finite floating-point array of shape (n, c), without copying where possible.

    NumPy arrays, nested sequences, torch tensors, pandas and polars frames and Arrow tables are taken.

    Parameters
    ----------
    value
        The logits, shape (n, c).
    name
        What to call them in an error.
    n_classes
        The width they must have, if it is known.
    """
    array = _as_array(value, name)
    if array.ndim != 2:
        raise InputError(f"{name} must have shape (samples, classes); got {array.ndim} dimension(s), {array.shape}.")
    if array.dtype.kind not in "fiu":
        raise InputError(f"{name} must be real numbers; got dtype {array.dtype}.")
    n, c = array.shape
    if n == 0:
        raise InputError(f"{name} must have at least one row; got none.")
    if c < 2:
        raise InputError(f"{name} must have at least 2 classes (columns); got {c}. Give a binary model two columns.")
    if n_classes is not None and c != n_classes:
        raise InputError(f"{name} must have {n_classes} classes, as in fit; got {c}.")
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float32 if array.dtype == np.float16 else np.float64)
    _require_finite(array, name)
    if array.min() == array.max():
        raise InputError(
            f"{name} must tell the classes apart; all {n} x {c} values are {array.flat[0]}. "
            "Check that the model's real outputs were stored."
        )
    return array


def as_labels(
    value: Any, logits: FloatArray, *, name: str = "labels", classes: Sequence[str] | None = None
) -> IntArray:
    """Return ``value`` as class indices of shape (n,), one for each row of ``logits``.

    Integers from 0 to c - 1 are taken as they are; strings only with ``classes``, the names of the logit columns
    in order. Anything else is an error: a label that is guessed wrong makes every estimate wrong.
    """
    array = _as_array(value, name)
    n, c = logits.shape
    if array.shape != (n,):
        raise InputError(f"{name} must have shape ({n},), one for each row of logits; got {array.shape}.")
    if array.dtype.kind in "OUST":
        return _labels_from_names(array, name, classes)
    if array.dtype.kind not in "iu":
        raise InputError(
            f"{name} must be integers from 0 to {c - 1}, the column of the true class; got dtype {array.dtype}."
        )
    if array.min() < 0 or array.max() >= c:
        row = int(np.flatnonzero((array < 0) | (array >= c))[0])
        raise InputError(
            f"{name} must be from 0 to {c - 1}, as the logits have {c} classes; got {array[row]} at row {row}."
        )
    return array.astype(np.int64, copy=False)


def as_classes(value: Sequence[Any], n_classes: int) -> tuple[str, ...]:
    """Return the names of the classes in the order of the logit columns, checked to be as many and distinct."""
    names = tuple(str(item) for item in value)
    if len(names) != n_classes:
        raise InputError(f"classes must name each of the {n_classes} logit columns; got {len(names)} names.")
    if len(set(names)) != n_classes:
        twice = next(item for item in names if names.count(item) > 1)
        raise InputError(f"classes must be distinct; got {twice!r} more than once.")
    return names


def row_blocks(logits: FloatArray, values_per_block: int = 1 << 21) -> list[FloatArray]:
    """Cut an array into views of consecutive rows, each small enough to work on in little memory."""
    rows = max(1, values_per_block // logits.shape[1])
    return [logits[start : start + rows] for start in range(0, len(logits), rows)]


def _as_array(value: Any, name: str) -> NDArray[Any]:
    """Turn whatever holds the numbers into a NumPy array."""
    if hasattr(value, "detach"):  # a torch tensor, on any device, possibly with a gradient or in bfloat16
        tensor = value.detach().cpu()
        value = tensor.float() if tensor.is_floating_point() and tensor.element_size() == 2 else tensor
    elif hasattr(value, "column_names") and hasattr(value, "column"):  # an Arrow table or record batch
        columns = [value.column(i).to_numpy(zero_copy_only=False) for i in range(value.num_columns)]
        _refuse_probabilities(value.column_names, name)
        value = np.column_stack(columns) if columns else np.empty((0, 0))
    elif hasattr(value, "columns") and hasattr(value, "to_numpy"):  # a pandas or polars frame
        _refuse_probabilities([str(column) for column in value.columns], name)
    elif hasattr(value, "combine_chunks") or hasattr(value, "to_pylist"):  # an Arrow array
        value = value.to_numpy(zero_copy_only=False) if hasattr(value, "type") else value
    if hasattr(value, "to_numpy"):
        value = value.to_numpy()
    try:
        return np.asarray(value)
    except ValueError as error:
        raise InputError(f"{name} must be a regular array; got rows of different lengths.") from error


def _refuse_probabilities(columns: Sequence[str], name: str) -> None:
    """Refuse columns whose names say that they hold probabilities."""
    for column in columns:
        if is_probability_name(column):
            raise InputError(
                f"{name} must be logits; column {column!r} says it holds probabilities. "
                "Store the model's outputs before softmax, or the logarithm of the probabilities."
            )


def is_probability_name(column: str) -> bool:
    """Say whether a column or array name announces probabilities instead of logits."""
    stem = column.lower().rstrip("0123456789").rstrip("_- .")
    return stem in {"p", "prob", "probs", "proba", "probas", "probability", "probabilities", "softmax", "confidence"}


def _require_finite(array: FloatArray, name: str) -> None:
    """Refuse NaN and infinity, naming the first of them; block by block, so that a large array needs no copy."""
    start = 0
    for block in row_blocks(array):
        finite = np.isfinite(block)
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            raise InputError(
                f"{name} must be finite; got {block[row, column]} at row {start + row}, class {column}. "
                "Remove or repair such rows."
            )
        start += len(block)


def _labels_from_names(array: NDArray[Any], name: str, classes: Sequence[str] | None) -> IntArray:
    """Look names of classes up in their explicit order."""
    if classes is None:
        raise InputError(
            f"{name} must be integers; got {array[0]!r}. To use class names, give `classes`: the names of the logit "
            "columns in their order."
        )
    index = {class_name: i for i, class_name in enumerate(classes)}
    unknown = next((item for item in array if str(item) not in index), None)
    if unknown is not None:
        raise InputError(f"{name} must be among the classes {', '.join(classes)}; got {unknown!r}.")
    return np.fromiter((index[str(item)] for item in array), dtype=np.int64, count=len(array))
