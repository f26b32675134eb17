"""Outputs of a PyTorch model over a loader."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from leadline.data.arrays import as_column, as_matrix
from leadline.data.outputs import Outputs
from leadline.errors import InputError

_LABELS = "labels"  # the key that Hugging Face's collators use


def from_torch(
    model: Any,
    loader: Iterable[Any],
    device: Any = None,
    progress: Callable[[int], None] | None = None,
    *,
    metadata: Mapping[str, Any] | None = None,
    classes: Sequence[str] | None = None,
) -> Outputs:
    """Run a model over the batches of a loader and keep its logits.

    The model runs in evaluation mode and without gradients; afterwards every part of it is in the mode in which it was.

    Parameters
    ----------
    model
        A ``torch.nn.Module`` that gives logits of shape (rows, c): a tensor, an object with ``.logits``, or a dict with
        ``"logits"``.
    loader
        Batches in the order of the rows (no shuffling, if ``metadata`` comes along): a tensor, (inputs,), (inputs,
        labels), or a dict of the model's arguments, in which ``"labels"`` are the labels and not passed on.
    device
        Where to run, a ``torch.device`` or its name; the model is moved there and back. None for where it is.
    progress
        Called after each batch with the number of rows so far.
    metadata, classes
        As for ``Outputs``.

    Returns
    -------
    Outputs
        In single precision where the model computes in half precision.

    Examples
    --------
    >>> import torch
    >>> model = torch.nn.Linear(4, 3)
    >>> batches = [(torch.randn(8, 4), torch.randint(3, (8,))) for _ in range(2)]
    >>> len(from_torch(model, batches))
    16
    """
    if not hasattr(model, "modules"):
        raise InputError(f"model must be a torch.nn.Module; got {type(model).__name__}.")
    logits: list[Any] = []
    labels: list[Any] = []
    n_rows = 0
    with _evaluating(model, device) as where:
        for number, batch in enumerate(loader):
            inputs, known = _split(batch, number)
            logits.append(_logits(_call(model, inputs, where), number))
            if known is not None:
                labels.append(as_column(known, _LABELS))
            n_rows += len(logits[-1])
            if progress is not None:
                progress(n_rows)
    if not logits:
        raise InputError("loader must give at least one batch; got none.")
    if labels and len(labels) != len(logits):
        raise InputError(
            f"loader must give labels in all batches or in none; got them in {len(labels)} of {len(logits)}."
        )
    return Outputs(np.concatenate(logits), np.concatenate(labels) if labels else None, metadata, classes)


@contextmanager
def _evaluating(model: Any, device: Any) -> Iterator[Any]:
    """Put a model into evaluation mode on a device, without gradients; undo both."""
    import torch

    modes = [(module, module.training) for module in model.modules()]
    first = next(model.parameters(), None)
    home = None if first is None else first.device
    try:
        model.eval()
        if device is not None:
            model.to(device)
        with torch.no_grad():
            yield home if device is None else device
    finally:
        for module, training in modes:
            module.training = training  # each by itself: parts may have been frozen in evaluation mode
        if device is not None and home is not None:
            model.to(home)


def _split(batch: Any, number: int) -> tuple[Any, Any]:
    """Return the inputs and the labels of a batch, None where there are none."""
    if isinstance(batch, Mapping):
        return {name: value for name, value in batch.items() if name != _LABELS}, batch.get(_LABELS)
    if isinstance(batch, tuple | list):
        if len(batch) not in (1, 2):
            raise InputError(
                f"loader must give tensors, (inputs, labels) or dicts; batch {number} has {len(batch)} parts. "
                "Put a collate_fn into the loader that makes a dict of the model's arguments and 'labels'."
            )
        return batch[0], batch[1] if len(batch) == 2 else None
    if not hasattr(batch, "to"):
        raise InputError(
            f"loader must give tensors, (inputs, labels) or dicts; batch {number} is a {type(batch).__name__}."
        )
    return batch, None


def _call(model: Any, inputs: Any, device: Any) -> Any:
    """Call a model with inputs, moved to where it is."""

    def moved(value: Any) -> Any:
        return value.to(device) if device is not None and hasattr(value, "to") else value

    if isinstance(inputs, Mapping):
        return model(**{name: moved(value) for name, value in inputs.items()})
    return model(moved(inputs))


def _logits(given: Any, number: int) -> Any:
    """Return the logits in what a model gave as an array, shape (rows, c)."""
    logits = given.get("logits") if isinstance(given, Mapping) else getattr(given, "logits", given)
    if not hasattr(logits, "detach"):
        raise InputError(
            f"model must return a tensor, an object with .logits or a dict with 'logits'; got {type(given).__name__} "
            f"for batch {number}. Wrap the model in a module that returns the logits."
        )
    array = as_matrix(logits, "logits")
    if array.ndim != 2:
        raise InputError(f"model must return logits of shape (rows, classes); got {array.shape} for batch {number}.")
    return array
