"""How much memory a file may take when it is read: small files can unpack to any size, so that it is checked before."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from leadline.errors import InputError

JSON_GROWTH = 32  # times that JSON grows at most when it is read: [] is two bytes, and an empty list 56
_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,9})?) ?([KMGT]?B)?", re.IGNORECASE | re.ASCII)
_SHARE = 2  # what is read may take one in so many parts of the memory: methods need room too
_GROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # limits of containers


@dataclass(frozen=True)
class MemoryLimit:
    """How many bytes what is read from a file may take.

    Attributes
    ----------
    size
        The bytes.
    reason
        Whose limit it is.

    Examples
    --------
    >>> MemoryLimit.of("1.5 GB").size
    1500000000
    """

    size: int
    reason: str

    @classmethod
    def of(cls, given: int | str | Self | None) -> Self:
        """Return a limit that was given in bytes or as a text such as ``8GB``; None for half of the memory there is."""
        if isinstance(given, cls):
            return given
        if given is None:
            return cls(_machine_memory() // _SHARE, "half of the memory there is")
        found = _SIZE.fullmatch(str(given).strip())
        size = 0 if found is None else int(float(found[1]) * _UNITS[(found[2] or "B").upper()])
        if size < 1:
            raise InputError(f"memory_limit must be a size such as '8GB' or a number of bytes; got {given!r}.")
        return cls(size, "which was given")

    def require(self, needed: int, what: str) -> None:
        """Refuse what would take more; ``what`` begins the message."""
        if needed > self.size:
            raise InputError(
                f"{what} would take {in_words(needed)} of memory, more than the limit of {in_words(self.size)}, "
                f"{self.reason}; memory_limit='{math.ceil(needed / 10**9)}GB' would allow it."
            )


def in_words(size: int) -> str:
    """Return a number of bytes for people.

    Examples
    --------
    >>> in_words(79_000), in_words(9_600_000_000)
    ('79.0 kB', '9.6 GB')
    """
    for unit, name in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{size / unit:,.1f} {name}"
    return f"{size} bytes"


def _machine_memory() -> int:
    """Return the memory that this process may use: that of the machine, or of the container that it runs in."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")] if hasattr(os, "sysconf") else [16 * 10**9]
    for place in _GROUPS:
        text = Path(place).read_text().strip() if os.access(place, os.R_OK) else ""
        if text.isdecimal():
            found.append(int(text))
    return min(found)
