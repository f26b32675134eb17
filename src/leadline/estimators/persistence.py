"""A fitted estimator as one file: safetensors with JSON metadata, no pickle."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.data.columns import Columns
from leadline.data.files import write_bytes
from leadline.data.names import one_line
from leadline.errors import InputError
from leadline.estimators.auto import learn_anchors
from leadline.estimators.base import Estimator
from leadline.estimators.integrity import GIVEN, check_rows, check_state
from leadline.shift.source import SourceProfile
from leadline.version import __version__

FORMAT = "leadline-model"
FORMAT_VERSION = 2
_SOURCE = "source."  # before the names of the tensors that are the profile of the source

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
    write_bytes(path, to_bytes(estimator), force=force)


def to_bytes(estimator: Estimator) -> bytes:
    """Return what :func:`save` writes."""
    from safetensors.numpy import save as serialise

    metadata, tensors = _contents(estimator)
    return _sorted_header(serialise(tensors, metadata))


def checksum(estimator: Estimator) -> str:
    """Return the SHA-256 that the file of a fitted estimator states of its contents."""
    return _contents(estimator)[0]["checksum"]


def _contents(estimator: Estimator) -> tuple[dict[str, str], dict[str, NDArray[Any]]]:
    """Return metadata, with their checksum, and tensors of the file of a fitted estimator."""
    estimator._check_fitted()
    learned = estimator._learned()
    profile = vars(learned.pop("source_"))
    arrays = [field.name for field in fields(SourceProfile) if isinstance(profile[field.name], np.ndarray)]
    tensors = {name: np.ascontiguousarray(value) for name, value in learned.items() if isinstance(value, np.ndarray)}
    tensors |= {_SOURCE + name: np.ascontiguousarray(profile[name]) for name in arrays}
    scalars = {field.name: profile[field.name] for field in fields(SourceProfile) if field.name not in arrays}
    metadata = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "leadline_version": __version__,
        "numpy_version": np.__version__,
        "method": estimator.method,
        "n_classes": str(estimator.n_classes_),
        "params": _to_json(estimator.get_params(), "option"),
        "state": _to_json({name: value for name, value in learned.items() if name not in tensors}, "learned"),
        "source": _to_json(scalars, "learned"),
    }
    metadata["checksum"] = _checksum(metadata, tensors)
    return metadata, tensors


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
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{place} cannot be read ({one_line(error.strerror or error)}).") from error
    return from_bytes(data, place, methods=methods)


def from_bytes(
    data: bytes, place: str = "model", *, methods: Mapping[str, Callable[..., Estimator]] | None = None
) -> Estimator:
    """Return the estimator that :func:`to_bytes` gave; ``place`` is what errors call it."""
    metadata, tensors = _read(data, place)
    if metadata.get("format") != FORMAT:
        raise InputError(f"{place} was not written by Leadline; use a file made by `leadline fit`.")
    version = metadata.get("format_version", "")
    if re.fullmatch(r"\d{1,9}", version) and int(version) > FORMAT_VERSION:
        raise InputError(
            f"{place} has format {version}, newer than {FORMAT_VERSION}, the newest that Leadline {__version__} reads; "
            f"it was written by Leadline {one_line(metadata.get('leadline_version'))}. Upgrade Leadline."
        )
    if version not in ("1", str(FORMAT_VERSION)) or metadata.pop("checksum", None) != _checksum(metadata, tensors):
        raise InputError(f"{place} is damaged: its contents do not match its checksum. Make it again.")
    try:
        # Options that are sequences are tuples again, as constructors have them.
        params = {k: tuple(v) if isinstance(v, list) else v for k, v in _from_json(metadata["params"]).items()}
        state: dict[str, Any] = _from_json(metadata["state"]) | tensors
        if "widths_" in state and "folds_" not in state:  # ALSA knew only the paper's cosines and one fit
            params = {"geometry": "cosine", "folds": 1} | params
            state |= {"folds_": 1, "lift_": 0.0, "correction_": 0.0}
        estimator = _make(metadata["method"], params, methods)
        estimator._check_options()
        state = _with_profile(state, _from_json(metadata["source"])) if version != "1" else _from_first(state)
        if metadata["method"] == "auto" and "anchors_" not in state:  # it did not read ALSA then
            state |= learn_anchors(state["source_"])
    except InputError as error:
        raise InputError(f"{place}: {one_line(error, most=600)}") from error
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InputError(f"{place} is damaged: its metadata do not say what it holds ({one_line(error)}).") from error
    missing = sorted(set(_declared(type(estimator))) - set(state))
    if missing:
        raise InputError(
            f"{place} lacks {', '.join(missing)}, which {type(estimator).__name__} of Leadline {__version__} needs; "
            f"it was written by Leadline {one_line(metadata.get('leadline_version'))}. Fit and save again."
        )
    strange = sorted(name for name in state if not _LEARNED_NAME.fullmatch(name))
    if strange or str(state["n_classes_"]) != metadata.get("n_classes"):
        raise InputError(f"{place} is damaged: it holds no consistent state of {type(estimator).__name__}.")
    try:
        check_state(state, _declared(type(estimator)))
        for name, value in state.items():
            setattr(estimator, name, value)
        estimator._check_learned()
    except (ValueError, TypeError) as error:
        raise InputError(f"{place} is damaged: {one_line(error)}. Make it again.") from error
    return estimator


def _with_profile(state: dict[str, Any], scalars: dict[str, Any]) -> dict[str, Any]:
    """Return learned state with the profile of the source put together from its parts."""
    arrays = {name.removeprefix(_SOURCE): state.pop(name) for name in list(state) if name.startswith(_SOURCE)}
    columns = state["columns_"]
    return state | {
        "source_": _profile(arrays | scalars),
        "classes_": tuple(state["classes_"]),
        "columns_": None if columns is None else Columns(**columns),
    }


def _profile(parts: dict[str, Any]) -> SourceProfile:
    """Return the profile of the source; of a file from before it knew all that it does now, learned again."""
    if "gaps" in parts:
        return SourceProfile(**{field.name: parts[field.name] for field in fields(SourceProfile)})
    return _learned_again({name: parts[name] for name in GIVEN if name in parts})


def _learned_again(given: dict[str, Any]) -> SourceProfile:
    """Return the profile of the source learned from what is stored, if that can be learned from."""
    check_rows(given)
    return SourceProfile.learn(**given)


def _from_first(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state in a file of format 1, which kept rows of the source and left learning from them for later."""
    names = {"logits": "source_logits_", "labels": "source_labels_", "marginal": "source_marginal_"}
    names |= {"accuracy": "source_accuracy_", "n_rows": "n_source_"}
    profile = _learned_again({name: state.pop(old) for name, old in names.items()})
    if "widths_" in state:  # ALSA did not note then how its search for widths went
        state.setdefault("width_search_", "unknown")
    return state | {"source_": profile, "classes_": tuple(range(state["n_classes_"])), "columns_": None}


def _read(data: bytes, place: str) -> tuple[dict[str, str], dict[str, NDArray[Any]]]:
    """Return metadata and tensors of a safetensors file."""
    from safetensors import SafetensorError
    from safetensors.numpy import load as deserialise

    try:
        tensors = deserialise(data)
        return _header(data)[0].get("__metadata__", {}), tensors
    except (SafetensorError, AttributeError, KeyError, TypeError, ValueError) as error:  # types that NumPy lacks
        raise InputError(f"{place} is damaged or not a Leadline model ({one_line(error)}).") from error


def _header(data: bytes) -> tuple[dict[str, Any], int]:
    """Return the header of a safetensors file and where it ends.

    The file is the length of the header (8 bytes, little endian), the header as JSON padded by spaces to a multiple of
    8 bytes, and the tensors at offsets that count from the end of the header.
    """
    end = 8 + int.from_bytes(data[:8], "little")
    return json.loads(data[8:end]), end


def _make(name: str, params: dict[str, Any], methods: Mapping[str, Callable[..., Estimator]] | None) -> Estimator:
    """Make an estimator, from the table given or that of Leadline."""
    from leadline.estimators.registry import METHODS

    methods = METHODS if methods is None else methods
    if name not in methods:
        raise InputError(
            f"method must be one of {', '.join(methods)}; got {name!r}. If another package adds it, install that."
        )
    return methods[name](**params)


def _declared(cls: type[Estimator]) -> dict[str, Any]:
    """Return the learned attributes that a class and its bases declare, by name, with their types."""
    kinds = {name: kind for base in reversed(cls.__mro__) for name, kind in inspect.get_annotations(base).items()}
    return {name: kind for name, kind in kinds.items() if _LEARNED_NAME.fullmatch(name)}


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
    if isinstance(value, Columns):
        return asdict(value)
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
    """Return a safetensors file with the keys of its header sorted; the library leaves metadata in random order."""
    entries, end = _header(data)
    header = json.dumps(entries, sort_keys=True, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + data[end:]
