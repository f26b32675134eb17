"""Packages that only some suites need."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from leadline.errors import InputError


def need(package: str, reason: str) -> Any:
    """Import a package, or say in one line what to install.

    Examples
    --------
    >>> need("json", "reading results").loads("[1]")
    [1]
    """
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package.split(".", maxsplit=1)[0]:
            raise
        raise InputError(
            f"{package} is needed for {reason}: pip install {package.split('.', maxsplit=1)[0]}"
        ) from error
