"""Outputs of an ONNX Runtime session: tensors, and the maps from class to probability that converters append."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.data.arrays import as_matrix
from leadline.data.names import brief, one_line
from leadline.data.outputs import Outputs
from leadline.errors import InputError
from leadline.integrations.kinds import Kind, check_kind, labels_by_class, outputs_of_kind

_FLOATS = ("tensor(float)", "tensor(double)", "tensor(float16)")
_MAPS = "seq(map"
_NARROWED = {"tensor(float)": np.float32, "tensor(float16)": np.float16}  # NumPy's own default is float64


def from_onnx(
    session: Any,
    inputs: Any,
    labels: Any = None,
    classes: Sequence[str] | None = None,
    *,
    kind: Kind | None = None,
    output: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    batch_size: int = 1024,
) -> Outputs:
    """Run an ONNX Runtime session over rows, in batches, and keep what it gives out.

    Parameters
    ----------
    session
        An ``onnxruntime.InferenceSession``.
    inputs
        The n rows: an array for a session with one input, else a dict from the name of each input to its array.
    labels
        Shape (n,): the true classes; for outputs that are maps, as keys of the maps.
    classes
        Names of the classes in the order of the outputs' columns; maps bring their own.
    kind
        What the output is: ``"logits"``, ``"probabilities"`` or, for two classes, ``"scores"``. None for what nearly
        every exporter writes: logits in a tensor, probabilities in maps.
    output
        The name of the output; None for the only one that holds real numbers or maps.
    metadata
        Further columns, as for ``Outputs``.
    batch_size
        Rows at a time; a session whose first dimension is fixed is given as many as it wants.

    Examples
    --------
    Not run, as it needs a model file; docs/your-model.md is run with one.

    >>> import onnxruntime  # doctest: +SKIP
    >>> session = onnxruntime.InferenceSession("model.onnx")  # doctest: +SKIP
    >>> outputs = from_onnx(session, rows, kind="probabilities")  # doctest: +SKIP
    """
    if not (hasattr(session, "run") and hasattr(session, "get_outputs")):
        raise InputError(f"session must be an onnxruntime.InferenceSession; got {type(session).__name__}.")
    if kind is not None:
        check_kind(kind)
    if batch_size < 1:
        raise InputError(f"batch_size must be at least 1; got {batch_size}.")
    name, has_maps = _output(session, output)
    parts = [_run(session, name, batch) for batch in _batches(session, inputs, batch_size)]
    if not has_maps:
        values = np.concatenate([np.asarray(part) for part in parts])
        if kind == "scores" and values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        return outputs_of_kind(kind or "logits", values, labels, metadata, classes)
    maps = [row for part in parts for row in part]
    keys = _keys(maps, classes, name)
    return outputs_of_kind(
        kind or "probabilities",
        np.array([[row[key] for key in keys] for row in maps]),
        None if labels is None else labels_by_class(labels, keys, "labels"),
        metadata,
        [str(key) for key in keys],
    )


def _output(session: Any, output: str | None) -> tuple[str, bool]:
    """Return the name of the output to take, and whether it holds maps."""
    types = {found.name: str(found.type) for found in session.get_outputs()}
    able = [name for name, kind in types.items() if kind in _FLOATS or kind.startswith(_MAPS)]
    if output is not None and output not in able:
        raise InputError(
            f"output must be one of real numbers or maps, here {brief(able)}; got {output!r}, "
            f"which is {types.get(output, 'not there')}."
        )
    if output is None and len(able) != 1:
        raise InputError(
            f"output must be named where not exactly one holds real numbers or maps; the session has {brief(able)}. "
            "Give `output`."
        )
    name = output or able[0]
    return name, types[name].startswith(_MAPS)


def _batches(session: Any, inputs: Any, batch_size: int) -> Iterator[dict[str, NDArray[Any]]]:
    """Cut the inputs into what the session takes at a time."""
    wanted = {found.name: found for found in session.get_inputs()}
    if not isinstance(inputs, Mapping):
        if len(wanted) != 1:
            raise InputError(f"inputs must be a dict with an array for each of {brief(wanted)}; got one array.")
        inputs = {next(iter(wanted)): inputs}
    if set(inputs) != set(wanted):
        raise InputError(f"inputs must have the names {brief(wanted)}; got {brief(inputs)}.")
    arrays = {name: _typed(as_matrix(inputs[name], f"input {name!r}"), wanted[name].type) for name in wanted}
    lengths = {len(array) if array.ndim else 0 for array in arrays.values()}
    if len(lengths) != 1 or lengths == {0}:
        raise InputError(f"inputs must have the same number of rows, at least one; got {brief(sorted(lengths))}.")
    fixed = next((found.shape[0] for found in wanted.values() if found.shape), None)
    step = fixed if isinstance(fixed, int) and fixed > 0 else batch_size
    for start in range(0, lengths.pop(), step):
        yield {name: array[start : start + step] for name, array in arrays.items()}


def _typed(array: NDArray[Any], kind: str) -> NDArray[Any]:
    """Return real numbers in the precision that a session wants; everything else as it is."""
    return array.astype(_NARROWED[kind], copy=False) if array.dtype.kind == "f" and kind in _NARROWED else array


def _run(session: Any, name: str, batch: Mapping[str, NDArray[Any]]) -> Any:
    """Run a session on a batch; its complaints are about the inputs."""
    try:
        return session.run([name], dict(batch))[0]
    except Exception as error:  # the runtime's errors have no base class of their own
        if not type(error).__module__.startswith("onnxruntime") and not isinstance(error, ValueError):
            raise
        shapes = {input_name: array.shape for input_name, array in batch.items()}
        raise InputError(
            f"inputs must be what the session takes; got shapes {shapes}, and it says: {one_line(error)}"
        ) from error


def _keys(maps: Sequence[Mapping[Any, float]], classes: Sequence[str] | None, name: str) -> list[Any]:
    """Return the keys that all maps have: in the order of ``classes``, or in that of the first map."""
    keys = list(maps[0])
    odd = next((row for row, found in enumerate(maps) if set(found) != set(keys)), None)
    if odd is not None:
        raise InputError(
            f"output {name!r} must have the same classes in every row, {brief(keys)}; row {odd} has {brief(maps[odd])}."
        )
    if classes is None:
        return keys
    by_name = {str(key): key for key in keys}
    if sorted(map(str, classes)) != sorted(by_name):
        raise InputError(f"classes must be those of the output, {brief(by_name)}; got {brief(classes)}.")
    return [by_name[str(label)] for label in classes]
