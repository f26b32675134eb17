"""A lower bound on the accuracy that holds under one stated condition: disagreement discrepancy.

Rosenfeld & Garg, *(Almost) Provable Error Bounds Under Distribution Shift via Disagreement Discrepancy*, 2023.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray, as_labels, as_logits
from leadline.errors import InputError
from leadline.numeric import Array, sigmoid

_MOST_ROWS = 10_000  # rows of each side that a critic is trained on
_MOST_VALUES = 4_000_000  # ... fewer with many classes
_ITERATIONS = 80
_STARTS = 3


@dataclass(frozen=True)
class LowerBound:
    """A lower bound on the accuracy and what it is made of.

    Attributes
    ----------
    accuracy
        The bound: ``source_accuracy - discrepancy - sampling``, at least 0.
    confidence_level
        Probability with which sampling alone does not break it.
    source_accuracy
        Accuracy on the source rows that were kept from the critics.
    discrepancy
        The most that any critic found agrees with the classifier more on the source than on the target.
    sampling
        Allowance for the finite numbers of rows.
    """

    accuracy: float
    confidence_level: float
    source_accuracy: float
    discrepancy: float
    sampling: float

    def to_dict(self) -> dict[str, float]:
        """Return plain values, ready for JSON."""
        return dict(vars(self))


def lower_bound(source: tuple[Any, Any], target: Any, *, confidence_level: float = 0.95, seed: int = 0) -> LowerBound:
    """Bound the accuracy on the target from below.

    Parameters
    ----------
    source
        Logits of shape (n, c) and labels of shape (n,).
    target
        Logits of shape (m, c), unlabelled.
    confidence_level
        Probability with which the bound survives sampling error.
    seed
        Of the split into rows that train critics and rows that judge them.

    Notes
    -----
    A critic is another classifier, here linear in the logits, trained to agree with the classifier's predictions on the
    source and to disagree on the target. If the true labels disagree with the predictions on the target no more than
    the worst critic does, beyond what they do on the source, then

        acc_T >= acc_S - max over critics (agreement_S - agreement_T) - sqrt((n_S + 4 n_T) log(1/delta) / (2 n_S n_T)).

    The condition cannot be checked without labels: it fails where errors on the target look, to every linear critic on
    the logits, exactly like right predictions. Critics are trained on one half of the rows and judged on the other, so
    that they do not profit from chance.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 3, 3000)
    >>> logits = rng.normal(size=(3000, 3)) + 3 * np.eye(3)[labels]
    >>> bound = lower_bound((logits[:1500], labels[:1500]), logits[1500:])
    >>> bool(0.5 < bound.accuracy < np.mean(logits.argmax(1) == labels))
    True
    """
    if not 0.0 < confidence_level < 1.0:
        raise InputError(f"confidence_level must be between 0 and 1; got {confidence_level}.")
    source_logits = as_logits(source[0], name="source logits")
    labels = as_labels(source[1], source_logits)
    target_logits = as_logits(target, name="target logits", n_classes=source_logits.shape[1])
    if min(len(source_logits), len(target_logits)) < 2:
        raise InputError("a bound needs at least 2 rows of source and of target: half train critics, half judge them.")
    rng = np.random.default_rng(seed)
    source_train, source_test = _halves(len(source_logits), rng)
    target_train, target_test = _halves(len(target_logits), rng)
    scale = float(np.std(source_logits)) or 1.0
    most = max(100, min(_MOST_ROWS, _MOST_VALUES // source_logits.shape[1]))

    def scaled(logits: FloatArray) -> Array:
        centred = np.asarray(logits, dtype=np.float64) / scale
        return np.asarray(centred - centred.mean(axis=1, keepdims=True))

    on_source, on_target = scaled(source_logits[source_train[:most]]), scaled(target_logits[target_train[:most]])
    judged_source, judged_target = scaled(source_logits[source_test]), scaled(target_logits[target_test])
    discrepancy = 0.0  # the classifier itself is a critic that agrees everywhere
    for start in range(_STARTS):
        critic = _train_critic(on_source, on_target, np.random.default_rng([seed, start]))
        discrepancy = max(discrepancy, _agreement(judged_source, critic) - _agreement(judged_target, critic))
    n_source, n_target = len(source_test), len(target_test)
    sampling = float(
        np.sqrt((n_source + 4 * n_target) * np.log(1.0 / (1.0 - confidence_level)) / (2.0 * n_source * n_target))
    )
    accuracy = float(np.mean(source_logits[source_test].argmax(axis=1) == labels[source_test]))
    return LowerBound(max(0.0, accuracy - discrepancy - sampling), confidence_level, accuracy, discrepancy, sampling)


def _halves(n: int, rng: np.random.Generator) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Split row numbers at random into two halves."""
    order = rng.permutation(n)
    return order[: n // 2], order[n // 2 :]


def _agreement(logits: Array, critic: Array) -> float:
    """Return the share of rows on which the critic, shape (c + 1, c), predicts what the logits do."""
    return float(np.mean((logits @ critic[:-1] + critic[-1]).argmax(axis=1) == logits.argmax(axis=1)))


def _train_critic(source: Array, target: Array, rng: np.random.Generator) -> Array:
    """Return a linear critic, shape (c + 1, c), that agrees on the source and disagrees on the target.

    Minimises the mean cross-entropy on the source plus the mean disagreement loss on the target,
    ``log(1 + exp(s_y - mean of the other s))`` with s the critic's scores and y the prediction.
    """
    from scipy.optimize import minimize

    c = source.shape[1]
    predicted_source, predicted_target = source.argmax(axis=1), target.argmax(axis=1)
    rows_source, rows_target = np.arange(len(source)), np.arange(len(target))

    def loss(flat: Array) -> tuple[float, Array]:
        weights = flat.reshape(c + 1, c)
        scores = source @ weights[:-1] + weights[-1]
        scores -= scores.max(axis=1, keepdims=True)
        exponentials = np.exp(scores)
        total = exponentials.sum(axis=1)
        agree = float(np.mean(np.log(total) - scores[rows_source, predicted_source]))
        of_source = exponentials / total[:, None]
        of_source[rows_source, predicted_source] -= 1.0
        of_source /= len(source)

        scores = target @ weights[:-1] + weights[-1]
        own = scores[rows_target, predicted_target]
        margin = own - (scores.sum(axis=1) - own) / (c - 1)
        disagree = float(np.mean(np.logaddexp(0.0, margin)))
        slope = sigmoid(margin) / len(target)
        of_target = np.repeat(-slope[:, None] / (c - 1), c, axis=1)
        of_target[rows_target, predicted_target] = slope

        gradient = np.vstack([source.T @ of_source + target.T @ of_target, of_source.sum(0) + of_target.sum(0)])
        return agree + disagree, gradient.ravel()

    start = np.vstack([np.eye(c), np.zeros(c)]) + 0.1 * rng.normal(size=(c + 1, c))
    found = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": _ITERATIONS})
    return np.asarray(found.x).reshape(c + 1, c)
