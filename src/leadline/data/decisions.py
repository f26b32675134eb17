"""Which class a classifier predicts: that of the largest output or, of two classes, by a threshold of its own.

A threshold on the probability of the second class is a constant on the log-odds. Adding it gives rows whose largest
value is that of the predicted class, which is what estimators see; taking it away gives the outputs back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.data.probabilities import LEAST
from leadline.errors import InputError

Matrix = NDArray[np.floating[Any]]

_MOST_DIFFERENT = 0.01  # rounded scores, and ties that another tool breaks in another way
_TIE = 64  # in roundings of log-odds: a score that equals the threshold reaches it


class DecisionError(InputError):
    """Predictions are not what the outputs say, in ``different`` rows."""

    def __init__(self, message: str, different: int) -> None:
        super().__init__(message)
        self.different = different


def as_threshold(value: Any, n_classes: int = 2) -> float:
    """Return the smallest probability of the second of two classes at which it is predicted."""
    if n_classes != 2:
        raise InputError(f"threshold is for two classes; the outputs have {n_classes}. Leave it out.")
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise InputError(f"threshold must be a number between 0 and 1; got {value!r}.")
    if not LEAST <= value <= 1.0 - LEAST:
        remedy = " Divide percentages by 100." if 1.0 < value < 100.0 else ""
        raise InputError(f"threshold must be a probability between 0 and 1; got {value:g}.{remedy}")
    return float(value)


def to_decision(logits: Matrix, threshold: float | None) -> Matrix:
    """Return logits, shape (n, c), moved so that the largest of each row is that of the predicted class.

    Examples
    --------
    >>> scores = np.array([0.2, 0.3, 0.6])
    >>> to_decision(np.log(np.stack([1 - scores, scores], axis=1)), 0.3).argmax(axis=1)
    array([0, 1, 1])
    """
    return logits if threshold is None else logits + _offset(threshold, logits)


def from_decision(rows: Matrix, threshold: float | None) -> Matrix:
    """Return the logits that :func:`to_decision` moved."""
    return rows if threshold is None else rows - _offset(threshold, rows)


def _offset(threshold: float, like: Matrix) -> Matrix:
    """Return what a threshold adds to the logits, shape (2,)."""
    odds = np.log(threshold) - np.log1p(-threshold) - _TIE * np.finfo(like.dtype).eps
    return np.array([odds / 2, -odds / 2], dtype=like.dtype)


def find_threshold(logits: Matrix, predictions: NDArray[np.int64]) -> float | None:
    """Return the threshold that predictions follow; None where they are the classes of the largest outputs.

    Parameters
    ----------
    logits
        Shape (n, c).
    predictions
        Shape (n,): the class that the model chose for each row.

    Examples
    --------
    >>> logits = np.log([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.3, 0.7]])
    >>> 0.2 < find_threshold(logits, np.array([0, 0, 1, 1])) < 0.4
    True
    """
    if logits.shape[1] > 2:
        check_agreement(logits, predictions, None)
        return None
    margins = (logits[:, 1] - logits[:, 0]).astype(np.float64)
    order = np.argsort(margins, kind="stable")
    margins, second = margins[order], predictions[order] == 1
    # wrong[k]: how many predictions are others if the k smallest margins are of the first class and no more.
    wrong = np.concatenate([[0], np.cumsum(second)]) + np.concatenate([np.cumsum(~second[::-1])[::-1], [0]])
    edges = np.concatenate([[margins[0] - 1.0], margins, [margins[-1] + 1.0]])
    apart = edges[:-1] < edges[1:]
    middles, wrong = ((edges[:-1] + edges[1:]) / 2)[apart], wrong[apart]
    best = np.flatnonzero(wrong == wrong.min())
    middle = middles[best[np.abs(middles[best]).argmin()]]
    _refuse_many(int(wrong.min()), len(logits), "be the classes of the largest outputs, or follow one threshold,")
    if np.count_nonzero((margins > 0) != second) == wrong.min():
        return None
    return float(np.clip(1.0 / (1.0 + np.exp(-middle)), LEAST, 1.0 - LEAST))


def same_decisions(logits: Matrix, given: float, learned: float | None) -> None:
    """Refuse a threshold that often decides otherwise than the one that was learned."""
    one, other = (to_decision(logits, threshold).argmax(axis=1) for threshold in (given, learned))
    different = int(np.count_nonzero(one != other))
    if different > _MOST_DIFFERENT * len(logits):
        rule = "by the largest output" if learned is None else f"by the threshold {learned:.6g}"
        raise InputError(
            f"outputs must be decided as in fit, {rule}; the threshold {given:.6g} decides {different} of "
            f"{len(logits)} rows otherwise. Leave it out, or fit with it."
        )


def check_agreement(logits: Matrix, predictions: NDArray[np.int64], threshold: float | None) -> None:
    """Refuse predictions that are often not what the outputs and the threshold say; ties may go either way."""
    rows = to_decision(logits, threshold)
    different = np.count_nonzero(rows[np.arange(len(rows)), predictions] < rows.max(axis=1))
    rule = "be the classes of the largest outputs" if threshold is None else f"follow the threshold {threshold:.6g}"
    _refuse_many(int(different), len(rows), rule)


def _refuse_many(different: int, n: int, rule: str) -> None:
    """Refuse predictions of which more than a few break a rule."""
    if different > _MOST_DIFFERENT * n:
        raise DecisionError(
            f"predictions must {rule} in all but one row of a hundred; {different} of {n} do not. "
            "Check that both are of the same model.",
            different,
        )
