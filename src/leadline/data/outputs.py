"""What a classifier gave out: logits, labels where they are known, and columns that came along.

Everything that enters Leadline passes through :func:`as_logits` and :func:`as_labels`, in memory or from a
file (:mod:`leadline.data.files`), so that the rules for good input stand in one place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from leadline.data.arrays import as_column, as_matrix
from leadline.data.columns import Columns
from leadline.data.decisions import as_threshold, check_agreement, find_threshold, to_decision
from leadline.data.labels import FloatArray, IntArray, as_classes, as_labels, same_classes
from leadline.data.names import is_probability_name
from leadline.data.probabilities import log_probabilities, two_columns
from leadline.data.ranges import LARGEST, is_usable
from leadline.errors import InputError

__all__ = [
    "FloatArray",
    "IntArray",
    "Outputs",
    "as_classes",
    "as_labels",
    "as_logits",
    "is_probability_name",
    "row_blocks",
    "same_classes",
]

NOT_PROBABILITIES = (
    "must be outputs before softmax; all rows are from 0 to 1 with a sum of 1, as probabilities are. "
    "Give them as probabilities: Outputs.from_probabilities, or columns of that kind in a file."
)
_SUM_TOLERANCE = 1e-3  # of probabilities in half precision


@dataclass(frozen=True, eq=False, init=False)
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
    columns
        How they were found in a file, so that a model fitted on them finds its targets in the same way.
    threshold
        Of two classes: the second is predicted where its probability is at least this. None for the class with the
        largest output.
    predictions
        Shape (n,): the class that the classifier chose for each row, in the form of labels, where that is not always
        the one with the largest output. The threshold that they follow is found, or checked if it is given.

    Attributes
    ----------
    n_saturated
        Rows with a probability of exactly 0 or 1, where the outputs were probabilities.
    n_unlabelled
        Rows of a file without a label, where others have one: the outputs then have no labels.
    n_left_out
        Bad rows of a file that were left out.

    Examples
    --------
    >>> Outputs([[2.0, 0.5], [0.1, 1.4]], labels=["dog", "cat"], classes=["dog", "cat"]).accuracy
    1.0
    """

    logits: FloatArray
    labels: IntArray | None
    metadata: Mapping[str, NDArray[Any]]
    classes: tuple[str, ...] | None
    columns: Columns | None
    threshold: float | None
    n_saturated: int = 0
    n_unlabelled: int = 0
    n_left_out: int = 0

    def __init__(
        self,
        logits: Any,
        labels: Any = None,
        metadata: Mapping[str, Any] | None = None,
        classes: Sequence[str] | None = None,
        columns: Columns | None = None,
        *,
        threshold: float | None = None,
        predictions: Any = None,
    ) -> None:
        """Validate, and keep arrays of one kind only."""
        logits = as_logits(logits)
        names = None if classes is None else as_classes(classes, logits.shape[1])
        others = {name: as_column(column, f"metadata column {name!r}") for name, column in (metadata or {}).items()}
        for name, column in others.items():
            if column.shape != (len(logits),):
                raise InputError(
                    f"metadata column {name!r} must have one value for each of the {len(logits)} rows; "
                    f"got shape {column.shape}."
                )
        threshold = None if threshold is None else as_threshold(threshold, logits.shape[1])
        if predictions is not None:
            chosen = as_labels(predictions, logits, name="predictions", classes=names)
            if threshold is None:
                threshold = find_threshold(logits, chosen)
            else:
                check_agreement(logits, chosen, threshold)
        object.__setattr__(self, "logits", logits)
        object.__setattr__(self, "labels", None if labels is None else as_labels(labels, logits, classes=names))
        object.__setattr__(self, "metadata", others)
        object.__setattr__(self, "classes", names)
        # What was learned from the column of predictions is all that targets need of it.
        learned = None if columns is None else replace(columns, threshold=threshold, prediction=None)
        object.__setattr__(self, "columns", learned)
        object.__setattr__(self, "threshold", threshold)

    @classmethod
    def from_probabilities(
        cls,
        probabilities: Any,
        labels: Any = None,
        metadata: Mapping[str, Any] | None = None,
        classes: Sequence[str] | None = None,
        columns: Columns | None = None,
        *,
        threshold: float | None = None,
        predictions: Any = None,
    ) -> Self:
        """Take outputs that are probabilities: their logarithms serve as logits.

        Parameters
        ----------
        probabilities
            Shape (n, c): from 0 to 1, each row with a sum of 1.
        labels, metadata, classes, columns, threshold, predictions
            As for ``Outputs``.

        Notes
        -----
        Softmax methods do with log-probabilities what they do with logits, as softmax gives the probabilities back;
        exactly so where none is below 1e-6. Such values count as 1e-6, as zero has no logarithm: ``n_saturated`` says
        in how many rows one was exactly 0 or 1. Such rows are all alike to thresholds and anchors. ALSA looks at
        directions in logit space, and these are others for log-probabilities than for the logits they came from: give
        it logits where you have them.

        Examples
        --------
        >>> outputs = Outputs.from_probabilities([[0.9, 0.1], [0.0, 1.0]])
        >>> outputs.logits.argmax(axis=1), outputs.n_saturated
        (array([0, 1]), 1)
        """
        logits, n_saturated = log_probabilities(as_matrix(probabilities, "probabilities"))
        made = cls(logits, labels, metadata, classes, columns, threshold=threshold, predictions=predictions)
        object.__setattr__(made, "n_saturated", n_saturated)
        return made

    @classmethod
    def from_scores(
        cls,
        scores: Any,
        labels: Any = None,
        metadata: Mapping[str, Any] | None = None,
        classes: Sequence[str] | None = None,
        columns: Columns | None = None,
        *,
        threshold: float | None = None,
        predictions: Any = None,
    ) -> Self:
        """Take the outputs of a binary classifier that are one score: the probability of the second class.

        Parameters
        ----------
        scores
            Shape (n,): from 0 to 1.
        labels
            Shape (n,): 0 or 1 (or False and True), or names of ``classes``.
        metadata, columns, predictions
            As for ``Outputs``.
        classes
            The names of the two classes, the one that the score is for last.
        threshold
            The score from which the second class is predicted; None for one half.

        Examples
        --------
        >>> Outputs.from_scores([0.2, 0.7], labels=["ham", "spam"], classes=["ham", "spam"]).accuracy
        1.0
        >>> Outputs.from_scores([0.1, 0.3, 0.7], threshold=0.3).predictions
        array([0, 1, 1])
        """
        probabilities = two_columns(as_column(scores, "scores"))
        return cls.from_probabilities(
            probabilities, labels, metadata, classes, columns, threshold=threshold, predictions=predictions
        )

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.logits)

    @property
    def n_classes(self) -> int:
        """The number of classes, c."""
        return int(self.logits.shape[1])

    @property
    def predictions(self) -> IntArray:
        """The predicted class of each sample, shape (n,): by the threshold, or that of the largest output."""
        return np.asarray(to_decision(self.logits, self.threshold).argmax(axis=1), dtype=np.int64)

    @property
    def accuracy(self) -> float | None:
        """The true accuracy of the predictions, where the labels are known."""
        return None if self.labels is None else float(np.mean(self.predictions == self.labels))

    def groups(self, column: str) -> dict[Any, NDArray[np.intp]]:
        """Return the row numbers of each value of a metadata column, in the order of the values.

        Parameters
        ----------
        column
            The name of the metadata column.

        Returns
        -------
        dict
            Value to row numbers. Rows where the value is missing (None, NaN or NaT) are the last group, None.
        """
        from leadline.data.segments import ordered, segment_rows

        numbers, labels = segment_rows(self.metadata, len(self), [column])
        return {labels[i][0]: np.flatnonzero(numbers == i) for i in ordered(labels)}


def as_logits(value: Any, *, name: str = "logits", n_classes: int | None = None, partial: bool = False) -> FloatArray:
    """Return ``value`` as a finite floating-point array of shape (n, c), without copying where possible.

    NumPy arrays, nested sequences, torch tensors, pandas and polars frames and Arrow tables are taken. Of a
    frame or table, the list column ``logits`` or the columns ``logit_0``, ``logit_1``, ... in numeric order
    are the logits; if no column has such a name, all columns are, in the order given.

    Parameters
    ----------
    value
        The logits, shape (n, c).
    name
        What to call them in an error.
    n_classes
        The width they must have, if it is known.
    partial
        These are some rows of more, which by themselves may be none or all equal.
    """
    array = as_matrix(value, name)
    if array.ndim != 2:
        raise InputError(f"{name} must have shape (samples, classes); got {array.ndim} dimension(s), {array.shape}.")
    if array.dtype.kind not in "fiu":
        raise InputError(f"{name} must be real numbers; got dtype {array.dtype}.")
    n, c = array.shape
    if n == 0 and not partial:
        raise InputError(f"{name} must have at least one row; got none.")
    if c < 2:
        raise InputError(f"{name} must have at least 2 classes (columns); got {c}. Give a binary model two columns.")
    if n_classes is not None and c != n_classes:
        raise InputError(f"{name} must have {n_classes} classes, as in fit; got {c}.")
    if array.dtype not in (np.float32, np.float64):
        narrow = array.dtype.kind == "f" and array.dtype.itemsize <= 4  # half precision or foreign byte order
        with np.errstate(over="ignore"):  # too large for float64: becomes infinite, and is refused as that
            array = array.astype(np.float32 if narrow else np.float64)
    if n == 0:
        return array
    low, high = array.min(), array.max()
    if not (low >= -LARGEST and high <= LARGEST):  # NaN is neither
        _refuse_unusable(array, name)
    if not partial and low == high:
        raise InputError(
            f"{name} must tell the classes apart; all {n} x {c} values are {array.flat[0] + 0.0}. "
            "Check that the model's real outputs were stored."
        )
    if not partial and are_probabilities(array):
        raise InputError(f"{name} {NOT_PROBABILITIES}")
    return array


def row_blocks(logits: FloatArray, values_per_block: int = 1 << 21) -> list[FloatArray]:
    """Cut an array into views of consecutive rows, each small enough to work on in little memory."""
    rows = max(1, values_per_block // logits.shape[1])
    return [logits[start : start + rows] for start in range(0, len(logits), rows)]


def are_probabilities(logits: FloatArray) -> bool:
    """Say whether all rows, shape (n, c), are what softmax gives; rows of zeros and a one alone are not taken for it.

    Examples
    --------
    >>> are_probabilities(np.array([[0.25, 0.75], [1.0, 0.0]])), are_probabilities(np.eye(2))
    (True, False)
    """
    between = False
    for block in row_blocks(logits):
        if block.min() < 0.0 or block.max() > 1.0 or bool((np.abs(block.sum(axis=1) - 1.0) > _SUM_TOLERANCE).any()):
            return False
        between = between or bool(((block > 0.0) & (block < 1.0)).any())
    return between


def _refuse_unusable(array: FloatArray, name: str) -> None:
    """Refuse NaN, infinity and absurd sizes, naming the first; block by block, so that a large array needs no copy."""
    start = 0
    for block in row_blocks(array):
        usable = is_usable(block)
        if not usable.all():
            row, column = np.argwhere(~usable)[0]
            value = block[row, column]
            rule = f"at most {LARGEST:g} in size" if np.isfinite(value) else "finite"
            raise InputError(
                f"{name} must be {rule}; got {value} at row {start + row}, class {column}. Remove or repair such rows."
            )
        start += len(block)
