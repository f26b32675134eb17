"""Figures and reports; the only part that needs matplotlib (extra ``report``)."""

from __future__ import annotations

from importlib.util import find_spec

from leadline.errors import InputError


def require_matplotlib() -> None:
    """Say how to get what figures need, where it is missing."""
    if find_spec("matplotlib") is None:
        raise InputError("figures and reports need matplotlib; install it with: pip install 'leadline[report]'")
