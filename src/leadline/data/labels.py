"""Labels and the names of classes: the rules for good ones stand here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.data.arrays import as_column
from leadline.data.names import brief
from leadline.errors import InputError

FloatArray = NDArray[np.floating[Any]]
IntArray = NDArray[np.int64]


def as_labels(
    value: Any, logits: FloatArray, *, name: str = "labels", classes: Sequence[str] | None = None
) -> IntArray:
    """Return ``value`` as class indices of shape (n,), one for each row of ``logits``.

    Integers from 0 to c - 1 are taken as they are, and so are False and True for two classes; strings only with
    ``classes``, the names of the logit columns in order. Anything else is an error: a label that is guessed wrong makes
    every estimate wrong.
    """
    array = as_column(value, name)
    n, c = logits.shape
    if array.shape != (n,):
        raise InputError(f"{name} must have shape ({n},), one for each row of logits; got {array.shape}.")
    if array.dtype.kind == "O" and all(map(_is_integer, array)):
        array = np.array(array.tolist())
    if array.dtype.kind == "b" and c == 2:
        return array.astype(np.int64)
    if array.dtype.kind in "OUT":
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
    """Return the names of the classes in the order of the logit columns: as many, and distinct."""
    if isinstance(value, str):
        raise InputError(f"classes must be a sequence of names; got the text {value!r}.")
    names = tuple(str(item) for item in value)
    if len(names) != n_classes:
        raise InputError(f"classes must name each of the {n_classes} logit columns; got {len(names)} names.")
    if len(set(names)) != n_classes:
        twice = next(item for item in names if names.count(item) > 1)
        raise InputError(f"classes must be distinct; got {twice!r} more than once.")
    return names


def same_classes(given: Sequence[str], learned: Sequence[str]) -> None:
    """Refuse names of classes that are not those that were learned, in their order."""
    if list(given) == list(learned):
        return
    if sorted(given) == sorted(learned):
        raise InputError(
            f"classes must be in the order of the source, {brief(learned)}; got {brief(given)}. "
            "Put the columns of the logits in that order."
        )
    raise InputError(f"classes must be those of the source, {brief(learned)}; got {brief(given)}.")


def _labels_from_names(array: NDArray[Any], name: str, classes: Sequence[str] | None) -> IntArray:
    """Look names of classes up in their explicit order."""
    strange = [row for row, item in enumerate(array) if not isinstance(item, str)]
    if strange:
        row = next((row for row in strange if not _is_integer(array[row])), strange[0])
        raise InputError(
            f"{name} must be all integers or all names of classes; got {array[row]!r} at row {row}. "
            "Leave out rows without a label, or give no labels at all."
        )
    if classes is None:
        raise InputError(
            f"{name} must be integers; got {str(array[0])!r}. To use class names, give `classes` with the "
            "outputs: the names of the logit columns in their order."
        )
    index = {class_name: i for i, class_name in enumerate(classes)}
    unknown = next(((row, item) for row, item in enumerate(array) if item not in index), None)
    if unknown is not None:
        raise InputError(
            f"{name} must be among the classes {brief(classes)}; got {str(unknown[1])!r} at row {unknown[0]}."
        )
    return np.fromiter((index[item] for item in array), dtype=np.int64, count=len(array))


def _is_integer(value: Any) -> bool:
    """Say whether an object is an integer; True and False are not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
