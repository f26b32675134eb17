"""Which columns of a table hold what: logits, probabilities or one score, and the labels; said, never guessed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from leadline.data.decisions import as_threshold
from leadline.data.names import brief, label_column, logit_columns, refuse_probabilities
from leadline.data.probabilities import are_fractions, have_sum_one, log_probabilities, two_columns
from leadline.data.ranges import is_usable
from leadline.errors import InputError

Kind = Literal["logits", "probabilities", "score"]

_IGNORED = -100  # PyTorch's mark of a row without a label


@dataclass(frozen=True)
class Columns:
    """A mapping from the columns of a table, or the arrays of a file, to outputs.

    Parameters
    ----------
    kind
        What the values are: "logits"; "probabilities" of all classes; "score", the probability of one of two classes.
    values
        The column of values, or a pattern such as ``proba_*`` for one column per class, whose names are what ``*``
        stands for. None takes a list column ``logits`` or columns ``logit_0``, ``logit_1``, ...
    label
        The column of true classes; None takes ``label`` or ``labels`` where there is one.
    positive
        Of a score: the name of the class that it is the probability of.
    threshold
        Of two classes: the probability of the second, or score, from which it is predicted; None for one half.
    prediction
        The column of classes that the model chose, from which the threshold is found.

    Examples
    --------
    >>> mapping = Columns("probabilities", "proba_*", label="species")
    >>> mapping.find(["species", "proba_cat", "proba_dog"])
    ['proba_cat', 'proba_dog']
    """

    kind: Kind = "logits"
    values: str | None = None
    label: str | None = None
    positive: str | None = None
    threshold: float | None = None
    prediction: str | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        if self.kind not in ("logits", "probabilities", "score"):
            raise InputError(f"kind must be 'logits', 'probabilities' or 'score'; got {self.kind!r}.")
        if self.values is None and self.kind != "logits":
            raise InputError(f"values must name the columns of {self.kind}; got None.")
        if self.values is not None and (self.values.count("*") > 1 or (self.kind == "score" and "*" in self.values)):
            rule = "be one column" if self.kind == "score" else "have one * at most"
            raise InputError(f"values must {rule}; got {self.values!r}.")
        if self.positive is not None and self.kind != "score":
            raise InputError(f"positive is the class of a score; got it for {self.kind}.")
        if self.threshold is not None:
            as_threshold(self.threshold)

    @property
    def width(self) -> int | None:
        """How many values each row has, where that does not depend on the number of classes."""
        return 1 if self.kind == "score" else None

    def find(self, names: Sequence[str]) -> list[str]:
        """Return the columns that hold the values, in the order of the classes: numeric, or that of the table."""
        if self.values is None:
            found = logit_columns(names)
            if not found:
                refuse_probabilities(names)
                raise InputError(
                    "has no logits; an array `logits`, a list column `logits` or columns `logit_0`, `logit_1`, ... "
                    f"must be named so, but the names are: {brief(names) or 'none'}. Say which columns hold them."
                )
            return found
        if "*" not in self.values:
            self._require(self.values, names, self.kind)
            return [self.values]
        parts = {name: part for name in names if (part := self._part(name)) is not None and name != self.label}
        if len(parts) < 2:
            raise InputError(
                f"columns {self.values!r} must be two or more; got {len(parts)}. The columns are: {brief(names)}."
            )
        if all(part.isdecimal() for part in parts.values()):
            return sorted(parts, key=lambda name: int(parts[name]))
        return list(parts)

    def classes(self, found: Sequence[str]) -> tuple[str, ...] | None:
        """Return the names of the classes that columns from :meth:`find` state; None where they state numbers only."""
        parts = [self._part(name) or "" for name in found] if self.values and "*" in self.values else []
        return None if parts == [str(i) for i in range(len(parts))] else tuple(parts) or None

    def label_in(self, names: Sequence[str], *, needed: bool = False) -> str | None:
        """Return the column of labels; None where there is none and none is needed."""
        if self.label is None:
            return label_column(names)
        if self.label in names or needed:
            self._require(self.label, names, "labels")
            return self.label
        return None

    def prediction_in(self, names: Sequence[str]) -> str | None:
        """Return the column of predictions; None where none was named."""
        if self.prediction is not None:
            self._require(self.prediction, names, "predictions")
        return self.prediction

    def to_logits(self, values: NDArray[Any]) -> NDArray[np.floating[Any]]:
        """Return values of shape (n, c), or (n, 1) for a score, as logits of shape (n, c)."""
        if self.kind == "logits":
            return values
        probabilities = values if self.kind == "probabilities" else two_columns(values[:, 0])
        return log_probabilities(probabilities)[0]

    def good_rows(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which rows, shape (n, c), or (n, 1) for a score, can be what they are said to be."""
        if self.kind == "logits":
            return np.asarray(is_usable(values).all(axis=1))
        good = are_fractions(values).all(axis=1)
        return np.asarray(good & have_sum_one(values) if self.kind == "probabilities" else good)

    def score_classes(self, labels: NDArray[Any] | None) -> tuple[str, str] | None:
        """Return the names of the two classes of a score, that of the score last; None where nobody named them."""
        if self.positive is None:
            return None
        others = sorted({str(label) for label in ([] if labels is None else labels.tolist())} - {self.positive})
        if len(others) > 1:
            raise InputError(
                f"labels of a score must be of two classes, {self.positive!r} and another; got {brief(others)}."
            )
        return (others[0] if others else f"not {self.positive}"), self.positive

    def _part(self, name: str) -> str | None:
        """Return what ``*`` stands for in a name; None where the name does not match."""
        before, _, after = (self.values or "").partition("*")
        match = re.fullmatch(f"{re.escape(before)}(.+){re.escape(after)}", name, re.DOTALL)
        return None if match is None else match[1]

    def _require(self, column: str, names: Sequence[str], what: str) -> None:
        if column not in names:
            raise InputError(f"column {column!r} of {what} is not there. The columns are: {brief(names) or 'none'}.")


def missing_labels(labels: NDArray[Any]) -> int:
    """Return how many labels of a target are missing: null, NaN, or the -100 by which training frameworks mark it.

    Examples
    --------
    >>> missing_labels(np.array([0, -100]))
    1
    """
    if labels.dtype.kind == "O":
        return sum(one is None or one == _IGNORED or (isinstance(one, float) and isnan(one)) for one in labels)
    return int(np.count_nonzero(np.isnan(labels) | (labels == _IGNORED))) if labels.dtype.kind in "fi" else 0


def complete_labels(labels: NDArray[Any]) -> NDArray[Any] | None:
    """Return the labels of a target, whole floats as integers; None where one is missing.

    Targets are labelled late and in part, and an estimate needs no labels.

    Examples
    --------
    >>> complete_labels(np.array([0.0, 2.0]))
    array([0, 2])
    >>> complete_labels(np.array([0, -100])) is None
    True
    """
    if missing_labels(labels):
        return None
    if labels.dtype.kind not in "fi":
        return labels
    whole = labels.dtype.kind == "f" and bool(((np.abs(labels) < 2**53) & (labels == np.trunc(labels))).all())
    return labels.astype(np.int64) if whole else labels


def named_labels(labels: NDArray[Any], classes: Sequence[str] | None) -> NDArray[Any]:
    """Return labels as names where all of them, as text, are among the classes; else as they are.

    Integers and booleans that are names of classes (columns ``proba_3`` and ``proba_7``, say) mean these, and not the
    places of columns.
    """
    if classes is None or labels.dtype.kind not in "iub":
        return labels
    names = {str(value) for value in np.unique(labels).tolist()}
    return labels.astype(str).astype(object) if names <= set(classes) else labels
