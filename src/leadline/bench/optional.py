"""Packages that only some suites need."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from leadline.errors import InputError

#: Packages that are installed by another name than they are imported by.
_DISTRIBUTIONS = {"sklearn": "scikit-learn"}


def need(package: str, reason: str) -> Any:
    """Import a package, or say in one line what to install.

    Examples
    --------
    >>> need("json", "reading results").loads("[1]")
    [1]
    """
    root = package.split(".", maxsplit=1)[0]
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        if error.name != root:
            raise
        raise InputError(f"{package} is needed for {reason}: pip install {_DISTRIBUTIONS.get(root, root)}") from error
