"""A fitted estimator as one file: safetensors with JSON metadata, no pickle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from leadline.errors import InputError
from leadline.estimators.base import Estimator
from leadline.files import write_bytes
from leadline.version import __version__

FORMAT = "leadline-model"
FORMAT_VERSION = 1


def save(estimator: Estimator, path: str | Path, *, force: bool = False) -> None:
    """Write a fitted estimator to ``path``.

    Learned arrays become tensors; options and learned scalars become JSON in the metadata.

    Parameters
    ----------
    estimator
        Any fitted estimator of ``leadline.METHODS``.
    path
        The file to write.
    force
        Overwrite a file that exists.
    """
    from safetensors.numpy import save as to_bytes

    estimator._check_fitted()
    learned = {name: value for name, value in vars(estimator).items() if name.endswith("_")}
    tensors = {name: np.ascontiguousarray(value) for name, value in learned.items() if isinstance(value, np.ndarray)}
    scalars = {name: value for name, value in learned.items() if name not in tensors}
    metadata = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "leadline_version": __version__,
        "numpy_version": np.__version__,
        "method": estimator.method,
        "n_classes": str(estimator.n_classes_),
        "params": json.dumps({name: _plain(value) for name, value in estimator.get_params().items()}),
        "state": json.dumps(scalars),
    }
    write_bytes(path, to_bytes(tensors, metadata), force=force)


def load(path: str | Path) -> Estimator:
    """Read an estimator that :func:`save` wrote.

    Parameters
    ----------
    path
        The file to read. A missing, damaged or foreign file, or one of a newer format, is an ``InputError``.
    """
    from safetensors import SafetensorError, safe_open

    from leadline.estimators import make

    path = Path(path)
    if not path.is_file():
        raise InputError(f"model file {path} does not exist.")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    except (SafetensorError, OSError) as error:
        raise InputError(f"model file {path} is damaged or not a Leadline model ({error}).") from error
    if metadata.get("format") != FORMAT:
        raise InputError(f"model file {path} was not written by Leadline; use a file made by `leadline fit`.")
    version = int(metadata.get("format_version", "0"))
    if version > FORMAT_VERSION:
        raise InputError(
            f"model file {path} has format {version}, newer than {FORMAT_VERSION}, the newest that Leadline "
            f"{__version__} reads; it was written by Leadline {metadata.get('leadline_version')}. Upgrade Leadline."
        )
    try:
        estimator = make(metadata["method"], **json.loads(metadata["params"]))
        state: dict[str, Any] = json.loads(metadata["state"]) | tensors
    except (KeyError, json.JSONDecodeError) as error:
        raise InputError(f"model file {path} is damaged: its metadata does not say what it holds ({error}).") from error
    for name, value in state.items():
        setattr(estimator, name, value)
    estimator._check_fitted()
    return estimator


def _plain(value: Any) -> Any:
    """Return an option as JSON can hold it."""
    if isinstance(value, np.generic):
        return value.item()
    return sorted(value) if isinstance(value, set | frozenset) else value
