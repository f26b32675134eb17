"""What the adapters share: outputs of a kind that was said, labels by the classes of a foreign model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_args

from leadline.data.arrays import as_column
from leadline.data.names import brief
from leadline.data.outputs import Outputs
from leadline.errors import InputError

Kind = Literal["logits", "probabilities", "scores"]


def outputs_of_kind(
    kind: Kind,
    values: Any,
    labels: Any = None,
    metadata: Mapping[str, Any] | None = None,
    classes: Sequence[str] | None = None,
    predictions: Any = None,
) -> Outputs:
    """Return values as outputs, given what they are.

    Parameters
    ----------
    kind
        ``"logits"`` or ``"probabilities"``, shape (n, c), or ``"scores"``, shape (n,).
    values, labels, metadata, classes, predictions
        As for ``Outputs``, ``Outputs.from_probabilities`` and ``Outputs.from_scores``.

    Examples
    --------
    >>> outputs_of_kind("scores", [0.2, 0.7]).n_classes
    2
    """
    makers: dict[str, Callable[..., Outputs]] = {
        "logits": Outputs,
        "probabilities": Outputs.from_probabilities,
        "scores": Outputs.from_scores,
    }
    check_kind(kind)
    return makers[kind](values, labels=labels, metadata=metadata, classes=classes, predictions=predictions)


def check_kind(kind: str) -> None:
    """Refuse a kind of outputs that there is not, before any work is done."""
    if kind not in get_args(Kind):
        raise InputError(f"kind must be one of {brief(get_args(Kind))}; got {kind!r}. Say what the model gives out.")


def labels_by_class(labels: Any, classes: Sequence[Any], name: str) -> list[int]:
    """Return the place of each label among the classes of a foreign model.

    Parameters
    ----------
    labels
        Shape (n,): values of ``classes``, of any type.
    classes
        The classes in the order of the outputs' columns.
    name
        What to call the labels in an error.

    Examples
    --------
    >>> labels_by_class(["spam", "ham"], ["ham", "spam"], "y")
    [1, 0]
    """
    column = as_column(labels, name)
    if column.ndim != 1:
        raise InputError(f"{name} must have one label for each row, shape (n,); got shape {column.shape}.")
    place = {label: i for i, label in enumerate(classes)}
    found = [place.get(label) for label in column.tolist()]
    unknown = next((row for row, i in enumerate(found) if i is None), None)
    if unknown is not None:
        raise InputError(
            f"{name} must be among the classes of the model, {brief(classes)}; "
            f"got {column.tolist()[unknown]!r} at row {unknown}. "
            "Leave out rows of other classes."
        )
    return [i for i in found if i is not None]
