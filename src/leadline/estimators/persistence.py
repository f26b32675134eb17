"""A fitted estimator as one file: safetensors with JSON metadata, no pickle."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.data.arrays import one_line
from leadline.data.files import write_bytes
from leadline.errors import InputError
from leadline.estimators.base import Estimator
from leadline.version import __version__

FORMAT = "leadline-model"
FORMAT_VERSION = 1

_LEARNED_NAME = re.compile(r"[a-zA-Z]\w*_", re.ASCII)


def save(estimator: Estimator, path: str | Path, *, force: bool = False) -> None:
    """Write a fitted estimator to ``path``.

    Learned arrays become tensors; options and learned scalars become JSON in the metadata, along with a checksum. Equal
    estimators make equal files, byte by byte.

    Parameters
    ----------
    estimator
        Any fitted estimator.
    path
        The file to write.
    force
        Overwrite a file that exists.
    """
    from safetensors.numpy import save as to_bytes

    estimator._check_fitted()
    learned = estimator._learned()
    tensors = {name: np.ascontiguousarray(value) for name, value in learned.items() if isinstance(value, np.ndarray)}
    metadata = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "leadline_version": __version__,
        "numpy_version": np.__version__,
        "method": estimator.method,
        "n_classes": str(estimator.n_classes_),
        "params": _to_json(estimator.get_params(), "option"),
        "state": _to_json({name: value for name, value in learned.items() if name not in tensors}, "learned"),
    }
    metadata["checksum"] = _checksum(metadata, tensors)
    write_bytes(path, _sorted_header(to_bytes(tensors, metadata)), force=force)


def load(path: str | Path, *, methods: Mapping[str, Callable[..., Estimator]] | None = None) -> Estimator:
    """Read an estimator that :func:`save` wrote.

    Parameters
    ----------
    path
        The file to read. A missing, damaged or foreign file, or one of a newer format, is an ``InputError``.
    methods
        How to make an estimator of each method, by name; None for ``leadline.METHODS``. Give it to load estimators of
        your own.
    """
    path = Path(path)
    place = f"model file {one_line(path, most=1000)}"
    if not path.is_file():
        raise InputError(f"{place} does not exist." if not path.exists() else f"{place} is not a regular file.")
    metadata, tensors = _read(path, place)
    if metadata.get("format") != FORMAT:
        raise InputError(f"{place} was not written by Leadline; use a file made by `leadline fit`.")
    version = metadata.get("format_version", "")
    if re.fullmatch(r"\d{1,9}", version) and int(version) > FORMAT_VERSION:
        raise InputError(
            f"{place} has format {version}, newer than {FORMAT_VERSION}, the newest that Leadline {__version__} reads; "
            f"it was written by Leadline {one_line(metadata.get('leadline_version'))}. Upgrade Leadline."
        )
    if version != str(FORMAT_VERSION) or metadata.pop("checksum", None) != _checksum(metadata, tensors):
        raise InputError(f"{place} is damaged: its contents do not match its checksum. Make it again.")
    try:
        # Options that are sequences are tuples again, as constructors have them.
        params = {k: tuple(v) if isinstance(v, list) else v for k, v in _from_json(metadata["params"]).items()}
        estimator = _make(metadata["method"], params, methods)
        state: dict[str, Any] = _from_json(metadata["state"]) | tensors
    except InputError as error:
        raise InputError(f"{place}: {one_line(error, most=600)}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{place} is damaged: its metadata do not say what it holds ({one_line(error)}).") from error
    missing = sorted(_declared(type(estimator)) - set(state))
    if missing:
        raise InputError(
            f"{place} lacks {', '.join(missing)}, which {type(estimator).__name__} of Leadline {__version__} needs; "
            f"it was written by Leadline {one_line(metadata.get('leadline_version'))}. Fit and save again."
        )
    strange = sorted(name for name in state if not _LEARNED_NAME.fullmatch(name))
    if strange or str(state["n_classes_"]) != metadata.get("n_classes"):
        raise InputError(f"{place} is damaged: it holds no consistent state of {type(estimator).__name__}.")
    for name, value in state.items():
        setattr(estimator, name, value)
    return estimator


def _read(path: Path, place: str) -> tuple[dict[str, str], dict[str, NDArray[Any]]]:
    """Return metadata and tensors of a safetensors file."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            return file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no dict
    except (SafetensorError, OSError, AttributeError, TypeError) as error:  # the last two: types that NumPy lacks
        raise InputError(f"{place} is damaged or not a Leadline model ({one_line(error)}).") from error


def _make(name: str, params: dict[str, Any], methods: Mapping[str, Callable[..., Estimator]] | None) -> Estimator:
    """Make an estimator, from the table given or that of Leadline."""
    from leadline.estimators.registry import METHODS

    methods = METHODS if methods is None else methods
    if name not in methods:
        raise InputError(
            f"method must be one of {', '.join(methods)}; got {name!r}. If another package adds it, install that."
        )
    return methods[name](**params)


def _declared(cls: type[Estimator]) -> set[str]:
    """Return the names of the learned attributes that a class and its bases declare."""
    names = {name for base in cls.__mro__ for name in inspect.get_annotations(base)}
    return {name for name in names if _LEARNED_NAME.fullmatch(name)}


def _to_json(values: dict[str, Any], kind: str) -> str:
    """Return values by name as JSON, in the order of the names."""
    for name, value in values.items():
        try:
            json.dumps(value, default=_plain)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"{kind} {name} must be an array or a plain value to be saved; got {type(value).__name__}."
            ) from error
    return json.dumps(values, default=_plain, sort_keys=True)


def _plain(value: Any) -> Any:
    """Return what JSON has no word for as what it has."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, set | frozenset):
        return sorted(value)
    raise TypeError


def _from_json(text: str) -> dict[str, Any]:
    """Return values by name from JSON."""
    values = json.loads(text)
    if not isinstance(values, dict):
        raise TypeError(f"{type(values).__name__} in place of names and values")
    return values


def _checksum(metadata: Mapping[str, str], tensors: Mapping[str, NDArray[Any]]) -> str:
    """Return the SHA-256 of all that a file holds."""
    digest = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _sorted_header(data: bytes) -> bytes:
    """Return a safetensors file with the keys of its header sorted; the library leaves metadata in random order.

    The file is the length of the header (8 bytes, little endian), the header as JSON padded by spaces to a multiple of
    8 bytes, and the tensors at offsets that count from the end of the header.
    """
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.dumps(json.loads(data[8:end]), sort_keys=True, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + data[end:]
