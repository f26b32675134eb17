"""Outputs as named arrays, and the files that hold arrays: ``.npy``, ``.npz``, ``.safetensors``."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.data.columns import Columns
from leadline.data.memory import JSON_GROWTH
from leadline.data.names import brief
from leadline.data.outputs import Outputs
from leadline.data.tables import CLASSES_KEY, Contents, Reading, parse_classes
from leadline.data.texts import parse_json
from leadline.errors import InputError

# Keys in the metadata of a safetensors file, each a JSON object: column to values, and column to NumPy type.
_TEXT_KEY, _TIME_KEY = "leadline.metadata", "leadline.times"


@dataclass(frozen=True)
class Stored:
    """An array in a file: its shape, and how many bytes it takes."""

    shape: tuple[int, ...]
    size: int


def _from_arrays(
    stored: Mapping[str, Stored], load: Callable[[str], NDArray[Any]], columns: Columns, reading: Reading
) -> Contents:
    """Take values, labels and columns of one value for each row from named arrays; load no others."""
    shapes = {name: one.shape for name, one in stored.items()}
    names = list(shapes)
    found = columns.find(names)
    if found[0] not in shapes or len(found) > 1:
        raise InputError(f"{columns.kind} must be one array in such a file; got {brief(found)}.")
    label, prediction, rows = columns.label_in(names), columns.prediction_in(names), shapes[found[0]][:1]
    others = [name for name, shape in shapes.items() if shape == rows and name not in (found[0], label, "classes")]
    wanted = {found[0], label, prediction, "classes", *others}
    reading.limit.require(sum(one.size for name, one in stored.items() if name in wanted), "it")
    return Contents(
        values=load(found[0]),
        labels=None if label is None else load(label),
        metadata={name: load(name) for name in others},
        classes=[str(item) for item in load("classes")] if "classes" in shapes else None,
        predictions=None if prediction is None else load(prediction),
    )


def read_npy(path: Path, columns: Columns, reading: Reading) -> Contents:
    """Map an array of values; a header that claims more than the file holds is refused."""
    del columns  # one array has no name
    values = np.lib.format.open_memmap(path, mode="r")
    if values.dtype not in (np.float32, np.float64):  # which stay on disk; others become one of them
        reading.limit.require(values.size * np.dtype(np.float64).itemsize, "it")
    return Contents(values)


def write_npy(outputs: Outputs, path: Path) -> None:
    """Write logits alone; anything more would be lost, and is refused."""
    parts = (("labels", outputs.labels), ("metadata", outputs.metadata), ("classes", outputs.classes))
    lost = [name for name, part in parts if part is not None and len(part)]
    if lost:
        raise InputError(
            f"holds logits alone; {' and '.join(lost)} would be lost. Write .npz, .parquet or .safetensors."
        )
    with path.open("xb") as stream:
        np.lib.format.write_array(stream, outputs.logits, allow_pickle=False)


def read_npz(path: Path, columns: Columns, reading: Reading) -> Contents:
    """Read an archive of arrays; a pickled one is refused by its header, before anything is loaded."""
    with zipfile.ZipFile(path) as archive:
        arrays = [info for info in archive.infolist() if info.filename.endswith(".npy")]
        members = {info.filename.removesuffix(".npy"): info for info in arrays}

        def load(name: str) -> NDArray[Any]:
            with archive.open(members[name]) as stream:
                return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))

        stored = {name: _header(archive, name, info) for name, info in members.items()}
        return _from_arrays(stored, load, columns, reading)


def write_npz(outputs: Outputs, path: Path) -> None:
    """Write an archive of arrays, uncompressed; text becomes arrays of Unicode."""
    arrays: dict[str, NDArray[Any]] = {"logits": outputs.logits}
    if outputs.labels is not None:
        arrays["labels"] = outputs.labels
    if outputs.classes is not None:
        arrays["classes"] = _unicode(np.array(outputs.classes, dtype=object), "classes")
    for name, values in outputs.metadata.items():
        arrays[name] = _unicode(values, f"metadata column {name!r}") if values.dtype.kind in "OT" else values
    with zipfile.ZipFile(path, "x") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, array, allow_pickle=False)


def _header(archive: zipfile.ZipFile, name: str, info: zipfile.ZipInfo) -> Stored:
    """Return shape and size of an array in an archive; refuse objects and headers that cannot be true."""
    with archive.open(info) as stream:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(stream)
    if dtype.hasobject:
        raise InputError(f"array {name!r} holds pickled objects, which are never loaded; store text as Unicode arrays.")
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize > info.file_size:
        raise InputError(f"array {name!r} claims the shape {shape}, more than its {info.file_size} bytes can hold.")
    return Stored(tuple(shape), info.file_size)


def _unicode(values: NDArray[Any], name: str) -> NDArray[Any]:
    """Return text as an array that needs no pickle, and refuse what it cannot hold."""
    texts = values.tolist()
    if all(isinstance(text, str) for text in texts):
        array = np.array(texts, dtype=np.str_)
        if array.tolist() == texts:
            return array
    raise InputError(
        f"{name} must be numbers, times or text without missing values to be stored in .npz; write .parquet instead."
    )


def read_safetensors(path: Path, columns: Columns, reading: Reading) -> Contents:
    """Read tensors; text columns and the names of the classes are JSON in the metadata."""
    from safetensors import safe_open

    with path.open("rb") as stream:
        header = min(int.from_bytes(stream.read(8), "little"), path.stat().st_size)
    reading.limit.require(JSON_GROWTH * header, "its header")
    with safe_open(path, framework="numpy") as file:
        stored = {name: _tensor(file.get_slice(name)) for name in file.keys()}  # noqa: SIM118 - no dict

        def load(name: str) -> NDArray[Any]:
            if file.get_slice(name).get_dtype() == "BF16":
                return _bfloat16(path, name)
            return np.asarray(file.get_tensor(name))

        notes = file.metadata() or {}
        contents = _from_arrays(stored, load, columns, reading)
    metadata = dict(contents.metadata)
    for name, dtype in parse_json(notes.get(_TIME_KEY, "{}")).items():
        metadata[name] = metadata[name].view(dtype)
    for name, values in parse_json(notes.get(_TEXT_KEY, "{}")).items():
        metadata[name] = np.fromiter(values, dtype=object, count=len(values))
    named = notes.get(CLASSES_KEY)
    return replace(contents, metadata=metadata, classes=contents.classes if named is None else parse_classes(named))


def _tensor(part: Any) -> Stored:
    """Return shape and size of a tensor; no type has more than eight bytes."""
    shape = tuple(part.get_shape())
    return Stored(shape, 8 * math.prod(shape))


def write_safetensors(outputs: Outputs, path: Path) -> None:
    """Write numbers and times as tensors, text columns and class names as JSON in the metadata."""
    from safetensors.numpy import save_file

    tensors: dict[str, NDArray[Any]] = {"logits": outputs.logits}
    texts: dict[str, list[Any]] = {}
    times: dict[str, str] = {}
    if outputs.labels is not None:
        tensors["labels"] = outputs.labels
    for name, values in outputs.metadata.items():
        if values.dtype.kind in "OUT":
            texts[name] = values.tolist()
        elif values.dtype.kind in "mM":
            native = values.astype(values.dtype.newbyteorder("="))
            tensors[name], times[name] = native.view(np.int64), native.dtype.name
        else:
            tensors[name] = values.astype(values.dtype.newbyteorder("="), copy=False)
    notes = {_TEXT_KEY: texts, _TIME_KEY: times, CLASSES_KEY: outputs.classes}
    save_file(
        {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()},
        path,
        {key: json.dumps(note) for key, note in notes.items() if note},
    )


def _bfloat16(path: Path, name: str) -> NDArray[np.float32]:
    """Widen a tensor of bfloat16, which NumPy does not have: the upper half of a float32."""
    from safetensors import deserialize

    tensor = dict(deserialize(path.read_bytes()))[name]  # type: ignore[no-untyped-call]
    upper = np.frombuffer(tensor["data"], dtype="<u2").astype(np.uint32)
    return (upper << 16).view(np.float32).reshape(tensor["shape"])
