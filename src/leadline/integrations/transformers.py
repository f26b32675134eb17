"""Outputs of a Hugging Face ``Trainer``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from leadline.data.arrays import as_column
from leadline.data.names import brief
from leadline.data.outputs import Outputs, as_logits
from leadline.errors import InputError

_NO_LABEL = -100  # what Hugging Face and torch's cross-entropy call a label that is to be ignored


def from_transformers(
    prediction_output: Any,
    id2label: Mapping[Any, str] | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Outputs:
    """Return what ``Trainer.predict`` gave for a set of texts, images or whatever the model classifies.

    Parameters
    ----------
    prediction_output
        The object that ``Trainer.predict`` returns: ``predictions``, the logits of shape (n, c) or a tuple that begins
        with them, and ``label_ids``, shape (n,) or None.
    id2label
        The names of the classes by number, as in ``model.config.id2label``; None for none.
    metadata
        Further columns, as for ``Outputs``.

    Returns
    -------
    Outputs
        Without any labels if a single one is missing (-100): an accuracy of some rows is not that of all.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> predicted = SimpleNamespace(predictions=[[2.0, -1.0], [0.5, 0.7]], label_ids=[0, 0])
    >>> from_transformers(predicted, id2label={0: "negative", 1: "positive"}).classes
    ('negative', 'positive')
    """
    if not hasattr(prediction_output, "predictions"):
        raise InputError(
            "prediction_output must be what Trainer.predict returns, with predictions and label_ids; "
            f"got {type(prediction_output).__name__}. Give logits in an array to Outputs."
        )
    predictions = prediction_output.predictions
    logits = as_logits(predictions[0] if isinstance(predictions, tuple) else predictions, name="predictions")
    labels = getattr(prediction_output, "label_ids", None)
    if isinstance(labels, tuple):
        raise InputError(
            f"label_ids must be one array of shape ({len(logits)},); got a tuple of {len(labels)}. "
            "Let the Trainer use one label name: TrainingArguments(label_names=['labels'])."
        )
    if labels is not None:
        labels = as_column(labels, "label_ids")
        if np.any(labels == _NO_LABEL):
            labels = None
    return Outputs(logits, labels, metadata, None if id2label is None else _names(id2label, logits.shape[1]))


def _names(id2label: Mapping[Any, str], n_classes: int) -> list[str]:
    """Return the names of the classes in the order of their numbers, which JSON has turned into text."""
    names = {str(number): name for number, name in id2label.items()}
    expected = [str(number) for number in range(n_classes)]
    if sorted(names) != sorted(expected):
        raise InputError(
            f"id2label must name the classes 0 to {n_classes - 1}; got the keys {brief(names)}. "
            "Give the model's own: model.config.id2label."
        )
    return [names[number] for number in expected]
