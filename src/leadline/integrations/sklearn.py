"""Outputs of a scikit-learn classifier or pipeline, and of everything that has its interface (XGBoost, LightGBM)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from leadline.data.decisions import DecisionError
from leadline.data.names import one_line
from leadline.data.outputs import Outputs
from leadline.errors import InputError
from leadline.integrations.kinds import labels_by_class, outputs_of_kind

_METHOD = {"probabilities": "predict_proba", "decision": "decision_function"}
_OTHER = {"probabilities": "decision", "decision": "probabilities"}


def from_sklearn(
    classifier: Any,
    X: Any,  # noqa: N803 - scikit-learn's own name
    y: Any = None,
    metadata: Mapping[str, Any] | None = None,
    *,
    use: Literal["probabilities", "decision"] | None = None,
) -> Outputs:
    """Return what a fitted scikit-learn classifier gives out for some rows.

    Parameters
    ----------
    classifier
        A fitted classifier or pipeline: anything with ``classes_``, ``predict`` and ``predict_proba`` or
        ``decision_function``.
    X
        What the classifier takes, n rows.
    y
        Shape (n,): the true classes as values of ``classes_``, or None where nobody knows.
    metadata
        Further columns, as for ``Outputs``.
    use
        ``"probabilities"`` for ``predict_proba``, ``"decision"`` for ``decision_function``; None for probabilities
        where there are any, else the decision function.

    Returns
    -------
    Outputs
        With ``classes_`` as the names of the classes.

    Notes
    -----
    Probabilities come first, as their logarithms are on the scale that softmax methods expect. Margins are on a scale
    of their own; those of two classes, d, become the logits (-d/2, d/2).

    What is estimated is how often ``predict`` is right. It is called too, and outputs of more than two classes whose
    largest disagrees with it in more than one row of a hundred are refused: the estimate would be that of another
    classifier. Of two classes, the threshold that ``predict`` follows is found from the rows, such as that of
    ``FixedThresholdClassifier`` and ``TunedThresholdClassifierCV``. A few rows that differ are let through, as a plain
    ``SVC`` breaks ties between votes in another way than its margins do.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> outputs = from_sklearn(LogisticRegression(max_iter=1000).fit(X, y), X, y)
    >>> outputs.classes, round(outputs.accuracy, 2)
    (('0', '1', '2'), 0.97)
    """
    name = type(classifier).__name__
    use = _choose(classifier, name, use)
    classes = _classes(classifier, name)
    try:
        values = getattr(classifier, _METHOD[use])(X)
        predicted = np.asarray(classifier.predict(X))
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise InputError(f"X must be what the {name} was fitted on; it says: {one_line(error)}") from error
    if isinstance(values, list) or predicted.ndim != 1:
        raise _several_outputs(name)
    values = np.asarray(values)
    if use == "decision" and values.ndim == 1:
        values = np.stack([-values / 2, values / 2], axis=1)
    if values.shape != (len(predicted), len(classes)):
        raise InputError(
            f"classifier must give one output for each of its {len(classes)} classes; {_METHOD[use]} of the {name} "
            f"gives shape {values.shape}. For a support vector machine set decision_function_shape='ovr'."
        )
    labels = None if y is None else labels_by_class(y, classes, "y")
    predictions = labels_by_class(predicted, classes, "the predictions")
    try:
        return outputs_of_kind(
            "probabilities" if use == "probabilities" else "logits",
            values, labels, metadata, [str(label) for label in classes], predictions=predictions,
        )  # fmt: skip
    except DecisionError as error:
        raise InputError(
            f"classifier must decide by its outputs; {_METHOD[use]} of the {name} disagrees with predict in "
            f"{error.different} of {len(predictions)} rows. Try use={_OTHER[use]!r}."
        ) from error


def _choose(classifier: Any, name: str, use: str | None) -> Literal["probabilities", "decision"]:
    """Return which of its outputs to take, among those that the classifier has."""
    if use not in (None, *_METHOD):
        raise InputError(f"use must be 'probabilities' or 'decision'; got {use!r}.")
    if not any(hasattr(classifier, method) for method in _METHOD.values()):
        raise InputError(
            f"classifier must have predict_proba or decision_function; {name} has neither. "
            "Accuracy is estimated for classifiers, not for regressors."
        )
    for kind in ("probabilities", "decision") if use is None else (use,):
        if hasattr(classifier, _METHOD[kind]):
            return "probabilities" if kind == "probabilities" else "decision"
    raise InputError(f"use must name what the classifier has; {name} has no {_METHOD[str(use)]}. Leave `use` out.")


def _classes(classifier: Any, name: str) -> list[Any]:
    """Return the classes of a fitted classifier, in the order of its outputs."""
    classes = getattr(classifier, "classes_", None)
    if classes is None or not len(classes):
        raise InputError(f"classifier must be a fitted classifier; {name} has no classes_. Call its fit(X, y) first.")
    if isinstance(classes, list) and np.ndim(classes[0]):
        raise _several_outputs(name)
    return list(np.asarray(classes).tolist())


def _several_outputs(name: str) -> InputError:
    """Return the error for classifiers that predict several things at once."""
    return InputError(
        f"classifier must predict one class for each row; the {name} predicts several outputs. "
        "Estimate each of them by itself, from its own probabilities: Outputs.from_probabilities."
    )
