"""Compiled loops: where they are kept from one process to the next, and what is said of it.

Numba keeps them beside their file, or else in the home directory. A container may let neither be written. Then they are
kept among the temporary files, in a directory that is this user's alone, because what is kept is run; where there is no
such place either, every process compiles its own.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")  # the last can be written even where all of a container is read-only
_log = logging.getLogger(__name__)


def load_loops(name: str) -> Any:
    """Import a module of compiled loops, from where they are kept if they are.

    Parameters
    ----------
    name
        The full name of a module whose functions Numba compiles, and keeps, when it is imported.
    """
    if name in sys.modules:
        return import_module(name)  # waits for another thread that is at it
    with _taking_turns():
        try:
            with _announced():
                return import_module(name)
        except RuntimeError as error:
            if "no locator available" not in str(error):
                raise
        place = _private_place()
        if place is None:
            _log.warning(
                "no directory can be written to keep compiled kernels in: every process compiles them, for about 5 s; "
                "set NUMBA_CACHE_DIR to a directory of your own."
            )
            with _not_kept():
                return import_module(name)
        _log.warning(
            "compiled kernels are kept in %s, as neither the package nor a home can be written; "
            "set NUMBA_CACHE_DIR to a directory of your own to keep them elsewhere.",
            place,
        )
        with _kept_in(place):
            _take_along(name, place)
            return import_module(name)


def _announced() -> AbstractContextManager[None]:
    """Log, meanwhile, that something is compiled before the first time that it is."""
    event: Any = import_module("numba.core.event")

    class Announcement(event.Listener):  # type: ignore[misc]
        made = False

        def on_start(self, event: Any) -> None:
            if not self.made:
                _log.info("compiling kernels once, about 5 s")
            self.made = True

        def on_end(self, event: Any) -> None:
            """Say nothing."""

    listening: AbstractContextManager[None] = event.install_listener("numba:compile", Announcement())
    return listening


def _private_place() -> Path | None:
    """Return a directory among the temporary files that only this user can read and write; None where there is none."""
    if not hasattr(os, "getuid"):
        return None
    for parent in filter(None, (os.environ.get("TMPDIR"), *_TEMPORARY)):
        place = Path(parent, f"leadline-kernels-{os.getuid()}")
        try:
            place.mkdir(mode=0o700, exist_ok=True)
            found = place.lstat()
        except OSError:
            continue
        own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
        if own and os.access(place, os.W_OK):
            return place
    return None


def _take_along(name: str, place: Path) -> None:
    """Copy what is kept beside the loops' file: Numba does not look where it cannot write."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        return
    folder = Path(spec.origin).absolute().parent
    # Numba's own name for it; under another one, the loops are compiled again.
    copy = place / f"{folder.name}_{hashlib.sha1(str(folder).encode(), usedforsecurity=False).hexdigest()}"
    unfinished = place / f"{copy.name}.{os.getpid()}"
    if copy.exists():
        return
    with suppress(OSError, shutil.Error):
        shutil.copytree(folder / "__pycache__", unfinished, ignore=shutil.ignore_patterns("*.pyc"))
        unfinished.chmod(0o700)
        unfinished.rename(copy)
    shutil.rmtree(unfinished, ignore_errors=True)


@contextmanager
def _kept_in(place: Path) -> Iterator[None]:
    """Let Numba keep what is compiled meanwhile in a directory."""
    config: Any = import_module("numba.core.config")

    before, config.CACHE_DIR = config.CACHE_DIR, str(place)
    try:
        yield
    finally:
        config.CACHE_DIR = before


@contextmanager
def _not_kept() -> Iterator[None]:
    """Let Numba keep nothing of what is compiled meanwhile, whatever the functions ask for."""
    dispatcher: Any = import_module("numba.core.registry").CPUDispatcher
    enable = dispatcher.enable_caching
    dispatcher.enable_caching = lambda _: None
    try:
        yield
    finally:
        dispatcher.enable_caching = enable


@lru_cache(maxsize=1)
def _taking_turns() -> threading.Lock:
    return threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_taking_turns.cache_clear)  # a thread that is gone may have held it
